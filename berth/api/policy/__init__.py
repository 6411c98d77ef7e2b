# SPDX-License-Identifier: Apache-2.0
"""Who may do what: the rules with their defaults, and their cheap evaluation.

The entry points of oslo.policy's tools name `list_rules` and `get_enforcer` here.
"""

from berth.api.policy.enforcement import Policy, check_policy
from berth.api.policy.rules import (
    create_enforcer,
    get_enforcer,
    list_rules,
    named_roles,
    print_sample,
    unknown_rules,
)

__all__ = [
    "Policy",
    "check_policy",
    "create_enforcer",
    "get_enforcer",
    "list_rules",
    "named_roles",
    "print_sample",
    "unknown_rules",
]

# SPDX-License-Identifier: Apache-2.0
"""The table of routes against the specification's list and the policy's rules."""

from __future__ import annotations

import itertools

from berth.api.operations import OPERATIONS
from berth.api.policy import ROUTE_RULES, list_rules
from berth.api.routes import ROUTES
from tests.routes import PUBLIC, minor
from tests.routes import ROUTES as SPECIFIED


def test_the_routes_are_those_of_the_specification() -> None:
    """Paths, methods in the order of `Allow`, and the microversion that each began with."""
    served = [
        (route.path, method, operations[0].since)
        for route in ROUTES
        for method, operations in route.methods.items()
    ]
    assert served == [
        (route.template, method, minor(route.since_for(method)))
        for route in SPECIFIED
        for method in route.methods
    ]


def test_every_operation_on_the_fleet_has_a_rule() -> None:
    """The rule of each operation is the one whose documentation names it."""
    documented = {
        operation: rule for rule, _, _, operations in ROUTE_RULES for operation in operations
    }
    enforced = {
        (method, route.path): operation.rule
        for route in ROUTES
        for method, operations in route.methods.items()
        for operation in operations
    }
    enforced |= {("GET", path): rule for path, rule in OPERATIONS.items()}
    open_to_all = [*PUBLIC, *(path for path, rule in OPERATIONS.items() if rule is None)]
    assert [enforced.pop(("GET", path)) for path in open_to_all] == [None] * len(open_to_all)
    assert enforced == documented


def test_operations_of_one_method_follow_upon_each_other() -> None:
    """No microversion is served twice, and none between two others is left out."""
    for route in ROUTES:
        for operations in route.methods.values():
            for earlier, later in itertools.pairwise(operations):
                assert later.since == earlier.until + 1
            assert operations[-1].until == 39


def test_every_rule_is_known_to_the_policy_tools() -> None:
    """The base rules and one for each operation."""
    names = [rule.name for rule in list_rules()]
    assert len(names) == len(set(names)) == 5 + len(ROUTE_RULES)

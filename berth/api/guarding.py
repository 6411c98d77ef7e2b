# SPDX-License-Identifier: Apache-2.0
"""The policy rules of the declared operations.

Separate from `berth.api.policy`, so that completing a rule's name does not import oslo.policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from berth.api.namespaces import NAMESPACES
from berth.api.operation import Namespace, Rule

#: Guards the metrics, which are not part of the API.
METRICS: Final = Rule(
    "berth:metrics", "rule:admin_or_service_api or role:auditor", "Read the metrics."
)
METRICS_PATH: Final = "/metrics"

#: The order of the rules of one resource in the sample.
_VERBS: Final = ("manage", "list", "create", "show", "update", "delete")


@dataclass(frozen=True, slots=True)
class Guarding:
    """A rule, and the requests that it guards."""

    rule: Rule
    #: Method and path template.
    requests: tuple[tuple[str, str], ...]


def guarding_rules(namespaces: Sequence[Namespace] = NAMESPACES) -> list[Guarding]:
    """The rules that guard requests, in the order of the sample."""
    requests: dict[Rule, list[tuple[str, str]]] = {}
    for namespace in namespaces:
        for operation in namespace.operations:
            request = operation.method, namespace.path_of(operation)
            if operation.rule and request not in requests.setdefault(operation.rule, []):
                requests[operation.rule].append(request)
    requests[METRICS] = [("GET", METRICS_PATH)]
    return [Guarding(rule, tuple(requests[rule])) for rule in _ordered(requests)]


def _ordered(rules: Iterable[Rule]) -> Iterator[Rule]:
    for _, of_resource in groupby(rules, lambda rule: rule.name.rpartition(":")[0]):
        yield from sorted(of_resource, key=_rank)


def _rank(rule: Rule) -> int:
    verb = rule.name.rpartition(":")[2]
    return _VERBS.index(verb) if verb in _VERBS else len(_VERBS)

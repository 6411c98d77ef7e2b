# SPDX-License-Identifier: Apache-2.0
"""The API namespaces that berth serves, OpenStack Placement's and its own, and the policy rules of
their operations.

Completing a rule's name imports this module, so it does not import oslo.policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from msgspec import Struct

from berth.api.berth_v1 import codes
from berth.api.berth_v1 import routes as berth
from berth.api.operation import Namespace, Rule
from berth.api.placement import routes as placement

PLACEMENT: Final = Namespace(
    prefix="",
    title="Placement",
    summary="Track what every machine in a fleet offers, who uses it, and where more fits.",
    tags=placement.TAGS,
    operations=placement.OPERATIONS,
)

BERTH: Final = Namespace(
    prefix="/berth/v1",
    title="berth",
    summary="Questions about a fleet, and what only berth keeps of it.",
    tags=berth.TAGS,
    operations=berth.OPERATIONS,
    codes=codes.CODES,
    version=berth.VERSION,
    headers={"Berth-API": berth.VERSION},
    query_reader="berth_v1.inputs:QueryReader",
)

NAMESPACES: Final = (PLACEMENT, BERTH)

#: Guards the metrics, which are not part of the API.
METRICS: Final = Rule(
    "berth:metrics", "rule:admin_or_service_api or role:auditor", "Read the metrics."
)
METRICS_PATH: Final = "/metrics"

#: The order of the rules of one resource in the sample.
_VERBS: Final = ("manage", "list", "create", "show", "update", "delete")


class Guarding(Struct, frozen=True):
    """A rule, and the requests that it guards."""

    rule: Rule
    #: Method and path template.
    requests: tuple[tuple[str, str], ...]


def guarding_rules() -> list[Guarding]:
    """The rules that guard requests, in the order of the sample."""
    requests: dict[Rule, list[tuple[str, str]]] = {}
    for namespace in NAMESPACES:
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

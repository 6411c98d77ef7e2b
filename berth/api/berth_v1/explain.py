# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/explain`: why a request does not fit, and what would help. Source:
spec/beyond.md 3."""

from __future__ import annotations

from typing import Any, Final

from berth.api.berth_v1 import body
from berth.api.berth_v1.asking import Warnings, assumed, check_rights, read_what_if
from berth.api.berth_v1.consumers import consumers_on
from berth.api.berth_v1.expanding import expanded
from berth.api.berth_v1.explaining import Holding, explained
from berth.api.berth_v1.reading import JSONObject, read_request
from berth.api.errors import Refused
from berth.api.operations.berth_v1.explain import BODY_SCHEMA
from berth.api.operations.berth_v1.explanation import NEAREST, SECONDS
from berth.api.operations.berth_v1.rules import CONSUMERS_LIST
from berth.api.rendering import answer
from berth.api.request import Request, Response, Services
from berth.api.searching import Searching, budget_of
from berth.candidates.explain import Wanted
from berth.candidates.explain.explanation import NearHost
from berth.index.snapshot import Snapshot

#: Of so many hosts the consumers are shown.
_HOSTS_MAX: Final = 5


def explain_request(services: Services, request: Request, response: Response) -> None:
    """Explain how a request fits."""
    sent: JSONObject = body.read(request, BODY_SCHEMA)
    budget = budget_of(services, request, sent.get("seconds", SECONDS))
    requested = read_request(sent["request"], "/request")
    what_if = read_what_if(sent["what_if"], "/what_if") if "what_if" in sent else None
    fleet = services.index.snapshot()
    asked = expanded(requested, fleet)
    check_rights(services, asked)
    warnings = Warnings()
    with Searching(services, request, budget):
        if what_if is not None:
            fleet = assumed(services, fleet, what_if, "/what_if", warnings, budget)
        shown = explained(
            fleet,
            asked,
            wanted=Wanted(
                nearest_max=sent.get("nearest_max", NEAREST),
                relaxations=sent.get("relaxations", True),
                paint=sent.get("paint", False),
            ),
            budget=budget,
            warnings=warnings,
            holding=_holding(services, request, fleet if what_if is None else None),
        )
    if services.rights is not None:
        shown = services.rights.only_own(shown)
    answer(response, {"revision": fleet.revision, **shown})


def _holding(services: Services, request: Request, fleet: Snapshot | None) -> Holding:
    """Who holds what on the first hosts that a request names, for callers who may list the
    consumers of all projects.

    Args:
        fleet: as it is; None for a scenario, where nobody holds anything.
    """
    try:
        services.policy.check(CONSUMERS_LIST.name, request.caller, target={})
    except Refused:
        fleet = None
    left = iter(range(_HOSTS_MAX))

    def holding(near: NearHost) -> dict[str, Any]:
        if fleet is None or next(left, None) is None:
            return {}
        return consumers_on(services, fleet, near)

    return holding

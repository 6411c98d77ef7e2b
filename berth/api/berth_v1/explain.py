# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/explain`: why a request does not fit, and what would help. Source:
spec/beyond.md 3."""

from __future__ import annotations

from berth.api.berth_v1 import body
from berth.api.berth_v1.asking import Warnings, assumed, read_what_if, seconds_within
from berth.api.berth_v1.expanding import expanded
from berth.api.berth_v1.explaining import explained
from berth.api.berth_v1.reading import JSONObject, read_request
from berth.api.operations.berth_v1.explain import BODY_SCHEMA
from berth.api.operations.berth_v1.explanation import NEAREST, SECONDS
from berth.api.rendering import answer
from berth.api.request import Request, Response, Services
from berth.api.searching import searching
from berth.candidates.explain import Wanted


def explain_request(services: Services, request: Request, response: Response) -> None:
    """Explain how a request fits."""
    sent: JSONObject = body.read(request, BODY_SCHEMA)
    requested = read_request(sent["request"], "/request")
    what_if = read_what_if(sent["what_if"], "/what_if") if "what_if" in sent else None
    wanted = Wanted(
        nearest_max=sent.get("nearest_max", NEAREST),
        relaxations=sent.get("relaxations", True),
        paint=sent.get("paint", False),
    )
    fleet = services.index.snapshot()
    asked = expanded(requested, fleet)
    warnings = Warnings()
    seconds = seconds_within(services, sent.get("seconds", SECONDS))
    with searching(services, request, seconds) as budget:
        if what_if is not None:
            fleet = assumed(services, fleet, what_if, "/what_if", warnings)
        shown = explained(fleet, asked, wanted=wanted, budget=budget, warnings=warnings)
    answer(response, {"revision": fleet.revision, **shown})

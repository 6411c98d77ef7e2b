# SPDX-License-Identifier: Apache-2.0
"""What clients did, in a few figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from tests.proof.history import Operation, Outcome, Why
from tests.routes import route_of

#: What must have been accepted at least once, by method and path.
_ACCEPTED: Final = {
    ("POST", "/resource_providers"),
    ("PUT", "/resource_providers/{uuid}"),
    ("DELETE", "/resource_providers/{uuid}"),
    ("PUT", "/resource_providers/{uuid}/inventories"),
    ("DELETE", "/resource_providers/{uuid}/inventories"),
    ("PUT", "/resource_providers/{uuid}/traits"),
    ("PUT", "/resource_providers/{uuid}/aggregates"),
    ("PUT", "/allocations/{consumer_uuid}"),
    ("POST", "/allocations"),
    ("DELETE", "/allocations/{consumer_uuid}"),
    ("POST", "/reshaper"),
}

#: For what something must have been refused.
_REFUSED: Final = {
    Why.NO_ROOM,
    Why.NO_INVENTORY,
    Why.CONSUMER_MOVED,
    Why.PROVIDER_MOVED,
    Why.IN_USE,
    Why.ABSENT,
}


def summary(operations: Sequence[Operation]) -> str:
    """What happened, counted."""
    kinds = Counter(
        (
            one.outcome.value,
            one.refusal.why.value if one.refusal else "",
        )
        for one in operations
        if one.writes
    )
    seconds = (max(one.begin for one in operations) - min(one.begin for one in operations)) / 1e9
    lines = [f"{len(operations)} operations in {seconds:.1f} s"]
    lines += [f"  {count:7} writes {' '.join(kind)}" for kind, count in kinds.most_common()]
    return "\n".join(lines)


def never_happened(operations: Sequence[Operation]) -> set[object]:
    """What a history must have in it to show anything, and has not; and refusals for reasons that
    nobody understands, as nothing could be concluded from them."""
    writes = [one for one in operations if one.writes]
    accepted = {_kind(one) for one in writes if one.outcome is Outcome.ACCEPTED}
    refusals = {one.refusal for one in writes if one.refusal is not None}
    refused = {one.why for one in refusals}
    strange = {one for one in refusals if one.why is Why.OTHER}
    return (_ACCEPTED - accepted) | (_REFUSED - refused) | strange


def _kind(one: Operation) -> tuple[str, str]:
    method, path, *_ = one.text.split()
    route = route_of(path)
    assert route is not None, path
    return method, route.template

# SPDX-License-Identifier: Apache-2.0
"""A history in a few figures."""

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
    ("POST", "/resource_providers/{uuid}/inventories"),
    ("DELETE", "/resource_providers/{uuid}/inventories"),
    ("PUT", "/resource_providers/{uuid}/inventories/{resource_class}"),
    ("DELETE", "/resource_providers/{uuid}/inventories/{resource_class}"),
    ("PUT", "/resource_providers/{uuid}/traits"),
    ("PUT", "/resource_providers/{uuid}/aggregates"),
    ("PUT", "/allocations/{consumer_uuid}"),
    ("POST", "/allocations"),
    ("DELETE", "/allocations/{consumer_uuid}"),
    ("POST", "/reshaper"),
    ("POST", "/berth/v1/place"),
}

#: For what something must have been refused.
_REFUSED: Final = {
    Why.NO_ROOM,
    Why.NO_INVENTORY,
    Why.CONSUMER_MOVED,
    Why.PROVIDER_MOVED,
    Why.IN_USE,
    Why.HAS_INVENTORY,
    Why.ABSENT,
    Why.NO_PLACE,
}


def summary(operations: Sequence[Operation]) -> str:
    """Counts of what happened."""
    kinds = Counter(
        (
            operation.outcome.value,
            operation.refusal.why.value if operation.refusal else "",
        )
        for operation in operations
        if operation.writes
    )
    seconds = (
        max(operation.begin for operation in operations)
        - min(operation.begin for operation in operations)
    ) / 1e9
    lines = [f"{len(operations)} operations in {seconds:.1f} s"]
    lines += [f"  {count:7} writes {' '.join(kind)}" for kind, count in kinds.most_common()]
    return "\n".join(lines)


def never_happened(operations: Sequence[Operation]) -> set[object]:
    """Events that a history must contain to prove anything, and does not; and refusals with an
    unknown reason, from which nothing follows."""
    writes = [operation for operation in operations if operation.writes]
    accepted = {_kind(write) for write in writes if write.outcome is Outcome.ACCEPTED}
    refusals = {write.refusal for write in writes if write.refusal is not None}
    refused = {refusal.why for refusal in refusals}
    strange = {refusal for refusal in refusals if refusal.why is Why.OTHER}
    return (_ACCEPTED - accepted) | (_REFUSED - refused) | strange


def _kind(one: Operation) -> tuple[str, str]:
    method, path, *_ = one.text.split()
    route = route_of(path)
    # Those of berth's own API have no parameters here.
    return method, path if route is None else route.template

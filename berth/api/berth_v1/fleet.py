# SPDX-License-Identifier: Apache-2.0
"""`GET /berth/v1/fleet`: every provider. Source: spec/beyond.md 6.1."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from typing import Final

import msgspec

from berth.api.berth_v1.fleet_text import FleetText
from berth.api.berth_v1.provider_lines import GENERATION
from berth.api.berth_v1.query import included
from berth.api.berth_v1.revisions import is_unchanged, set_tag
from berth.api.errors import Refused, overloaded
from berth.api.operations.berth_v1.fleet import ALLOCATIONS, INCLUDED
from berth.api.rendering import answer_lines
from berth.api.request import Request, Response, Services
from berth.index import Snapshot
from berth.index.block import Block
from berth.model.ids import ProviderId
from berth.store.engine.transaction import Tx
from berth.store.fleet_allocations import allocations_of

#: Lines that are in memory at a time.
_PART: Final = 1000

#: Makes the lines of consecutive trees of a block.
_Rendering = Callable[[Block, range], list[msgspec.Raw]]


def show_fleet(services: Services, request: Request, response: Response) -> None:
    """Show every provider, as of one state."""
    parts = included(request.query, INCLUDED)
    snapshot = services.index.snapshot()
    if is_unchanged(request, response, snapshot):
        return
    until = time.monotonic() + services.settings.fleet_seconds_max
    if not services.fleet_answers.acquire(blocking=False):
        raise overloaded()
    try:
        if ALLOCATIONS in parts:
            with services.index.reading() as (snapshot, tx):
                # It may be a later one.
                set_tag(response, snapshot)
                _answer(response, snapshot, _with_consumers(snapshot, parts, tx), until)
        else:
            _answer(response, snapshot, _plain(snapshot, parts), until)
    finally:
        services.fleet_answers.release()


def _answer(response: Response, snapshot: Snapshot, render: _Rendering, until: float) -> None:
    """Everything is read before the first byte is sent: a slow client holds no transaction."""
    header = {"berth": "fleet", "revision": snapshot.revision, "providers": _size(snapshot)}
    answer_lines(response, _lines(snapshot, render, until), header=header)


def _lines(snapshot: Snapshot, render: _Rendering, until: float) -> Iterator[list[msgspec.Raw]]:
    """The lines in parts: trees together, parents before children."""
    for _, block in snapshot.occupied():
        rows = max(1, _PART // block.shape.size)
        for begin in range(0, block.rows, rows):
            if time.monotonic() > until:
                raise _too_slow()
            yield render(block, range(begin, min(begin + rows, block.rows)))


def _plain(snapshot: Snapshot, parts: Collection[str]) -> _Rendering:
    return FleetText(snapshot, {GENERATION, *parts}).lines


def _with_consumers(snapshot: Snapshot, parts: Collection[str], tx: Tx) -> _Rendering:
    text = FleetText(snapshot, {GENERATION, *parts})
    class_names = snapshot.names.class_names

    def render(block: Block, rows: range) -> list[msgspec.Raw]:
        ids = block.provider_ids[:, rows.start : rows.stop].ravel().tolist()
        consumers: dict[ProviderId, dict[str, dict[str, int]]] = {}
        for provider, consumer, class_id, used in allocations_of(tx, map(ProviderId, ids)):
            amounts = consumers.setdefault(provider, {}).setdefault(consumer, {})
            amounts[class_names[class_id]] = used
        return text.lines(block, rows, consumers)

    return render


def _size(snapshot: Snapshot) -> int:
    return sum(block.rows * block.shape.size for _, block in snapshot.occupied())


def _too_slow() -> Refused:
    return Refused(
        503,
        "The fleet could not be read within the time that the service allows"
        " ([berth]fleet_seconds_max).",
        code=overloaded().code,
        headers={"retry-after": "10"},
    )

# SPDX-License-Identifier: Apache-2.0
"""Candidates that were chosen, as values: those of a placement. Source: spec/beyond.md 5."""

from __future__ import annotations

from typing import Final

import msgspec

from berth.candidates.choosing import Chosen
from berth.candidates.listing import Forms, candidate_texts
from berth.candidates.order import Order
from berth.candidates.plan import Plan
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget


class Candidate(msgspec.Struct):
    """A candidate as it is shown."""

    host: str
    allocations: dict[str, dict[str, dict[str, int]]]
    mappings: dict[str, list[str]]


_candidates: Final = msgspec.json.Decoder(Candidate)


def texts_of(
    fleet: Snapshot, plan: Plan, order: Order, chosen: Chosen, forms: Forms | None = None
) -> list[bytes]:
    """The JSON of each candidate."""
    # Without a bound: a claim is never cut.
    return candidate_texts(fleet, plan, order, chosen.ranked, Budget(), forms)


def decoded(text: bytes) -> Candidate:
    """A candidate of its JSON."""
    return _candidates.decode(text)

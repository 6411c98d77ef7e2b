# SPDX-License-Identifier: Apache-2.0
"""From batches of candidates to the bytes of the answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from berth.candidates.batch import Batch
from berth.candidates.budget import Budget
from berth.candidates.candidate_texts import CandidateTexts
from berth.candidates.plan import Plan
from berth.candidates.request import ResponseForm
from berth.candidates.summaries import SummaryTexts
from berth.index.snapshot import Snapshot

NO_CANDIDATES: Final = b'{"allocation_requests": [], "provider_summaries": {}}'


def render(
    snapshot: Snapshot,
    plan: Plan,
    form: ResponseForm,
    batches: Iterable[Batch],
    budget: Budget,
) -> bytes:
    """The body of the answer: `allocation_requests` and `provider_summaries` as UTF-8 JSON.

    It ends with the candidate that fills the budget's room for an answer. The budget is told how
    many there are.

    Source: spec/allocation-candidates.md 7.
    """
    candidates = CandidateTexts(plan, form, snapshot)
    summaries = SummaryTexts(snapshot, plan, form)
    for batch in batches:
        candidates.add(batch)
        summaries.add(batch)
        budget.candidates += len(batch.positions)
        if budget.is_filled_by(candidates.size):
            break
    # PERF bench, nested: one join, since an answer may take megabytes and each copy a millisecond.
    return b"".join(
        (
            b'{"allocation_requests": [',
            *candidates.written(),
            b'], "provider_summaries": {',
            *summaries.written(),
            b"}}",
        )
    )

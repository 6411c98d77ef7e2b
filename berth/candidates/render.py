# SPDX-License-Identifier: Apache-2.0
"""From batches of candidates to the bytes of the answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from berth.candidates.batch import Batch
from berth.candidates.candidate_texts import CandidateTexts
from berth.candidates.plan import Plan
from berth.candidates.request import ResponseForm
from berth.candidates.summaries import LongSummaries, SummaryTexts
from berth.index.snapshot import Snapshot
from berth.index.text_columns import PIECE_BYTES
from berth.model.budget import Budget

NO_CANDIDATES: Final = b'{"allocation_requests": [], "provider_summaries": {}}'


#: A longer answer is made while it is sent, piece by piece.
WHOLE_BYTES_MAX: Final = 8 << 20
#: With this much of candidates, the length of the summaries is worth an estimate.
ESTIMATED_FROM: Final = 1 << 16

_BEGIN: Final = b'{"allocation_requests": ['
_BETWEEN: Final = b'], "provider_summaries": {'
_END: Final = b"}}"


class LongAnswer:
    """The body of a long answer: its length is known, and its pieces are made as they are read, so
    that it never takes the memory of more than a few.

    What it is made from never changes, so it may be read more than once.
    """

    def __init__(
        self, snapshot: Snapshot, candidates: CandidateTexts, summaries: LongSummaries
    ) -> None:
        self._candidates = candidates
        self._summaries = summaries
        if snapshot.has_short_uuids:
            self._length = sum(map(len, self))
        else:
            texts = candidates.length() + summaries.length()
            self._length = len(_BEGIN) + len(_BETWEEN) + len(_END) + texts

    def __len__(self) -> int:
        """How many bytes it has."""
        return self._length

    def __bytes__(self) -> bytes:
        """All of it."""
        return b"".join(self)

    def __iter__(self) -> Iterator[bytes]:
        """Its pieces, each of about `PIECE_BYTES`."""
        waiting: list[bytes | bytearray | memoryview] = []
        size = 0
        for piece in chain(
            (_BEGIN,), self._candidates.pieces(), (_BETWEEN,), self._summaries.pieces(), (_END,)
        ):
            waiting.append(piece)
            size += len(piece)
            if size >= PIECE_BYTES:
                yield b"".join(waiting)
                waiting.clear()
                size = 0
        yield b"".join(waiting)


def render(
    snapshot: Snapshot,
    plan: Plan,
    form: ResponseForm,
    batches: Iterable[Batch],
    budget: Budget,
) -> bytes | LongAnswer:
    """The body of the answer: `allocation_requests` and `provider_summaries` as UTF-8 JSON.

    It ends with the candidate with which the answer reaches the budget's size. The budget counts
    the candidates.

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
    parts = summaries.parts()
    if candidates.size >= ESTIMATED_FROM:
        long = summaries.long(parts)
        if candidates.size + long.length_about() > WHOLE_BYTES_MAX:
            return LongAnswer(snapshot, candidates, long)
    # PERF bench, nested: one join, since an answer may take megabytes and each copy a millisecond.
    return b"".join((_BEGIN, *candidates.pieces(), _BETWEEN, *summaries.written(parts), _END))

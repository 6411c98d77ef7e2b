# SPDX-License-Identifier: Apache-2.0
"""Scenario engine: candidates without HTTP, in a process that does nothing else.

The process is a new one, so that its memory is that of the index and of what queries leave behind.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import msgspec

from bench.case import AloneCase
from bench.memory import memory_mib
from bench.sample import Round, Sample, Samples, clock
from bench.server import berth_database
from berth.api.placement.allocation_candidates import FORMS
from berth.api.placement.candidates_query import DecodedQuery, decode
from berth.candidates import SearchSettings, find_candidates
from berth.index import Index
from berth.store.engine.opening import open_database

_MICROVERSION = 39
_WARM_UP_COUNT = 2


@dataclass(frozen=True, slots=True)
class Question:
    """A query, and the settings of its search."""

    query: str
    limit: int | None
    settings: SearchSettings = field(default_factory=SearchSettings)
    #: Whether to count the trees that the candidates are of.
    counts_trees: bool = False


class _Summary(msgspec.Struct):
    root_provider_uuid: str


class _Candidates(msgspec.Struct):
    provider_summaries: dict[str, _Summary]


def engine_case(name: str, questions: Mapping[str, Question]) -> AloneCase:
    """All queries in one process, after one load, and their memory cost."""

    def measure(directory: Path, wanted: Round) -> Samples:
        # Not forked: the child must not begin with this process's memory.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as process:
            arguments = (berth_database(directory), dict(questions), wanted)
            return process.submit(_measure, *arguments).result()

    return AloneCase("engine", name, measure, is_repeated=False)


def _measure(path: Path, questions: Mapping[str, Question], wanted: Round) -> Samples:
    begun_with = _resident_mib()
    db = open_database(f"sqlite:///{path}")
    start = clock()
    index = Index(db)
    index.snapshot()
    samples = {"load the index": Sample([clock() - start])}
    samples["memory of the index"] = Sample([_resident_mib() - begun_with], unit="MiB")
    before = _peak_mib()
    for name, question in questions.items():
        samples |= _ask(index, name, question, wanted.seconds)
    if all(question.limit is not None for question in questions.values()):
        samples["more memory at the queries' peak"] = Sample([_peak_mib() - before], unit="MiB")
    db.dispose()
    return samples


def _ask(index: Index, name: str, question: Question, seconds: float) -> Samples:
    text = question.query if question.limit is None else f"{question.query}&limit={question.limit}"
    query, sample = decode(unquote(text), _MICROVERSION), Sample()
    rng = random.Random(0)
    answer = b""
    for _ in range(_WARM_UP_COUNT):
        answer = _find(index, query, question, rng)
    begin = now = clock()
    while now - begin < seconds or not sample.values:
        answer = _find(index, query, question, rng)
        sample.values.append(-now + (now := clock()))
    sample.elapsed = now - begin
    sample.answer_bytes = len(answer)
    samples = {name: sample}
    if question.counts_trees:
        samples[f"{name}: trees among the candidates"] = Sample([_trees(answer)], unit="trees")
    return samples


def _find(index: Index, query: DecodedQuery, question: Question, rng: random.Random) -> bytes:
    answer = find_candidates(
        index.snapshot(),
        query.question,
        limit=query.limit,
        settings=question.settings,
        form=FORMS.at(_MICROVERSION),
        rng=rng,
    )
    return bytes(answer)


def _trees(answer: bytes) -> int:
    """The number of trees in the candidates of a response."""
    summaries = msgspec.json.decode(answer, type=_Candidates).provider_summaries
    return len({summary.root_provider_uuid for summary in summaries.values()})


def _resident_mib() -> float:
    return memory_mib(os.getpid(), "Rss")


def _peak_mib() -> float:
    """The peak memory of this process; Linux counts it in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

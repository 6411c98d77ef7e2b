# SPDX-License-Identifier: Apache-2.0
"""One process of `bench.unlimited`: candidates without a limit, as a worker that serves them alone.

It runs as a script and imports only berth's own modules, so that the Python of another checkout can
run it: arguments and results are JSON, one line each.
"""

from __future__ import annotations

import gc
import hashlib
import json
import random
import re
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from msgspec.structs import replace

from berth.api.placement.allocation_candidates import FORMS
from berth.api.placement.candidates_query import decode
from berth.candidates import SearchSettings, find_candidates
from berth.edge.server import workers
from berth.index import Index, Snapshot
from berth.index.memory import Memory
from berth.store.engine.opening import open_database

#: A memory that keeps plans and templates, but no answer's texts.
_SMALL_BYTES: Final = 1 << 20
_TIMES_MIN, _TIMES_MAX = 3, 30

Result = dict[str, str | int | float]


def measure(url: str, questions: Mapping[str, tuple[int, str]], seconds: float) -> Iterator[Result]:
    """Each question, its query of one minor version, with three states of the memory."""
    db = open_database(url)
    snapshot = Index(db).snapshot()
    workers.spare_collections()
    if hasattr(workers, "keep_freed_memory"):
        # An earlier berth does not.
        workers.keep_freed_memory()
    for name, (minor, query) in questions.items():
        for state, prepare in _STATES.items():
            about: Result = {"name": name, "state": state}
            yield about | _measured(partial(prepare, snapshot), query, minor, seconds)
    db.dispose()


def _cold(snapshot: Snapshot) -> Snapshot:
    return _forgetful(snapshot, Memory())


def _warm(snapshot: Snapshot) -> Snapshot:
    return snapshot


def _not_kept(snapshot: Snapshot) -> Snapshot:
    return _forgetful(snapshot, Memory(_SMALL_BYTES))


#: From a snapshot to one whose memory is as the state's name says.
_STATES: Final[Mapping[str, Callable[[Snapshot], Snapshot]]] = {
    "not kept": _not_kept,
    "cold": _cold,
    "warm": _warm,
}


def _forgetful(snapshot: Snapshot, memory: Memory) -> Snapshot:
    for _, block in snapshot.occupied():
        block.summaries.fill(None)
    memory.follow(snapshot.names, snapshot.blocks)
    return replace(snapshot, memory=memory)


def _measured(prepare: Callable[[], Snapshot], query: str, minor: int, seconds: float) -> Result:
    question, form = decode(unquote(query), minor).question, FORMS.at(minor)
    rng = random.Random(0)

    def answer(snapshot: Snapshot) -> Iterator[bytes]:
        """The pieces of an answer, which an earlier berth gives in one."""
        found = find_candidates(snapshot, question, settings=SearchSettings(), form=form, rng=rng)
        return iter((found,) if isinstance(found, bytes) else found)

    digest, size = hashlib.sha256(), 0
    for piece in answer(prepare()):
        digest.update(piece)
        size += len(piece)
        del piece
    gc.collect()
    snapshot = prepare()
    resident = _status_mib("VmRSS")
    # Linux sets the peak back to what is resident now.
    Path("/proc/self/clear_refs").write_text("5")
    deque(answer(snapshot), maxlen=0)
    peak = _status_mib("VmHWM") - resident
    values: list[float] = []
    end = time.monotonic() + seconds
    while len(values) < _TIMES_MIN or (time.monotonic() < end and len(values) < _TIMES_MAX):
        snapshot = prepare()
        begin = time.process_time()
        deque(answer(snapshot), maxlen=0)
        values.append(time.process_time() - begin)
    return {
        "seconds": statistics.median(values),
        "bytes": size,
        "peak_mib": peak,
        "digest": digest.hexdigest()[:16],
    }


def _status_mib(field: str) -> float:
    found = re.search(rf"^{field}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.M)
    assert found is not None, "Linux tells it of every process"
    return int(found[1]) / 1024


if __name__ == "__main__":
    for result in measure(**json.loads(sys.argv[1])):
        print(json.dumps(result), flush=True)

# SPDX-License-Identifier: Apache-2.0
"""A read that begins after a write was acknowledged shows it, whoever took the write.

Each write goes to a random worker of a random service; at once, every read that it changes is sent
to another worker of the same service, if it has one, and to a worker of another service. At full
effort there are 10,000 reads on each engine; by hand as many as you like:

    BERTH_PROOF_READS=100000 python -m pytest tests/proof/test_stale_reads.py -s
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from tests.e2e.serving import serving
from tests.proof.mirror import Mirror, Read
from tests.proof.reach import connections_to_all_workers
from tests.proof.test_workers import own_folder
from tests.proof.wire import Connection

if TYPE_CHECKING:
    from pathlib import Path

    from tests.proof.bounds import Bounds
    from tests.proof.conftest import Ground

SERVICES: Final = 2


def test_no_read_is_older_than_a_write_that_was_acknowledged(
    ground: Ground, bounds: Bounds
) -> None:
    """Of a provider and its parts, of lists by each filter, and of the usages of projects."""
    print(f"seed {bounds.seed}")
    rng = random.Random(bounds.seed)
    with ExitStack() as stack:
        services = [
            connections_to_all_workers(
                stack.enter_context(
                    serving(own_folder(conf), "--config-file", str(conf), "--workers", "2")
                )
            )
            for conf in places(ground)
        ]
        mirror = Mirror(rng)
        mirror.build(services[0][0].ask)
        stale: list[str] = []
        counted: Counter[str] = Counter()
        while counted.total() < bounds.reads:
            here, elsewhere = rng.sample(services, 2)
            writer, *neighbours = rng.sample(here, len(here))
            reads = mirror.write(writer.ask)
            for reader in (*neighbours[:1], rng.choice(elsewhere)):
                stale += [wrong for read in reads if (wrong := unlike(reader, read))]
                counted.update(read.kind for read in reads)
    print(f"{counted.total()} reads, {len(stale)} stale:", dict(counted.most_common()))
    assert not stale, "\n".join([f"seed {bounds.seed}: {len(stale)} stale", *stale[:5]])


def places(ground: Ground) -> list[Path]:
    """A configuration for each service; in a cluster each is at a node of its own."""
    twin = ground.conf.with_stem("placement-twin")
    twin.write_text(ground.conf.read_text())
    return [*ground.confs, twin][:SERVICES]


def unlike(reader: Connection, read: Read) -> str | None:
    """What a read has shown instead of what it must."""
    answer = reader.ask("GET", read.path)
    if answer.status not in (200, 404):
        return f"GET {read.path}: {answer}"
    shown = read.shown(answer.body) if answer.status == 200 else None
    if shown == read.expected:
        return None
    return f"GET {read.path} ({read.kind}) shows {shown}, not {read.expected}"

# SPDX-License-Identifier: Apache-2.0
"""How long and how hard the proofs run: short by default, four times as long by `make proof`, and
as long as you like by hand.

    BERTH_PROOF_SECONDS=600 BERTH_PROOF_CLIENTS=48 BERTH_PROOF_SEED=7 \\
        python -m pytest tests/proof/test_workers.py -s

A seed makes the clients ask the same, not the machine run the same: one that failed is worth
several runs.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass

from tests.effort import EFFORT, scaled


def _number(name: str, default: float) -> float:
    return float(os.environ.get(f"BERTH_PROOF_{name}", default))


def _seed() -> int:
    return int(_number("SEED", random.SystemRandom().randrange(1_000_000)))


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the environment says."""

    #: Seconds of load on several workers.
    seconds: float
    #: Clients at once.
    clients: int
    #: Workers of the service, or of each in a cluster.
    workers: int
    #: Kills, and the longest time between two of them: long enough for a worker to serve.
    rounds: int
    kill_each_s: float
    #: Worlds that are made and taken down again.
    worlds: int
    #: Writes while the fleet is followed.
    writes: int
    seed: int

    @classmethod
    def of(cls, engine: str) -> Bounds:
        """Less on the engines whose proofs take longer."""
        is_cluster, is_file = engine == "galera", engine == "sqlite"
        return cls(
            seconds=_number("SECONDS", (5 if is_file else 3) * EFFORT),
            clients=int(_number("CLIENTS", 24 if not is_cluster else 12)),
            workers=int(_number("WORKERS", 4 if not is_cluster else 1)),
            rounds=int(_number("ROUNDS", scaled(12 if is_file else 4))),
            kill_each_s=0.35 if is_file else 2.0,
            writes=int(_number("WRITES", scaled(1000 if is_file else 500))),
            worlds=int(_number("WORLDS", scaled(3 if is_file else 1))),
            seed=_seed(),
        )

# SPDX-License-Identifier: Apache-2.0
"""How long and how hard the proofs run: short by default, as long as one likes by hand.

    BERTH_PROOF_SECONDS=600 BERTH_PROOF_CLIENTS=48 BERTH_PROOF_SEED=7 \\
        python -m pytest tests/proof/test_workers.py -s

A seed makes the clients ask the same, not the machine run the same: one that failed is worth
several runs.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field


def _number(name: str, default: float) -> float:
    return float(os.environ.get(f"BERTH_PROOF_{name}", default))


def _seed() -> int:
    return int(_number("SEED", random.SystemRandom().randrange(1_000_000)))


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the environment says."""

    #: Seconds of load on several workers.
    seconds: float = field(default_factory=lambda: _number("SECONDS", 15))
    #: Clients at once.
    clients: int = field(default_factory=lambda: int(_number("CLIENTS", 24)))
    #: Workers of the service.
    workers: int = field(default_factory=lambda: int(_number("WORKERS", 4)))
    #: Kills.
    rounds: int = field(default_factory=lambda: int(_number("ROUNDS", 100)))
    seed: int = field(default_factory=_seed)

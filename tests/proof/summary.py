# SPDX-License-Identifier: Apache-2.0
"""What clients did, in a few figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.proof.history import Operation


def summary(operations: Sequence[Operation]) -> str:
    """What happened, counted."""
    kinds = Counter(
        (
            one.outcome.value,
            one.refusal.why.value if one.refusal else "",
        )
        for one in operations
        if one.writes
    )
    seconds = (max(one.begin for one in operations) - min(one.begin for one in operations)) / 1e9
    lines = [f"{len(operations)} operations in {seconds:.1f} s"]
    lines += [f"  {count:7} writes {' '.join(kind)}" for kind, count in kinds.most_common()]
    return "\n".join(lines)

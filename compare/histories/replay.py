# SPDX-License-Identifier: Apache-2.0
"""A history played again under other names, and the shortest part of it that shows the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import UUID, uuid5

from compare.script.step import Step

_UUID = re.compile("[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")
#: A name of a history: see `History`.
_TOKEN = re.compile("H[0-9X]+H")


def renamed(steps: Sequence[Step], round_number: int) -> list[Step]:
    """The same requests about a world of other names and uuids, so that nothing is left of it."""

    def fresh_uuid(match: re.Match[str]) -> str:
        old = match[0]
        new = str(uuid5(UUID(old), f"round {round_number}"))
        if old.upper() == old != old.lower():
            new = new.upper()
        return new if "-" in old else new.replace("-", "")

    def fresh(text: str) -> str:
        return _TOKEN.sub(f"H{round_number}X{round_number}H", _UUID.sub(fresh_uuid, text))

    return [
        replace(
            step,
            path=fresh(step.path),
            # Latin-1 takes every byte there and back, whatever a spoilt body holds.
            body=step.body and fresh(step.body.decode("latin-1")).encode("latin-1"),
        )
        for step in steps
    ]


def shortest(
    steps: Sequence[Step],
    shows: Callable[[Sequence[Step]], bool],
    give_up: Callable[[], bool],
) -> list[Step]:
    """Leave out of `steps` what can be left out while `shows` holds of the rest; the last stays.

    Blocks of half the steps are tried first, then of a quarter, down to single steps, until nothing
    more can be left out or `give_up` says that this is short enough.
    """
    kept, last = list(steps[:-1]), steps[-1]
    size = max(1, len(kept) // 2)
    while True:
        start, length = 0, len(kept)
        while start < len(kept) and not give_up():
            shorter = kept[:start] + kept[start + size :]
            if shows([*shorter, last]):
                kept = shorter
            else:
                start += size
        if give_up() or (size == 1 and len(kept) == length):
            return [*kept, last]
        size = max(1, size // 2)

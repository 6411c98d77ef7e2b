# SPDX-License-Identifier: Apache-2.0
"""The cached texts of provider summaries: they save work, and their size is limited."""

from __future__ import annotations

from pathlib import Path

import pytest

from berth.index import summary_text
from berth.index.block import Block
from berth.index.memory import Memory
from berth.index.snapshot import Snapshot
from berth.index.summary_text import Rows, Template
from tests.candidates.engine import ask_raw, snapshot_of
from tests.queries import parse_query
from tests.worlds import world

HOSTS_COUNT = 40
HOSTS = world("\n".join(f"host{number}  VCPU=8" for number in range(HOSTS_COUNT)))
EVERY_HOST = parse_query("resources=VCPU:1", 39)


def kept_bytes(snapshot: Snapshot) -> int:
    """The total length of the cached texts."""
    return sum(
        len(text) for _, block in snapshot.occupied() for text in block.summaries.tolist() if text
    )


def counting(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of texts that were rendered, per call."""
    made: list[int] = []
    fill = summary_text.filled

    def counted(template: Template, block: Block, rows: Rows) -> list[bytes]:
        made.append(len(rows))
        return fill(template, block, rows)

    monkeypatch.setattr(summary_text, "filled", counted)
    return made


def test_a_text_is_made_once(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second response reuses the texts of the first."""
    made = counting(monkeypatch)
    with snapshot_of(HOSTS, prepared) as snapshot:
        answers = [ask_raw(snapshot, EVERY_HOST, 39) for _ in range(2)]
    assert answers[0] == answers[1]
    assert made == [HOSTS_COUNT]


@pytest.mark.parametrize("texts_max", [0, 1, 25, 60])
def test_no_more_texts_are_kept_than_there_is_room_for(prepared: Path, texts_max: int) -> None:
    """The cache stays within its limit, and the answers stay the same, whatever was queried
    before."""
    with snapshot_of(HOSTS, prepared) as snapshot:
        everything = ask_raw(snapshot, EVERY_HOST, 39)
        each = kept_bytes(snapshot) // HOSTS_COUNT + summary_text.OBJECT_BYTES
    bytes_max = texts_max * each
    with snapshot_of(HOSTS, prepared, memory=Memory(bytes_max)) as snapshot:
        for host in HOSTS.providers:
            request = parse_query(f"resources=VCPU:1&in_tree=<{host.name}>", 39)
            ask_raw(snapshot, request, 39)
            assert kept_bytes(snapshot) <= bytes_max
        assert ask_raw(snapshot, EVERY_HOST, 39) == everything
        assert kept_bytes(snapshot) <= bytes_max

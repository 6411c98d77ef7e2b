# SPDX-License-Identifier: Apache-2.0
"""The texts of provider summaries that are kept for the next answer: they save work, and never more
of them are kept than there is room for."""

from __future__ import annotations

from pathlib import Path

import pytest

from berth.index import summary_text
from berth.index.block import Block
from berth.index.snapshot import Snapshot
from berth.index.summary_text import Rows, Template
from tests.candidates.engine import ask_raw, snapshot_of
from tests.queries import parse_query
from tests.worlds import world

HOSTS_COUNT = 40
HOSTS = world("\n".join(f"host{number}  VCPU=8" for number in range(HOSTS_COUNT)))
EVERY_HOST = parse_query("resources=VCPU:1", 39)


def kept_bytes(snapshot: Snapshot) -> int:
    """How long all texts are that are kept."""
    return sum(
        len(text) for _, block in snapshot.occupied() for text in block.summaries.tolist() if text
    )


def counting(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts were made, each time that some were."""
    made: list[int] = []
    fill = summary_text.filled

    def counted(template: Template, block: Block, rows: Rows) -> list[bytes]:
        made.append(len(rows))
        return fill(template, block, rows)

    monkeypatch.setattr(summary_text, "filled", counted)
    return made


def test_a_text_is_made_once(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second answer is put together from what the first one left."""
    made = counting(monkeypatch)
    with snapshot_of(HOSTS, prepared) as snapshot:
        answers = [ask_raw(snapshot, EVERY_HOST, 39) for _ in range(2)]
    assert answers[0] == answers[1]
    assert made == [HOSTS_COUNT]


@pytest.mark.parametrize("texts_max", [0, 1, 25, 60])
def test_no_more_texts_are_kept_than_there_is_room_for(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, texts_max: int
) -> None:
    """Whatever was asked before, and the answers are the same."""
    with snapshot_of(HOSTS, prepared) as snapshot:
        everything = ask_raw(snapshot, EVERY_HOST, 39)
        each = kept_bytes(snapshot) // HOSTS_COUNT + summary_text.OBJECT_BYTES
        monkeypatch.setattr(summary_text, "KEPT_BYTES_MAX", texts_max * each)
        for _, block in snapshot.occupied():
            block.summaries.fill(None)
        for host in HOSTS.providers:
            one = parse_query(f"resources=VCPU:1&in_tree=<{host.name}>", 39)
            ask_raw(snapshot, one, 39)
            assert kept_bytes(snapshot) <= texts_max * each
        assert ask_raw(snapshot, EVERY_HOST, 39) == everything
        assert kept_bytes(snapshot) <= texts_max * each

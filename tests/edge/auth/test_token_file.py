# SPDX-License-Identifier: Apache-2.0
"""The file of tokens: its content, and the lines that are refused."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from berth.edge.auth.identity import Identity
from berth.edge.auth.token_file import hash_of, id_in, issue, parse_tokens, render_tokens
from berth.edge.auth.watched_file import MalformedLine

NOW = datetime(2026, 11, 22, tzinfo=UTC)
ALICE = Identity("alice", "web", ("reader", "member"))


def test_of_a_token_only_its_hash_is_kept() -> None:
    """With its identity and expiry; a written file reads back the same."""
    token, kept = issue(ALICE, created=NOW, expires=NOW + timedelta(days=1))
    assert re.fullmatch(r"berth_[0-9a-f]{8}_[0-9a-f]{64}", token)
    assert id_in(token) == kept.id
    text = render_tokens([kept])
    assert token.rpartition("_")[2] not in text
    assert parse_tokens(f"\n{text}") == {kept.id: kept}
    assert kept.identity == ALICE
    assert kept.sha256 == hash_of(token)


def test_no_two_tokens_are_the_same() -> None:
    """Neither the tokens nor their ids."""
    issued = [issue(ALICE, created=NOW, expires=None) for _ in range(100)]
    assert len({token for token, _ in issued}) == 100
    assert len({kept.id for _, kept in issued}) == 100


def test_an_id_that_is_taken_is_not_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the random numbers."""
    thrown = iter(["aaaaaaaa", "aaaaaaaa", "bbbbbbbb", "c" * 64])
    monkeypatch.setattr("secrets.token_hex", lambda _: next(thrown))
    assert issue(ALICE, created=NOW, expires=None, taken=["aaaaaaaa"])[1].id == "bbbbbbbb"


def test_a_token_expires_at_its_instant() -> None:
    """Or never."""
    _, kept = issue(ALICE, created=NOW, expires=NOW + timedelta(hours=1))
    assert not kept.is_expired(NOW + timedelta(minutes=59))
    assert kept.is_expired(NOW + timedelta(hours=1))
    _, kept = issue(ALICE, created=NOW, expires=None)
    assert not kept.is_expired(datetime.max.replace(tzinfo=UTC))


@pytest.mark.parametrize(
    "text", ["", "berth_", "berth_12345678_", "BERTH_12345678_" + "a" * 64, "berth_1_" + "a" * 64]
)
def test_another_text_has_no_id(text: str) -> None:
    """So the file is not searched for it."""
    assert id_in(text) is None


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda line: "nonsense", "not a token"),
        (lambda line: line.replace('"user":"alice",', ""), "missing required field `user`"),
        (lambda line: line.replace('"alice"', "1"), "Expected `str`"),
        (lambda line: re.sub('"sha256":"..', '"sha256":"', line), "sha256"),
        (lambda line: line.replace("2026-11-22T00:00:00Z", "2026-11-22T00:00:00"), "timezone"),
        (lambda line: line.replace('"id"', '"ID":1,"id"'), "unknown field"),
        (lambda line: line.replace('"id"', '"host":"gpu02","id"'), "agent and no other"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_token_is_refused(spoil: object, why: str) -> None:
    """The error names the line."""
    assert callable(spoil)
    line = render_tokens([issue(ALICE, created=NOW, expires=None)[1]])
    with pytest.raises(MalformedLine, match=f"line 1: .*{why}"):
        parse_tokens(spoil(line))


def test_an_id_stands_there_once() -> None:
    """The error names the second line."""
    line = render_tokens([issue(ALICE, created=NOW, expires=None)[1]])
    with pytest.raises(MalformedLine, match=r"line 2: duplicate token"):
        parse_tokens(line + line)

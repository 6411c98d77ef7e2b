# SPDX-License-Identifier: Apache-2.0
"""`auth_strategy = token`: a valid token authenticates; the file has its hash, line by line."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from berth.edge.auth.file_based import FREE, layer_of
from berth.edge.auth.identity import Identity
from berth.edge.auth.tokens import Token, Tokens, hash_of, id_in, issue, parse_tokens, render_tokens
from berth.edge.auth.watched_file import LOOK_EVERY_S, MalformedLine
from tests.edge.auth.gate import Clock, Gate, basic, bearer, replace

NOW = datetime(2026, 11, 22, tzinfo=UTC)
ALICE = Identity("alice", "web", ("admin", "reader"))

TOKEN, KEPT = issue(ALICE, created=NOW, expires=None)
SHORT, SHORT_KEPT = issue(ALICE, created=NOW, expires=NOW + timedelta(seconds=10))
#: Of a token whose id somebody knows, such as from a log.
GUESSED = f"{TOKEN[:-64]}{'0' * 64}"


class UtcClock(Clock):
    """A time of day that moves with the test's clock."""

    def utc(self) -> datetime:
        """Now."""
        return NOW + timedelta(seconds=self.now - 1000.0)


@pytest.fixture
def clock() -> UtcClock:
    """A clock that a test moves."""
    return UtcClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with two tokens."""
    path = tmp_path / "tokens"
    write(path, KEPT, SHORT_KEPT)
    path.chmod(0o600)
    return path


def write(path: Path, *tokens: Token) -> None:
    """Replace the file by one with these tokens."""
    replace(path, render_tokens(tokens))


@pytest.fixture
def gate(path: Path, clock: UtcClock) -> Gate:
    """An application with these tokens."""
    return Gate(layer_of(Tokens(path, clock=clock, utc=clock.utc)))


@pytest.mark.parametrize(
    "headers",
    [
        bearer(TOKEN),
        {"Authorization": f"bearer  {TOKEN} "},
        {"X-Auth-Token": TOKEN},
        bearer(TOKEN) | {"X-Auth-Token": "another"},
        basic("some", "proxy") | {"X-Auth-Token": TOKEN},
    ],
)
def test_a_token_makes_a_caller(gate: Gate, headers: dict[str, str]) -> None:
    """In either header; the token does not reach the application."""
    alice = gate.who(headers)
    assert (alice["user"], alice["project"]) == ("alice", "web")
    assert alice["roles"] == ["admin", "reader"]
    assert TOKEN not in str(alice["headers"])


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer"},
        {"X-Auth-Token": ""},
        {"X-Auth-Token": "admin"},
        *map(bearer, ("admin", KEPT.sha256, GUESSED, TOKEN.upper(), TOKEN[:-1])),
        bearer(issue(ALICE, created=NOW, expires=None)[0]),
        bearer("another") | {"X-Auth-Token": TOKEN},
        basic("alice", TOKEN),
    ],
)
def test_anybody_else_is_asked_for_a_token(gate: Gate, headers: dict[str, str]) -> None:
    """401, with the challenge."""
    answer = gate.knock(headers)
    assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert set(answer.json) == {"message", "code", "title"}


def test_a_token_expires(gate: Gate, clock: UtcClock, caplog: pytest.LogCaptureFixture) -> None:
    """At its instant, or never; the log says which token was refused, and why, without it."""
    clock.now += 9.9
    assert gate.status(bearer(SHORT)) == 200
    clock.now += 0.1
    assert gate.status(bearer(SHORT)) == 401
    gate.status(bearer(GUESSED))
    gate.status(bearer("hunter2"))
    failed = "Authentication of token '{}' from 192.0.2.1 failed: {}".format
    assert [line for line in caplog.messages if line.startswith("Auth")] == [
        failed(SHORT_KEPT.id, "it has expired"),
        failed(KEPT.id, "it is not known"),
        failed("?", "it is not known"),
    ]
    assert "hunter2" not in caplog.text and "0" * 64 not in caplog.text
    assert not KEPT.is_expired(datetime.max.replace(tzinfo=UTC))


def test_a_change_of_the_file_counts(gate: Gate, clock: UtcClock, path: Path) -> None:
    """Without a restart: 401 for one that is revoked, 503 for all while there is no file."""
    assert gate.status(bearer(TOKEN)) == 200
    new, kept = issue(ALICE, created=NOW, expires=None)
    write(path, kept)
    clock.now += LOOK_EVERY_S
    assert (gate.status(bearer(TOKEN)), gate.status(bearer(new))) == (401, 200)
    path.unlink()
    clock.now += LOOK_EVERY_S
    answer = gate.knock(bearer(new))
    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")


def test_who_fails_too_often_has_to_wait(gate: Gate, clock: UtcClock) -> None:
    """429; the valid token is accepted all the while."""
    answers = [gate.knock(bearer(GUESSED)) for _ in range(FREE + 2)]
    assert [answer.status for answer in answers] == [401] * (FREE + 1) + [429]
    assert answers[-1].headers["Retry-After"] == "1"
    assert gate.status(bearer(TOKEN)) == 200
    assert gate.status(bearer(GUESSED), address="192.0.2.2") == 401
    clock.now += 1
    assert gate.status(bearer(GUESSED)) == 401


def test_a_token_is_valid_until_it_ends(path: Path, clock: UtcClock) -> None:
    """Whoever waits for changes is checked again, without the token: until it expires, is revoked,
    or has other rights; or the file cannot be used."""
    tokens = Tokens(path, clock=clock, utc=clock.utc)

    def checking(token: str) -> Callable[[], bool]:
        return tokens.still_valid({"HTTP_X_AUTH_TOKEN": token})

    long, short = checking(TOKEN), checking(SHORT)
    assert long() and short()
    clock.now += 10
    assert long() and not short()
    write(path, KEPT)
    clock.now += LOOK_EVERY_S
    assert long() and not short()
    demoted = msgspec.structs.replace(KEPT, roles=("reader",))
    write(path, demoted)
    clock.now += LOOK_EVERY_S
    assert not long()
    again = checking(TOKEN)
    assert again()
    path.unlink()
    clock.now += LOOK_EVERY_S
    assert not again()


def test_of_a_token_only_its_hash_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its identity and expiry; a written file reads back the same. Neither tokens nor ids are
    given twice, whatever the random numbers."""
    assert re.fullmatch(r"berth_[0-9a-f]{8}_[0-9a-f]{64}", SHORT)
    assert SHORT[-64:] != TOKEN[-64:]
    assert id_in(SHORT) == SHORT_KEPT.id
    text = render_tokens([SHORT_KEPT])
    assert SHORT[-64:] not in text
    assert parse_tokens(f"\n{text}") == {SHORT_KEPT.id: SHORT_KEPT}
    assert (SHORT_KEPT.identity, SHORT_KEPT.sha256) == (ALICE, hash_of(SHORT))
    thrown = iter(["aaaaaaaa", "aaaaaaaa", "bbbbbbbb", "c" * 64])
    monkeypatch.setattr("secrets.token_hex", lambda _: next(thrown))
    assert issue(ALICE, created=NOW, expires=None, taken=["aaaaaaaa"])[1].id == "bbbbbbbb"


@pytest.mark.parametrize(
    "text", ["", "berth_", "berth_12345678_", "BERTH_12345678_" + "a" * 64, "berth_1_" + "a" * 64]
)
def test_another_text_has_no_id(text: str) -> None:
    """So the file is not searched for it."""
    assert id_in(text) is None


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (".*", "nonsense", "line 1: .*not a token"),
        ('"user":"alice",', "", "line 1: .*missing required field `user`"),
        ('"alice"', "1", "line 1: .*Expected `str`"),
        ('"sha256":"..', '"sha256":"', "line 1: .*sha256"),
        ("00:00:00Z", "00:00:00", "line 1: .*timezone"),
        ('"id"', '"ID":1,"id"', "line 1: .*unknown field"),
        ('"id"', '"host":"gpu02","id"', "line 1: .*agent and no other"),
        ("(.*)\n", r"\1\n\1\n", "line 2: duplicate token"),
    ],
)
def test_a_line_that_is_no_token_is_refused(old: str, new: str, why: str) -> None:
    """The error names the line."""
    with pytest.raises(MalformedLine, match=why):
        parse_tokens(re.sub(old, new, render_tokens([KEPT]), count=1))

# SPDX-License-Identifier: Apache-2.0
"""`auth_strategy = token`: a valid token authenticates."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from berth.edge.auth.failed_attempts import FREE
from berth.edge.auth.file_based import layer_of
from berth.edge.auth.identity import Identity
from berth.edge.auth.token_file import Token, issue, render_tokens
from berth.edge.auth.tokens import Tokens
from berth.edge.auth.watched_file import LOOK_EVERY_S
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
    assert (alice["user"], alice["project"], alice["roles"]) == (
        "alice",
        "web",
        ["admin", "reader"],
    )
    assert TOKEN not in str(alice["headers"])


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer"},
        {"X-Auth-Token": ""},
        {"X-Auth-Token": "admin"},
        bearer("admin"),
        bearer(KEPT.sha256),
        bearer(GUESSED),
        bearer(TOKEN.upper()),
        bearer(TOKEN[:-1]),
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
    """At its instant; the log says which token was refused, and why."""
    clock.now += 9.9
    assert gate.status(bearer(SHORT)) == 200
    clock.now += 0.1
    assert gate.status(bearer(SHORT)) == 401
    assert (
        f"Authentication of token '{SHORT_KEPT.id}' from 192.0.2.1 failed: it has expired"
        in caplog.text
    )


def test_a_revocation_counts_without_a_restart(gate: Gate, clock: UtcClock, path: Path) -> None:
    """So does a new token."""
    assert gate.status(bearer(TOKEN)) == 200
    new, kept = issue(ALICE, created=NOW, expires=None)
    write(path, kept)
    clock.now += LOOK_EVERY_S
    assert gate.status(bearer(TOKEN)) == 401
    assert gate.status(bearer(new)) == 200


def test_a_broken_file_lets_nobody_in(gate: Gate, clock: UtcClock, path: Path) -> None:
    """503 meanwhile; then everything is as it was."""
    path.unlink()
    clock.now += LOOK_EVERY_S
    answer = gate.knock(bearer(TOKEN))
    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    write(path, KEPT)
    clock.now += LOOK_EVERY_S
    assert gate.status(bearer(TOKEN)) == 200


def test_who_fails_too_often_has_to_wait(gate: Gate, clock: UtcClock) -> None:
    """429; the valid token is accepted all the while."""
    answers = [gate.knock(bearer(GUESSED)) for _ in range(FREE + 2)]
    assert [answer.status for answer in answers] == [401] * (FREE + 1) + [429]
    assert answers[-1].headers["Retry-After"] == "1"
    assert gate.status(bearer(TOKEN)) == 200
    assert gate.status(bearer(GUESSED), address="192.0.2.2") == 401
    clock.now += 1
    assert gate.status(bearer(GUESSED)) == 401


def test_a_failure_is_logged_without_the_token(
    gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    """With the id, if the text has one."""
    gate.status(bearer(GUESSED))
    gate.status(bearer("hunter2"))
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert lines == [
        f"Authentication of token '{KEPT.id}' from 192.0.2.1 failed: it is not known",
        "Authentication of token '?' from 192.0.2.1 failed: it is not known",
    ]
    assert "hunter2" not in caplog.text and "0" * 64 not in caplog.text


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

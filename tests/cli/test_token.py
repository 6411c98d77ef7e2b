# SPDX-License-Identifier: Apache-2.0
"""`berth token`: create, list and revoke tokens."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from berth.cli import credential_file
from berth.cli.accounts import parse_expires
from berth.cli.failure import CommandFailed, ExitCode
from berth.edge.auth.identity import Identity
from berth.edge.auth.tokens import Token, hash_of, id_in, issue, parse_tokens, render_tokens
from tests.cli.in_process import InProcess
from tests.cli.test_commands import configuration

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
ALICE = Identity("alice", "web", ("admin",))


class Desk:
    """A configuration with `token`, and the commands that use it."""

    def __init__(self, folder: Path, run: InProcess) -> None:
        self.file = folder / "tokens"
        self._run = run
        self._source = configuration(
            folder,
            "[api]\nauth_strategy = token\n"
            f"[placement_database]\nconnection = sqlite:///{folder}/berth.db\n",
        )

    def token(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`berth token ...`."""
        return self._run("token", *arguments, "--config-file", self._source)

    def create(self, *options: str) -> str:
        """Create a token and return the output."""
        done = self.token("create", *options)
        assert (done.returncode, done.stderr) == (ExitCode.OK, "")
        assert re.fullmatch(r"berth_\w+\n", done.stdout)
        return done.stdout.strip()

    def listed(self) -> list[dict[str, Any]]:
        """The JSON list."""
        found: list[dict[str, Any]] = json.loads(self.token("list", "--json").stdout)
        return found


@pytest.fixture
def desk(tmp_path: Path, in_process: InProcess) -> Desk:
    """A configuration without tokens."""
    return Desk(tmp_path, in_process)


def test_a_token_is_shown_once(desk: Desk) -> None:
    """On standard output; the file has only the hash, and only its owner may read it."""
    token = desk.create("--user", "alice", "--role", "admin", "--role", "reader")
    (kept,) = parse_tokens(desk.file.read_text()).values()
    assert kept.sha256 == hash_of(token)
    assert kept.identity == Identity("alice", "alice", ("admin", "reader"))
    assert kept.expires == kept.created + timedelta(days=90)
    assert stat.S_IMODE(desk.file.stat().st_mode) == 0o600
    assert token not in desk.file.read_text()


def test_an_expired_token_is_listed_as_such(desk: Desk) -> None:
    """An expired token stays in the file until it is revoked."""
    _, kept = issue(ALICE, created=NOW, expires=NOW - timedelta(days=1))
    desk.file.write_text(render_tokens([kept]))
    assert desk.listed()[0]["state"] == "expired"


@pytest.fixture(params=["UTC", "Asia/Tokyo"])
def zone(request: pytest.FixtureRequest) -> Iterator[str]:
    """The time zone of the machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12h", NOW + timedelta(hours=12)),
        ("90d", NOW + timedelta(days=90)),
        ("4w", NOW + timedelta(weeks=4)),
        ("never", None),
        ("2027-01-31", datetime(2027, 1, 31, tzinfo=UTC)),
        ("2027-01-31T12:00:00", datetime(2027, 1, 31, 12, tzinfo=UTC)),
        ("2027-01-31T12:00:00Z", datetime(2027, 1, 31, 12, tzinfo=UTC)),
        ("2027-01-31T12:00:00+02:00", datetime(2027, 1, 31, 10, tzinfo=UTC)),
    ],
)
def test_a_token_expires_when_it_is_said(text: str, expected: datetime | None, zone: str) -> None:
    """After a time, at a time, or never: in UTC, whatever the machine's time zone."""
    assert parse_expires(text, NOW) == expected, zone


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *(
            (text, "is not a time: write 12h, 90d")
            for text in ("", "90", "d", "-1d", "1y", "Never", "2027-13-01")
        ),
        ("99999999999999d", "is not a time: write 12h, 90d"),
        ("0d", "is in the past"),
        ("2026-11-22", "is in the past"),
    ],
)
def test_another_end_is_refused(text: str, why: str) -> None:
    """A token that was never valid would be useless."""
    with pytest.raises(CommandFailed, match=why) as caught:
        parse_expires(text, NOW)
    assert caught.value.code == ExitCode.USAGE


def test_commands_at_once_lose_nothing(tmp_path: Path) -> None:
    """Commands wait for each other, and a reader always sees a complete file."""
    path = tmp_path / "tokens"
    path.write_text("")

    def add(_: int) -> str:
        token = ""

        def edit(text: str, tokens: dict[str, Token]) -> str:
            nonlocal token
            token, kept = issue(ALICE, created=NOW, expires=None, taken=tokens)
            return render_tokens([*tokens.values(), kept])

        credential_file.change(path, parse_tokens, edit, may_create=False)
        parse_tokens(path.read_text())
        return token

    with ThreadPoolExecutor(8) as executor:
        issued = {id_in(token) for token in executor.map(add, range(40))}
    assert set(parse_tokens(path.read_text())) == issued
    assert len(issued) == 40


def test_a_change_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old file stays complete, and there is no temporary file; the message has the reason."""
    path = tmp_path / "tokens"
    path.write_text("\n")

    def full(source: str, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(CommandFailed, match=r"cannot write .*tokens: no space left"):
        credential_file.change(path, parse_tokens, lambda text, _: f"{text}\n", may_create=False)
    assert path.read_text() == "\n"
    assert list(tmp_path.iterdir()) == [path]

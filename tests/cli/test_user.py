# SPDX-License-Identifier: Apache-2.0
"""`berth user`: manage users and passwords."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
from pathlib import Path
from typing import TextIO

import pytest

from berth.cli.failure import ExitCode
from berth.edge.auth.htpasswd import is_password, parse_users
from tests.cli.in_process import InProcess
from tests.cli.test_commands import assert_fails, configuration
from tests.edge.auth.gate import hashed


class Office:
    """A configuration with `http_basic`, and the commands that use it."""

    def __init__(self, folder: Path, run: InProcess) -> None:
        self.file = folder / "htpasswd"
        self._run = run
        self._source = configuration(
            folder,
            "[api]\nauth_strategy = http_basic\n"
            f"[placement_database]\nconnection = sqlite:///{folder}/berth.db\n",
        )

    def user(
        self, *arguments: str, password: str = "", stdin: TextIO | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run `berth user ...` with a password on standard input."""
        command = ("user", *arguments, "--config-file", self._source)
        return self._run(*command, stdin=stdin or io.StringIO(f"{password}\n"))

    def add(self, name: str, *options: str, password: str = "secret") -> None:
        """Add a user, without output."""
        done = self.user("add", name, *options, "--password-stdin", password=password)
        assert (done.returncode, done.stdout, done.stderr) == (ExitCode.OK, "", "")

    def users(self) -> dict[str, tuple[str, list[str]]]:
        """Project and roles of each."""
        done = self.user("list", "--json")
        return {one["name"]: (one["project"], one["roles"]) for one in json.loads(done.stdout)}

    def takes(self, name: str, password: str) -> bool:
        """Whether this is the user's password."""
        return is_password(password, parse_users(self.file.read_text())[name].password_hash)


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_process: InProcess) -> Office:
    """A configuration without users; hashes have the lowest cost."""
    monkeypatch.setattr("berth.edge.auth.htpasswd.COST", 4)
    return Office(tmp_path, in_process)


def test_a_user_has_a_password_a_project_and_roles(office: Office) -> None:
    """berth creates the file next to the configuration; only its owner may read it."""
    office.add("alice", "--role", "admin", "--role", "reader")
    office.add("bob", "--project", "web", password=" kød ")
    assert office.users() == {"alice": ("alice", ["admin", "reader"]), "bob": ("web", [])}
    assert office.takes("alice", "secret") and office.takes("bob", " kød ")
    assert stat.S_IMODE(office.file.stat().st_mode) == 0o600
    assert sorted(path.name for path in office.file.parent.iterdir()) == ["any.conf", "htpasswd"]


def test_a_user_is_changed(office: Office) -> None:
    """Roles, project or password change; the rest, comments and other users stay."""
    office.file.write_text(f"# ours\nbob:{hashed('bob')}\n")
    office.add("alice", "--role", "admin")
    assert office.user("set", "alice", "--role", "reader").returncode == ExitCode.OK
    assert office.users()["alice"] == ("alice", ["reader"])
    assert office.user("set", "alice", "--project", "web", "--no-roles").returncode == ExitCode.OK
    assert office.users() == {"alice": ("web", []), "bob": ("bob", [])}
    assert office.takes("alice", "secret")
    assert office.file.read_text().startswith(f"# ours\nbob:{hashed('bob')}\n")
    done = office.user("passwd", "alice", "--password-stdin", password="other")
    assert (done.returncode, done.stdout) == (ExitCode.OK, "")
    assert office.takes("alice", "other") and not office.takes("alice", "secret")
    assert office.users()["alice"] == ("web", [])


@pytest.mark.parametrize("password", ["x" * 72, "ü" * 36])
def test_a_password_may_have_72_bytes(office: Office, password: str) -> None:
    """All roles apply."""
    office.add("alice", password=password)
    assert office.takes("alice", password)
    assert not office.takes("alice", password[:-1])


@pytest.mark.parametrize("password", ["", "x" * 73, "ü" * 37, "a\0b"])
def test_a_password_that_could_not_be_checked_is_refused(office: Office, password: str) -> None:
    """Empty, longer than bcrypt reads, or with a NUL; the message does not contain it."""
    done = office.user("add", "alice", "--password-stdin", password=password)
    assert_fails(done, ExitCode.USAGE, "1 to 72 bytes")
    assert not office.file.exists()


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_a_password_is_utf_8(office: Office, errors: str) -> None:
    """The password is UTF-8, as clients send it, whatever the locale."""
    sent = io.TextIOWrapper(io.BytesIO(b"k\xf8d\n"), encoding="utf-8", errors=errors)
    done = office.user("add", "alice", "--password-stdin", stdin=sent)
    assert_fails(done, ExitCode.USAGE, "the password is not UTF-8")


class Terminal(io.StringIO):
    """A fake terminal."""

    def isatty(self) -> bool:
        """It claims to be a terminal."""
        return True


def test_a_password_is_asked_for_twice(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks again if the two differ, and never shows the password."""
    typed = iter(["secret", "sceret", "secret", "secret"])
    monkeypatch.setattr("getpass.getpass", lambda prompt: next(typed))
    done = office.user("add", "alice", stdin=Terminal())
    assert (done.returncode, list(typed)) == (ExitCode.OK, [])
    assert "secret" not in done.stdout + done.stderr
    assert office.takes("alice", "secret")


def test_ctrl_c_at_the_password_changes_nothing(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends the command, as elsewhere."""

    def interrupt(prompt: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("getpass.getpass", interrupt)
    assert office.user("add", "alice", stdin=Terminal()).returncode == ExitCode.INTERRUPTED
    assert not office.file.exists()


def test_the_file_keeps_its_mode_and_its_link(office: Office, tmp_path: Path) -> None:
    """The service may run in another group than the administrator."""
    real = tmp_path / "real"
    real.mkdir()
    target = real / "users"
    target.write_text("")
    target.chmod(0o640)
    office.file.symlink_to(target)
    office.add("alice")
    assert office.file.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert list(parse_users(target.read_text())) == ["alice"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_file_keeps_its_owner(office: Office) -> None:
    """The service can still read the file after root changed it."""
    office.file.write_text("")
    os.chown(office.file, 12345, 54321)
    office.add("alice")
    kept = office.file.stat()
    assert (kept.st_uid, kept.st_gid) == (12345, 54321)

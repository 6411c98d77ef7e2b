# SPDX-License-Identifier: Apache-2.0
"""`berth user`: who may log in with a name and a password."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
from pathlib import Path
from typing import TextIO

import pytest

from berth.api.auth.htpasswd import is_password, parse_users
from berth.cli.exit_codes import ExitCode
from tests.api.auth.gate import hashed
from tests.cli.in_process import InProcess
from tests.cli.test_commands import assert_fails, configuration


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
        """`berth user ...`, with a password, or something else, on the standard input."""
        command = ("user", *arguments, "--config-file", self._source)
        return self._run(*command, stdin=stdin or io.StringIO(f"{password}\n"))

    def add(self, name: str, *options: str, password: str = "secret") -> None:
        """Add a user; nothing is said about it."""
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
    """An office without a user; hashes have the lowest cost."""
    monkeypatch.setattr("berth.api.auth.htpasswd.COST", 4)
    return Office(tmp_path, in_process)


def test_a_user_has_a_password_a_project_and_roles(office: Office) -> None:
    """The file is made beside the configuration, for its owner alone."""
    office.add("alice", "--role", "admin", "--role", "reader")
    office.add("bob", "--project", "web", password="kød")
    assert office.users() == {"alice": ("alice", ["admin", "reader"]), "bob": ("web", [])}
    assert office.takes("alice", "secret") and office.takes("bob", "kød")
    assert stat.S_IMODE(office.file.stat().st_mode) == 0o600
    assert sorted(path.name for path in office.file.parent.iterdir()) == ["any.conf", "htpasswd"]


def test_users_are_listed_for_people(office: Office) -> None:
    """In columns, without the hashes."""
    office.add("alice", "--role", "admin", "--role", "reader")
    office.add("bob", "--project", "web")
    assert office.user("list").stdout.splitlines() == [
        "name   project  roles",
        "alice  alice    admin,reader",
        "bob    web",
    ]


def test_a_user_is_changed(office: Office) -> None:
    """Roles and project; the password stays, and so do comments and the others."""
    office.file.write_text(f"# ours\nbob:{hashed('bob')}\n")
    office.add("alice", "--role", "admin")
    assert office.user("set", "alice", "--role", "reader").returncode == ExitCode.OK
    assert office.users()["alice"] == ("alice", ["reader"])
    assert office.user("set", "alice", "--project", "web", "--no-roles").returncode == ExitCode.OK
    assert office.users() == {"alice": ("web", []), "bob": ("bob", [])}
    assert office.takes("alice", "secret")
    assert office.file.read_text().startswith(f"# ours\nbob:{hashed('bob')}\n")


def test_a_password_is_changed(office: Office) -> None:
    """The old one counts no more; the roles stay."""
    office.add("alice", "--role", "admin")
    done = office.user("passwd", "alice", "--password-stdin", password="other")
    assert (done.returncode, done.stdout) == (ExitCode.OK, "")
    assert office.takes("alice", "other") and not office.takes("alice", "secret")
    assert office.users() == {"alice": ("alice", ["admin"])}


def test_a_user_is_removed(office: Office) -> None:
    """And no other."""
    office.add("alice")
    office.add("bob")
    assert office.user("remove", "alice").returncode == ExitCode.OK
    assert list(office.users()) == ["bob"]


def test_a_role_that_no_rule_knows_is_warned_of(office: Office) -> None:
    """It may be one of a policy file to come; those of the files are known."""
    done = office.user("add", "alice", "--role", "auditr", "--password-stdin", password="secret")
    assert (done.returncode, done.stdout) == (ExitCode.OK, "")
    told, _, known = done.stderr.rstrip("\n").partition("; those that it knows are ")
    assert told == "berth: no rule of the policy asks for the role auditr"
    assert {"admin", "member", "reader", "service"} <= set(known.split(", "))
    policy = office.file.with_name("policy.yaml")
    policy.write_text('"placement:traits:list": "role:admin or role:auditr"\n')
    assert office.user("set", "alice", "--role", "Auditr").stderr == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "alice", "--password-stdin"), ("there is a user alice", "berth user passwd")),
        (("add", "a:b", "--password-stdin"), ("'a:b' cannot be a name", "no colon")),
        (("add", "#a", "--password-stdin"), ("'#a' cannot be a name",)),
        (("add", "bob", "--project", "a:b", "--password-stdin"), ("'a:b' cannot be a name",)),
        (("add", "bob", "--role", "a,b", "--password-stdin"), ("'a,b' cannot be a role",)),
        (("add", "bob"), ("no terminal", "--password-stdin")),
        (("set", "bob", "--no-roles"), ("no user bob", "berth user list")),
        (("set", "alice"), ("--project", "--role")),
        (("set", "alice", "--role", "admin", "--no-roles"), ("either --role or --no-roles",)),
        (("set", "alice", "--project", " "), ("cannot be a name",)),
        (("passwd", "bob", "--password-stdin"), ("no user bob",)),
        (("remove", "bob"), ("no user bob",)),
    ],
    ids=" ".join,
)
def test_what_cannot_be_done_changes_nothing(
    office: Office, arguments: tuple[str, ...], said: tuple[str, ...]
) -> None:
    """One line says why."""
    office.add("alice")
    before = office.file.read_bytes()
    assert_fails(office.user(*arguments, password="secret"), ExitCode.USAGE, *said)
    assert office.file.read_bytes() == before


@pytest.mark.parametrize("password", ["x" * 72, "ü" * 36])
def test_a_password_may_have_72_bytes(office: Office, password: str) -> None:
    """All of them count."""
    office.add("alice", password=password)
    assert office.takes("alice", password)
    assert not office.takes("alice", password[:-1])


@pytest.mark.parametrize("password", ["", "x" * 73, "ü" * 37, "a\0b"])
def test_a_password_that_could_not_be_checked_is_refused(office: Office, password: str) -> None:
    """Empty, longer than bcrypt looks, or with a NUL; it is not repeated."""
    done = office.user("add", "alice", "--password-stdin", password=password)
    assert_fails(done, ExitCode.USAGE, "1 to 72 bytes")
    assert not office.file.exists()


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_a_password_is_utf_8(office: Office, errors: str) -> None:
    """As clients send it, whatever the locale; anything else is refused."""
    sent = io.TextIOWrapper(io.BytesIO(b"k\xf8d\n"), encoding="utf-8", errors=errors)
    done = office.user("add", "alice", "--password-stdin", stdin=sent)
    assert_fails(done, ExitCode.USAGE, "the password is not UTF-8")


class Terminal(io.StringIO):
    """What `berth` takes for a terminal."""

    def isatty(self) -> bool:
        """That is what it is asked."""
        return True


def test_a_password_is_asked_for_twice(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """And again where the two differ; it is never shown."""
    typed = iter(["secret", "sceret", "secret", "secret"])
    monkeypatch.setattr("getpass.getpass", lambda prompt: next(typed))
    done = office.user("add", "alice", stdin=Terminal())
    assert (done.returncode, list(typed)) == (ExitCode.OK, [])
    assert "secret" not in done.stdout + done.stderr
    assert office.takes("alice", "secret")


def test_ctrl_c_at_the_password_changes_nothing(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends the command as it would anywhere else."""

    def interrupt(prompt: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("getpass.getpass", interrupt)
    assert office.user("add", "alice", stdin=Terminal()).returncode == ExitCode.INTERRUPTED
    assert not office.file.exists()


def test_a_broken_file_is_left_as_it_is(office: Office) -> None:
    """Whatever was wanted; the line is named, and its hash is not told."""
    office.file.write_text("alice:plain-secret\n")
    for arguments in (("list",), ("add", "bob", "--password-stdin"), ("remove", "alice")):
        done = office.user(*arguments, password="secret")
        assert_fails(done, ExitCode.CONFIGURATION, f"{office.file}, line 1: ", "not bcrypt's")
        assert "plain-secret" not in done.stderr
    assert office.file.read_text() == "alice:plain-secret\n"


def test_another_file_is_used(office: Office, tmp_path: Path) -> None:
    """With --file; in a folder that exists."""
    other = tmp_path / "other"
    office.add("alice", "--file", str(other))
    assert list(parse_users(other.read_text())) == ["alice"]
    assert_fails(office.user("list"), ExitCode.CONFIGURATION, str(office.file), "no such file")
    nowhere = tmp_path / "nowhere" / "htpasswd"
    done = office.user("add", "alice", "--password-stdin", "--file", str(nowhere), password="x")
    assert_fails(done, ExitCode.CONFIGURATION, f"there is no folder {nowhere.parent}")


def test_the_file_keeps_its_mode_and_its_link(office: Office, tmp_path: Path) -> None:
    """The service may belong to another group than the administrator's."""
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
    """So that the service can still read what root has changed."""
    office.file.write_text("")
    os.chown(office.file, 12345, 54321)
    office.add("alice")
    kept = office.file.stat()
    assert (kept.st_uid, kept.st_gid) == (12345, 54321)

# SPDX-License-Identifier: Apache-2.0
"""`auth_strategy = http_basic`: the right password authenticates; wrong ones have to wait."""

from __future__ import annotations

import base64
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from berth.edge.auth import htpasswd, http_basic
from berth.edge.auth.file_based import FORGET_S, FREE, NAMES_FREE, layer_of
from berth.edge.auth.http_basic import CHALLENGE, CHECKS_MAX, REMEMBER_S, HttpBasic
from berth.edge.auth.watched_file import LOOK_EVERY_S
from tests.e2e.serving import wait_until
from tests.edge.auth.gate import Clock, Gate, basic, hashed, replace

ALICE = basic("alice", "secret")
WRONG = basic("alice", "wrong")


def line(name: str, password: str, fields: str = "") -> str:
    """A line of the file."""
    return f"{name}:{hashed(password)}{fields}\n"


OF_ALICE = line("alice", "secret", ":web:admin,reader")


@pytest.fixture
def clock() -> Clock:
    """A clock that a test moves."""
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with some users."""
    path = tmp_path / "htpasswd"
    path.write_text(
        OF_ALICE + line("bøb", "kød") + line("carl", "se:cr:et") + line("eva", "secret")
    )
    path.chmod(0o600)
    return path


@pytest.fixture
def strategy(path: Path, clock: Clock) -> HttpBasic:
    """The strategy, with these users."""
    return HttpBasic(path, clock=clock)


@pytest.fixture
def gate(strategy: HttpBasic) -> Gate:
    """An application behind it."""
    return Gate(layer_of(strategy))


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passwords that bcrypt checked."""
    asked: list[str] = []

    def is_password(password: str, password_hash: str) -> bool:
        asked.append(password)
        return htpasswd.is_password(password, password_hash)

    monkeypatch.setattr(http_basic, "is_password", is_password)
    return asked


@pytest.fixture
def let_go(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Checks do not end before this is called."""
    going = threading.Event()

    def is_password(password: str, password_hash: str) -> bool:
        assert going.wait(60)
        return htpasswd.is_password(password, password_hash)

    monkeypatch.setattr(http_basic, "is_password", is_password)
    return going.set


LATIN_1 = base64.b64encode("bøb:kød".encode("latin-1")).decode()


@pytest.mark.parametrize(
    ("headers", "user", "project", "roles"),
    [
        (ALICE, "alice", "web", ["admin", "reader"]),
        # A user without roles is authenticated too; policy decides.
        (basic("bøb", "kød"), "bøb", "bøb", []),
        # Of a client older than RFC 7617.
        ({"Authorization": f"basic  {LATIN_1}"}, "bøb", "bøb", []),
        # A name has no colon, so the first one ends it.
        (basic("carl", "se:cr:et"), "carl", "carl", []),
    ],
)
def test_the_right_password_makes_a_caller(
    gate: Gate, headers: dict[str, str], user: str, project: str, roles: list[str]
) -> None:
    """With the user's project and roles."""
    caller = gate.who(headers)
    assert (caller["user"], caller["project"], caller["roles"]) == (user, project, roles)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Basic"},
        {"Authorization": "Basic %%%"},
        {"Authorization": "Basic " + base64.b64encode(b"no colon").decode()},
        {"Authorization": "Bearer abc"},
        {"X-Auth-Token": "admin"},
        *(basic("alice", each) for each in ("", "Secret", "secret\0", "secret" * 20)),
        *(basic(name, "secret") for name in ("Alice", "", "nobody")),
        basic("alice", hashed("secret")),
    ],
)
def test_anybody_else_is_asked_for_credentials(gate: Gate, headers: dict[str, str]) -> None:
    """401, with the challenge that browsers and clients know; the version document is
    everybody's, but has no caller."""
    answer = gate.knock(headers)
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"] == CHALLENGE == 'Basic realm="placement"'
    assert set(answer.json) == {"message", "code", "title"}
    assert gate.who(headers | {"X-User-Id": "root"}, path="/")["user"] is None


def test_right_credentials_are_checked_once(
    gate: Gate, clock: Clock, checked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While they are used now and then; so many are kept, and no wrong ones."""
    for _ in range(3):
        gate.who(ALICE)
        clock.now += REMEMBER_S - 1
    assert checked == ["secret"]
    clock.now += REMEMBER_S
    gate.who(ALICE)
    assert checked == ["secret"] * 2
    # An unknown user costs as much as another.
    for name in ("alice", "alice", "nobody"):
        assert gate.status(basic(name, "wrong")) == 401
    assert checked[2:] == ["wrong"] * 3
    monkeypatch.setattr(http_basic, "REMEMBERED_MAX", 1)
    gate.who(basic("bøb", "kød"))
    gate.who(basic("bøb", "kød"))
    gate.who(ALICE)
    assert checked[5:] == ["kød", "secret"]


def test_who_has_the_password_of_another_is_still_somebody_else(gate: Gate) -> None:
    """The cache's key is the name and the password, so another name is checked."""
    assert gate.who(ALICE)["user"] == "alice"
    assert gate.who(basic("eva", "secret"))["user"] == "eva"
    assert gate.status(basic("eve", "secret")) == 401


def test_a_change_of_the_file_counts(gate: Gate, clock: Clock, path: Path) -> None:
    """A new user, other roles, another password, a removed user: at the next look."""
    assert gate.status(ALICE) == 200
    replace(path, line("alice", "secret", "::service") + line("carol", "lorac"))
    assert gate.status(basic("carol", "lorac")) == 401
    clock.now += LOOK_EVERY_S
    assert gate.who(ALICE)["roles"] == ["service"]
    assert gate.status(basic("carol", "lorac")) == 200
    replace(path, line("alice", "other") + line("dave", "evad"))
    clock.now += LOOK_EVERY_S
    assert gate.status(ALICE) == 401
    assert gate.status(basic("carol", "lorac")) == 401


@pytest.mark.parametrize("harm", ["gone", "a folder", "malformed", "not UTF-8"])
def test_a_broken_file_lets_nobody_in(
    gate: Gate, clock: Clock, path: Path, caplog: pytest.LogCaptureFixture, harm: str
) -> None:
    """503 meanwhile, also for callers that were authenticated before, and one line at the start
    and at the end; then everything is as it was."""
    caplog.set_level(logging.INFO, "berth.edge.auth")
    whole = path.read_text()
    assert gate.status(ALICE) == 200
    path.unlink()
    match harm:
        case "a folder":
            path.mkdir()
        case "malformed":
            path.write_text(f"{OF_ALICE}alice")
        case "not UTF-8":
            path.write_bytes(b"fine\n\xff")
    for _ in range(3):
        clock.now += LOOK_EVERY_S
        answer = gate.knock(ALICE)
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        assert "log" in answer.detail and str(path) not in answer.text
    if harm == "a folder":
        path.rmdir()
    replace(path, whole)
    clock.now += LOOK_EVERY_S
    assert gate.status(ALICE) == 200
    fault, mended = (each for each in caplog.records if each.name.endswith("watched_file"))
    assert (fault.levelno, mended.levelno) == (logging.ERROR, logging.INFO)
    assert str(path) in fault.getMessage() and "every login is refused" in fault.getMessage()
    if harm == "malformed":
        assert fault.getMessage().startswith(f"{path}, line 2: expected name:hash")


def test_who_fails_too_often_has_to_wait(gate: Gate, clock: Clock, checked: list[str]) -> None:
    """429 with the seconds that are left, rounded up, and nothing is checked meanwhile, not even a
    right password; other callers are not affected. The wait doubles up to a bound, and is forgotten
    after a quarter of an hour."""
    assert [gate.status(WRONG) for _ in range(FREE)] == [401] * FREE
    for wait in (1, 2, 4, 8, 16, 32, 60, 60):
        assert gate.status(WRONG) == 401
        asked = len(checked)
        for headers in (WRONG, ALICE):
            answer = gate.knock(headers)
            assert (answer.status, answer.headers["Retry-After"]) == (429, str(wait))
            clock.now += 0.5
        assert len(checked) == asked
        assert gate.status(basic("bøb", "kød")) == 200
        clock.now += wait - 1
    assert gate.status(ALICE, address="192.0.2.2") == 200
    clock.now += FORGET_S
    assert [gate.status(WRONG) for _ in range(FREE + 2)] == [401] * (FREE + 1) + [429]


def test_a_success_makes_good_for_the_failures_before(gate: Gate) -> None:
    """Whoever mistypes, and then gets it right, may mistype again."""
    attempts = [*["wrong"] * FREE, "secret", *["wrong"] * FREE]
    answers = [gate.status(basic("alice", password)) for password in attempts]
    assert answers == [*[401] * FREE, 200, *[401] * FREE]


def test_a_running_client_cannot_be_locked_out(gate: Gate) -> None:
    """Cached credentials are accepted, whatever fails with the same name and address."""
    assert gate.status(ALICE) == 200
    assert {gate.status(WRONG) for _ in range(FREE + 5)} == {401, 429}
    assert gate.status(ALICE) == 200


def test_a_failure_is_logged_without_the_password(
    gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    """It names the user, escaped, and the address; attempts that are refused unchecked log
    nothing."""
    eve = basic("eve\nroot is let in", "hunter2")
    for _ in range(FREE + 3):
        gate.status(eve)
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(lines) == FREE + 1
    assert lines[0] == (
        r"Authentication of user 'eve\nroot is let in' from 192.0.2.1 failed: "
        "unknown user or wrong password"
    )
    assert lines[-1] == f"{lines[0]}; further attempts are refused for 1 s"
    assert "hunter2" not in caplog.text and eve["Authorization"].split()[1] not in caplog.text


def test_the_same_credentials_are_checked_once_for_all_who_wait(
    strategy: HttpBasic, checked: list[str]
) -> None:
    """Thirty processes of a service that start together cost one check."""
    barrier = threading.Barrier(30)

    def knock(_: int) -> int:
        gate = Gate(layer_of(strategy))
        barrier.wait(60)
        return gate.status(ALICE)

    with ThreadPoolExecutor(30) as executor:
        assert set(executor.map(knock, range(30))) == {200}
    assert checked == ["secret"]


def test_a_flood_of_passwords_is_bounded(strategy: HttpBasic, let_go: Callable[[], None]) -> None:
    """A limited number waits for a check; one more gets 503."""

    def knock(number: int) -> int:
        return Gate(layer_of(strategy)).status(basic(f"user-{number}", "wrong"))

    with ThreadPoolExecutor(CHECKS_MAX) as executor:
        waiting = [executor.submit(knock, number) for number in range(CHECKS_MAX)]
        wait_until(lambda: len(strategy.checks) == CHECKS_MAX, "all checks begun")
        answer = Gate(layer_of(strategy)).knock(ALICE)
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        let_go()
        assert {future.result(60) for future in waiting} == {401}
    assert Gate(layer_of(strategy)).status(ALICE) == 200


def test_a_check_that_takes_too_long_is_given_up(
    gate: Gate, let_go: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller gets 503 before its own timeout."""
    monkeypatch.setattr(http_basic, "CHECK_S_MAX", 0.01)
    assert gate.status(ALICE) == 503
    let_go()


@pytest.mark.parametrize(
    ("flood", "sent_away"),
    [
        # An address that fills all places loses some to others.
        ("a" * CHECKS_MAX + "b", "a"),
        # Of 8 places, at 4, 3 and 1, the 3 cannot become 4: two addresses would push each other out
        # for as long as they continue, and neither would get an answer.
        ("a" * CHECKS_MAX + "bbb" + "c" + "b", "aaaab"),
    ],
)
def test_each_address_has_a_fair_share_of_the_checks(
    strategy: HttpBasic, let_go: Callable[[], None], flood: str, sent_away: str
) -> None:
    """Otherwise a dozen connections with wrong names would lock out everyone."""
    gone: list[str] = []

    def knock(number: int, address: str) -> int:
        gate = Gate(layer_of(strategy))
        status = gate.status(basic(f"user-{number}", "wrong"), address=address)
        gone.extend([address] * (status == 503))
        return status

    with ThreadPoolExecutor(len(flood)) as executor:
        sent = []
        for number, address in enumerate(flood):
            sent.append(executor.submit(knock, number, address))
            wait_until(
                lambda n=number: len(strategy.checks) + len(gone) == n + 1,  # type: ignore[misc]
                "its check to wait or one to be sent away",
            )
        assert "".join(gone) == sent_away
        let_go()
        assert sorted(each.result(60) for each in sent).count(401) == CHECKS_MAX
    assert len(strategy.checks) == 0


def test_turns_go_round_the_addresses(strategy: HttpBasic, checked: list[str]) -> None:
    """A new request waits for at most one check of each other address."""
    hold = threading.Event()
    strategy.checks._executor.submit(hold.wait)
    with ThreadPoolExecutor(CHECKS_MAX) as executor:
        for number, source in enumerate("aaabc"):
            gate = Gate(layer_of(strategy))
            headers = basic(f"u{number}", f"{source}{number}")
            executor.submit(gate.status, headers, address=source)
            wait_until(lambda n=number: len(strategy.checks) == n + 1, "it waits")  # type: ignore[misc]
        hold.set()
    assert checked == ["a0", "b3", "c4", "a1", "a2"]


def test_who_guesses_names_is_known_by_the_address(
    gate: Gate, clock: Clock, checked: list[str]
) -> None:
    """After many failures, new names from the address cost no more checks, and the answer does not
    reveal which users exist. A right password is accepted at the next attempt, and other addresses
    are not affected."""
    statuses = [gate.status(basic(f"guess-{n}", "x")) for n in range(NAMES_FREE + 1)]
    assert set(statuses) == {401}
    checked.clear()
    assert [gate.status(basic(f"more-{n}", "x")) for n in range(100)] == [429] * 100
    assert checked == []
    for headers in (basic("nobody", "x"), WRONG):
        answer = gate.knock(headers)
        assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
    wait_until(lambda: checked == ["wrong"], "the check in the background")
    assert gate.status(ALICE) == 429
    wait_until(lambda: gate.status(ALICE) == 200, "the right password to be known")
    assert gate.status(basic("bøb", "kød"), address="192.0.2.2") == 200
    clock.now += FORGET_S
    assert gate.status(basic("nobody", "x")) == 401


def test_a_user_is_valid_until_the_line_changes(
    strategy: HttpBasic, path: Path, clock: Clock, checked: list[str]
) -> None:
    """Whoever waits for changes is checked again, without the password and without its cost."""
    alice = strategy.still_valid({"HTTP_AUTHORIZATION": ALICE["Authorization"]})
    for text, is_valid in (
        (OF_ALICE + line("carol", "new"), True),
        (OF_ALICE.replace("admin,", ""), False),
    ):
        replace(path, text)
        clock.now += LOOK_EVERY_S
        assert alice() == is_valid
    assert checked == []

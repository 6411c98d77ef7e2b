# SPDX-License-Identifier: Apache-2.0
"""`auth_strategy = http_basic`: who gives the right password is let in, and all others wait."""

from __future__ import annotations

import base64
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from berth.api.auth import htpasswd, http_basic
from berth.api.auth.failed_attempts import FORGET_S, FREE, NAMES_FREE
from berth.api.auth.file_based import layer_of
from berth.api.auth.http_basic import CHALLENGE, CHECKS_MAX, REMEMBER_S, HttpBasic, Remembered
from berth.api.auth.identity import Identity
from berth.api.auth.watched_file import LOOK_EVERY_S
from tests.api.auth.gate import Clock, Gate, basic, hashed, replace
from tests.e2e.serving import wait_until

ALICE = basic("alice", "secret")


def line(name: str, password: str, fields: str = "") -> str:
    """A line of the file."""
    return f"{name}:{hashed(password)}{fields}\n"


@pytest.fixture
def clock() -> Clock:
    """A clock that a test moves."""
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with two users."""
    path = tmp_path / "htpasswd"
    path.write_text(line("alice", "secret", ":web:admin,reader") + line("bøb", "kød"))
    path.chmod(0o600)
    return path


@pytest.fixture
def gate(path: Path, clock: Clock) -> Gate:
    """A gate that knows them."""
    return Gate(layer_of(HttpBasic(path, clock=clock)))


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passwords that bcrypt was asked about."""
    asked: list[str] = []

    def is_password(password: str, password_hash: str) -> bool:
        asked.append(password)
        return htpasswd.is_password(password, password_hash)

    monkeypatch.setattr(http_basic, "is_password", is_password)
    return asked


def test_the_right_password_makes_a_caller(gate: Gate) -> None:
    """With the user's project and roles; one without roles is let in too, for policy to judge."""
    alice = gate.who(ALICE)
    assert (alice["user"], alice["project"], alice["roles"]) == (
        "alice",
        "web",
        ["admin", "reader"],
    )
    bob = gate.who(basic("bøb", "kød"))
    assert (bob["user"], bob["project"], bob["roles"]) == ("bøb", "bøb", [])


def test_a_client_that_knows_only_latin_1_is_understood(gate: Gate) -> None:
    """As some are that are older than RFC 7617."""
    encoded = base64.b64encode("bøb:kød".encode("latin-1")).decode()
    assert gate.who({"Authorization": f"basic  {encoded}"})["user"] == "bøb"


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
        basic("alice", ""),
        basic("alice", "Secret"),
        basic("alice", "secret\0"),
        basic("alice", "secret" * 20),
        basic("Alice", "secret"),
        basic("", "secret"),
        basic("nobody", "secret"),
        basic("alice", hashed("secret")),
    ],
)
def test_anybody_else_is_asked_for_credentials(gate: Gate, headers: dict[str, str]) -> None:
    """401, with the challenge that a browser or a client knows."""
    answer = gate.knock(headers)
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"] == CHALLENGE == 'Basic realm="placement"'
    assert set(answer.json) == {"message", "code", "title"}


def test_the_version_document_is_everybodys(gate: Gate) -> None:
    """Even with a wrong password; and nobody is somebody there."""
    assert gate.who({}, path="/")["user"] is None
    assert gate.who(basic("alice", "wrong") | {"X-User-Id": "root"}, path="/")["user"] is None


def test_credentials_are_checked_once(gate: Gate, clock: Clock, checked: list[str]) -> None:
    """And again after some minutes without use; used, they stay remembered."""
    for _ in range(3):
        gate.who(ALICE)
        clock.now += REMEMBER_S - 1
    assert checked == ["secret"]
    clock.now += REMEMBER_S
    gate.who(ALICE)
    assert checked == ["secret"] * 2


def test_who_has_the_password_of_another_is_still_somebody_else(path: Path, clock: Clock) -> None:
    """What is remembered is a name with its password; with another name it is checked."""
    replace(path, line("alice", "secret", ":web:admin") + line("bob", "secret"))
    gate = Gate(layer_of(HttpBasic(path, clock=clock)))
    assert gate.who(ALICE)["user"] == "alice"
    assert gate.who(basic("bob", "secret"))["user"] == "bob"
    assert gate.status(basic("eve", "secret")) == 401


def test_wrong_credentials_are_not_remembered(gate: Gate, checked: list[str]) -> None:
    """Each attempt is checked, and an unknown name costs as much as a known one."""
    for name in ("alice", "alice", "nobody"):
        gate.status(basic(name, "wrong"))
    assert checked == ["wrong"] * 3


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first to come is the first to go."""
    monkeypatch.setattr(http_basic, "REMEMBERED_MAX", 10)
    remembered = Remembered()
    for number in range(20):
        remembered.add(b"%d" % number, Identity(str(number), "p", ()), now=0.0)
    assert len(remembered) == 10
    assert remembered.find(b"9", now=0.0) is None
    assert remembered.find(b"10", now=0.0) is not None


def test_a_change_of_the_file_counts(gate: Gate, clock: Clock, path: Path) -> None:
    """A new user, other roles, another password, a removal: without a restart."""
    assert gate.status(ALICE) == 200
    replace(path, line("alice", "secret", "::service") + line("carol", "lorac"))
    clock.now += LOOK_EVERY_S
    assert gate.who(ALICE)["roles"] == ["service"]
    assert gate.status(basic("carol", "lorac")) == 200
    replace(path, line("alice", "other") + line("dave", "evad"))
    clock.now += LOOK_EVERY_S
    assert gate.status(ALICE) == 401
    assert gate.status(basic("carol", "lorac")) == 401


def test_a_broken_file_lets_nobody_in(
    gate: Gate, clock: Clock, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """503 while it lasts, also for those who were let in before; then all is as it was."""
    whole = path.read_text()
    assert gate.status(ALICE) == 200
    replace(path, f"{whole}alice")
    for _ in range(3):
        clock.now += LOOK_EVERY_S
        answer = gate.knock(ALICE)
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        assert "log" in answer.detail and str(path) not in answer.text
    (told,) = (record.getMessage() for record in caplog.records if record.levelno > logging.INFO)
    assert told.startswith(f"{path}, line 3: this is not name:hash")
    replace(path, whole)
    clock.now += LOOK_EVERY_S
    assert gate.status(ALICE) == 200


def test_who_fails_too_often_has_to_wait(gate: Gate, clock: Clock, checked: list[str]) -> None:
    """429 with the seconds that are left, and nothing is checked meanwhile, not even what is
    right; others are not concerned."""
    for _ in range(FREE + 2):
        assert gate.status(basic("alice", "wrong")) == 401
        clock.now += 1
    clock.now -= 1
    asked = len(checked)
    for password in ("wrong", "secret"):
        answer = gate.knock(basic("alice", password))
        assert (answer.status, answer.headers["Retry-After"]) == (429, "2")
    assert len(checked) == asked
    assert gate.status(ALICE, address="192.0.2.2") == 200
    assert gate.status(basic("bøb", "kød")) == 200
    clock.now += 2
    assert gate.status(basic("alice", "wrong")) == 401


def test_a_running_client_cannot_be_locked_out(gate: Gate, checked: list[str]) -> None:
    """Remembered credentials pass, whoever fails beside them with the same name and address."""
    assert gate.status(ALICE) == 200
    answers = {gate.status(basic("alice", "wrong")) for _ in range(FREE + 5)}
    assert answers == {401, 429}
    assert gate.status(ALICE) == 200


def test_a_failure_is_logged_without_the_password(
    gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    """With the name, whatever it is made of, and the address; refusals unseen make no lines."""
    for _ in range(FREE + 3):
        gate.status(basic("eve\nroot is let in", "hunter2"))
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(lines) == FREE + 1
    assert lines[0] == (
        r"The user 'eve\nroot is let in' from 192.0.2.1 is not let in: "
        "no such user, or not the password"
    )
    assert lines[-1] == f"{lines[0]}; further attempts are refused for 1 s"
    encoded = basic("eve\nroot is let in", "hunter2")["Authorization"].partition(" ")[2]
    assert "hunter2" not in caplog.text and encoded not in caplog.text


@pytest.fixture
def let_go(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Checks do not end before this is called."""
    going = threading.Event()

    def is_password(password: str, password_hash: str) -> bool:
        assert going.wait(60)
        return htpasswd.is_password(password, password_hash)

    monkeypatch.setattr(http_basic, "is_password", is_password)
    return going.set


def test_the_same_credentials_are_checked_once_for_all_who_wait(
    path: Path, clock: Clock, checked: list[str]
) -> None:
    """Thirty processes of a service that start together cost one check."""
    barrier = threading.Barrier(30)
    gates = HttpBasic(path, clock=clock)

    def knock(_: int) -> int:
        gate = Gate(layer_of(gates))
        barrier.wait(60)
        return gate.status(ALICE)

    with ThreadPoolExecutor(30) as executor:
        assert set(executor.map(knock, range(30))) == {200}
    assert checked == ["secret"]


def test_a_flood_of_passwords_is_bounded(
    path: Path, clock: Clock, let_go: Callable[[], None]
) -> None:
    """So many wait for their check; one more is told to come back, and who is remembered passes."""
    strategy = HttpBasic(path, clock=clock)

    def knock(number: int) -> int:
        return Gate(layer_of(strategy)).status(basic(f"user-{number}", "wrong"))

    with ThreadPoolExecutor(CHECKS_MAX) as executor:
        waiting = [executor.submit(knock, number) for number in range(CHECKS_MAX)]
        wait_until(lambda: len(strategy.checks) == CHECKS_MAX, "all checks begun")
        answer = Gate(layer_of(strategy)).knock(ALICE)
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        let_go()
        assert {one.result(60) for one in waiting} == {401}
    assert Gate(layer_of(strategy)).status(ALICE) == 200


def test_each_address_has_a_fair_share_of_the_checks(
    path: Path, clock: Clock, let_go: Callable[[], None]
) -> None:
    """One that fills all places gives some up, and does not make the others wait behind all of its
    own; without that a dozen connections with wrong names kept everybody else out."""
    strategy = HttpBasic(path, clock=clock)
    order: list[str] = []

    def knock(name: str, address: str) -> int:
        status = Gate(layer_of(strategy)).status(basic(name, "secret"), address=address)
        order.append(name)
        return status

    with ThreadPoolExecutor(CHECKS_MAX + 1) as executor:
        flood = [
            executor.submit(knock, f"user-{number}", "192.0.2.66") for number in range(CHECKS_MAX)
        ]
        wait_until(lambda: len(strategy.checks) == CHECKS_MAX, "all places taken")
        alice = executor.submit(knock, "alice", "192.0.2.1")
        wait_until(lambda: len(order) == 1, "one of them to be sent away")
        let_go()
        assert alice.result(60) == 200
        assert sorted(one.result(60) for one in flood) == [401] * (CHECKS_MAX - 1) + [503]
    assert len(strategy.checks) == 0


def test_no_place_goes_to_an_address_that_would_then_have_more(
    path: Path, clock: Clock, let_go: Callable[[], None]
) -> None:
    """Of 8 places, at 4, 3 and 1, the 3 cannot become 4: two that flood would push each other out
    for as long as they come, and neither get an answer."""
    strategy = HttpBasic(path, clock=clock)
    sent_away: list[str] = []

    def knock(number: int, address: str) -> None:
        gate = Gate(layer_of(strategy))
        if gate.status(basic(f"user-{number}", "wrong"), address=address) == 503:
            sent_away.append(address)

    floods = ["192.0.2.1"] * CHECKS_MAX + ["192.0.2.2"] * 3 + ["192.0.2.3"] + ["192.0.2.2"]
    with ThreadPoolExecutor(len(floods)) as executor:
        for number, address in enumerate(floods):
            executor.submit(knock, number, address)
            wait_until(
                lambda n=number: len(strategy.checks) + len(sent_away) == n + 1,  # type: ignore[misc]
                "its check to wait or one to be sent away",
            )
        let_go()
    assert sent_away == ["192.0.2.1"] * 4 + ["192.0.2.2"]


def test_turns_go_round_the_addresses(path: Path, clock: Clock, checked: list[str]) -> None:
    """Whoever comes last waits for one check of each other address at most."""
    strategy = HttpBasic(path, clock=clock)
    hold = threading.Event()
    strategy.checks._executor.submit(hold.wait)
    with ThreadPoolExecutor(CHECKS_MAX) as executor:
        waiting = []
        for number, source in enumerate("aaabc"):
            gate = Gate(layer_of(strategy))
            waiting.append(
                executor.submit(
                    gate.status, basic(f"u{number}", f"{source}{number}"), address=source
                )
            )
            wait_until(lambda n=number: len(strategy.checks) == n + 1, "it waits")  # type: ignore[misc]
        hold.set()
        assert {one.result(60) for one in waiting} == {401}
    assert checked == ["a0", "b3", "c4", "a1", "a2"]


def test_who_guesses_names_is_known_by_the_address(
    gate: Gate, clock: Clock, checked: list[str]
) -> None:
    """Ever new names cost no more checks once many have failed, and the answer does not tell which
    users there are; a right password is let in at the next attempt, and other addresses at once."""
    statuses = [gate.status(basic(f"guess-{n}", "x")) for n in range(NAMES_FREE + 1)]
    assert set(statuses) == {401}
    checked.clear()
    assert [gate.status(basic(f"more-{n}", "x")) for n in range(100)] == [429] * 100
    assert checked == []
    unknown, known = gate.knock(basic("nobody", "x")), gate.knock(basic("alice", "wrong"))
    assert (unknown.status, unknown.headers["Retry-After"]) == (429, "1")
    assert (known.status, known.headers["Retry-After"]) == (429, "1")
    wait_until(lambda: checked == ["wrong"], "the check in the background")
    assert gate.status(ALICE) == 429
    wait_until(lambda: gate.status(ALICE) == 200, "the right password to be known")
    assert gate.status(basic("bøb", "kød"), address="192.0.2.2") == 200
    clock.now += FORGET_S
    assert gate.status(basic("nobody", "x")) == 401


def test_a_check_that_takes_too_long_is_given_up(
    path: Path, clock: Clock, let_go: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """503: the caller is told before it gives up itself."""
    monkeypatch.setattr(http_basic, "CHECK_S_MAX", 0.01)
    gate = Gate(layer_of(HttpBasic(path, clock=clock)))
    assert gate.status(ALICE) == 503
    let_go()

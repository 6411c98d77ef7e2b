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
from berth.edge.auth.failed_attempts import FORGET_S, FREE, NAMES_FREE
from berth.edge.auth.file_based import layer_of
from berth.edge.auth.http_basic import CHALLENGE, CHECKS_MAX, REMEMBER_S, HttpBasic, Remembered
from berth.edge.auth.identity import Identity
from berth.edge.auth.watched_file import LOOK_EVERY_S
from tests.e2e.serving import wait_until
from tests.edge.auth.gate import Clock, Gate, basic, hashed, replace

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
    """An application with these users."""
    return Gate(layer_of(HttpBasic(path, clock=clock)))


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passwords that bcrypt checked."""
    asked: list[str] = []

    def is_password(password: str, password_hash: str) -> bool:
        asked.append(password)
        return htpasswd.is_password(password, password_hash)

    monkeypatch.setattr(http_basic, "is_password", is_password)
    return asked


def test_the_right_password_makes_a_caller(gate: Gate) -> None:
    """With the user's project and roles. A user without roles is authenticated too; policy
    decides."""
    alice = gate.who(ALICE)
    assert (alice["user"], alice["project"], alice["roles"]) == (
        "alice",
        "web",
        ["admin", "reader"],
    )
    bob = gate.who(basic("bøb", "kød"))
    assert (bob["user"], bob["project"], bob["roles"]) == ("bøb", "bøb", [])


def test_a_client_that_knows_only_latin_1_is_understood(gate: Gate) -> None:
    """Such as clients older than RFC 7617."""
    encoded = base64.b64encode("bøb:kød".encode("latin-1")).decode()
    assert gate.who({"Authorization": f"basic  {encoded}"})["user"] == "bøb"


def test_a_password_may_have_colons(path: Path, clock: Clock) -> None:
    """A name has none, so the first one ends it."""
    replace(path, line("alice", "se:cr:et"))
    gate = Gate(layer_of(HttpBasic(path, clock=clock)))
    assert gate.who(basic("alice", "se:cr:et"))["user"] == "alice"


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
    """401, with the challenge that browsers and clients know."""
    answer = gate.knock(headers)
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"] == CHALLENGE == 'Basic realm="placement"'
    assert set(answer.json) == {"message", "code", "title"}


def test_the_version_document_is_everybodys(gate: Gate) -> None:
    """Even with a wrong password; the request then has no caller."""
    assert gate.who({}, path="/")["user"] is None
    assert gate.who(basic("alice", "wrong") | {"X-User-Id": "root"}, path="/")["user"] is None


def test_credentials_are_checked_once(gate: Gate, clock: Clock, checked: list[str]) -> None:
    """They are checked again after some minutes without use; while in use they stay cached."""
    for _ in range(3):
        gate.who(ALICE)
        clock.now += REMEMBER_S - 1
    assert checked == ["secret"]
    clock.now += REMEMBER_S
    gate.who(ALICE)
    assert checked == ["secret"] * 2


def test_who_has_the_password_of_another_is_still_somebody_else(path: Path, clock: Clock) -> None:
    """The cache's key is the name and the password, so another name is checked."""
    replace(path, line("alice", "secret", ":web:admin") + line("bob", "secret"))
    gate = Gate(layer_of(HttpBasic(path, clock=clock)))
    assert gate.who(ALICE)["user"] == "alice"
    assert gate.who(basic("bob", "secret"))["user"] == "bob"
    assert gate.status(basic("eve", "secret")) == 401


def test_wrong_credentials_are_not_remembered(gate: Gate, checked: list[str]) -> None:
    """Each attempt is checked, and an unknown user costs as much as a known one."""
    for name in ("alice", "alice", "nobody"):
        gate.status(basic(name, "wrong"))
    assert checked == ["wrong"] * 3


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit, the oldest entry is removed."""
    monkeypatch.setattr(http_basic, "REMEMBERED_MAX", 10)
    remembered = Remembered()
    for number in range(20):
        remembered.add(b"%d" % number, Identity(str(number), "p", ()), now=0.0)
    assert len(remembered) == 10
    assert remembered.find(b"9", now=0.0) is None
    assert remembered.find(b"10", now=0.0) is not None


def test_a_change_of_the_file_counts(gate: Gate, clock: Clock, path: Path) -> None:
    """A new user, other roles, another password, a removed user: all without a restart."""
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
    """503 meanwhile, also for callers that were authenticated before; then everything is as it
    was."""
    whole = path.read_text()
    assert gate.status(ALICE) == 200
    replace(path, f"{whole}alice")
    for _ in range(3):
        clock.now += LOOK_EVERY_S
        answer = gate.knock(ALICE)
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        assert "log" in answer.detail and str(path) not in answer.text
    (warning,) = (record.getMessage() for record in caplog.records if record.levelno > logging.INFO)
    assert warning.startswith(f"{path}, line 3: expected name:hash")
    replace(path, whole)
    clock.now += LOOK_EVERY_S
    assert gate.status(ALICE) == 200


def test_who_fails_too_often_has_to_wait(gate: Gate, clock: Clock, checked: list[str]) -> None:
    """429 with the seconds that are left, rounded up, and nothing is checked meanwhile, not even a
    right password; other callers are not affected."""
    for _ in range(FREE + 2):
        assert gate.status(basic("alice", "wrong")) == 401
        clock.now += 1
    clock.now -= 0.5
    asked = len(checked)
    for password in ("wrong", "secret"):
        answer = gate.knock(basic("alice", password))
        assert (answer.status, answer.headers["Retry-After"]) == (429, "2")
    assert len(checked) == asked
    assert gate.status(ALICE, address="192.0.2.2") == 200
    assert gate.status(basic("bøb", "kød")) == 200
    clock.now += 2
    assert gate.status(basic("alice", "wrong")) == 401


def test_a_success_makes_good_for_the_failures_before(gate: Gate) -> None:
    """Whoever mistypes, and then gets it right, may mistype again."""
    attempts = [*["wrong"] * FREE, "secret", *["wrong"] * FREE]
    answers = [gate.status(basic("alice", password)) for password in attempts]
    assert answers == [*[401] * FREE, 200, *[401] * FREE]


def test_a_running_client_cannot_be_locked_out(gate: Gate, checked: list[str]) -> None:
    """Cached credentials are accepted, whatever fails with the same name and address."""
    assert gate.status(ALICE) == 200
    answers = {gate.status(basic("alice", "wrong")) for _ in range(FREE + 5)}
    assert answers == {401, 429}
    assert gate.status(ALICE) == 200


def test_a_failure_is_logged_without_the_password(
    gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    """It names the user, escaped, and the address; attempts that are refused unchecked log
    nothing."""
    for _ in range(FREE + 3):
        gate.status(basic("eve\nroot is let in", "hunter2"))
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(lines) == FREE + 1
    assert lines[0] == (
        r"Authentication of user 'eve\nroot is let in' from 192.0.2.1 failed: "
        "unknown user or wrong password"
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
    """A limited number waits for a check; one more gets 503, and cached credentials are
    accepted."""
    strategy = HttpBasic(path, clock=clock)

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


def test_each_address_has_a_fair_share_of_the_checks(
    path: Path, clock: Clock, let_go: Callable[[], None]
) -> None:
    """An address that fills all places loses some to others, and its checks do not delay theirs;
    otherwise a dozen connections with wrong names would lock out everyone."""
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
        assert sorted(future.result(60) for future in flood) == [401] * (CHECKS_MAX - 1) + [503]
    assert len(strategy.checks) == 0


def test_no_place_goes_to_an_address_that_would_then_have_more(
    path: Path, clock: Clock, let_go: Callable[[], None]
) -> None:
    """Of 8 places, at 4, 3 and 1, the 3 cannot become 4: two flooding addresses would push each
    other out for as long as they continue, and neither would get an answer."""
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
    """A new request waits for at most one check of each other address."""
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
        assert {future.result(60) for future in waiting} == {401}
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
    """The caller gets 503 before its own timeout."""
    monkeypatch.setattr(http_basic, "CHECK_S_MAX", 0.01)
    gate = Gate(layer_of(HttpBasic(path, clock=clock)))
    assert gate.status(ALICE) == 503
    let_go()


def test_a_user_is_valid_until_the_line_changes(
    path: Path, clock: Clock, checked: list[str]
) -> None:
    """Whoever waits for changes is checked again, without the password and without its cost."""
    basic_ = HttpBasic(path, clock=clock)
    alice = basic_.still_valid({"HTTP_AUTHORIZATION": ALICE["Authorization"]})
    kept = line("alice", "secret", ":web:admin,reader")
    replace(path, kept + line("carol", "new"))
    clock.now += LOOK_EVERY_S
    assert alice()
    replace(path, kept.replace("admin,", ""))
    clock.now += LOOK_EVERY_S
    assert not alice()
    assert checked == []

# SPDX-License-Identifier: Apache-2.0
"""`auth_strategy = keystone`: the tokens of requests that wait for changes are checked again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from berth.edge.auth.keystone import WaitingTokens
from tests.edge.auth.gate import Clock

NOW = datetime(2026, 11, 22, tzinfo=UTC)
CACHED_S = 300


class Keystone:
    """A Keystone that accepts some tokens, and those that expired only for a service."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = {*tokens}
        self.asked: list[tuple[str, bool]] = []
        self.clock = Clock()
        self.waiting = WaitingTokens(
            self.accepts, cached_s=CACHED_S, clock=self.clock, utc=self.utc
        )

    def utc(self) -> datetime:
        """The time of day."""
        return NOW + timedelta(seconds=self.clock.now - 1000)

    def accepts(self, token: str, *, allow_expired: bool) -> bool:
        """Whether it knows a token."""
        self.asked.append((token, allow_expired))
        return token in self.tokens


def environ(token: str, **more: str) -> dict[str, Any]:
    """A request that the middleware has accepted; its token is valid for an hour."""
    token_info = {"token": {"expires_at": "2026-11-22T01:00:00.000000Z"}}
    return {"HTTP_X_AUTH_TOKEN": token, "keystone.token_info": token_info, **more}


def test_a_revoked_token_ends_the_wait_and_is_refused_from_then_on() -> None:
    """Also where the middleware has it cached: otherwise its client would come again and again."""
    keystone = Keystone("t", "u")
    first, other = (keystone.waiting.checking(environ(token)) for token in "tu")
    assert first() and other()
    keystone.tokens.remove("t")
    keystone.clock.now += 2
    assert not first() and other()
    for token, is_kept in (("t", False), (" t ", False), ("u", True)):
        request = environ(token)
        keystone.waiting.refuse_ended(request)
        assert ("HTTP_X_AUTH_TOKEN" in request) == is_kept
    keystone.clock.now += CACHED_S
    request = environ("t")
    keystone.waiting.refuse_ended(request)
    assert "HTTP_X_AUTH_TOKEN" in request, "the middleware asks Keystone by itself"


def test_many_who_wait_with_one_token_ask_keystone_once() -> None:
    """In two seconds."""
    keystone = Keystone("t")
    checks = [keystone.waiting.checking(environ("t")) for _ in range(100)]
    assert all(is_valid() for is_valid in checks)
    assert keystone.asked == [("t", False)]


def test_a_token_expires_while_keystone_cannot_be_asked() -> None:
    """Its time is known."""
    keystone = Keystone("t")
    is_valid = keystone.waiting.checking(environ("t"))
    keystone.clock.now += 3599
    assert is_valid()
    keystone.clock.now += 1
    assert not is_valid()


def test_a_service_waits_with_a_users_token_that_has_expired() -> None:
    """For as long as its own token is valid."""
    keystone = Keystone("t", "s")
    is_valid = keystone.waiting.checking(environ("t", HTTP_X_SERVICE_TOKEN="s"))
    keystone.clock.now += 7200
    assert is_valid()
    assert keystone.asked == [("t", True), ("s", False)]
    keystone.tokens.remove("s")
    keystone.clock.now += 2
    assert not is_valid()


def test_a_token_that_is_refused_alone_may_be_good_beside_a_services() -> None:
    """Keystone refuses one that has just expired, by its clock, but not to a service."""
    keystone = Keystone("s")
    assert not keystone.waiting.checking(environ("t"))()
    keystone.tokens.add("t")
    alone, beside = environ("t"), environ("t", HTTP_X_SERVICE_TOKEN="s")
    for request in (alone, beside):
        keystone.waiting.refuse_ended(request)
    assert "HTTP_X_AUTH_TOKEN" not in alone
    assert "HTTP_X_AUTH_TOKEN" in beside
    assert keystone.waiting.checking(beside)()

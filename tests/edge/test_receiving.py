# SPDX-License-Identifier: Apache-2.0
"""How requests are received: limits on their size, and bodies that never arrive."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from io import BytesIO
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import pytest

from berth.api.environ import BODY, CONTEXT
from berth.config import ReceivingSettings
from berth.edge.layers import front
from berth.edge.receiving import (
    ELEMENT_BYTES,
    ELEMENTS_PER_MIB,
    MEMORY_PER_BYTE,
    SMALL,
    Receiving,
    Stream,
)
from tests.client import Client, Response
from tests.e2e.serving import PATIENCE

MIB = 2**20

JSON = {"Content-Type": "application/json"}


def limits(*, body_mib: int = 1, uri_kib: int = 1, waiting: int = 8) -> ReceivingSettings:
    """These limits."""
    return ReceivingSettings(
        body_mib_max=body_mib, uri_kib_max=uri_kib, bodies_waiting_max=waiting, client_seconds_max=1
    )


class Broken:
    """A body that raises an exception after a part has arrived."""

    def __init__(self, fault: Exception, begin: bytes = b"") -> None:
        self._begin = BytesIO(begin)
        self._fault = fault

    def read(self, size: int, /) -> bytes:
        """The rest of the part, and then the exception."""
        if piece := self._begin.read(size):
            return piece
        raise self._fault


class Withheld:
    """A body that is withheld until the test releases it."""

    def __init__(self) -> None:
        self.is_awaited = threading.Event()
        self.comes = threading.Event()

    def read(self, size: int, /) -> bytes:
        """Zeros, once they are released."""
        self.is_awaited.set()
        assert self.comes.wait(PATIENCE)
        return b"0" * size


class Trickle(BytesIO):
    """A body that arrives byte by byte."""

    def read(self, size: int | None = -1, /) -> bytes:
        """One byte."""
        return super().read(min(1, size or 0))


class Counted:
    """A body of zeros that counts the bytes read."""

    def __init__(self, size: int) -> None:
        self.read_bytes = 0
        self._left = size

    def read(self, size: int, /) -> bytes:
        """The remaining bytes."""
        piece = b"0" * min(size, self._left)
        self._left -= len(piece)
        self.read_bytes += len(piece)
        return piece


def at_once(
    application: WSGIApplication, environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    """Run an application without admission control."""
    return application(environ, start_response)


class Service:
    """An application behind the layers, which records the bodies that reach it."""

    def __init__(self, settings: ReceivingSettings) -> None:
        self.arrived: list[bytes | None] = []
        #: Done while a request is answered.
        self.during: Callable[[], object] = lambda: None
        #: Who calls; None: a stranger, who is refused; "": anybody, for what is public.
        self.caller: str | None = "somebody"
        #: How often it was found out who calls.
        self.asked_who = 0
        self.receiving = Receiving(settings)
        authenticated = self._identify(self.receiving.rest(self._answer, at_once))
        self._layered = front(self.receiving.begin(authenticated, at_once))

    def _identify(self, application: WSGIApplication) -> WSGIApplication:
        def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            self.asked_who += 1
            if self.caller is None:
                start_response("401 Unauthorized", [("content-length", "0")])
                return [b""]
            environ[CONTEXT].user_id = self.caller or None
            return application(environ, start_response)

        return layer

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        self.arrived.append(environ.get(BODY))
        self.during()
        start_response("200 OK", [("content-length", "0")])
        return [b""]

    def send(self, stream: Stream, length: int | str | None, version: str = "1.39") -> Response:
        """Send a body with this announced length; chunked if it is None."""

        def server(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            environ["wsgi.input"] = stream
            return self._layered(environ, start_response)

        how = (
            {"Transfer-Encoding": "chunked", "Content-Length": None}
            if length is None
            else {"Content-Length": str(length)}
        )
        return Client.of(server).put("/any", headers=JSON | how, version=version)

    def get(self, target: str) -> Response:
        """Send a GET."""
        return Client.of(self._layered).get(target)


@pytest.mark.parametrize("length", [300, SMALL + 1, 300_000, None])
@pytest.mark.parametrize("stream", [BytesIO, Trickle])
def test_a_body_is_there_before_the_application_is_asked(
    stream: type[BytesIO], length: int | None
) -> None:
    """All of it, whether its length is announced or not, and in pieces of any size."""
    service = Service(limits())
    whole = bytes(number % 251 for number in range(length or 300))
    assert service.send(stream(whole), length).status == 200
    assert service.arrived == [whole]


def test_what_has_no_body_waits_for_none() -> None:
    """Nothing is read unless a body is announced, because the read might never end; what is no
    number is told by the application, which decides the order of errors."""
    service = Service(limits())
    never = Broken(AssertionError("nobody may read this"))
    for length in (0, "", "000"):
        assert service.send(never, length).status == 200
    assert service.arrived == [b"", b"", b""]
    for length in ("1_0", "-1", "\u0663", "ten"):
        assert service.send(never, length).status == 200
    assert service.get("/any").status == 200
    assert service.arrived[-1] is None


@pytest.mark.parametrize("length", [MIB + 1, "9" * 30, None])
def test_a_body_over_the_limit_is_refused(length: int | str | None) -> None:
    """413: by its announced length without reading it, or when more has arrived."""
    service = Service(limits(body_mib=1))
    assert service.send(BytesIO(b"0" * MIB), None if length is None else MIB).status == 200
    answer = service.send(BytesIO(b"0" * (MIB + 1)), length)
    assert (answer.status, answer.error["title"]) == (413, "Content Too Large")
    assert answer.detail.strip().endswith("A body may have 1 MiB at most; send it in parts.")
    assert answer.code == "placement.undefined_code"
    assert answer.headers["x-openstack-request-id"] == answer.error["request_id"]
    assert len(service.arrived) == 1


def test_a_path_and_query_over_the_limit_are_refused() -> None:
    """414, before the application is called."""
    service = Service(limits(uri_kib=1))
    assert service.get("/any?name=" + "n" * 1014).status == 200
    for target in ("/any?name=" + "n" * 1016, "/" + "n" * 1024):
        answer = service.get(target)
        assert (answer.status, answer.error["title"]) == (414, "URI Too Long")
        assert "1 KiB" in answer.detail
    assert len(service.arrived) == 1


@pytest.mark.parametrize(
    ("stream", "status", "says"),
    [
        (
            Broken(TimeoutError("3 bytes came"), b"[1]"),
            408,
            "took too long to arrive: 3 bytes came",
        ),
        (Broken(ConnectionResetError("gone"), b"[1]"), 400, "cannot be read: gone"),
        (BytesIO(b"{}"), 400, "The body ended after 2 of 300 bytes."),
    ],
)
def test_a_body_that_does_not_come_is_told_so(stream: Stream, status: int, says: str) -> None:
    """The part that arrived might be valid JSON, but is not what the client meant."""
    service = Service(limits())
    answer = service.send(stream, 300)
    assert answer.status == status
    assert says in answer.detail
    assert service.arrived == []


def test_so_many_are_awaited_and_no_more() -> None:
    """One more gets 503; a request without a body never waits for these."""
    service = Service(limits(waiting=2))
    withheld = [Withheld(), Withheld()]
    with ThreadPoolExecutor(2) as pool, ExitStack() as at_the_end:
        for body in withheld:
            at_the_end.callback(body.comes.set)
        sent = [pool.submit(service.send, body, 3) for body in withheld]
        assert all(body.is_awaited.wait(PATIENCE) for body in withheld)
        answer = service.send(BytesIO(b"[1]"), 3)
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert answer.code == "placement.overloaded"
        assert service.get("/any").status == 200
        at_the_end.close()
        assert [future.result(PATIENCE).status for future in sent] == [200, 200]
    assert service.send(BytesIO(b"[1]"), 3).status == 200


@pytest.mark.parametrize(
    ("caller", "length", "status", "read"),
    [
        ("somebody", SMALL, 200, SMALL),
        ("somebody", SMALL + 1, 200, SMALL + 1),
        (None, SMALL, 401, SMALL),
        (None, SMALL + 1, 401, 0),
        # Public operations take no body, and their callers are unknown.
        ("", SMALL + 1, 200, 0),
    ],
)
def test_strangers_make_nobody_keep_more_than_a_small_body(
    caller: str | None, length: int, status: int, read: int
) -> None:
    """A larger body is read only after authentication, which happens once per request."""
    service = Service(limits())
    service.caller = caller
    body = Counted(length)
    assert service.send(body, length).status == status
    assert body.read_bytes == read
    assert service.asked_who == 1
    assert service.receiving.budget.used == 0


def test_of_a_stranger_that_announces_no_length_little_is_read() -> None:
    """No more than of a small announced body, up to the size of one read."""
    service = Service(limits())
    service.caller = None
    body = Counted(MIB)
    assert service.send(body, None).status == 401
    assert SMALL < body.read_bytes <= 2 * SMALL


def test_a_large_body_waits_in_the_line_of_those_that_are_awaited() -> None:
    """From before authentication until it has arrived, and no longer."""
    service = Service(limits(waiting=1))
    withheld = Withheld()

    def while_it_is_answered() -> None:
        service.during = lambda: None
        assert service.send(BytesIO(b"[1]"), 3).status == 200

    service.during = while_it_is_answered
    with ThreadPoolExecutor(1) as pool, ExitStack() as at_the_end:
        at_the_end.callback(withheld.comes.set)
        sent = pool.submit(service.send, withheld, SMALL + 1)
        assert withheld.is_awaited.wait(PATIENCE)
        assert service.send(BytesIO(b"[1]"), 3).status == 503
        at_the_end.close()
        assert sent.result(PATIENCE).status == 200


@pytest.mark.parametrize("announced", [True, False])
def test_so_many_bytes_of_large_bodies_are_held_and_no_more(announced: bool) -> None:
    """From when they are read until their requests are answered; small bodies are not affected."""
    service = Service(limits(body_mib=1))
    together = threading.Barrier(MEMORY_PER_BYTE + 1)

    def stay() -> None:
        together.wait(PATIENCE)
        together.wait(PATIENCE)

    service.during = stay
    length = MIB if announced else None
    with ThreadPoolExecutor(MEMORY_PER_BYTE) as pool:
        sent = [pool.submit(service.send, Counted(MIB), length) for _ in range(MEMORY_PER_BYTE)]
        together.wait(PATIENCE)
        service.during = lambda: None
        assert service.receiving.budget.used == MEMORY_PER_BYTE * MIB
        answer = service.send(Counted(SMALL + 1), SMALL + 1 if announced else None)
        assert (answer.status, answer.code) == (503, "placement.overloaded")
        assert service.send(Counted(SMALL), SMALL).status == 200
        together.wait(PATIENCE)
        assert [future.result(PATIENCE).status for future in sent] == [200] * MEMORY_PER_BYTE
    assert service.receiving.budget.used == 0
    assert service.send(Counted(MIB), length).status == 200


@pytest.mark.parametrize("mark", [b"[],", b"{},", b"0,"])
def test_a_body_has_so_many_elements_and_no_more(mark: bytes) -> None:
    """413: decoded, it would take twenty times its length."""
    service = Service(limits(body_mib=1))
    each = 1 if mark == b"0," else 2
    most = b"[" + mark * ((ELEMENTS_PER_MIB - 1) // each)
    most = most.ljust(SMALL + 1)
    assert service.send(BytesIO(most), len(most)).status == 200
    answer = service.send(BytesIO(most + mark * 2), len(most) + 2 * len(mark))
    assert answer.status == 413
    assert "65536 commas and opening brackets" in answer.detail
    assert service.arrived == [most]


def test_elements_weigh_in_what_is_held() -> None:
    """A body counts with its length and the memory to decode it; one of the largest allowed length
    and number of elements is always held."""
    service = Service(limits(body_mib=1))
    body = b"[" + b"[]," * 1000 + b" " * SMALL
    sizes = []
    service.during = lambda: sizes.append(service.receiving.budget.used)
    assert service.send(BytesIO(body), len(body)).status == 200
    assert sizes == [len(body) + 2001 * ELEMENT_BYTES]
    assert 1 + ELEMENTS_PER_MIB * ELEMENT_BYTES / MIB <= MEMORY_PER_BYTE

# SPDX-License-Identifier: Apache-2.0
"""Sends the requests of a command, and turns refusals into one sentence each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlencode

import click

from berth.cli.fleet.refusals import InConflict, NoOwnApi, NotThere, ServiceRefused
from berth.hosts.errors import Refused
from berth.hosts.service import Answer, Service, Transport

#: Every command uses the newest microversion.
VERSION: Final = "1.39"

AGGREGATES: Final = "/berth/v1/aggregates"
CANDIDATES: Final = "/berth/v1/candidates"
EXPLAIN: Final = "/berth/v1/explain"

_NEXT_STEPS: Final[Mapping[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "authentication failed: check the token or the password",
}

#: Routes of berth's own API without anything in them that may not be there.
_OWN_ROUTES: Final = frozenset({AGGREGATES, CANDIDATES, EXPLAIN})

#: The sentence that begins each message of the service and repeats its status in words.
_END_OF_PREAMBLE: Final = "\n\n"

_KINDS: Final[Mapping[int, type[ServiceRefused]]] = {
    HTTPStatus.NOT_FOUND: NotThere,
    HTTPStatus.CONFLICT: InConflict,
}


class Client:
    """The API for commands."""

    def __init__(self, service: Service, *, as_json: bool = False) -> None:
        self._service = service
        #: Whether to print the API's answers instead of tables.
        self.as_json = as_json

    def get(self, path: str, query: Iterable[tuple[str, str]] = ()) -> Answer:
        """Send a GET with query parameters, some of which may repeat.

        Raises:
            NotThere, ServiceRefused: the service refused.
            Unreachable: it does not answer.
        """
        pairs = list(query)
        return self.send("GET", f"{path}?{urlencode(pairs)}" if pairs else path)

    def send(self, method: str, path: str, body: object = None) -> Answer:
        """Send a request.

        Raises:
            NotThere, InConflict, ServiceRefused: the service refused, and changed nothing.
            NoOwnApi: it does not have this route.
            Unreachable: it does not answer.
        """
        try:
            return self._service.send(method, path, body, version=VERSION)
        except Refused as error:
            kind = _KINDS.get(error.status, ServiceRefused)
            if kind is NotThere and path in _OWN_ROUTES:
                raise NoOwnApi(path) from error
            raise kind(sentence(error.detail), error.code) from error

    def read(self, path: str, *query: tuple[str, str]) -> Any:
        """The decoded answer to a GET; see `get`."""
        return self.get(path, query).json()


def of_transport(transport: Transport, *, as_json: bool = False) -> Client:
    """The client that sends its requests by way of a transport."""
    return Client(Service(transport, next_steps=_NEXT_STEPS), as_json=as_json)


def sentence(detail: str) -> str:
    """A message of the service on one line, without the words for its status."""
    _, ends, message = detail.partition(_END_OF_PREAMBLE)
    words = " ".join((message if ends and message.strip() else detail).split())
    return words.replace(". ;", ";").removesuffix(".")


def path_of(*segments: str) -> str:
    """A path of the API; the segments may contain any characters."""
    return "".join(f"/{quote(segment, safe='')}" for segment in segments)


def print_answer(answer: Answer) -> None:
    """Print an answer of the API as it came; nothing if it has no body."""
    if answer.text:
        click.echo(answer.text)

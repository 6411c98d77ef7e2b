# SPDX-License-Identifier: Apache-2.0
"""`berth.client` for commands: refusals are failures of the command, and answers are printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import click

from berth import client as api
from berth.cli.fleet.refusals import Forbidden, InConflict, NoOwnApi, NotThere, ServiceRefused
from berth.client.client import (
    AGGREGATES,
    CANDIDATES,
    CAPACITY,
    CONSUMERS,
    DRAINS,
    EXPLAIN,
    FLAVORS,
    FLEET,
    LEASES,
    PERMISSIONS,
    PLACE,
    consumer_path,
    path_of,
)

if TYPE_CHECKING:
    from berth.hosts.service import Answer, Transport

__all__ = [
    "AGGREGATES",
    "CANDIDATES",
    "CAPACITY",
    "CONSUMERS",
    "DRAINS",
    "EXPLAIN",
    "FLAVORS",
    "FLEET",
    "LEASES",
    "PERMISSIONS",
    "PLACE",
    "Client",
    "consumer_path",
    "failing",
    "of_transport",
    "path_of",
    "print_answer",
]

_KINDS: Final[Mapping[type[api.Refused], type[ServiceRefused]]] = {
    api.NoOwnApi: NoOwnApi,
    api.NotThere: NotThere,
    api.Conflict: InConflict,
}


class Client(api.Client):
    """The API for commands."""

    #: Whether to print the API's answers instead of tables.
    as_json = False

    def send(self, method: str, path: str, body: object = None) -> Answer:
        """Send a request.

        Raises:
            NotThere, InConflict, Forbidden, ServiceRefused: the service refused, and changed
                nothing.
            NoOwnApi: it does not have this route.
            Unreachable: it does not answer.
        """
        with failing():
            return super().send(method, path, body)

    @property
    def for_programs(self) -> api.Client:
        """The same client with the refusals of `berth.client`, which its other parts expect."""
        return api.Client(self._service)


@contextmanager
def failing() -> Iterator[None]:
    """Turn refusals of `berth.client` into failures of the command.

    Raises:
        NotThere, InConflict, Forbidden, NoOwnApi, ServiceRefused: the service refused a request.
    """
    try:
        yield
    except api.Refused as refusal:
        other = Forbidden if refusal.status == HTTPStatus.FORBIDDEN else ServiceRefused
        kind = _KINDS.get(type(refusal), other)
        raise kind(str(refusal), refusal.code) from refusal


def of_transport(transport: Transport, *, as_json: bool = False) -> Client:
    """The client that sends its requests by way of a transport."""
    client = Client.of_transport(transport)
    client.as_json = as_json
    return client


def print_answer(answer: Answer) -> None:
    """Print an answer of the API as it came; nothing if it has no body."""
    if answer.text:
        click.echo(answer.text.removesuffix("\n"))

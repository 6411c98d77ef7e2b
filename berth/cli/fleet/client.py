# SPDX-License-Identifier: Apache-2.0
"""`berth.client` for commands: refusals are failures of the command, and answers are printed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from berth import client as api
from berth.cli.fleet.refusals import Forbidden, InConflict, NoOwnApi, NotThere, ServiceRefused
from berth.cli.fleet.suggestions import did_you_mean
from berth.cli.fleet.warned import Warning, in_words, warn, warnings_in
from berth.cli.output import say_json_text
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
    from berth.hosts.service import Answer, Service, Transport

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


#: The refusal of a write that names a provider; of other names, the service suggests similar ones.
_UNKNOWN_PROVIDER: Final = re.compile(r"There is no provider (?P<name>\S+)")


class Client(api.Client):
    """The API for commands."""

    #: Whether to print the API's answers instead of tables.
    as_json = False

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        #: The sentences that were printed.
        self._warned: set[str] = set()

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Answer:
        """Send a request, and print the warnings of its answer on stderr, each once.

        Raises:
            NotThere, InConflict, Forbidden, ServiceRefused: the service refused, and changed
                nothing.
            NoOwnApi: it does not have this route.
            Unreachable: it does not answer.
        """
        try:
            with failing():
                answer = super().send(method, path, body, headers=headers)
        except ServiceRefused as refused:
            cause = refused.__cause__
            if isinstance(cause, api.Refused):
                self._warn(cause.warnings)
            if (match := _UNKNOWN_PROVIDER.fullmatch(str(refused))) is None:
                raise
            hint = did_you_mean(self, "/resource_providers", match["name"])
            raise type(refused)(f"{refused}{hint}", refused.error_code) from cause
        self._warn(warnings_in(answer))
        return answer

    def _warn(self, warnings: Iterable[Warning]) -> None:
        for warning in warnings:
            sentence = in_words(warning)
            if sentence in self._warned:
                continue
            self._warned.add(sentence)
            if warning["code"] == "unknown_provider":
                hint = did_you_mean(self, "/resource_providers", warning["reference"])
                sentence = sentence.removesuffix(".") + (hint or ".")
            warn(sentence)

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
        say_json_text(answer.text)

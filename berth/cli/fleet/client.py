# SPDX-License-Identifier: Apache-2.0
"""`berth.client` for commands: warnings and answers are printed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from berth import client as api
from berth.cli.fleet.labels import Labels
from berth.cli.fleet.refusals import (
    Warning,
    did_you_mean,
    in_words,
    warn,
    warnings_in,
)
from berth.cli.output import say_json_text
from berth.client.client import lines_of
from berth.model.refusals import Refused

if TYPE_CHECKING:
    from berth.hosts.service import Answer, Service, Transport

#: The refusal of a write that names a provider; of other names, the service suggests similar ones.
_UNKNOWN_PROVIDER: Final = re.compile(r"There is no provider (?P<name>\S+)")


class Client(api.Client):
    """The API for commands."""

    #: Whether to print the API's answers instead of tables.
    as_json = False

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        #: The labels of aggregates, by which users name them.
        self.labels = Labels(self)
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
            NotThere, Conflict, Forbidden, Refused: the service refused, and changed nothing.
            NoOwnApi: it does not have this route.
            Unreachable: it does not answer.
        """
        try:
            answer = super().send(method, path, body, headers=headers)
        except Refused as refused:
            self._warn(refused.warnings)
            if (match := _UNKNOWN_PROVIDER.fullmatch(str(refused))) is None:
                raise
            hint = did_you_mean(self, "/resource_providers", match["name"])
            raise refused.saying(f"{refused}{hint}") from refused.__cause__
        self._warn(warnings_in(answer))
        return answer

    def show(self, answer: Answer, printed: Callable[[Any], None] = lambda _: None) -> None:
        """Print an answer: as it came if the command has --json, and else what is in it.

        Args:
            printed: prints its value for people, which is None if the answer has no body; without
                it, people see nothing.
        """
        if not self.as_json:
            printed(answer.json() if answer.text else None)
        elif answer.text:
            say_json_text(answer.text)

    def show_lines(
        self, answer: Answer, printed: Callable[[Sequence[Mapping[str, Any]]], None]
    ) -> None:
        """Print an answer of JSON lines, as `show` does.

        Raises:
            Incomplete: the answer broke off, and was for people.
        """
        if self.as_json:
            say_json_text(answer.text)
        else:
            printed(self.lines(answer))

    def lines(self, answer: Answer) -> list[Mapping[str, Any]]:
        """The values of an answer of JSON lines.

        Raises:
            Incomplete: the answer broke off.
        """
        return lines_of(answer)[0]

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


def of_transport(transport: Transport, *, as_json: bool = False) -> Client:
    """The client that sends its requests by way of a transport."""
    client = Client.of_transport(transport)
    client.as_json = as_json
    return client

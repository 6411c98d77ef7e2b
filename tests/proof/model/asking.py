# SPDX-License-Identifier: Apache-2.0
"""Sends each request of a history to the service, and applies it to the plain model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from hypothesis import note
from hypothesis.stateful import RuleBasedStateMachine, invariant

from tests.client import NOTHING, Response
from tests.index.checking import checked
from tests.proof.model import plain_reads, wire
from tests.proof.model.names import OFF_BY
from tests.proof.model.plain_model import Claim, PlainModel, Refusal
from tests.proof.model.server import Server
from tests.routes import route_of
from tests.worlds import consumer_uuid, provider_uuid


class Asking(RuleBasedStateMachine):
    """A service and its model, and the invariants after every step.

    Failures are shown twice: as Hypothesis' calls of rules, and as a script of requests.
    """

    #: Where each history begins: gives an empty service.
    fresh_server: ClassVar[Callable[[], Server]]
    fresh_model: ClassVar[Callable[[], PlainModel]] = PlainModel
    #: (path template, method) of each request that was accepted, in all histories of a run.
    accepted: ClassVar[set[tuple[str, str]]]

    def __init__(self) -> None:
        super().__init__()
        self.server = type(self).fresh_server()
        self.model = type(self).fresh_model()
        #: Whether the last answer was the one that the model gives.
        self.agrees = True
        #: Whether anything has been changed since that was last looked at.
        self.has_written = False
        note(wire.PRELUDE)

    # --- What holds after every step -------------------------------------------------------------

    @invariant()
    def the_fleet_and_its_index_hold(self) -> None:
        """After every write: each provider's generation and place, and the index compared with the
        database."""
        if not self.has_written:
            return
        self.has_written = False
        response = self.server.client.get("/resource_providers")
        query = plain_reads.ProviderQuery()
        self.compare(39, response, 200, lambda: plain_reads.list_providers(self.model, 39, query))
        faults = checked(self.server.index)
        self.agrees = not faults
        assert not faults

    # --- How it is asked -------------------------------------------------------------------------

    def send(
        self,
        minor: int,
        method: str,
        path: str,
        body: Any,
        success: int,
        due: Callable[[], Any],
        *,
        since: int = 0,
    ) -> None:
        """Send a request, apply it to the model, and compare status, error code and body.

        Args:
            due: applies it to the model, and returns the body of the response.
            since: the minor version in which the route began.
        """
        response = self.request(minor, method, path, body)
        self.compare(minor, response, success, due, since=since)

    def compare(
        self,
        minor: int,
        response: Response,
        success: int,
        due: Callable[[], Any],
        *,
        since: int = 0,
    ) -> None:
        """Compare a response with the model's; see `send`."""
        try:
            if minor < since:
                raise Refusal(404)
            wanted = success, wire.comparable(due())
        except Refusal as refusal:
            wanted = refusal.status, refusal.code if minor >= 23 else None
        found = response.status, wire.comparable(response.json)
        if response.status >= 400:
            found = response.status, response.json["errors"][0].get("code")
        self.agrees = found == wanted
        assert self.agrees, f"answered {found}, the model says {wanted}"

    def request(self, minor: int, method: str, path: str, body: Any) -> Response:
        """Send a request, and add it to the script."""
        response = self.server.client.request(method, path, json=body, version=f"1.{minor}")
        note(wire.script_line(minor, method, path, body, response.status))
        self.has_written |= method != "GET" and response.status < 300
        if response.status < 300:
            route = route_of(path.partition("?")[0])
            assert route is not None
            self.accepted.add((route.template, method))
        return response

    def list_by(self, minor: int, query: plain_reads.ProviderQuery) -> None:
        """GET /resource_providers with filters."""
        text = wire.query_of(query)
        self.send(
            minor,
            "GET",
            f"/resource_providers{text}",
            NOTHING,
            200,
            lambda: plain_reads.list_providers(self.model, minor, query),
        )

    def generation(self, place: str, seen: str) -> int:
        """The generation that a client saw: `right`, `stale` or `ahead`."""
        provider = self.model.providers.get(provider_uuid(place))
        return (provider.generation if provider else 0) + OFF_BY[seen]

    def held(self, consumer: str) -> Mapping[str, Mapping[str, int]]:
        """A consumer's allocations."""
        present = self.model.consumers.get(consumer_uuid(consumer))
        return present.held if present else {}

    def claim_of(
        self,
        consumer: str,
        seen: str,
        held: dict[str, dict[str, int]],
        project: str,
        user: str,
        kind: str,
    ) -> Claim:
        """A claim for the model. A wrong `seen` makes an existing consumer new, and a new one
        existing."""
        present = self.model.consumers.get(consumer_uuid(consumer))
        generation = present.generation if present else None
        if seen != "right":
            generation = None if present and seen == "stale" else (generation or 0) + 1
        by_uuid = {provider_uuid(place): some for place, some in held.items()}
        return Claim(by_uuid, generation, project, user, kind)

    def claims_of(
        self, wanted: dict[str, dict[str, dict[str, int]]], seen: str, project: str, kind: str
    ) -> dict[str, Claim]:
        """Claims of several consumers; if wrong, then only the first one."""
        words = [seen] + ["right"] * len(wanted)
        return {
            consumer_uuid(consumer): self.claim_of(consumer, word, held, project, "ann", kind)
            for word, (consumer, held) in zip(words, wanted.items(), strict=False)
        }

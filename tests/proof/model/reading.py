# SPDX-License-Identifier: Apache-2.0
"""Every route that reads, as a rule of the state machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.answers import read_answer
from tests.brute_force import UnknownName, answer
from tests.candidates.strategies import AGGREGATES, questions
from tests.client import NOTHING
from tests.proof.model import plain_reads, wire
from tests.proof.model.asking import Asking
from tests.proof.model.names import (
    CONSUMERS,
    PROVIDERS,
    aggregates,
    amounts,
    classes,
    consumers,
    custom_classes,
    custom_traits,
    minors,
    names,
    projects,
    providers,
    traits,
    types,
    users,
)
from tests.queries import query_text
from tests.worlds import aggregate_uuid, consumer_uuid, provider_uuid


class Reading(Asking):
    """Each rule is one request, or all reads of one object."""

    # --- Reading ---------------------------------------------------------------------------------

    @rule(minor=minors(0), place=providers)
    def read_provider(self, minor: int, place: str) -> None:
        """All reads of one provider."""
        model, uuid = self.model, provider_uuid(place)

        def read(what: str, body: Callable[[], Any], since: int = 0) -> None:
            self.send(minor, "GET", wire.path_of(place, what), NOTHING, 200, body, since=since)

        def there() -> Any:
            return model.provider(uuid)

        read("", lambda: plain_reads.provider_body(model, minor, there()))
        read("inventories", lambda: plain_reads.inventories_body(there()))
        read("inventories/VCPU", lambda: plain_reads.inventory_body(there(), "VCPU"))
        read("usages", lambda: plain_reads.usages_body(model, there()))
        read("allocations", lambda: plain_reads.provider_allocations_body(model, minor, there()))
        read("aggregates", lambda: plain_reads.aggregates_body(minor, there()), since=1)
        read("traits", lambda: plain_reads.traits_body(there()), since=6)

    @rule(minor=minors(0), consumer=consumers)
    def read_consumer(self, minor: int, consumer: str) -> None:
        uuid = consumer_uuid(consumer)
        self.send(
            minor,
            "GET",
            f"/allocations/{uuid}",
            NOTHING,
            200,
            lambda: plain_reads.consumer_allocations_body(self.model, minor, uuid),
        )

    @rule(
        minor=minors(9),
        project=projects,
        user=st.none() | users,
        kind=st.none() | types | st.sampled_from(("all", "unknown")),
    )
    def read_usages_of_a_project(
        self, minor: int, project: str, user: str | None, kind: str | None
    ) -> None:
        kind = kind if minor >= 38 else None
        query = {"project_id": project, "user_id": user, "consumer_type": kind}
        given = urlencode({key: value for key, value in query.items() if value is not None})
        self.send(
            minor,
            "GET",
            f"/usages?{given}",
            NOTHING,
            200,
            lambda: plain_reads.project_usages_body(self.model, minor, project, user, kind),
            since=9,
        )

    @rule(
        minor=st.sampled_from((39, 39, 38, 32, 24, 22, 18, 14)),
        name=st.none() | names,
        place=st.none() | providers,
        resources=st.just({}) | amounts,
        member_of=st.lists(st.frozensets(aggregates, min_size=1, max_size=2), max_size=2),
        not_member_of=st.just(frozenset()) | st.frozensets(aggregates, max_size=2),
        required=st.lists(st.frozensets(traits, min_size=1, max_size=2), max_size=2),
        forbidden=st.just(frozenset()) | st.frozensets(traits, max_size=2),
    )
    def list_providers(
        self,
        minor: int,
        name: str | None,
        place: str | None,
        resources: dict[str, int],
        member_of: list[frozenset[str]],
        not_member_of: frozenset[str],
        required: list[frozenset[str]],
        forbidden: frozenset[str],
    ) -> None:
        query = plain_reads.ProviderQuery(
            name=name,
            in_tree=None if place is None else provider_uuid(place),
            resources=resources,
            member_of=tuple(map(_uuids, member_of if minor >= 24 else member_of[:1])),
            not_member_of=_uuids(not_member_of) if minor >= 32 else frozenset(),
            required=tuple(required) if minor >= 39 else _plain(required, minor),
            forbidden=forbidden if minor >= 22 else frozenset(),
        )
        self.list_by(minor, query)

    @rule(minor=minors(6), associated=st.none() | st.booleans())
    def list_traits(self, minor: int, associated: bool | None) -> None:
        """The custom ones only, since there are hundreds of others."""
        more = "" if associated is None else f"&associated={str(associated).lower()}"
        self.send(
            minor,
            "GET",
            f"/traits?name=startswith:CUSTOM_{more}",
            NOTHING,
            200,
            lambda: plain_reads.custom_traits_body(self.model, associated),
            since=6,
        )

    @rule(minor=minors(6), name=custom_traits | traits)
    def read_trait(self, minor: int, name: str) -> None:
        self.send(
            minor,
            "GET",
            f"/traits/{name}",
            NOTHING,
            204,
            lambda: plain_reads.trait_body(self.model, name),
            since=6,
        )

    @rule(minor=minors(2), name=custom_classes | classes)
    def read_class(self, minor: int, name: str) -> None:
        self.send(
            minor,
            "GET",
            f"/resource_classes/{name}",
            NOTHING,
            200,
            lambda: plain_reads.class_body_of(self.model, name),
            since=2,
        )

    @rule(minor=minors(2))
    def list_classes(self, minor: int) -> None:
        found = [plain_reads.class_body(name) for name in self.model.classes]
        self.send(
            minor,
            "GET",
            "/resource_classes",
            NOTHING,
            200,
            lambda: {"resource_classes": found},
            since=2,
        )

    @precondition(lambda self: self.model.providers)
    @rule(data=st.data())
    def find_candidates(self, data: st.DataObject) -> None:
        places = {provider_uuid(name): name for name in PROVIDERS}
        groups = {aggregate_uuid(name): name for name in AGGREGATES}
        fleet = plain_reads.as_world(self.model, places, groups)
        question = data.draw(questions(fleet))
        text = fleet.resolve(query_text(question.query))
        path = f"/allocation_candidates?{quote(text, safe='=&:,!')}"
        response = self.request(question.minor, "GET", path, NOTHING)
        try:
            due = answer(fleet, question.query, question.minor)
        except UnknownName:
            assert response.status == 400
            return
        assert response.status == 200, response.text
        assert read_answer(response.json, fleet, question.minor) == due

    def teardown(self) -> None:
        """At the end of a successful history, everything is read."""
        if not self.agrees:
            return
        for place in PROVIDERS:
            self.read_provider(39, place)
        for consumer in CONSUMERS:
            self.read_consumer(39, consumer)
        for project in ("red", "blue"):
            self.read_usages_of_a_project(39, project, None, None)
        self.list_classes(39)
        self.list_traits(39, None)


def _uuids(groups: frozenset[str]) -> frozenset[str]:
    return frozenset(map(aggregate_uuid, groups))


def _plain(required: list[frozenset[str]], minor: int) -> tuple[frozenset[str], ...]:
    """The query without alternatives, as below 1.39, or empty, as below 1.18."""
    return tuple(frozenset({min(some)}) for some in required) if minor >= 18 else ()

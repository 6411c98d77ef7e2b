# SPDX-License-Identifier: Apache-2.0
"""What a history knows of the world that it has made, from its requests and their answers.

The picture may be wrong (somebody's generation moved by a rule that is not repeated here): it only
has to be right often enough for most requests to succeed. What it must know for sure is which
consumers Placement may have kept a stale record of, because those answer differently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compare.script.step import Step
from compare.wire import Answer

#: Provider uuid to class name to amount.
Amounts = dict[str, dict[str, int]]
#: A JSON object as it was parsed: what it holds is looked at with care.
Object = dict[str, Any]

#: As many candidates of an answer can be claimed later.
_OFFERS = 20

_PROVIDER_PATH = re.compile(r"/resource_providers/([^/]+)(?:/(\w+)(?:/([^/]+))?)?$")
_CONSUMER_PATH = re.compile(r"/allocations/([^/]+)$")
_NAME_PATH = re.compile(r"/(traits|resource_classes)/([^/]+)$")


@dataclass(slots=True)
class Provider:
    """A provider that was made and not deleted."""

    uuid: str
    name: str
    parent: str | None
    generation: int = 0
    #: Class name to the record as it was put.
    inventories: Object = field(default_factory=dict)


@dataclass(slots=True)
class Consumer:
    """A consumer that holds something."""

    uuid: str
    generation: int
    amounts: Amounts


class Picture:
    """The world as the history has seen it.

    Args:
        token: in every name of this history, and of no other.
        few: the number of its own consumers, if none of them becomes stale.
        shared: consumers that other histories write too.
    """

    def __init__(self, token: str, *, few: int = 31, shared: Sequence[str] = ()) -> None:
        self.token = token
        self.few = few
        self.shared = shared
        #: What the last answers with candidates offered.
        self.offers: list[Amounts] = []
        self.providers: dict[str, Provider] = {}
        self.consumers: dict[str, Consumer] = {}
        self.traits: dict[str, None] = {}
        self.classes: dict[str, None] = {}
        #: Consumers that Placement may remember although they hold nothing.
        self._stale: set[str] = set()

    def holders_of(self, provider: str) -> list[Consumer]:
        """Every consumer that holds something of a provider."""
        return [consumer for consumer in self.consumers.values() if provider in consumer.amounts]

    def subtree_of(self, root: str) -> Iterator[str]:
        """A provider and everything below it, each after its parent."""
        yield root
        for provider in list(self.providers.values()):
            if provider.parent == root and provider.uuid != root:
                yield from self.subtree_of(provider.uuid)

    def classes_in_use(self) -> list[str]:
        """Every class that some provider has inventory of."""
        names = {name: None for each in self.providers.values() for name in each.inventories}
        return list(names)

    def is_stale(self, consumer: str) -> bool:
        """Say whether Placement may keep a record of a consumer that holds nothing."""
        return consumer in self._stale

    def learn(self, step: Step, answer: Answer) -> None:
        """Take note of a request and of the answer that both servers gave."""
        path = step.path.partition("?")[0]
        asked, answered = _parsed(step.body), _parsed(answer.body)
        if path.startswith("/allocations") or path == "/reshaper":
            self._note_stale_consumers(step, path, asked, answer)
        if not 200 <= answer.status < 300:
            return
        if path == "/resource_providers":
            self._learn_providers(step, asked, answered)
        elif match := _PROVIDER_PATH.match(path):
            self._learn_provider(step, match[1], match[2], match[3], asked, answered)
        elif match := _CONSUMER_PATH.match(path):
            self._learn_consumer(step, match[1].lower(), asked)
        elif path == "/allocations" and step.method == "POST":
            self._learn_claims(asked)
        elif path == "/reshaper":
            self._learn_reshape(asked)
        elif match := _NAME_PATH.match(path):
            self._learn_name(step, match[1], match[2], asked)
        elif path == "/allocation_candidates":
            self.offers = [amounts_in(offer) for offer in answered["allocation_requests"][:_OFFERS]]
        elif path == "/resource_classes" and step.method == "POST":
            self.classes[str(asked.get("name"))] = None

    def _learn_providers(self, step: Step, asked: Object, answered: Object) -> None:
        if step.method == "POST" and "uuid" in asked:
            uuid = str(asked["uuid"]).lower()
            parent = asked.get("parent_provider_uuid")
            self.providers[uuid] = Provider(uuid, str(asked.get("name")), parent)
        for shown in answered.get("resource_providers", ()):
            provider = self.providers.get(shown["uuid"])
            if provider is not None:
                provider.generation = shown["generation"]

    def _learn_provider(
        self,
        step: Step,
        uuid: str,
        part: str | None,
        name: str | None,
        asked: Object,
        answered: Object,
    ) -> None:
        provider = self.providers.get(uuid)
        if provider is None:
            return
        if part is None:
            if step.method == "DELETE":
                del self.providers[uuid]
                return
            provider.generation = answered.get("generation", provider.generation)
            provider.name = answered.get("name", provider.name)
            provider.parent = answered.get("parent_provider_uuid", provider.parent)
            return
        if part == "inventories":
            self._learn_inventories(step, provider, name, asked, answered)
        if "resource_provider_generation" in answered:
            provider.generation = answered["resource_provider_generation"]
        elif step.method == "DELETE":
            provider.generation += 1

    def _learn_inventories(
        self, step: Step, provider: Provider, name: str | None, asked: Object, answered: Object
    ) -> None:
        if step.method == "DELETE":
            if name is None:
                provider.inventories.clear()
            else:
                provider.inventories.pop(name, None)
        elif step.method == "POST":
            provider.inventories[str(asked.get("resource_class"))] = answered
        elif name is None:
            provider.inventories = dict(answered.get("inventories", {}))
        else:
            provider.inventories[name] = answered

    def _learn_consumer(self, step: Step, consumer: str, asked: Object) -> None:
        if step.method == "DELETE":
            self.consumers.pop(consumer, None)
        elif step.method == "PUT":
            self._learn_claims({consumer: asked})

    def _learn_claims(self, asked: Object) -> None:
        touched: set[str] = set()
        for uuid, claim in asked.items():
            amounts = amounts_in(claim)
            before = self.consumers.pop(uuid, None)
            touched.update(amounts or (before.amounts if before else ()))
            if amounts:
                generation = before.generation if before else 0
                self.consumers[uuid] = Consumer(uuid, generation + 1, amounts)
                self._stale.discard(uuid)
        for provider in touched & self.providers.keys():
            self.providers[provider].generation += 1

    def _learn_reshape(self, asked: Object) -> None:
        self._learn_claims(asked.get("allocations", {}))
        for uuid, put in asked.get("inventories", {}).items():
            if uuid in self.providers:
                self.providers[uuid].inventories = dict(put["inventories"])
                self.providers[uuid].generation += 2

    def _learn_name(self, step: Step, kind: str, name: str, asked: Object) -> None:
        names = self.traits if kind == "traits" else self.classes
        if step.method == "DELETE" or "name" in asked:
            names.pop(name, None)
        if step.method == "PUT":
            names[str(asked.get("name", name))] = None

    def _note_stale_consumers(self, step: Step, path: str, asked: Object, answer: Answer) -> None:
        """Note consumers without allocations that an unknown provider or an empty claim named.

        A claim that is accepted takes the note away again.
        """
        if not (answer.status < 300 or b"does not exist" in answer.body):
            return
        if step.method == "PUT":
            named = {path.rpartition("/")[2].lower()}
        else:
            claims = asked.get("allocations") if path == "/reshaper" else asked
            named = set(claims) if isinstance(claims, dict) else set()
        self._stale.update(named - self.consumers.keys())


def amounts_in(claim: object) -> Amounts:
    """What the body of a claim asks for, in the old form or the new; {} for any other body."""
    allocations = claim.get("allocations") if isinstance(claim, dict) else None
    if isinstance(allocations, list):
        pairs = [(item.get("resource_provider", {}).get("uuid"), item) for item in allocations]
        return {str(uuid).lower(): item["resources"] for uuid, item in pairs}
    if isinstance(allocations, dict):
        return {uuid.lower(): item["resources"] for uuid, item in allocations.items()}
    return {}


def _parsed(body: bytes | None) -> Object:
    """A body as an object; {} where it is none."""
    try:
        content: Mapping[str, Any] = json.loads(body or b"")
    except ValueError:
        return {}
    return dict(content) if isinstance(content, dict) else {}

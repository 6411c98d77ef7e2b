# SPDX-License-Identifier: Apache-2.0
"""What a request of a history means for the checker: what it writes, and what its answer shows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from compare.histories.picture import amounts_in
from compare.script.step import Step
from tests.proof import answers
from tests.proof.answers import Sights
from tests.proof.history import (
    ANY,
    NOTHING_HELD,
    ROOT,
    ConsumerWrite,
    ProviderSight,
    ProviderWrite,
    Why,
    holding,
)
from tests.proof.wire import Answer

#: The oldest microversion whose answers show all that is judged: consumers have generations.
OLDEST_MINOR: Final = 28

_PROVIDER: Final = re.compile(r"/resource_providers/([^/]+)(?:/(\w+)(?:/(\w+))?)?$")
_CONSUMER: Final = re.compile(r"/allocations/([^/]+)$")


class Meaning(NamedTuple):
    """The meaning of one request."""

    consumers: tuple[ConsumerWrite, ...] = ()
    providers: tuple[ProviderWrite, ...] = ()
    #: What the body of an accepted read shows.
    sights: Callable[[Any], Sights] = lambda body: ()


def meaning_of(step: Step) -> Meaning:
    """The meaning of a request at `OLDEST_MINOR` or later."""
    path = step.path.partition("?")[0]
    body: Any = json.loads(step.body) if step.body else None
    if step.method == "GET":
        return Meaning(sights=_sights(path))
    if found := _CONSUMER.match(path):
        return Meaning((_consumer_write(found[1], body),))
    if path == "/allocations":
        return Meaning(tuple(_claims(body)))
    if path == "/reshaper":
        inventories = body["inventories"].items()
        return Meaning(
            tuple(_claims(body["allocations"])),
            tuple(
                _restocked(uuid, part, 2 if part["inventories"] else 1)
                for uuid, part in inventories
            ),
        )
    if path == "/resource_providers":
        parent = body.get("parent_provider_uuid") or ROOT
        return Meaning((), (ProviderWrite(body["uuid"], ANY, 0, parent=parent, life="created"),))
    if found := _PROVIDER.match(path):
        return Meaning((), (_provider_write(step.method, found[1], found[2], found[3], body),))
    return Meaning()


def shown(step: Step, answer: Answer) -> Sights:
    """What the answer to a read shows."""
    if answer.status == 200:
        return meaning_of(step).sights(answer.body)
    if answer.body is None:
        return ()
    why, of = answers.refusal(answer, None)
    return (ProviderSight(of, gone=True),) if why is Why.ABSENT and of else ()


def _claims(body: Mapping[str, Any]) -> Iterator[ConsumerWrite]:
    return (_consumer_write(uuid, claim) for uuid, claim in body.items())


def _consumer_write(consumer: str, body: Any) -> ConsumerWrite:
    if body is None:
        return ConsumerWrite(consumer, ANY, NOTHING_HELD, quiet=True)
    return ConsumerWrite(consumer, body["consumer_generation"], holding(amounts_in(body)))


def _restocked(uuid: str, body: Mapping[str, Any], steps: int = 1) -> ProviderWrite:
    seen = body["resource_provider_generation"]
    return ProviderWrite(uuid, seen, steps, capacities=answers.capacities(body["inventories"]))


def _provider_write(
    method: str, uuid: str, part: str | None, name: str | None, body: Any
) -> ProviderWrite:
    if part is None:
        if method == "DELETE":
            return ProviderWrite(uuid, ANY, 0, life="deleted")
        return ProviderWrite(uuid, ANY, 0, parent=answers.parent_in(body))
    seen = (body or {}).get("resource_provider_generation", ANY)
    write = ProviderWrite(uuid, seen)
    if part == "traits":
        return write._replace(traits=frozenset(body["traits"] if body else ()))
    if part == "aggregates":
        return write._replace(aggregates=frozenset(body["aggregates"]))
    if method == "POST":
        # It does not look at a generation (5.2).
        return write._replace(seen=ANY, one=(body["resource_class"], answers.capacity(body)))
    if name is not None:
        return write._replace(one=(name, answers.capacity(body) if body else None))
    return _restocked(uuid, body) if body else write._replace(capacities=frozenset())


def _sights(path: str) -> Callable[[Any], Sights]:
    if path == "/allocation_candidates":
        return answers.of_candidates
    if path == "/resource_providers":
        return answers.of_providers
    if found := _CONSUMER.match(path):
        return partial(answers.of_allocations, found[1])
    if not (found := _PROVIDER.match(path)):
        return lambda body: ()
    uuid, part, name = found[1], found[2], found[3]
    if name is not None:
        return partial(answers.of_inventory, uuid, name)
    return partial(_OF_PARTS[part], uuid)


_OF_PARTS: Final[Mapping[str | None, Callable[[str, Any], Sights]]] = {
    None: answers.of_provider,
    "inventories": answers.of_inventories,
    "usages": answers.of_usages,
    "allocations": answers.of_provider_allocations,
    "traits": answers.of_traits,
    "aggregates": answers.of_aggregates,
}

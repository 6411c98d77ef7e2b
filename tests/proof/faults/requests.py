# SPDX-License-Identifier: Apache-2.0
"""A world that a history has made, and the requests that are broken in the middle: for each
operation one that is accepted, others in each run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from berth.api.namespaces import PLACEMENT
from compare.histories import writers as write
from compare.histories.dice import Dice
from compare.histories.history import WRITERS, History
from compare.histories.picture import Picture
from compare.histories.spoil import well_formed
from compare.histories.writers import Writer
from compare.script.step import Step, make_provider, request, set_inventories, uid
from compare.script.step import claim as claim_of
from compare.wire import Answer
from tests.effort import SEED
from tests.proof.model.judge import comparable
from tests.proof.model.plain_server import Due, PlainServer
from tests.routes import PUBLIC, minor, route_of

#: (method, path template, first microversion), as the operations declare them, and the last.
OPERATIONS: Final = {
    (operation.method, operation.path, operation.since): operation.until
    for operation in PLACEMENT.operations
    if operation.path not in PUBLIC
}
Name = tuple[str, str, int]

WRITES: Final = [name for name in OPERATIONS if name[0] != "GET"]
READS: Final = [name for name in OPERATIONS if name[0] == "GET"]
#: Writes of which one that is refused at its end is broken too.
REFUSED: Final = [
    ("PUT", "/allocations/{consumer_uuid}", 0),
    ("POST", "/reshaper", 30),
    ("DELETE", "/resource_providers/{uuid}", 0),
    ("PUT", "/resource_providers/{uuid}/inventories", 0),
]

_MAKING: Final[Mapping[Writer, int]] = {
    write.put_allocations: 6,
    write.put_inventories: 2,
    write.put_traits: 1,
    write.put_aggregates: 1,
    write.touch_class: 1,
    write.touch_trait: 1,
}

#: Requests that make the world; not all are accepted.
_MADE: Final = 70

#: Few enough for more to be made later.
_PROVIDERS_MAX: Final = 7

#: What another worker does meanwhile: each read sees some of it.
_MEANWHILE: Final = [
    ("PUT", "/traits/{name}", 6),
    ("PUT", "/resource_classes/{name}", 7),
    ("PUT", "/resource_providers/{uuid}/traits", 6),
    ("PUT", "/resource_providers/{uuid}/aggregates", 1),
    ("DELETE", "/allocations/{consumer_uuid}", 0),
    ("PUT", "/allocations/{consumer_uuid}", 0),
    ("POST", "/allocations", 13),
    ("PUT", "/resource_providers/{uuid}/inventories", 0),
    ("PUT", "/resource_providers/{uuid}", 0),
]

#: Draws until there is a request of a kind.
_DRAWS_MAX: Final = 200_000


def claim(consumer: str, amounts: Mapping[str, int], *, seen: int | None) -> Step:
    """A claim for VCPU of named providers, by names."""
    held = {name: {"VCPU": amount} for name, amount in amounts.items()}
    return claim_of(consumer, held, generation=seen)


#: Names that nobody uses, and what `test_shared` works on, beside the rest.
_BESIDE: Final = [
    request("PUT", "/traits/CUSTOM_IDLE"),
    request("PUT", "/resource_classes/CUSTOM_IDLE"),
    make_provider("host"),
    make_provider("spare"),
    set_inventories("host", 0, {"VCPU": {"total": 16}}),
    set_inventories("spare", 0, {"VCPU": {"total": 8}}),
    claim("first", {"host": 4}, seen=None),
    claim("second", {"host": 2}, seen=None),
    claim("third", {"host": 2}, seen=None),
]


class World:
    """Drawn for a run: the requests that make it, and those that another worker sends meanwhile."""

    def __init__(self) -> None:
        self._plain = PlainServer()
        history = History(f"{SEED}.1", 1 << 60, writers=_MAKING, spoilers={well_formed: 1})
        steps = history.steps()
        # The name of nobody stays free, so that it can be made later.
        named = (step for step in islice(steps, _MADE) if "CUSTOM_NOBODY" not in str(step))
        self.made = [step for step in named if self._take(history, step)]
        self.made += [step for step in _BESIDE if self._take(history, step)]
        self.before, self._picture = deepcopy(self._plain), deepcopy(history.picture)
        self.meanwhile = [self._next(history, name) for name in _MEANWHILE]

    def _next(self, history: History, name: Name) -> Step:
        """A write that changes something."""

        def is_right(step: Step) -> bool:
            plain = deepcopy(self._plain)
            return plain.answer(step).status < 300 and plain.model != self._plain.model

        step = self._drawn(name, is_right, f"{name} meanwhile", history.picture)
        self._take(history, step)
        return step

    def _take(self, history: History, step: Step) -> bool:
        """Whether the model accepts a write. A uuid that the service gives is another each time."""
        if step.method == "GET" or _leaves_the_uuid_open(step):
            return False
        is_new = (step.method, step.path) == ("POST", "/resource_providers")
        if is_new and len(history.picture.providers) >= _PROVIDERS_MAX and step not in _BESIDE:
            return False
        due = self._plain.answer(step)
        body = b"" if due.body is None else json.dumps(due.body, default=list).encode()
        history.picture.learn(step, Answer(due.status, {}, body))
        return due.status < 300

    def write(self, name: Name, *, is_refused: bool = False) -> Step:
        """A write of an operation, accepted or refused for the state that is there."""

        def is_right(step: Step) -> bool:
            status = deepcopy(self.before).answer(step).status
            return status == 409 if is_refused else status < 300

        return self._drawn(name, is_right, f"{name} {is_refused}")

    def read(self, name: Name, is_other: Callable[[Step], bool] | None = None) -> Step:
        """A read that shows what the other worker has changed."""

        def is_right(step: Step) -> bool:
            due, before = self._plain.answer(step), self.before.answer(step)
            return due.status < 300 and _said(due) != _said(before)

        return self._drawn(name, is_other or is_right, str(name))

    def _drawn(
        self,
        name: Name,
        is_right: Callable[[Step], bool],
        label: str,
        picture: Picture | None = None,
    ) -> Step:
        dice = Dice(f"{SEED} {label}")
        method, template, since = name
        for _ in range(_DRAWS_MAX):
            step = dice.drawn(WRITERS)(dice, picture or self._picture)
            step = well_formed(dice, step) if dice.chance(0.1) else step
            if step.path.startswith(("/traits/", "/resource_classes/")) and dice.chance(0.2):
                step = replace(step, path=f"{step.path.rpartition('/')[0]}/CUSTOM_IDLE")
            route = route_of(step.path.partition("?")[0])
            if (
                (step.method, route and route.template) == (method, template)
                and since <= minor(step.version or "1.0") <= OPERATIONS[name]
                and not _leaves_the_uuid_open(step)
                and is_right(step)
            ):
                return step
        raise AssertionError(f"no request of {label} was drawn")


def _said(due: Due) -> object:
    return due.status, comparable(due.body)


def _leaves_the_uuid_open(step: Step) -> bool:
    if step.path != "/resource_providers" or step.method != "POST":
        return False
    body: Any = json.loads(step.body or b"{}")
    return "uuid" not in body


def at(consumer: str) -> Step:
    """A read of a consumer's allocations, by its name."""
    return request("GET", f"/allocations/{uid(consumer)}")

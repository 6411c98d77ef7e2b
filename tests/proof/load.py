# SPDX-License-Identifier: Apache-2.0
"""Clients that send random requests of all kinds, with a seed, and record what they see.

Each client has two connections, one for writes and one for reads, most likely to two workers: it
reads its own writes through the other worker, from the database and from the index. It has
consumers of its own and shares some with all clients; it creates, moves and deletes providers of
its own. If several services share a database, a client writes to one and reads from the
next.
"""

from __future__ import annotations

import random
import re
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from compare import wire
from compare.histories import writers
from compare.histories.dice import Dice
from compare.histories.picture import Consumer, Picture, Provider, amounts_in
from compare.histories.queries import show_candidates
from compare.histories.writers import Writer
from compare.script.step import Step, request
from tests.e2e.serving import wait_until
from tests.proof import answers
from tests.proof.answers import Sights
from tests.proof.fleet import HOSTS, PLANNED, POOL, SHARES, STOCK, name_of
from tests.proof.history import (
    ANY,
    NOTHING_HELD,
    ROOT,
    ConsumerSight,
    ConsumerWrite,
    Held,
    Operation,
    Outcome,
    ProviderWrite,
    consumer_uuid,
    short,
    shown_held,
)
from tests.proof.meaning import OLDEST_MINOR, meaning_of, shown
from tests.proof.wire import Answer, Connection, Lost, NotSent

#: Consumers that a client has for itself, and those that all fight for.
_OWN: Final = 5
RIVALS: Final = tuple(consumer_uuid(900_000 + number) for number in range(8))

#: The numbers of consumers that `place` writes begin here: nobody else writes these, so a call that
#: is repeated after a lost answer finds them as it left them.
_PLACED: Final = 10_000_000

#: Consumers of one call of `place` at most.
_TOGETHER_MAX: Final = 3

#: Seconds for which nobody may listen before a client gives up.
_PATIENCE: Final = 60.0

#: The longest pause before a client that was told to come back does so, in seconds.
_RETURN_S_MAX: Final = 0.4

_PLACE: Final = "/berth/v1/place"

#: An inventory with units that are not the usual ones.
_UNITS: Final = re.compile(rb'"(?:min_unit|step_size)": (?!1[,}])|"max_unit": (?!2147483647)')


@dataclass(frozen=True, slots=True)
class Task:
    """The clients of one process."""

    #: Host and port of each service.
    services: tuple[tuple[str, int], ...]
    seed: int
    clients: tuple[int, ...]
    #: They make this file once one of them has done something.
    begun: Path
    #: The clients stop when this file appears.
    stop: Path
    #: The mean of the pauses between two steps of a client, in seconds.
    pause_s: float
    #: For how long a write can still come true when its connection has died, in seconds.
    late_s: float
    #: Whether the database may be away at times: then a service may tell clients to come back.
    may_be_away: bool


@dataclass(slots=True)
class Load:
    """Running clients; the history is available after the block."""

    operations: list[Operation] = field(default_factory=list)
    #: Answers that should never come, such as 500.
    surprises: list[str] = field(default_factory=list)
    #: When requests were sent that were told to come back, where the database may be away.
    away: list[int] = field(default_factory=list)


@contextmanager
def under_load(
    host: str,
    port: int,
    home: Path,
    *,
    seed: int,
    clients: int,
    late_s: float,
    pause_s: float = 0.0,
    processes: int = 2,
    others: Sequence[tuple[str, int]] = (),
    may_be_away: bool = False,
) -> Iterator[Load]:
    """Clients of a service for the duration of the block.

    Args:
        others: further services on the same database, which the clients share.
        may_be_away: see `Task`.
    """
    stop = home / "stop"
    begun = [home / f"begun-{first}" for first in range(processes)]
    for file in begun:
        file.unlink(missing_ok=True)
    tasks = [
        Task(
            ((host, port), *others),
            seed,
            tuple(range(1 + first, 1 + clients, processes)),
            begun[first],
            stop,
            pause_s,
            late_s,
            may_be_away,
        )
        for first in range(processes)
    ]
    load = Load()
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        running = [pool.submit(run_clients, task) for task in tasks]
        try:
            wait_until(lambda: all(map(Path.exists, begun)), "the clients to begin")
            yield load
        finally:
            stop.touch()
        for one in running:
            done = one.result()
            load.operations += done.operations
            load.surprises += done.surprises
            load.away += done.away
    stop.unlink()


def run_clients(task: Task) -> Load:
    """Run the clients of one process to their end."""
    crowd = [Client(task, number) for number in task.clients]
    threads = [threading.Thread(target=client.run) for client in crowd]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Load(
        [operation for client in crowd for operation in client.operations],
        [surprise for client in crowd for surprise in client.surprises],
        [one for client in crowd for one in client.away],
    )


#: What the clients ask, beside `place`.
STEPS: Final[Mapping[Writer, int]] = {
    writers.put_allocations: 36,
    writers.post_allocations: 12,
    writers.touch_allocations: 10,
    writers.put_inventories: 7,
    writers.put_inventory: 3,
    writers.post_inventory: 2,
    writers.delete_inventory: 6,
    writers.put_traits: 4,
    writers.delete_traits: 1,
    writers.put_aggregates: 4,
    writers.create_provider: 5,
    writers.update_provider: 4,
    writers.delete_provider: 3,
    writers.reshape: 4,
    writers.touch_trait: 1,
    writers.touch_class: 1,
    writers.list_providers: 2,
    writers.show_provider: 1,
    writers.show_inventories: 2,
    writers.show_part: 4,
    show_candidates: 10,
}


def seen_by(number: int) -> Picture:
    """The part of the fleet that a client knows: two hosts, their nodes, and the pool."""
    picture = Picture(f"P{number}P", few=_OWN, shared=RIVALS)
    hosts = {HOSTS[(number + more) % len(HOSTS)] for more in (0, 1)}
    for uuid, planned in PLANNED.items():
        if uuid in hosts or planned.parent in hosts or uuid == POOL:
            name, total = STOCK[uuid]
            parent = None if planned.parent == ROOT else planned.parent
            known = Provider(uuid, name_of(uuid), parent, planned.generation)
            known.inventories = {name: {"total": total}}
            picture.providers[uuid] = known
    return picture


@dataclass(frozen=True, slots=True)
class Rules:
    """What the clients of a history must keep to, so that it can be judged.

    The checker does not know of units (all amounts are allowed), or of a provider whose uuid only
    an answer tells, which may be lost. Nothing but the pool shares: with dozens of sharing
    providers, each search would have hundreds of thousands of candidates.
    """

    #: Providers whose trees stay as they are.
    kept: Set[str]
    #: Consumers that other clients write too, which this one may not empty: the checker could not
    #: tell two such requests apart.
    foreign: Set[str]
    steps: Mapping[Writer, int] = field(default_factory=lambda: STEPS)

    def next_step(self, dice: Dice, picture: Picture) -> Step:
        """The next request of a client."""
        while True:
            step = dice.drawn(self.steps)(dice, picture)
            if step.candidates and "limit=" not in step.path:
                step = replace(step, path=f"{step.path}&limit=4")
            if self._allow(step):
                return step

    def _allow(self, step: Step) -> bool:
        if _UNITS.search(step.body or b"") or _is_nameless(step):
            return False
        consumers, providers, _ = meaning_of(step)
        if any(SHARES in (one.traits or ()) and one.provider != POOL for one in providers):
            return False
        return not any(
            one.consumer in self.foreign and not one.held for one in consumers
        ) and not any(one.provider in self.kept and (one.parent or one.life) for one in providers)


def _is_nameless(step: Step) -> bool:
    return (step.method, step.path) == ("POST", "/resource_providers") and (
        b'"uuid"' not in (step.body or b"")
    )


class Client:
    """A client: a thread that sends one request after the other.

    What it sends is a history of its own (`compare.histories`), of a world of which it sees a part
    of the fleet, its own providers and consumers, and those consumers that all fight for.
    """

    def __init__(self, task: Task, number: int) -> None:
        self.operations: list[Operation] = []
        self.surprises: list[str] = []
        self.away: list[int] = []
        self._task = task
        self._number = number
        self._name = f"client{number}"
        self._rng = random.Random(f"{task.seed}/{number}")
        self._writer, self._reader = (
            Connection(*task.services[place % len(task.services)]) for place in (number, number + 1)
        )
        others = {*RIVALS} - {*RIVALS[number - 1 : number]}
        self._rules = Rules(PLANNED.keys(), others)
        self._dice = Dice(f"{task.seed}.{number}", since=OLDEST_MINOR)
        self._picture = seen_by(number)
        #: Consumers that only calls of `place` write, and what numbers they get.
        self._numbers = iter(range(_PLACED + number * 100_000, _PLACED + (number + 1) * 100_000))
        self._placed = [consumer_uuid(next(self._numbers)) for _ in range(_OWN)]

    def run(self) -> None:
        """Send random requests until told to stop."""
        acts = (self._take_step, self._place, self._give_back)
        try:
            while not self._task.stop.exists():
                self._rng.choices(acts, (80, 14, 6))[0]()
                if self._number == self._task.clients[0] and not self._task.begun.exists():
                    self._task.begun.touch()
                if self._task.pause_s:
                    time.sleep(self._rng.expovariate(1 / self._task.pause_s))
        except Exception:  # noqa: BLE001 - told by the test, which has the seed
            self.surprises.append(f"{self._name} ended: {traceback.format_exc()}")

    # --- Steps of a history ---

    def _take_step(self) -> None:
        """Send the next request of the history, and look at what it has written."""
        step = self._drawn()
        if step.method == "GET":
            self._read(step)
            return
        meaning = meaning_of(step)
        outcome = self._send(step)
        for consumer in meaning.consumers:
            self._look_at(consumer.consumer)
        for provider in meaning.providers:
            if provider.life or outcome is Outcome.UNKNOWN:
                self._look_at_provider(provider.provider)

    def _drawn(self) -> Step:
        """The next request. What it writes is looked at first: it is drawn again with that."""
        dice = deepcopy(self._dice)
        named = meaning_of(self._rules.next_step(self._dice, self._picture))
        for consumer in named.consumers:
            if consumer.consumer in RIVALS and consumer.seen != ANY:
                self._look_at(consumer.consumer)
        for provider in named.providers:
            if provider.seen != ANY:
                self._look_at_provider(provider.provider)
        self._dice = dice
        return self._rules.next_step(dice, self._picture)

    # --- Placements ---

    def _place(self) -> None:
        """Some consumers are placed, or moved; sometimes the call is sent once more."""
        known = [
            self._look_at(consumer)
            for consumer in self._rng.sample(self._placed, self._rng.randint(1, _TOGETHER_MAX))
        ]
        replaces = known[0].generation is not None
        some = [each for each in known if (each.generation is not None) == replaces]
        body = self._body_of_place(some, replaces=replaces)
        begin, answer = self._ask_until_known(request("POST", _PLACE, json_body=body))
        moved = [f"{short(each.consumer)} from {each.generation}" for each in some]
        text = f"POST {_PLACE} {', '.join(moved)}"
        self._note_placed(text, begin, answer, some)
        if answer.status == 200 and self._rng.random() < 0.3:
            self._place_again(body, answer.body["placements"])
        for each in some:
            self._look_at(each.consumer)

    def _body_of_place(self, some: Sequence[ConsumerSight], *, replaces: bool) -> dict[str, Any]:
        resources = {"VCPU": self._rng.randint(1, 3), "MEMORY_MB": self._rng.randint(1, 6)}
        if self._rng.random() < 0.3:
            resources["DISK_GB"] = self._rng.randint(1, 10)
        body: dict[str, Any] = {
            "request": {"groups": {"": {"resources": resources}}},
            "consumers": [
                {
                    "uuid": each.consumer,
                    "project_id": "proof",
                    "user_id": "proof",
                    "consumer_type": "INSTANCE",
                    **({"consumer_generation": each.generation} if replaces else {}),
                }
                for each in some
            ],
            # Makes each body different from all others.
            "order": {
                "by": self._rng.choice(("pack", "spread", "random", "any")),
                "seed": self._rng.getrandbits(63),
            },
            "explain": False,
            "tries": self._rng.randint(1, 8),
            "replace": replaces,
        }
        return body | ({"max_per": {"host": 1}} if self._rng.random() < 0.3 else {})

    def _note_placed(
        self, text: str, begin: int, answer: Answer, some: Sequence[ConsumerSight]
    ) -> None:
        """Record a call whose outcome is known by now."""
        held: dict[str, Held] = {each.consumer: NOTHING_HELD for each in some}
        refusal = None
        if answer.status == 200:
            placements = answer.body["placements"]
            held = {consumer: answers.held_in(placements[consumer]) for consumer in held}
        else:
            refusal = answers.refusal(answer, None)
        self.operations.append(
            Operation(
                self._name,
                text,
                begin,
                time.monotonic_ns(),
                Outcome.REFUSED if refusal else Outcome.ACCEPTED,
                tuple(
                    ConsumerWrite(each.consumer, each.generation, held[each.consumer])
                    for each in some
                ),
                refusal=refusal,
            )
        )

    def _place_again(self, body: Any, placements: Mapping[str, Any]) -> None:
        """The same call shows the same placements, and writes nothing."""
        begin, answer = self._ask_until_known(request("POST", _PLACE, json_body=body))
        if answer.status != 200 or not answer.body["repeated"]:
            self.surprises.append(f"a repeated placement: {body}: {answer}")
            return
        sights = tuple(
            ConsumerSight(consumer, each["consumer_generation"], answers.held_in(each))
            for consumer, each in answer.body["placements"].items()
        )
        if {each.consumer: each.held for each in sights} != {
            consumer: answers.held_in(each) for consumer, each in placements.items()
        }:
            self.surprises.append(f"{body}: first {placements}, then {answer}")
        text = f"POST {_PLACE} again"
        end = time.monotonic_ns()
        self.operations.append(
            Operation(self._name, text, begin, end, Outcome.ACCEPTED, sights=sights)
        )

    def _give_back(self) -> None:
        """A placed consumer is emptied; if the answer is lost, a late DELETE could empty it again,
        so another takes its place."""
        consumer = self._rng.choice(self._placed)
        if self._send(request("DELETE", f"/allocations/{consumer}")) is Outcome.UNKNOWN:
            place = self._placed.index(consumer)
            self._placed[place] = consumer_uuid(next(self._numbers))
        else:
            self._look_at(consumer)

    # --- Looking ---

    def _look_at(self, consumer: str) -> ConsumerSight:
        """A consumer's current allocations; repeated until there is a response."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            body = self._read(request("GET", f"/allocations/{consumer}"))
            if body is not None:
                sight = answers.of_allocations(consumer, body)[0]
                assert isinstance(sight, ConsumerSight)
                self._picture.consumers.pop(consumer, None)
                if sight.generation is not None and consumer not in self._placed:
                    amounts = amounts_in(body)
                    known = Consumer(consumer, sight.generation, amounts)
                    self._picture.consumers[consumer] = known
                return sight
        raise TimeoutError(f"nobody says what {consumer} holds")

    def _look_at_provider(self, uuid: str) -> None:
        """A provider's inventories and generation, or that it does not exist."""
        path = f"/resource_providers/{uuid}"
        if (body := self._read(request("GET", path))) is None:
            self._picture.providers.pop(uuid, None)
            return
        known = Provider(uuid, body["name"], body["parent_provider_uuid"])
        self._picture.providers.setdefault(uuid, known)
        self._read(request("GET", f"{path}/inventories"))

    # --- On the wire ---

    def _send(self, step: Step) -> Outcome:
        """Send a write through the writing connection, and record it; return its outcome."""
        consumers, providers, _ = meaning_of(step)
        begin, answer = self._ask(self._writer, step)
        end = time.monotonic_ns()
        text = f"{step.method} {step.path} {_told(consumers, providers)}"
        refusal = None
        if answer is None or answers.may_be_done(answer):
            outcome, end = Outcome.UNKNOWN, end + int(self._task.late_s * 1e9)
        elif answer.status >= 400:
            outcome = Outcome.REFUSED
            of = providers[0].provider if len(providers) == 1 else None
            refusal = answers.refusal(answer, of)
        else:
            outcome = Outcome.ACCEPTED
            providers = _with_generation(providers, answer.body)
            self._learn(step, answer)
        self.operations.append(
            Operation(self._name, text, begin, end, outcome, consumers, providers, refusal)
        )
        touched = [one.provider for one in providers]
        touched += [provider for consumer in consumers for provider, _, _ in consumer.held]
        if touched:
            self._look_for_room(self._rng.choice(touched))
        return outcome

    def _look_for_room(self, provider: str) -> None:
        """Read a provider from another worker's index."""
        known = self._picture.providers.get(provider)
        name = self._rng.choice([*known.inventories]) if known and known.inventories else "VCPU"
        amount = self._rng.randint(1, 4)
        path = f"/allocation_candidates?resources={name}:{amount}&in_tree={provider}"
        self._read(
            request("GET", path), lambda body: answers.of_offers(provider, name, amount, body)
        )

    def _read(self, step: Step, more: Callable[[Any], Sights] = lambda body: ()) -> Any:
        """Read an object through the reading connection, and record what it shows.

        Returns:
            The body; None if the object does not exist, or there was no response.
        """
        begin, answer = self._ask(self._reader, step)
        if answer is None or answer.status >= 500:
            return None
        sights = shown(step, answer)
        if answer.status == 200:
            sights = (*sights, *more(answer.body))
            self._learn(step, answer)
        self.operations.append(
            Operation(
                self._name,
                f"GET {step.path}",
                begin,
                time.monotonic_ns(),
                Outcome.ACCEPTED if answer.status == 200 else Outcome.REFUSED,
                sights=sights,
            )
        )
        return answer.body if answer.status == 200 else None

    def _learn(self, step: Step, answer: Answer) -> None:
        self._picture.learn(step, wire.Answer(answer.status, {}, answer.raw))

    def _ask_until_known(self, step: Step) -> tuple[int, Answer]:
        """Send a request again until its outcome is known: the time when it was first sent, and
        the last response. A refusal counts only when no lost request can still come true."""
        begin, answer = self._ask(self._writer, step)
        lost = None if answer is not None and answer.status < 500 else time.monotonic()
        deadline = time.monotonic() + _PATIENCE
        while lost is not None and time.monotonic() < deadline:
            _, answer = self._ask(self._writer, step)
            if answer is None or answer.status >= 500:
                lost = time.monotonic()
            elif answer.status == 200 or time.monotonic() > lost + self._task.late_s:
                break
            time.sleep(self._rng.uniform(0, _RETURN_S_MAX))
        if answer is None or answer.status >= 500:
            raise TimeoutError(f"nobody says what became of {step}")
        return begin, answer

    def _ask(self, connection: Connection, step: Step) -> tuple[int, Answer | None]:
        """The time of sending, and the response; None if it was lost."""
        deadline = time.monotonic() + _PATIENCE
        if self._rng.random() < 0.1:
            connection.close()  # so that it comes to another worker
        assert step.version is not None
        while True:
            begin = time.monotonic_ns()
            try:
                answer = connection.ask(step.method, step.path, step.body, version=step.version)
            except NotSent:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
            except Lost:
                return begin, None
            else:
                if self._task.may_be_away and answers.is_told_to_come_back(answer):
                    self.away.append(begin)
                    time.sleep(self._rng.uniform(0, _RETURN_S_MAX))
                elif answer.status >= 500:
                    self.surprises.append(f"{step}: {answer}")
                return begin, answer


def _with_generation(providers: tuple[ProviderWrite, ...], body: Any) -> tuple[ProviderWrite, ...]:
    """The write of one provider, with the generation of the response."""
    if len(providers) != 1 or not isinstance(body, dict):
        return providers
    generation = body.get("resource_provider_generation", body.get("generation"))
    return (providers[0]._replace(answered=generation),)


def _told(consumers: tuple[ConsumerWrite, ...], providers: tuple[ProviderWrite, ...]) -> str:
    """A short description of a write."""
    told = [
        f"{short(provider.consumer)} from {provider.seen}: {shown_held(provider.held)}"
        for provider in consumers
    ]
    for provider in providers:
        parts = {
            "capacity": provider.capacities and dict(provider.capacities),
            "traits": provider.traits and sorted(provider.traits),
            "aggregates": provider.aggregates
            and [short(uuid) for uuid in sorted(provider.aggregates)],
            "parent": provider.parent and short(provider.parent),
            "life": provider.life,
        }
        words = ", ".join(f"{name} {value}" for name, value in parts.items() if value is not None)
        told.append(f"{short(provider.provider)} from {provider.seen}: {words}")
    return "; ".join(told)

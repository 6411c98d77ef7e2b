# SPDX-License-Identifier: Apache-2.0
"""Clients that send random requests of all kinds, with a seed, and record what they see.

Each client has two connections, one for writes and one for reads, most likely to two workers: it
reads its own writes through the other worker, from the database and from the index. It has
consumers of its own and shares some with all clients; it creates, moves and deletes a child
provider of its own. If several services share a database, a client writes to one and reads from the
next.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from tests.e2e.serving import wait_until
from tests.proof import answers
from tests.proof.fleet import HOSTS, NODES, POOL, STOCK, TRAITS
from tests.proof.history import (
    ANY,
    NOTHING_HELD,
    ConsumerSight,
    ConsumerWrite,
    Held,
    Operation,
    Outcome,
    ProviderSight,
    ProviderWrite,
    aggregate_uuid,
    consumer_uuid,
    provider_uuid,
    short,
    shown_held,
)
from tests.proof.wire import Answer, Connection, Lost, NotSent

#: Consumers that a client has for itself, and those that all fight for.
_OWN: Final = 5
_RIVALS: Final = tuple(consumer_uuid(900_000 + number) for number in range(8))

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

Sights = tuple[ConsumerSight | ProviderSight, ...]


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


class Client:
    """A client: a thread that sends one request after the other."""

    def __init__(self, task: Task, number: int) -> None:
        self.operations: list[Operation] = []
        self.surprises: list[str] = []
        self.away: list[int] = []
        self._task = task
        self._number = number
        self._rng = random.Random(f"{task.seed}/{number}")
        self._writer, self._reader = (
            Connection(*task.services[place % len(task.services)]) for place in (number, number + 1)
        )
        self._own = [consumer_uuid(number * 100 + place) for place in range(_OWN)]
        #: Consumers that only calls of `place` write, and what numbers they get.
        self._numbers = iter(range(_PLACED + number * 100_000, _PLACED + (number + 1) * 100_000))
        self._placed = [consumer_uuid(next(self._numbers)) for _ in range(_OWN)]
        #: Consumer -> its generation and what it holds, as last seen.
        self._known: dict[str, ConsumerSight] = {}
        self._children = 0
        self._child: str | None = None

    def run(self) -> None:
        """Send random requests until told to stop."""
        steps: Mapping[Callable[[], None], int] = {
            self._claim: 40,
            self._release: 12,
            self._exchange: 8,
            self._place: 14,
            self._give_back: 6,
            self._change_inventory: 10,
            self._change_traits: 4,
            self._change_aggregates: 4,
            self._change_tree: 8,
            self._reshape: 4,
            self._look_around: 6,
        }
        kinds, weights = list(steps), list(steps.values())
        try:
            while not self._task.stop.exists():
                self._rng.choices(kinds, weights)[0]()
                if self._number == self._task.clients[0] and not self._task.begun.exists():
                    self._task.begun.touch()
                if self._task.pause_s:
                    time.sleep(self._rng.expovariate(1 / self._task.pause_s))
        except Exception as error:  # noqa: BLE001 - told by the test, which has the seed
            self.surprises.append(f"client {self._number} ended: {error!r}")

    # --- Consumers ---

    def _claim(self) -> None:
        """A consumer gets allocations, new or instead of its own."""
        consumer = self._some_consumer()
        known = self._known.get(consumer) or self._look_at(consumer)
        held = self._some_candidate() if self._rng.random() < 0.6 else self._some_amounts()
        if held:
            self._put(consumer, known.generation, held)

    def _release(self) -> None:
        """A consumer is emptied, by its generation or by DELETE.

        Only one client empties a shared consumer: `checker` could not tell two such requests apart.
        """
        consumer = self._rng.choice([*self._own, *_RIVALS[self._number - 1 : self._number]])
        known = self._known.get(consumer) or self._look_at(consumer)
        if self._rng.random() < 0.3:
            if known.generation is not None:
                self._put(consumer, known.generation, NOTHING_HELD)
            return
        write = ConsumerWrite(consumer, ANY, NOTHING_HELD, quiet=True)
        self._send("DELETE", f"/allocations/{consumer}", consumers=(write,))
        self._look_at(consumer)

    def _exchange(self) -> None:
        """Two of the client's consumers exchange their allocations, or one takes over those of the
        other."""
        first, second = self._rng.sample(self._own, 2)
        one = self._known.get(first) or self._look_at(first)
        other = self._known.get(second) or self._look_at(second)
        if not one.held and not other.held:
            return
        writes = tuple(
            ConsumerWrite(consumer, seen, held)
            for consumer, seen, held in (
                (first, one.generation, other.held),
                (second, other.generation, one.held),
            )
            if held or seen is not None
        )
        body = {write.consumer: _consumer_body(write) for write in writes}
        self._send("POST", "/allocations", body, consumers=writes)
        self._look_at(first)
        self._look_at(second)

    def _place(self) -> None:
        """Some consumers are placed, or moved; sometimes the call is sent once more."""
        known = [
            self._known.get(consumer) or self._look_at(consumer)
            for consumer in self._rng.sample(self._placed, self._rng.randint(1, _TOGETHER_MAX))
        ]
        replaces = known[0].generation is not None
        some = [each for each in known if (each.generation is not None) == replaces]
        body = self._body_of_place(some, replaces=replaces)
        begin, answer = self._ask_until_known("POST", _PLACE, body)
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
                f"client{self._number}",
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
        begin, answer = self._ask_until_known("POST", _PLACE, body)
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
        client = f"client{self._number}"
        self.operations.append(Operation(client, text, begin, end, Outcome.ACCEPTED, sights=sights))

    def _give_back(self) -> None:
        """A placed consumer is emptied; if the answer is lost, a late DELETE could empty it again,
        so another takes its place."""
        consumer = self._rng.choice(self._placed)
        write = ConsumerWrite(consumer, ANY, NOTHING_HELD, quiet=True)
        outcome = self._send("DELETE", f"/allocations/{consumer}", consumers=(write,))
        if outcome is Outcome.UNKNOWN:
            place = self._placed.index(consumer)
            self._placed[place] = consumer_uuid(next(self._numbers))
        else:
            self._look_at(consumer)

    def _put(self, consumer: str, seen: int | None, held: Held) -> None:
        write = ConsumerWrite(consumer, seen, held)
        self._send("PUT", f"/allocations/{consumer}", _consumer_body(write), consumers=(write,))
        self._look_at(consumer)

    def _some_consumer(self) -> str:
        return self._rng.choice(self._own if self._rng.random() < 0.8 else _RIVALS)

    def _some_candidate(self) -> Held:
        """A candidate for a random request."""
        wanted = [f"VCPU:{self._rng.randint(1, 4)}", f"MEMORY_MB:{self._rng.randint(1, 8)}"]
        if self._rng.random() < 0.4:
            wanted.append(f"DISK_GB:{self._rng.randint(1, 10)}")
        requests = self._candidates(f"resources={','.join(wanted)}&limit=4")
        return answers.held_in(self._rng.choice(requests)) if requests else NOTHING_HELD

    def _candidates(self, query: str) -> Sequence[Any]:
        found = self._read(f"/allocation_candidates?{query}", answers.of_candidates)
        return found["allocation_requests"] if found else ()

    def _some_amounts(self) -> Held:
        """Amounts that may or may not fit."""
        node = self._child if self._child and self._rng.random() < 0.3 else None
        held = {(node or self._rng.choice(NODES), "VCPU", self._rng.randint(1, 4))}
        if self._rng.random() < 0.5:
            held.add((self._rng.choice(HOSTS), "MEMORY_MB", self._rng.randint(1, 12)))
        if self._rng.random() < 0.3:
            held.add((POOL, "DISK_GB", self._rng.randint(1, 20)))
        return frozenset(held)

    # --- Providers ---

    def _change_inventory(self) -> None:
        """Reduce or increase an inventory, sometimes below its usage."""
        provider = self._some_provider()
        path = f"/resource_providers/{provider}/inventories"
        found = self._read(path, lambda body: answers.of_inventories(provider, body))
        if not found:
            return
        if provider == self._child and self._rng.random() < 0.4:
            write = ProviderWrite(provider, ANY, capacities=frozenset())
            self._send("DELETE", path, providers=(write,))
            return
        name, most = STOCK.get(provider, ("VCPU", 4))
        reserved = self._rng.choice((0, 0, 0, 1))
        total = reserved + self._rng.randint(most // 2, most)
        stock = {name: {"total": total, "reserved": reserved}}
        self._put_provider_part(
            ProviderWrite(
                provider,
                found["resource_provider_generation"],
                capacities=frozenset({(name, total - reserved)}),
            ),
            "inventories",
            stock,
        )
        self._read(path, lambda body: answers.of_inventories(provider, body))

    def _change_traits(self) -> None:
        """Add or remove a trait of a provider."""
        provider = self._some_provider()
        path = f"/resource_providers/{provider}/traits"
        found = self._read(path, lambda body: answers.of_traits(provider, body))
        if not found:
            return
        traits = frozenset(found["traits"]) ^ {self._rng.choice(TRAITS)}
        generation = found["resource_provider_generation"]
        self._put_provider_part(
            ProviderWrite(provider, generation, traits=traits), "traits", sorted(traits)
        )
        self._read(path, lambda body: answers.of_traits(provider, body))

    def _change_aggregates(self) -> None:
        """A provider joins or leaves an aggregate."""
        provider = self._some_provider()
        path = f"/resource_providers/{provider}/aggregates"
        found = self._read(path, lambda body: answers.of_aggregates(provider, body))
        if not found:
            return
        aggregates = frozenset(found["aggregates"]) ^ {aggregate_uuid(self._rng.randint(1, 3))}
        generation = found["resource_provider_generation"]
        self._put_provider_part(
            ProviderWrite(provider, generation, aggregates=aggregates),
            "aggregates",
            sorted(aggregates),
        )
        self._read(path, lambda body: answers.of_aggregates(provider, body))

    def _put_provider_part(self, write: ProviderWrite, what: str, value: Any) -> None:
        body = {what: value, "resource_provider_generation": write.seen}
        path = f"/resource_providers/{write.provider}/{what}"
        self._send("PUT", path, body, providers=(write,))

    def _change_tree(self) -> None:
        """The client's child provider is created, moved to another host, or deleted."""
        host = self._rng.choice(HOSTS)
        if self._child is None:
            self._children += 1
            self._child = provider_uuid(self._number * 10_000 + self._children)
            write = ProviderWrite(self._child, ANY, 0, parent=host, life="created")
            body = {"uuid": self._child, "name": self._child, "parent_provider_uuid": host}
            self._send("POST", "/resource_providers", body, providers=(write,))
        elif self._rng.random() < 0.6:
            write = ProviderWrite(self._child, ANY, 0, parent=host)
            body = {"name": self._child, "parent_provider_uuid": host}
            self._send("PUT", f"/resource_providers/{self._child}", body, providers=(write,))
        else:
            write = ProviderWrite(self._child, ANY, 0, life="deleted")
            self._send("DELETE", f"/resource_providers/{self._child}", providers=(write,))
        self._look_at_child(self._child)

    def _look_at_child(self, child: str) -> None:
        path = f"/resource_providers/{child}"
        found = self._read(
            path,
            lambda body: answers.of_provider(child, body),
            missing=(ProviderSight(child, gone=True),),
        )
        if found is None:
            self._child = None

    def _reshape(self) -> None:
        """Move a part of a node's inventory, and a consumer on it, to another node."""
        source, target = self._rng.sample(NODES, 2)
        from_stock, to_stock = self._inventory_of(source), self._inventory_of(target)
        holders = self._read(
            f"/resource_providers/{source}/allocations",
            lambda body: answers.of_provider_allocations(source, body),
        )
        if not holders or not holders["allocations"] or from_stock is None or to_stock is None:
            return
        movable = [each for each in holders["allocations"] if int(each[-12:]) < _PLACED]
        if not movable:
            return
        consumer = self._rng.choice(sorted(movable))
        known = self._look_at(consumer)
        amount = sum(of for provider, _, of in known.held if provider == source)
        if not amount:
            return
        (from_generation, there), (to_generation, here) = from_stock, to_stock
        moved = ConsumerWrite(consumer, known.generation, _moved(known.held, source, target))
        left = max(there - amount, 1)
        changes = (
            ProviderWrite(source, from_generation, 2, frozenset({("VCPU", left)})),
            ProviderWrite(target, to_generation, 2, frozenset({("VCPU", here + amount)})),
        )
        body = {
            "inventories": {
                change.provider: {
                    "resource_provider_generation": change.seen,
                    "inventories": {
                        name: {"total": total} for name, total in change.capacities or ()
                    },
                }
                for change in changes
            },
            "allocations": {consumer: _consumer_body(moved)},
        }
        self._send("POST", "/reshaper", body, consumers=(moved,), providers=changes)
        self._look_at(consumer)
        self._inventory_of(target)

    def _inventory_of(self, node: str) -> tuple[int, int] | None:
        """A node's generation and capacity."""
        found = self._read(
            f"/resource_providers/{node}/inventories",
            lambda body: answers.of_inventories(node, body),
        )
        if not found:
            return None
        stock = found["inventories"]["VCPU"]
        return found["resource_provider_generation"], stock["total"] - stock["reserved"]

    def _some_provider(self) -> str:
        if self._child is not None and self._rng.random() < 0.3:
            return self._child
        return self._rng.choice((*HOSTS, *NODES, POOL))

    # --- Looking ---

    def _look_around(self) -> None:
        """Read objects that others are changing."""
        provider = self._some_provider()
        self._read(
            f"/resource_providers/{provider}/usages",
            lambda body: answers.of_usages(provider, body),
        )
        self._candidates(f"resources=VCPU:1&required={self._rng.choice(TRAITS)}")

    def _look_at(self, consumer: str) -> ConsumerSight:
        """A consumer's current allocations; repeated until there is a response."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            body = self._read(
                f"/allocations/{consumer}", lambda body: answers.of_allocations(consumer, body)
            )
            if body is not None:
                sight = answers.of_allocations(consumer, body)[0]
                assert isinstance(sight, ConsumerSight)
                self._known[consumer] = sight
                return sight
        raise TimeoutError(f"nobody says what {consumer} holds")

    # --- On the wire ---

    def _send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        consumers: tuple[ConsumerWrite, ...] = (),
        providers: tuple[ProviderWrite, ...] = (),
    ) -> Outcome:
        """Send a write through the writing connection, and record it; return its outcome."""
        begin, answer = self._ask(self._writer, method, path, body)
        end = time.monotonic_ns()
        text = f"{method} {_readable(path)} {_told(consumers, providers)}"
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
        self.operations.append(
            Operation(
                f"client{self._number}", text, begin, end, outcome, consumers, providers, refusal
            )
        )
        touched = [one.provider for one in providers]
        touched += [provider for consumer in consumers for provider, _, _ in consumer.held]
        if touched:
            self._look_for_room(self._rng.choice(touched))
        return outcome

    def _look_for_room(self, provider: str) -> None:
        """Read a provider from another worker's index."""
        name, _ = STOCK.get(provider, ("VCPU", 0))
        amount = self._rng.randint(1, 4)
        self._read(
            f"/allocation_candidates?resources={name}:{amount}&in_tree={provider}",
            lambda body: (
                *answers.of_candidates(body),
                *answers.of_offers(provider, name, amount, body),
            ),
        )

    def _read(self, path: str, sights: Callable[[Any], Sights], missing: Sights = ()) -> Any:
        """Read an object through the reading connection, and record what it shows.

        Returns:
            The body; None if the object does not exist, or there was no response.
        """
        begin, answer = self._ask(self._reader, "GET", path)
        if answer is None or answer.status >= 500:
            return None
        seen = sights(answer.body) if answer.status == 200 else missing
        self.operations.append(
            Operation(
                f"client{self._number}",
                f"GET {_readable(path)}",
                begin,
                time.monotonic_ns(),
                Outcome.ACCEPTED if answer.status == 200 else Outcome.REFUSED,
                sights=seen,
            )
        )
        return answer.body if answer.status == 200 else None

    def _ask_until_known(self, method: str, path: str, body: Any) -> tuple[int, Answer]:
        """Send a request again until its outcome is known: the time when it was first sent, and
        the last response. A refusal counts only when no lost request can still come true."""
        begin, answer = self._ask(self._writer, method, path, body)
        lost = None if answer is not None and answer.status < 500 else time.monotonic()
        deadline = time.monotonic() + _PATIENCE
        while lost is not None and time.monotonic() < deadline:
            _, answer = self._ask(self._writer, method, path, body)
            if answer is None or answer.status >= 500:
                lost = time.monotonic()
            elif answer.status == 200 or time.monotonic() > lost + self._task.late_s:
                break
            time.sleep(self._rng.uniform(0, _RETURN_S_MAX))
        if answer is None or answer.status >= 500:
            raise TimeoutError(f"nobody says what became of {method} {path} {body}")
        return begin, answer

    def _ask(
        self, connection: Connection, method: str, path: str, body: Any = None
    ) -> tuple[int, Answer | None]:
        """The time of sending, and the response; None if it was lost."""
        deadline = time.monotonic() + _PATIENCE
        if self._rng.random() < 0.1:
            connection.close()  # so that it comes to another worker
        while True:
            begin = time.monotonic_ns()
            try:
                answer = connection.ask(method, path, body)
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
                    self.surprises.append(f"{method} {path} {body}: {answer}")
                return begin, answer


def _with_generation(providers: tuple[ProviderWrite, ...], body: Any) -> tuple[ProviderWrite, ...]:
    """The write of one provider, with the generation of the response."""
    if len(providers) != 1 or not isinstance(body, dict):
        return providers
    generation = body.get("resource_provider_generation", body.get("generation"))
    return (providers[0]._replace(answered=generation),)


def _consumer_body(write: ConsumerWrite) -> dict[str, Any]:
    allocations: dict[str, Any] = {}
    for provider, name, amount in write.held:
        allocations.setdefault(provider, {"resources": {}})["resources"][name] = amount
    return {
        "allocations": allocations,
        "project_id": "proof",
        "user_id": "proof",
        "consumer_generation": write.seen,
        "consumer_type": "INSTANCE",
    }


def _moved(held: Held, source: str, target: str) -> Held:
    amounts: dict[tuple[str, str], int] = {}
    for provider, name, amount in held:
        key = (target if provider == source else provider, name)
        amounts[key] = amounts.get(key, 0) + amount
    return frozenset((*key, amount) for key, amount in amounts.items())


def _readable(path: str) -> str:
    head, *parts = path.split("/")
    return "/".join([head, *(short(part) if len(part) == 36 else part for part in parts)])


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

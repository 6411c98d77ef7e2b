# SPDX-License-Identifier: Apache-2.0
"""Finds the costliest question of each route of `/berth/v1` that takes a request.

`python -m bench.costliest` draws questions from the whole grammar, changes the costliest found so
far, and keeps what costs more. It prints the costliest of each route: its seconds, whether it kept
its budget, and its body. The fleet has no two hosts alike (`bench.unlike`), because what is decided
once for a shape is cheap anywhere else.

A question is a few numbers, its *genes*: each is the seed from which one part of the body is drawn.
To change a question is to change some of its genes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from bench.unlike import CLASSES, FLAVORS, RACK, SHARED, TRAITS, ZONES, Service, fill

JSON = dict[str, Any]

#: Of a part that may be absent.
_SELDOM: Final = 0.25
_OFTEN: Final = 0.6

_CLASSES: Final = (*(name for level in CLASSES for name in level), SHARED)
_LEVELS: Final = ("provider", "subtree", "tree", *TRAITS[:3])


class Drawn:
    """One part of a body, drawn from its gene.

    Args:
        hosts: the number of hosts of the fleet.
    """

    def __init__(self, seed: str, hosts: int) -> None:
        self._rng = Random(seed)
        self._hosts = hosts

    def is_there(self, chance: float) -> bool:
        """Whether a part that may be absent is there."""
        return self._rng.random() < chance

    def number(self, *of: int) -> int:
        """One of some numbers."""
        return self._rng.choice(of)

    def classes(self, most: int) -> list[str]:
        """Some classes."""
        return self._rng.sample(_CLASSES, self._rng.randrange(1, most + 1))

    def items(self, names: tuple[str, ...], *counts: int) -> list[str | list[str]]:
        """Names, negated names, and alternatives of names."""
        # What is required must not be forbidden too.
        third = len(names) // 3
        return [self._item(names[third:], names[:third]) for _ in range(self.number(*counts))]

    def _item(self, names: tuple[str, ...], negated: tuple[str, ...]) -> str | list[str]:
        kind = self._rng.random()
        if kind < 0.4:
            return self._rng.sample(names, min(len(names), self._rng.randrange(2, 5)))
        if kind < 0.55 and negated:
            return f"!{self._rng.choice(negated)}"
        return self._rng.choice(names)

    def labels(self) -> tuple[str, ...]:
        """References to aggregates."""
        racks = range(-(-self._hosts // RACK))
        return (
            *(f"zone=zone{number}" for number in range(ZONES)),
            *(f"rack=rack{number}" for number in racks),
        )

    def providers(self, *counts: int) -> list[str]:
        """References to providers of any level."""
        ends = ("", "_numa0", "_numa1", "_numa0_device1", "_numa1_device0")
        count = self.number(*counts)
        return [
            f"host{self._rng.randrange(self._hosts)}{self._rng.choice(ends)}" for _ in range(count)
        ]

    def roots(self, *counts: int) -> list[str]:
        """References to roots."""
        return [f"host{self._rng.randrange(self._hosts)}" for _ in range(self.number(*counts))]

    def flavors(self, *counts: int) -> list[str]:
        """Names of flavors."""
        count = min(FLAVORS, self.number(*counts))
        return [f"flavor{number}" for number in self._rng.sample(range(FLAVORS), count)]

    def relations(self, groups: list[str]) -> list[JSON]:
        """Relations between some groups."""
        if len(groups) < 2:
            return []
        size = min(len(groups), self.number(2, 3, 8, 64))
        levels = self._rng.sample(_LEVELS, self._rng.randrange(1, 3))
        return [
            {"groups": self._rng.sample(groups, size), "at": self._rng.choice(levels)}
            for _ in range(self.number(1, 1, 2, 8, 32))
        ]


Genes = Mapping[str, int]

#: What a question consists of.
GENES: Final = (
    *("groups", "classes", "traits", "labels", "split", "places", "together", "apart", "host"),
    *("alternatives", "order", "answer", "what_if", "several", "by", "consumers", "drain"),
)


class Question(NamedTuple):
    """A question to one route."""

    method: str
    path: str
    body: JSON

    @property
    def shown(self) -> str:
        """As a line."""
        return f"{self.method} {self.path} {json.dumps(self.body)}"


class Grammar:
    """Makes questions to a fleet of some hosts from genes."""

    def __init__(self, hosts: int) -> None:
        self._hosts = hosts

    def question(self, route: str, genes: Genes) -> Question:
        """The question that some genes stand for."""
        method, path, make = ROUTES[route]
        return Question(method, path, make(self, genes))

    def _of(self, genes: Genes, name: str, more: object = "") -> Drawn:
        return Drawn(f"{name} {genes[name]} {more}", self._hosts)

    def _request(self, genes: Genes, more: object = "") -> JSON:
        of = self._of(genes, "groups", more)
        names = [f"_{number}" for number in range(of.number(1, 2, 4, 8, 16, 32, 64))]
        names[0] = "" if of.is_there(_SELDOM) else names[0]
        request: JSON = {"groups": self._groups(genes, names, of.is_there(_SELDOM))}
        for kind in ("together", "apart"):
            drawn = self._of(genes, kind, more)
            if drawn.is_there(_OFTEN) and (relations := drawn.relations(names)):
                request[kind] = relations
        host = self._of(genes, "host", more)
        if host.is_there(_SELDOM):
            request["host"] = self._host(host)
        return request

    def _groups(self, genes: Genes, names: list[str], are_alike: bool) -> JSON:
        # Of a class, one group's amount may be split.
        may_split = set(_CLASSES)
        return {
            name: self._group(genes, "" if are_alike else name, may_split if name else set())
            for name in names
        }

    def _group(self, genes: Genes, more: str, may_split: set[str]) -> JSON:
        classes = self._of(genes, "classes", more)
        amounts = {
            name: classes.number(1, 2, 3, 7, 40, 400)
            for name in classes.classes(classes.number(1, 1, 1, 3))
        }
        group: JSON = {"resources": amounts}
        traits = self._of(genes, "traits", more)
        if traits.is_there(_OFTEN):
            group["required"] = traits.items(TRAITS, 1, 2, 8)
        labels = self._of(genes, "labels", more)
        if labels.is_there(_SELDOM):
            group["member_of"] = labels.items(labels.labels(), 1, 2, 8)
        split = self._of(genes, "split", more)
        name, *others = amounts
        if name in may_split and not others and split.is_there(_SELDOM):
            may_split.remove(name)
            how = {"min": split.number(1, 2), "step": split.number(1, 1, 3)}
            group["split"] = {name: {**how, "parts": split.number(2, 3, 4, 16)}}
        places = self._of(genes, "places", more)
        for name in ("in_tree", "under", "not_under"):
            if places.is_there(0.1):
                group[name] = places.providers(1, 10, 500)
        return group

    def _host(self, of: Drawn) -> JSON:
        host: JSON = {}
        if of.is_there(_OFTEN):
            host["required"] = of.items(TRAITS, 1, 3)
        if of.is_there(_SELDOM):
            host["anywhere"] = of.items(TRAITS, 1, 3)
        if of.is_there(_SELDOM):
            host["member_of"] = of.items(of.labels(), 1, 3)
        if of.is_there(_SELDOM):
            host["in"] = of.roots(1, 100, 1000)
        if of.is_there(_SELDOM):
            host["not_in"] = of.roots(1, 100, 1000)
        return host

    def _alternatives(self, genes: Genes) -> JSON:
        of = self._of(genes, "alternatives")
        if of.is_there(0.8):
            return self._request(genes)
        return {"alternatives": [self._request(genes, each) for each in range(of.number(2, 4, 8))]}

    def _order(self, genes: Genes, *, is_place: bool = False) -> JSON:
        of = self._of(genes, "order")
        if not of.is_there(_OFTEN):
            return {}
        order: JSON = {"by": ("any", "random", "pack", "spread", "preserve")[of.number(*range(5))]}
        if order["by"] == "preserve":
            order["preserve"] = dict.fromkeys(of.flavors(1, 4, 16), 1)
            order["among"] = of.number(16, 512, 4096)
        elif is_place:
            order["among"] = of.number(16, 512, 4096)
        if of.is_there(_SELDOM):
            order["prefer"] = [
                {"weight": number, "required": of.items(TRAITS, 1, 3)}
                for number in range(of.number(1, 4, 16))
            ]
        return {"order": order}

    def _what_if(self, genes: Genes) -> JSON:
        of = self._of(genes, "what_if")
        if not of.is_there(_SELDOM):
            return {}
        what_if: JSON = {}
        if of.is_there(_SELDOM):
            what_if["nothing_used"] = True
        if of.is_there(_SELDOM):
            what_if["add_hosts"] = [
                {"like": root, "count": of.number(1, 10, 100, 300)} for root in of.roots(1, 4, 30)
            ]
        if of.is_there(_SELDOM):
            what_if["allocation_ratio"] = [
                {"resource_class": name, "ratio": of.number(1, 2, 16)} for name in of.classes(5)
            ]
        if of.is_there(_SELDOM):
            what_if["drain"] = of.providers(1, 100, 1000)
        if of.is_there(_SELDOM):
            what_if["without_hosts"] = of.roots(1, 100, 1000)
        return {"what_if": what_if}

    def candidates(self, genes: Genes) -> JSON:
        """A body of `POST /berth/v1/candidates`."""
        of = self._of(genes, "answer")
        answer: JSON = {"limit": of.number(1, 10, 1000, 10_000), "summaries": of.is_there(0.5)}
        if of.is_there(_SELDOM):
            answer["per_host"] = of.number(1, 2, 100)
        if of.is_there(_SELDOM):
            answer["explain"] = True
        asked = {"request": self._alternatives(genes), **self._order(genes)}
        return {**asked, **answer, **self._what_if(genes)}

    def explain(self, genes: Genes) -> JSON:
        """A body of `POST /berth/v1/explain`."""
        of = self._of(genes, "answer")
        asked = {"request": self._alternatives(genes), "paint": of.is_there(0.5)}
        return {**asked, "nearest_max": of.number(0, 3, 50), **self._what_if(genes)}

    def capacity(self, genes: Genes) -> JSON:
        """A body of `POST /berth/v1/capacity`."""
        several, by = self._of(genes, "several"), self._of(genes, "by")
        body: JSON = {}
        if several.is_there(_SELDOM):
            body["flavors"] = several.flavors(1, 10, 60)
        body["requests"] = {
            f"request{number}": self._request(genes, number)
            for number in range(several.number(1, 1, 4, 40))
        }
        if by.is_there(_OFTEN):
            body["by"] = (["zone"], ["zone", "rack"], ["host"], ["aggregate"])[
                by.number(0, 1, 2, 3)
            ]
        return {**body, "hosts_max": by.number(0, 10, 100), **self._what_if(genes)}

    def place(self, genes: Genes) -> JSON:
        """A body of `POST /berth/v1/place`."""
        of = self._of(genes, "consumers")
        who = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE"}
        consumers = [
            {**who, "uuid": f"00000000-0000-4000-8000-{number:012}"}
            for number in range(of.number(1, 1, 8, 64, 256))
        ]
        body: JSON = {"request": self._alternatives(genes), "consumers": consumers}
        if of.is_there(_SELDOM):
            body["max_per"] = {("host", "zone", "rack")[of.number(0, 1, 2)]: of.number(1, 2, 20)}
        if of.is_there(_SELDOM):
            body["within"] = ("host", "zone", "rack")[of.number(0, 1, 2)]
        return {**body, **self._order(genes, is_place=True), **self._what_if(genes)}

    def drain(self, genes: Genes) -> JSON:
        """A body of `PUT /berth/v1/drains/{name}`."""
        of = self._of(genes, "drain")
        select = self._host(of) or {"required": [TRAITS[0]]}
        return {"select": select} if of.is_there(0.5) else {"providers": of.providers(1, 100, 5000)}

    def flavor(self, genes: Genes) -> JSON:
        """A body of `PUT /berth/v1/flavors/{name}`."""
        return {"request": self._request(genes)}


#: Name -> method, path, and what makes a body.
ROUTES: Final[Mapping[str, tuple[str, str, Callable[[Grammar, Genes], JSON]]]] = {
    "candidates": ("POST", "/berth/v1/candidates", Grammar.candidates),
    "explain": ("POST", "/berth/v1/explain", Grammar.explain),
    "capacity": ("POST", "/berth/v1/capacity", Grammar.capacity),
    "place": ("POST", "/berth/v1/place?dry_run=true", Grammar.place),
    "drain": ("PUT", "/berth/v1/drains/made?dry_run=true", Grammar.drain),
    "flavor": ("PUT", "/berth/v1/flavors/made", Grammar.flavor),
}

#: What a question costs.
Cost = Callable[[Question], float]


class Costly(NamedTuple):
    """A question with its cost."""

    cost: float
    question: Question


def search(
    route: str, grammar: Grammar, cost: Cost, rng: Random, *, rounds: int, kept: int = 6
) -> list[Costly]:
    """The costliest questions of a route that some rounds find, the costliest first.

    A third of the rounds draw a question, the others change one that is kept.
    """
    best: list[tuple[float, int, Genes]] = []
    for number in range(rounds):
        if len(best) < kept or rng.random() < 0.33:
            genes = {name: rng.randrange(10**6) for name in GENES}
        else:
            changed = rng.sample(GENES, rng.randrange(1, 4))
            genes = {**rng.choice(best)[2], **{name: rng.randrange(10**6) for name in changed}}
        best.append((cost(grammar.question(route, genes)), number, genes))
        best = sorted(best, reverse=True, key=lambda each: each[:2])[:kept]
    return [Costly(each, grammar.question(route, genes)) for each, _, genes in best]


def main() -> None:
    """Search, and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m bench.costliest", description=__doc__)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=60, help="questions to each route")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--routes", nargs="+", choices=ROUTES, default=list(ROUTES))
    parser.add_argument("--folder", type=Path, help="with the database of an earlier run")
    parser.add_argument("--show", type=int, default=1, help="how many of each route")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = wanted.folder or Path(made)
        is_new = not (folder / "berth.sqlite").exists()
        service = Service(folder)
        if is_new:
            fill(service, wanted.hosts)
        for route in wanted.routes:
            _search_and_print(service, route, wanted)


def _search_and_print(service: Service, route: str, wanted: argparse.Namespace) -> None:
    rng = Random(f"{wanted.seed} {route}")
    most = 1.0 if route == "explain" else 5.0

    def seconds(question: Question) -> float:
        started = time.thread_time()
        status = service.ask(*question).status
        spent = time.thread_time() - started
        if status >= 500 and status != 503:
            print(f"{route}: {status} {question.shown}", flush=True)
        return spent

    grammar = Grammar(wanted.hosts)
    for cost, question in search(route, grammar, seconds, rng, rounds=wanted.rounds)[: wanted.show]:
        verdict = "kept" if cost <= 1.2 * most else "EXCEEDED"
        print(
            f"{route}: {cost:.2f} s, budget of {most:g} s {verdict}\n  {question.shown}", flush=True
        )


if __name__ == "__main__":
    main()

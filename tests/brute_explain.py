# SPDX-License-Identifier: Apache-2.0
"""What an explanation must say, by asking the slow twin the derived requests (spec/beyond.md 3).

Sets of atoms are sets of their JSON pointers. Hosts are names of roots.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from functools import cached_property
from itertools import chain, combinations
from math import inf
from typing import Any, Final

from tests.brute_question import (
    Request,
    capacity,
    fitting,
    giving,
    lists_of_in,
    may_serve,
    provider,
    read,
    root_of,
    shared_with,
    tolerated,
    tree_of,
)
from tests.brute_scenario import what_if
from tests.worlds import SHARING_TRAIT, World, WorldProvider, provider_uuid

#: With more atoms no pairs are sought.
PAIRS_OF_MAX: Final = 16

#: The pointer of the atom that nothing is drained.
DRAINS: Final = "/drains"

#: The place of an atom in the request.
Path = tuple[str | int, ...]

Members = dict[str, Any]
Hosts = frozenset[str]


class Explained:
    """One question of one fleet, explained.

    Args:
        request: with `groups` or `flavor`, without `query` and `alternatives`.
    """

    def __init__(self, fleet: World, request: Request) -> None:
        stored = fleet.flavors[request["flavor"]] if "flavor" in request else request
        self.fleet = fleet = fleet.tolerating(tolerated([stored, request]))
        request = _with_flavor(fleet, request)
        self.request = request = {**request, "tolerate": []}
        known = (path for path in self._paths() if not self._is_unknown(path))
        #: pointer -> place, in the order of 3.2, without those that name something unknown.
        self.atoms: dict[str, Path] = {_pointer(path): path for path in known}
        self._fitting: dict[object, Hosts] = {}

    @cached_property
    def if_empty(self) -> Explained:
        """The same with nothing used."""
        return Explained(what_if(self.fleet, {"nothing_used": True}), self.request)

    @property
    def has_unknown_names(self) -> bool:
        """Whether a class or trait does not exist."""
        return len(self.atoms) < len([*self._paths()])

    def _paths(self) -> Iterator[Path]:
        """All atoms, known or not."""
        return chain([("drains",)] if self.fleet.drained else [], atoms_of(self.request))

    @property
    def without_drains(self) -> list[str]:
        """All atoms but that nothing is drained."""
        return self.without([DRAINS])

    def fit(self, kept: Iterable[str], **amounts: int) -> Hosts:
        """The hosts that fit the request, reduced to some atoms.

        Args:
            amounts: pointer -> what to ask for instead.
        """
        some = frozenset(kept)
        key = some, tuple(amounts.items())
        if key not in self._fitting:
            fleet = self.fleet if DRAINS in some else self.fleet.tolerating("*")
            self._fitting[key] = frozenset(fitting(fleet, self.reduced(some, amounts)))
        return self._fitting[key]

    @cached_property
    def all(self) -> Hosts:
        """The hosts that fit."""
        return self.fit(self.atoms)

    # --- 3.2

    def reduced(self, kept: frozenset[str], amounts: Mapping[str, int]) -> Request:
        """Q|K: the request reduced to some atoms."""
        paths = [self.atoms[pointer] for pointer in self.atoms if pointer in kept]
        request: Members = {"groups": {}, "host": {}, "together": [], "apart": []}
        for name, group in self.request["groups"].items():
            own = [path[2:] for path in paths if path[:2] == ("groups", name)]
            request["groups"][name] = _reduced_group(group, own)
        for pointer, amount in amounts.items():
            _, group, _, of_class = self.atoms[pointer]
            request["groups"][group]["resources"][of_class] = amount
        host = [path[1:] for path in paths if path[0] == "host"]
        request["host"] = _reduced_members(self.request.get("host", {}), host)
        for kind in ("together", "apart"):
            kept_here = (path[1] for path in paths if path[0] == kind)
            request[kind] = [deepcopy(self.request[kind][number]) for number in kept_here]
        return _without_empty_groups(request)

    # --- 3.3

    def left(self) -> list[Hosts]:
        """For each atom the hosts that fit it and all before it."""
        order = [*self.atoms]
        return [self.fit(order[: number + 1]) for number in range(len(order))]

    def alone(self, pointer: str) -> Hosts:
        """The hosts that fit one atom."""
        return self.fit([pointer])

    def has(self, pointer: str) -> Hosts:
        """The hosts that have any inventory of the class of an atom, or are served by one."""
        of_class = self._class(pointer)
        return frozenset(
            root for root in self.roots if any(of_class in p.stocks for p in self.reachable(root))
        )

    def without(self, pointers: Iterable[str]) -> list[str]:
        """All atoms but some."""
        left_out = set(pointers)
        return [pointer for pointer in self.atoms if pointer not in left_out]

    def relaxations(self) -> dict[tuple[str, ...], Hosts]:
        """The single atoms without which some host fits, or else the pairs."""
        singles = self._dropping(1)
        if singles or len(self.atoms) > PAIRS_OF_MAX:
            return singles
        return self._dropping(2)

    def _dropping(self, count: int) -> dict[tuple[str, ...], Hosts]:
        dropped = {each: self.fit(self.without(each)) for each in combinations(self.atoms, count)}
        return {each: hosts for each, hosts in dropped.items() if hosts}

    def largest(self, pointer: str, kept: Iterable[str], among: Hosts) -> tuple[int, Hosts]:
        """The largest smaller amount of an atom with which one of some hosts fits some atoms, and
        the hosts that fit with it; 0 and none if there is none."""
        some = [*kept]
        for amount in range(min(self.asked(pointer) - 1, self._most(pointer)), 0, -1):
            hosts = self.fit(some, **{pointer: amount}) & among
            if hosts:
                return amount, hosts
        return 0, frozenset()

    def asked(self, pointer: str) -> int:
        """The amount of an atom of a class."""
        _, group, _, of_class = self.atoms[pointer]
        amount: int = self.request["groups"][group]["resources"][of_class]
        return amount

    def is_class(self, pointer: str) -> bool:
        """Whether an atom asks for a class."""
        return "resources" in self.atoms[pointer]

    def _class(self, pointer: str) -> str:
        return str(self.atoms[pointer][-1])

    def _most(self, pointer: str) -> int:
        """All that there is of the class of an atom."""
        of_class = self._class(pointer)
        stocks = (each.stocks.get(of_class) for each in self.fleet.providers)
        return sum(capacity(stock) for stock in stocks if stock is not None)

    def split_would_fit(self) -> Hosts | None:
        """The hosts that fit if every class could be split over any number of providers; None if
        groups would have to share what they split."""
        request = deepcopy(self.reduced(frozenset(self.atoms), {}))
        classes = [c for group in request["groups"].values() for c in group.get("resources", {})]
        if len(set(classes)) < len(classes):
            return None
        parts = {name: _parts(name, group) for name, group in request["groups"].items()}
        return frozenset(
            fitting(
                self.fleet,
                {
                    "host": request["host"],
                    "groups": {
                        n: part for several in parts.values() for n, part in several.items()
                    },
                    "together": [
                        {"groups": [n for g in r["groups"] for n in parts[g]], "at": r["at"]}
                        for r in request["together"]
                    ],
                    "apart": [
                        {"groups": [n, m], "at": r["at"]}
                        for r in request["apart"]
                        for g, h in combinations(r["groups"], 2)
                        for n in parts[g]
                        for m in parts[h]
                    ],
                },
            )
        )

    # --- 3.4

    def verdict(self) -> str:
        """Why nothing fits; time never ends here."""
        if self.has_unknown_names:
            return "unknown_name"
        if self.all:
            return "fits"
        if self.fit(self.without_drains):
            return "drained"
        if not self.hosts_if_empty:
            return "never"
        return "fragmented" if self._is_enough_free() else "used_up"

    @property
    def hosts_if_empty(self) -> Hosts:
        """The hosts that would fit without drains and with nothing used."""
        return self.if_empty.fit(self.without_drains)

    def _is_enough_free(self) -> bool:
        request = self.reduced(frozenset(self.atoms), {})
        asked: dict[str, int] = {}
        for pointer in filter(self.is_class, self.atoms):
            of_class = self._class(pointer)
            asked[of_class] = asked.get(of_class, 0) + self.asked(pointer)
        return all(
            sum(
                max(0, capacity(stock) - stock.used)
                for name in giving(self.fleet, request, of_class, self.hosts_if_empty)
                for stock in [self.fleet.by_name[name].stocks[of_class]]
            )
            >= amount
            for of_class, amount in asked.items()
        )

    # --- 3.5

    def missing(self, host: str, pointer: str) -> float:
        """How much one atom, which a host lacks alone, is missing."""
        if not self.is_class(pointer):
            return 1.0
        asked = self.asked(pointer)
        possible, _ = self.largest(pointer, self.atoms, frozenset({host}))
        return (asked - possible) / asked

    def nearest_by_one(self) -> dict[str, tuple[float, bool]]:
        """The hosts that one atom is missing at, in order: how much of it, and whether it is a
        class, of which a condition comes first if as much is missing."""
        best: dict[str, tuple[float, bool]] = {}
        for (pointer,), hosts in self._dropping(1).items():
            for host in hosts:
                missing = self.missing(host, pointer), self.is_class(pointer)
                best[host] = min(best.get(host, (inf, True)), missing)
        order = sorted(best, key=lambda host: (*best[host], provider_uuid(host)))
        return {host: best[host] for host in order}

    @cached_property
    def named(self) -> Hosts:
        """The hosts that `host.in`, `in_tree` and `under` name, by any provider of their trees."""
        lists = [*lists_of_in(self.request.get("host", {}))]
        for group in self.request["groups"].values():
            lists += [group[member] for member in ("in_tree", "under") if member in group]
        named = (provider(self.fleet, each) for several in lists for each in several)
        return frozenset(root_of(self.fleet, name) for name in named if name is not None)

    def unmet(self, host: str, pointer: str, kept: Iterable[str], each: WorldProvider) -> set[str]:
        """Those of some conditions on the group of a class that a provider does not meet by itself.

        Other providers may bring the traits of the unsuffixed group, if it splits the amount or
        keeps another class.
        """
        _, name, *_ = self.atoms[pointer]
        own = [at for at in kept if self.atoms[at][:2] == ("groups", name)]
        is_split = self._class(pointer) in self.request["groups"][name].get("split", {})
        only = sum(map(self.is_class, own)) == 1 and not is_split
        failing = {DRAINS} if DRAINS in kept and each.name in self.fleet.drained else set()
        for at in (at for at in own if not self.is_class(at)):
            members = _reduced_members(self.request["groups"][name], [self.atoms[at][2:]])
            (wanted,) = read(self.fleet, {"groups": {name: members}}).groups
            brings = bool(name) or only or not wanted.traits.some
            if not may_serve(self.fleet, wanted, host, each) or (
                brings and not wanted.traits.hold(each.traits)
            ):
                failing.add(at)
        return failing

    def is_minimal(self, host: str, lacks: Iterable[str]) -> bool:
        """Whether a host fits without some atoms, and not if any of them is put back."""
        left_out = {*lacks}
        return host in self.fit(self.without(left_out)) and not any(
            host in self.fit(self.without(left_out - {pointer})) for pointer in left_out
        )

    # --- 3.6

    def paint(self) -> list[int]:
        """For each host, by uuid: 255 if it fits, else the first atom whose prefix it fails."""
        left = self.left()
        order = sorted(self.roots, key=provider_uuid)
        return [next((n for n, each in enumerate(left) if root not in each), 255) for root in order]

    @cached_property
    def roots(self) -> list[str]:
        """All hosts."""
        return [each.name for each in self.fleet.providers if each.parent is None]

    def reachable(self, root: str) -> list[WorldProvider]:
        """The providers of a tree, and those that share with it."""
        return [*tree_of(self.fleet, root), *shared_with(self.fleet, root)]

    def is_pool(self, root: str) -> bool:
        """Whether every provider of a tree that has inventory is a sharing provider."""
        having = [each for each in tree_of(self.fleet, root) if each.stocks]
        return bool(having) and all(SHARING_TRAIT in each.traits for each in having)

    def _is_unknown(self, path: Path) -> bool:
        """Whether an atom names a class or a trait that does not exist."""
        if path == ("drains",):
            return False
        if "resources" in path:
            return not self.fleet.knows_class(str(path[-1]))
        value = _value(self.request, path)
        if path[0] in {"together", "apart"}:
            level: str = value["at"]
            return level not in {"provider", "tree", "subtree"} and not self.fleet.knows_trait(
                level
            )
        if "required" in path or "anywhere" in path:
            names = value if isinstance(value, list) else [value.removeprefix("!")]
            return not all(map(self.fleet.knows_trait, names))
        return False


def atoms_of(request: Request) -> Iterator[Path]:
    """The atoms of a request, in their order (3.2)."""
    host = request.get("host", {})
    lists = lists_of_in(host)
    if len(lists) > 1:
        yield from (("host", "in", number) for number in range(len(lists)))
    elif lists:
        yield "host", "in"
    if "not_in" in host:
        yield "host", "not_in"
    for member in ("required", "anywhere", "member_of"):
        yield from (("host", member, number) for number in range(len(host.get(member, ()))))
    for name, group in request["groups"].items():
        yield from (("groups", name, "resources", each) for each in group.get("resources", {}))
        for member in ("required", "member_of"):
            items = range(len(group.get(member, ())))
            yield from (("groups", name, member, number) for number in items)
        for member in ("in_tree", "under", "not_under"):
            if member in group:
                yield "groups", name, member
    for kind in ("together", "apart"):
        yield from ((kind, number) for number in range(len(request.get(kind, ()))))


def _with_flavor(fleet: World, request: Request) -> Request:
    """The request as `explain` shows it: with what its flavor asks for first (4.5)."""
    if "flavor" not in request:
        return request
    stored = fleet.flavors[request["flavor"]]
    hosts = [stored.get("host", {}), request.get("host", {})]
    host: Members = {}
    for member in ("required", "anywhere", "member_of", "not_in"):
        for item in (item for each in hosts for item in each.get(member, [])):
            # A choice of one name is the name.
            alike = item[0] if isinstance(item, list) and len(item) == 1 else item
            if alike not in host.setdefault(member, []):
                host[member].append(alike)
    lists: list[list[str]] = []
    for each in (each for host in hosts for each in lists_of_in(host)):
        if each not in lists:
            lists.append(each)
    if lists:
        host["in"] = lists[0] if len(lists) == 1 else lists
    return {**stored, "host": host}


def _pointer(path: Path) -> str:
    return "".join(f"/{part}" for part in path)


def _value(request: Request, path: Path) -> Any:
    value: Any = request
    for part in path:
        value = value[part]
    return value


def _reduced_group(group: Members, kept: list[Path]) -> Members:
    reduced = _reduced_members(group, kept)
    resources = reduced.get("resources", {})
    split = {name: rule for name, rule in group.get("split", {}).items() if name in resources}
    return {**reduced, "split": split} if split else reduced


def _reduced_members(members: Members, kept: list[Path]) -> Members:
    """Some of the members, and of some only some items or classes."""
    reduced: Members = {}
    for member, *item in kept:
        value = members[str(member)]
        if not item:
            reduced[str(member)] = value
        elif isinstance(value, list):
            reduced.setdefault(str(member), []).append(value[int(item[0])])
        else:
            reduced.setdefault(str(member), {})[item[0]] = value[item[0]]
    return reduced


def _without_empty_groups(request: Members) -> Members:
    """The request without groups that are left with nothing, and without relations of less than
    two groups; the unsuffixed group without resources becomes a group for each condition."""
    related = {n for kind in ("together", "apart") for r in request[kind] for n in r["groups"]}
    groups: Members = {}
    for name, group in request["groups"].items():
        if not name and "resources" not in group:
            groups |= {f" {number}": each for number, each in enumerate(_conditions(group))}
        elif group or name in related:
            groups[name] = group
    relations = {
        kind: [
            {**relation, "groups": left}
            for relation in request[kind]
            if len(left := [name for name in relation["groups"] if name in groups]) > 1
        ]
        for kind in ("together", "apart")
    }
    return {**request, "groups": groups, **relations}


def _conditions(group: Members) -> Iterator[Members]:
    """Groups with one of the conditions of a group each."""
    for member, value in group.items():
        if member in {"required", "member_of"}:
            yield from ({member: [item]} for item in value)
        else:
            yield {member: value}


def _parts(name: str, group: Members) -> Members:
    """The group with all its classes split; a named one of several classes in one part for each."""
    if not group.get("resources"):
        return {name: group}
    rule = {"parts": 99}
    if not name or len(group["resources"]) == 1:
        return {name: {**group, "split": dict.fromkeys(group["resources"], rule)}}
    return {
        f"{name} {each}": {**group, "resources": {each: amount}, "split": {each: rule}}
        for each, amount in group["resources"].items()
    }

# SPDX-License-Identifier: Apache-2.0
"""The twin of berth's own questions: slow, obvious, and written from the specification alone.

A request is read as it is sent (spec/beyond.md 2.2), and every combination of providers is tried at
every root. Numbers in the docstrings are sections of spec/beyond.md; those with AC are of
spec/allocation-candidates.md. A request that is given as `query` has another twin,
`tests.brute_force`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, permutations, product
from math import lcm
from typing import Any, Literal
from uuid import UUID

from tests.brute_force import Candidate, find_candidates
from tests.queries import parse_query
from tests.worlds import SHARING_TRAIT, Stock, World, WorldProvider, aggregate_uuid

#: A request as JSON.
Request = Mapping[str, Any]

#: Which providers were chosen for each class of each group; the class of a group without resources
#: is "".
Choice = frozenset[tuple[tuple[str, str], frozenset[str]]]

#: What a provider gives of one class: provider -> amount.
Vector = dict[str, int]


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions on a set of names: it has some of each of `some`, and none of `none`."""

    some: tuple[frozenset[str], ...] = ()
    none: frozenset[str] = frozenset()

    def hold(self, having: frozenset[str]) -> bool:
        """Whether a set of names meets them."""
        return all(having & names for names in self.some) and not having & self.none


@dataclass(frozen=True, slots=True)
class SplitRule:
    """How an amount may be split (2.5)."""

    min: int
    step: int
    parts: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """One group; references are names of providers and aggregates of the world."""

    name: str
    resources: Mapping[str, int]
    traits: Conditions
    aggregates: Conditions
    in_tree: frozenset[str] | None
    under: frozenset[str] | None
    not_under: frozenset[str]
    split: Mapping[str, SplitRule]


@dataclass(frozen=True, slots=True)
class Relation:
    """Groups that are together, or apart (2.4)."""

    is_together: bool
    groups: tuple[str, ...]
    at: str


@dataclass(frozen=True, slots=True)
class Host:
    """Conditions on the host (2.2); `within`: the tree has some of each set."""

    root_traits: Conditions
    tree_traits: Conditions
    root_aggregates: Conditions
    within: tuple[frozenset[str], ...]
    not_in: frozenset[str]


@dataclass(frozen=True, slots=True)
class Asked:
    """A whole request without `query` and `alternatives`; all of `hosts` must hold."""

    groups: tuple[Wanted, ...]
    hosts: tuple[Host, ...]
    relations: tuple[Relation, ...]
    tolerate: frozenset[str] | Literal["*"]


#: What one choice gives: one of these candidates, where the rule of a split leaves it open.
Option = tuple[Choice, frozenset[Candidate]]

#: All options of a request.
Found = dict[Choice, frozenset[Candidate]]


def answers(fleet: World, request: Request) -> tuple[int, Found]:
    """Which alternative counts, and its candidates: the first that has any, else the last (2.2)."""
    alternatives = request.get("alternatives") or [request]
    found = [find(fleet, alternative) for alternative in alternatives]
    first = next((number for number, each in enumerate(found) if each), len(found) - 1)
    return first, found[first]


def find(fleet: World, request: Request) -> Found:
    """All candidates of a request (2.3); the anchor does not matter (AC 5.5)."""
    if "query" in request:
        tolerant = fleet.tolerating(request.get("tolerate", ()))
        found_by_query = find_candidates(tolerant, parse_query(request["query"], 39), 39)
        return {_choice_of(each): frozenset({each}) for each in found_by_query}
    asked = read(fleet, request)
    found: Found = {}
    for provider in fleet.providers:
        if provider.parent is None:
            found.update(found_at(fleet, asked, provider.name))
    return found


def _choice_of(candidate: Candidate) -> Choice:
    """What stands for the choice of a candidate of a query: nothing in it is left open."""
    taken = {
        ((name, str(amount)), frozenset({giving})) for (giving, name), amount in candidate.amounts
    }
    return frozenset({*taken, *(((group, ""), names) for group, names in candidate.mappings)})


def fitting(fleet: World, request: Request) -> set[str]:
    """The hosts that anchor a candidate."""
    asked = read(fleet, request)
    roots = (provider.name for provider in fleet.providers if provider.parent is None)
    return {root for root in roots if any(found_at(fleet, asked, root))}


def found_at(fleet: World, asked: Asked, root: str) -> Iterator[Option]:
    """The choices at one anchor, with the candidates that each may give."""
    fleet = fleet.tolerating(asked.tolerate)
    if not _is_eligible(fleet, asked, root):
        return
    ways = [list(_ways(fleet, wanted, root)) for wanted in asked.groups]
    for chosen in product(*ways):
        choice = {
            (wanted.name, name): providers
            for wanted, way in zip(asked.groups, chosen, strict=True)
            for name, providers in way.items()
        }
        if _are_related(fleet, asked, choice):
            candidates = frozenset(_candidates(fleet, asked, choice))
            if candidates:
                yield frozenset(choice.items()), candidates


# --- 2.2 Reading a request


def read(fleet: World, request: Request) -> Asked:
    """A request with its references resolved; one that stands for nothing matches nothing (1.4).

    Groups and relations are those of the flavor, if it names one (4.5).
    """
    stored = fleet.flavors[request["flavor"]] if "flavor" in request else request
    hosts = [stored] if stored is request else [stored, request]
    return Asked(
        groups=tuple(
            _read_group(fleet, name, group) for name, group in stored.get("groups", {}).items()
        ),
        hosts=tuple(_read_host(fleet, each.get("host", {})) for each in hosts),
        relations=tuple(
            Relation(kind == "together", tuple(relation["groups"]), relation["at"])
            for kind in ("together", "apart")
            for relation in stored.get(kind, [])
        ),
        tolerate=tolerated([stored, request]),
    )


def tolerated(requests: Iterable[Request]) -> frozenset[str] | Literal["*"]:
    """The drains that any of some requests tolerates."""
    several = [request.get("tolerate", []) for request in requests]
    return "*" if "*" in several else frozenset().union(*several)


def _read_host(fleet: World, host: Mapping[str, Any]) -> Host:
    return Host(
        root_traits=_conditions(host.get("required", [])),
        tree_traits=_conditions(host.get("anywhere", [])),
        root_aggregates=_memberships(fleet, host.get("member_of", [])),
        within=tuple(_providers(fleet, each) for each in lists_of_in(host)),
        not_in=_providers(fleet, host.get("not_in", [])),
    )


def lists_of_in(host: Mapping[str, Any]) -> list[list[str]]:
    """The lists of `in`: itself, or those that it has."""
    if "in" not in host:
        return []
    lists = [each for each in host["in"] if isinstance(each, list)]
    return lists or [host["in"]]


def _read_group(fleet: World, name: str, group: Mapping[str, Any]) -> Wanted:
    return Wanted(
        name=name,
        resources=group.get("resources", {}),
        traits=_conditions(group.get("required", [])),
        aggregates=_memberships(fleet, group.get("member_of", [])),
        in_tree=_providers(fleet, group["in_tree"]) if "in_tree" in group else None,
        under=_providers(fleet, group["under"]) if "under" in group else None,
        not_under=_providers(fleet, group.get("not_under", [])),
        split={
            split_class: SplitRule(rule.get("min", 1), rule.get("step", 1), rule.get("parts", 2))
            for split_class, rule in group.get("split", {}).items()
        },
    )


def _conditions(items: Iterable[str | list[str]]) -> Conditions:
    some: list[frozenset[str]] = []
    none: set[str] = set()
    for item in items:
        if isinstance(item, list):
            some.append(frozenset(item))
        elif item.startswith("!"):
            none.add(item[1:])
        else:
            some.append(frozenset({item}))
    return Conditions(tuple(some), frozenset(none))


def matches(fleet: World, conditions: Mapping[str, Any], each: WorldProvider) -> bool:
    """Whether a provider itself meets `required` and `member_of`."""
    return _conditions(conditions.get("required", [])).hold(each.traits) and _memberships(
        fleet, conditions.get("member_of", [])
    ).hold(each.aggregates)


def _memberships(fleet: World, items: Iterable[str | list[str]]) -> Conditions:
    named = _conditions(items)
    return Conditions(
        tuple(
            frozenset().union(*(aggregates(fleet, reference) for reference in references))
            for references in named.some
        ),
        frozenset().union(*(aggregates(fleet, reference) for reference in named.none)),
    )


def aggregates(fleet: World, reference: str) -> frozenset[str]:
    """The aggregates that a reference stands for: by uuid, by label `name`, or as `key=value`."""
    everything = frozenset(fleet.labels).union(*(p.aggregates for p in fleet.providers))
    uuid = _as_uuid(reference)
    if uuid is not None:
        return frozenset(name for name in everything if aggregate_uuid(name) == uuid)
    key, value = reference.split("=", 1) if "=" in reference else ("name", reference)
    return frozenset(name for name in everything if fleet.labels.get(name, {}).get(key) == value)


def provider(fleet: World, reference: str) -> str | None:
    """The name of the provider that a reference stands for: by uuid, or by name."""
    uuid = _as_uuid(reference)
    if uuid is not None:
        return fleet.names.get(uuid)
    return reference if reference in fleet.by_name else None


def _providers(fleet: World, references: Iterable[str]) -> frozenset[str]:
    found = (provider(fleet, reference) for reference in references)
    return frozenset(name for name in found if name is not None)


def _as_uuid(text: str) -> str | None:
    try:
        return str(UUID(text))
    except ValueError:
        return None


# --- AC 5.1 Trees, sharing, amounts


def lineage(fleet: World, name: str) -> list[str]:
    """The provider, its parent, and so on up to the root."""
    above = fleet.by_name[name].parent
    return [name] if above is None else [name, *lineage(fleet, above)]


def root_of(fleet: World, name: str) -> str:
    """The root of a provider's own tree."""
    return lineage(fleet, name)[-1]


def tree_of(fleet: World, root: str) -> list[WorldProvider]:
    """All providers of a tree."""
    return [each for each in fleet.providers if root_of(fleet, each.name) == root]


def shared_with(fleet: World, root: str) -> list[WorldProvider]:
    """The sharing providers of other trees that have an aggregate with a provider of this tree."""
    near: frozenset[str] = frozenset().union(*(each.aggregates for each in tree_of(fleet, root)))
    return [
        each
        for each in fleet.providers
        if SHARING_TRAIT in each.traits
        and each.aggregates & near
        and root_of(fleet, each.name) != root
    ]


def capacity(stock: Stock) -> int:
    """What there is of a class, used or not."""
    return int((stock.total - stock.reserved) * stock.allocation_ratio)


def fits(stock: Stock | None, amount: int) -> bool:
    """Whether an inventory can give an amount."""
    return (
        stock is not None
        and stock.used + amount <= capacity(stock)
        and stock.min_unit <= amount <= stock.max_unit
        and amount % stock.step_size == 0
    )


def _is_eligible(fleet: World, asked: Asked, root: str) -> bool:
    """Whether a tree meets the conditions on the host (2.2), and its root is not drained (2.3)."""
    if root in fleet.drained:
        return False
    tree = tree_of(fleet, root)
    names = {each.name for each in tree}
    at_root = fleet.by_name[root]
    return all(
        host.root_traits.hold(at_root.traits)
        and host.tree_traits.hold(frozenset().union(*(each.traits for each in tree)))
        and host.root_aggregates.hold(at_root.aggregates)
        and all(names & some for some in host.within)
        and not names & host.not_in
        for host in asked.hosts
    )


# --- AC 5.2, AC 5.3 and 2.5: the providers that may serve a group


def _ways(fleet: World, wanted: Wanted, root: str) -> Iterator[dict[str, frozenset[str]]]:
    """Every choice of providers for a group, its classes -> the providers that give of them."""
    able = [each for each in _reachable(fleet, root) if may_serve(fleet, wanted, root, each)]
    if wanted.name and len(wanted.resources) != 1:
        for each in able:
            if all(fits(each.stocks.get(name), n) for name, n in wanted.resources.items()):
                yield dict.fromkeys(wanted.resources or [""], frozenset({each.name}))
        return
    sets = [list(_sets(fleet, wanted, name, root, able)) for name in wanted.resources]
    for chosen in product(*sets):
        if wanted.name or _has_traits(fleet, wanted, chosen):
            yield dict(zip(wanted.resources, chosen, strict=True))


def _reachable(fleet: World, root: str) -> list[WorldProvider]:
    """All providers that are not drained of a tree, and of those that share with it (2.3)."""
    reachable = [*tree_of(fleet, root), *shared_with(fleet, root)]
    return [each for each in reachable if each.name not in fleet.drained]


def may_serve(fleet: World, wanted: Wanted, root: str, each: WorldProvider) -> bool:
    """Whether a provider meets the conditions of a group, amounts and the union's traits aside."""
    above = lineage(fleet, each.name)
    if wanted.under is not None and not wanted.under.intersection(above):
        return False
    if wanted.not_under.intersection(above):
        return False
    in_trees = wanted.in_tree is None or above[-1] in {root_of(fleet, n) for n in wanted.in_tree}
    if wanted.name:
        return (
            in_trees and wanted.traits.hold(each.traits) and wanted.aggregates.hold(each.aggregates)
        )
    own = above[-1] == root
    at_root = fleet.by_name[root].aggregates
    some = Conditions(wanted.aggregates.some)
    none = Conditions(none=wanted.aggregates.none)
    return (
        in_trees
        and (own or wanted.in_tree is None)
        and none.hold(each.aggregates | at_root)
        and (some.hold(each.aggregates) or (own and some.hold(at_root)))
    )


def giving(fleet: World, request: Request, class_name: str, roots: Iterable[str]) -> set[str]:
    """The providers of a class on some hosts, and the sharing providers that may serve a group that
    asks for it there (3.4, 4.3); without drained ones."""
    names: set[str] = set()
    for root in roots:
        names |= {each.name for each in tree_of(fleet, root) if class_name in each.stocks}
        for wanted in read(fleet, request).groups:
            # One provider gives all classes of a named group.
            classes = {*wanted.resources} if wanted.name else {class_name}
            names |= {
                each.name
                for each in shared_with(fleet, root)
                if class_name in wanted.resources
                and classes <= each.stocks.keys()
                and may_serve(fleet, wanted, root, each)
                and not each.traits & wanted.traits.none
            }
    return names - fleet.drained


def _sets(
    fleet: World, wanted: Wanted, name: str, root: str, able: list[WorldProvider]
) -> Iterator[frozenset[str]]:
    """The sets of providers that might give one class: single ones, and those of a split."""
    amount = wanted.resources[name]
    for each in able:
        if fits(each.stocks.get(name), amount):
            yield frozenset({each.name})
    if name in wanted.split:
        own = [p.name for p in able if root_of(fleet, p.name) == root and name in p.stocks]
        for size in range(2, wanted.split[name].parts + 1):
            yield from map(frozenset, combinations(own, size))


def _has_traits(fleet: World, wanted: Wanted, sets: Iterable[frozenset[str]]) -> bool:
    """Whether all providers of the unsuffixed group have its traits together, and no forbidden
    one."""
    together: frozenset[str] = frozenset().union(*sets)
    return wanted.traits.hold(frozenset().union(*(fleet.by_name[n].traits for n in together)))


# --- 2.4 Relations


def _are_related(
    fleet: World, asked: Asked, choice: Mapping[tuple[str, str], frozenset[str]]
) -> bool:
    """Whether all relations hold."""
    return all(_is_related(fleet, relation, choice) for relation in asked.relations)


def _is_related(
    fleet: World, relation: Relation, choice: Mapping[tuple[str, str], frozenset[str]]
) -> bool:
    serving = [
        frozenset[str]().union(*(names for (name, _), names in choice.items() if name == group))
        for group in relation.groups
    ]
    if relation.at == "subtree":
        return _in_subtree(fleet, serving) if relation.is_together else _in_none(fleet, serving)
    levels = [{level(fleet, relation.at, name) for name in names} for names in serving]
    if any(None in each for each in levels):
        return False
    if relation.is_together:
        return len(set().union(*levels)) == 1
    return not any(one & other for one, other in combinations(levels, 2))


def level(fleet: World, at: str, name: str) -> str | None:
    """The level's representative of a provider: itself, its root, or the nearest with a trait."""
    if at == "provider":
        return name
    if at == "tree":
        return root_of(fleet, name)
    above = (each for each in lineage(fleet, name) if at in fleet.by_name[each].traits)
    return next(above, None)


def _in_subtree(fleet: World, serving: Iterable[frozenset[str]]) -> bool:
    """Whether one of all providers is an ancestor of all, or is it."""
    names = frozenset[str]().union(*serving)
    return any(all(top in lineage(fleet, name) for name in names) for top in names)


def _in_none(fleet: World, serving: Iterable[frozenset[str]]) -> bool:
    """Whether no provider of one group is an ancestor of one of another, or is it."""
    return not any(
        one in lineage(fleet, other)
        for ones, others in permutations(serving, 2)
        for one, other in product(ones, others)
    )


# --- AC 5.4 and 2.5: amounts


def _candidates(
    fleet: World, asked: Asked, choice: Mapping[tuple[str, str], frozenset[str]]
) -> Iterator[Candidate]:
    """The candidates of a choice; several where the rule of a split leaves it open."""
    by_part: list[list[tuple[str, Vector]]] = []
    for wanted in asked.groups:
        for name, amount in wanted.resources.items():
            providers = choice[wanted.name, name]
            if name not in wanted.split:
                by_part.append([(name, dict.fromkeys(providers, amount))])
                continue
            others = _taken_by_others(asked, choice, wanted, name)
            if not _is_minimal(fleet, asked, wanted, name, choice, others):
                return
            vectors = handed_out(fleet, wanted, name, providers, others)
            by_part.append([(name, vector) for vector in vectors])
    mappings: dict[str, frozenset[str]] = {}
    for (group, _), providers in choice.items():
        mappings[group] = mappings.get(group, frozenset()) | providers
    for parts in product(*by_part):
        sums: Counter[tuple[str, str]] = Counter()
        for name, vector in parts:
            sums.update({(each, name): amount for each, amount in vector.items()})
        if all(_sum_fits(fleet.by_name[p].stocks[name], n) for (p, name), n in sums.items()):
            yield Candidate(frozenset(sums.items()), frozenset(mappings.items()))


def _sum_fits(stock: Stock, amount: int) -> bool:
    return stock.used + amount <= capacity(stock) and amount <= stock.max_unit


def _taken_by_others(
    asked: Asked, choice: Mapping[tuple[str, str], frozenset[str]], wanted: Wanted, name: str
) -> Counter[str]:
    """What the other groups of a candidate take of a class, by provider; none of them splits it."""
    taken: Counter[str] = Counter()
    for other in asked.groups:
        if other.name != wanted.name and name in other.resources:
            (giving,) = choice[other.name, name]
            taken[giving] += other.resources[name]
    return taken


def _is_minimal(
    fleet: World,
    asked: Asked,
    wanted: Wanted,
    name: str,
    choice: Mapping[tuple[str, str], frozenset[str]],
    others: Counter[str],
) -> bool:
    """Whether a set can give the amount, and no part of it could, relations and traits included,
    with all else the same."""
    providers = choice[wanted.name, name]
    if not divisions(fleet, wanted, name, providers, others):
        return False
    remaining = [choice[wanted.name, other] for other in wanted.resources if other != name]
    return not any(
        divisions(fleet, wanted, name, some, others)
        for size in range(1, len(providers))
        for some in map(frozenset, combinations(sorted(providers), size))
        if (wanted.name or _has_traits(fleet, wanted, [*remaining, some]))
        and _are_related(fleet, asked, {**choice, (wanted.name, name): some})
    )


def divisions(
    fleet: World, wanted: Wanted, name: str, providers: frozenset[str], others: Counter[str]
) -> list[Vector]:
    """All ways to divide an amount among all of some providers."""
    amount = wanted.resources[name]
    if len(providers) == 1:
        (only,) = providers
        stock = fleet.by_name[only].stocks[name]
        able = fits(stock, amount) and _sum_fits(stock, amount + others[only])
        return [{only: amount}] if able else []
    ranges = _ranges(fleet, wanted, name, providers, others)
    return [
        dict(zip(ranges, amounts, strict=True))
        for amounts in product(*([x for x in each if x <= amount] for each in ranges.values()))
        if sum(amounts) == amount
    ]


def handed_out(
    fleet: World, wanted: Wanted, name: str, providers: frozenset[str], others: Counter[str]
) -> list[Vector]:
    """The one way to divide an amount that is offered; several, where providers are equal."""
    if len(providers) == 1:
        return divisions(fleet, wanted, name, providers, others)
    ranges = _ranges(fleet, wanted, name, providers, others)
    vectors: list[Vector] = []
    for order in permutations(sorted(providers)):
        most = [ranges[each][-1] for each in order]
        if most != sorted(most, reverse=True):
            continue
        vector = {each: ranges[each][0] for each in order}
        rest = wanted.resources[name] - sum(vector.values())
        for each in order:
            more = min(rest, ranges[each][-1] - vector[each])
            vector[each] += more
            rest -= more
        if vector not in vectors:
            vectors.append(vector)
    return vectors


def _ranges(
    fleet: World, wanted: Wanted, name: str, providers: frozenset[str], others: Counter[str]
) -> dict[str, list[int]]:
    """What each of several providers may give, ascending."""
    rule = wanted.split[name]
    stocks = {each: fleet.by_name[each].stocks[name] for each in sorted(providers)}
    step = lcm(rule.step, *(stock.step_size for stock in stocks.values()))
    return {
        each: [
            x
            for x in range(step, capacity(stock) + 1, step)
            if max(rule.min, stock.min_unit) <= x
            and x + others[each] <= stock.max_unit
            and stock.used + x + others[each] <= capacity(stock)
        ]
        for each, stock in stocks.items()
    }

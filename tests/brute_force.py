# SPDX-License-Identifier: Apache-2.0
"""The twin of the candidates search: slow, obvious, and written from the specification alone.

Everything here is loops over the providers of a small world, in the words and in the order of
spec/allocation-candidates.md section 5; the numbers in the docstrings are its sections. It shares
no code with the search that it is there to check, and it is itself checked against answers that
were recorded from the original (`tests/candidates/test_recorded_examples.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from tests.answers import Answer, Summary, candidate_text
from tests.queries import Group, Query
from tests.worlds import SHARING_TRAIT, Stock, World, WorldProvider

#: How much each provider gives of each class: (provider, class) -> amount.
Amounts = Mapping[tuple[str, str], int]


class UnknownName(Exception):
    """The query names a resource class or a trait that the deployment does not have."""


@dataclass(frozen=True, slots=True)
class Part:
    """One way to serve one group: the providers it is mapped to, and what they give."""

    providers: frozenset[str]
    amounts: Amounts


@dataclass(frozen=True, slots=True)
class Candidate:
    """One candidate. Two are the same iff amounts and mappings are equal (5.5)."""

    amounts: frozenset[tuple[tuple[str, str], int]]
    mappings: frozenset[tuple[str, frozenset[str]]]


def answer(fleet: World, query: Query, minor: int) -> Answer:
    """The whole answer at microversion 1.`minor`, as if there were no limit.

    Raises:
        UnknownName: a class or trait does not exist, and nothing before it settled the matter.
    """
    found = find_candidates(fleet, query, minor)
    used = {provider for candidate in found for (provider, _), _ in candidate.amounts}
    return Answer(
        sorted(_text(candidate, minor) for candidate in found),
        summaries(fleet, query, used, minor),
    )


def find_candidates(fleet: World, query: Query, minor: int) -> set[Candidate]:
    """All candidates (5.4), after the names have been judged in the order of section 4."""
    _refuse_unknown_traits(fleet, query.root_required | query.root_forbidden)
    roots = [p.name for p in fleet.providers if p.parent is None and _is_eligible(p, query)]
    if not roots:
        return set()
    # A drained root anchors nothing, but it does not matter to the names (spec/beyond.md 7.1).
    roots = [root for root in roots if root not in fleet.drained]
    parts: dict[str, dict[str, list[Part]]] = {}
    for group in query.groups:
        _refuse_unknown_classes(fleet, group)
        if not any(_is_member(provider, group.member_of) for provider in fleet.providers):
            return set()
        _refuse_unknown_traits(fleet, group.forbidden.union(*group.required))
        serve = _suffixed_parts if group.suffix else _unsuffixed_parts
        parts[group.suffix] = {root: list(serve(fleet, group, root)) for root in roots}
        if not any(parts[group.suffix].values()):
            return set()
    found = {
        candidate
        for root in roots
        for candidate in _combine(fleet, query, {s: parts[s][root] for s in parts})
    }
    if minor < 29:
        found = {candidate for candidate in found if not _is_nested(fleet, candidate)}
    return found


def summaries(fleet: World, query: Query, used: Iterable[str], minor: int) -> dict[str, Summary]:
    """The provider summaries that belong to candidates taking resources from `used` (7)."""
    asked = {name for group in query.groups for name in group.resources}
    used = set(used)
    used_roots = {_root(fleet, name) for name in used}
    shown: dict[str, Summary] = {}
    for provider in fleet.providers:
        root = _root(fleet, provider.name)
        if provider.name in used or (minor >= 29 and root in used_roots):
            shown[provider.name] = Summary(
                resources={
                    name: (_capacity(stock), stock.used)
                    for name, stock in provider.stocks.items()
                    if minor >= 27 or name in asked
                },
                traits=provider.traits if minor >= 17 else None,
                root=root if minor >= 29 else None,
                parent=provider.parent if minor >= 29 else None,
            )
    return shown


# --- 5.1 Definitions


def _capacity(stock: Stock) -> int:
    return int((stock.total - stock.reserved) * stock.allocation_ratio)


def _fits(provider: WorldProvider, resource_class: str, amount: int) -> bool:
    stock = provider.stocks.get(resource_class)
    return (
        stock is not None
        and stock.used + amount <= _capacity(stock)
        and stock.min_unit <= amount <= stock.max_unit
        and amount % stock.step_size == 0
    )


def _lineage(fleet: World, name: str) -> Iterator[str]:
    """The provider, its parent, and so on up to the root."""
    above: str | None = name
    while above is not None:
        yield above
        above = fleet.by_name[above].parent


def _root(fleet: World, name: str) -> str:
    *_, root = _lineage(fleet, name)
    return root


def _is_anchored(fleet: World, provider: WorldProvider, root: str) -> bool:
    """Say whether `root` is one of the anchors of a provider: its own root, or one it shares to.

    A drained provider has none (spec/beyond.md 2.3).
    """
    if provider.name in fleet.drained:
        return False
    if _root(fleet, provider.name) == root:
        return True
    return SHARING_TRAIT in provider.traits and any(
        _root(fleet, other.name) == root and other.aggregates & provider.aggregates
        for other in fleet.providers
    )


def _is_eligible(root: WorldProvider, query: Query) -> bool:
    return query.root_required <= root.traits and not query.root_forbidden & root.traits


def _is_member(provider: WorldProvider, member_of: Sequence[frozenset[str]]) -> bool:
    return all(provider.aggregates & alternatives for alternatives in member_of)


def _has_traits(traits: frozenset[str], group: Group) -> bool:
    wanted = all(traits & alternatives for alternatives in group.required)
    return wanted and not traits & group.forbidden


def _is_in_tree(fleet: World, name: str, tree: str | None) -> bool:
    """Say whether a provider is in the tree of `tree`; None asks nothing, an unknown one fails."""
    if tree is None:
        return True
    return tree in fleet.by_name and _root(fleet, name) == _root(fleet, tree)


# --- 5.2 Suffixed groups


def _suffixed_parts(fleet: World, group: Group, root: str) -> Iterator[Part]:
    """Every provider that can serve the whole group by itself at this anchor."""
    for provider in fleet.providers:
        if (
            _is_anchored(fleet, provider, root)
            and _has_traits(provider.traits, group)
            and _is_member(provider, group.member_of)
            and not provider.aggregates & group.not_member_of
            and (_gives(fleet, provider, group) if group.resources else _stands_by(fleet, group))
        ):
            amounts = {(provider.name, name): amount for name, amount in group.resources.items()}
            yield Part(frozenset({provider.name}), amounts)


def _gives(fleet: World, provider: WorldProvider, group: Group) -> bool:
    return _is_in_tree(fleet, provider.name, group.in_tree) and all(
        _fits(provider, name, amount) for name, amount in group.resources.items()
    )


def _stands_by(fleet: World, group: Group) -> bool:
    """The two peculiarities of groups without resources, kept as the original has them.

    Such a group needs a positive condition, and its `in_tree` must exist but does not filter.
    """
    has_positive = bool(group.required or group.member_of)
    return has_positive and (group.in_tree is None or group.in_tree in fleet.by_name)


# --- 5.3 The unsuffixed group


def _unsuffixed_parts(fleet: World, group: Group, root: str) -> Iterator[Part]:
    """Every choice of one provider per class whose traits, taken together, will do."""
    usable = [
        [p for p in fleet.providers if _may_serve(fleet, p, group, root) and _fits(p, name, amount)]
        for name, amount in group.resources.items()
    ]
    for chosen in product(*usable):
        traits = frozenset().union(*(provider.traits for provider in chosen))
        if _has_traits(traits, group):
            yield Part(
                frozenset(provider.name for provider in chosen),
                {
                    (provider.name, name): amount
                    for provider, (name, amount) in zip(
                        chosen, group.resources.items(), strict=True
                    )
                },
            )


def _may_serve(fleet: World, provider: WorldProvider, group: Group, root: str) -> bool:
    """Say whether tree, sharing and aggregates let a provider take part in the group at `root`."""
    anchor = fleet.by_name[root]
    is_foreign = _root(fleet, provider.name) != root
    if not _is_anchored(fleet, provider, root) or not _is_in_tree(fleet, root, group.in_tree):
        return False
    if is_foreign and group.in_tree is not None:
        return False
    if (provider.aggregates | anchor.aggregates) & group.not_member_of:
        return False
    return _is_member(provider, group.member_of) or (
        not is_foreign and _is_member(anchor, group.member_of)
    )


# --- 5.4 Combining the groups


def _combine(fleet: World, query: Query, parts: Mapping[str, list[Part]]) -> Iterator[Candidate]:
    """Every valid combination of one part per group, all at one anchor."""
    for chosen in product(*parts.values()):
        served = dict(zip(parts, chosen, strict=True))
        if (
            _respects_policy(query, served)
            and all(_is_subtree(fleet, served, names) for names in query.same_subtree)
            and _sums_fit(fleet, amounts := _added(chosen))
        ):
            yield Candidate(
                frozenset(amounts.items()),
                frozenset((suffix, part.providers) for suffix, part in served.items()),
            )


def _respects_policy(query: Query, served: Mapping[str, Part]) -> bool:
    """Point 1: under `isolate` the suffixed groups have pairwise different providers."""
    if query.group_policy != "isolate":
        return True
    suffixed = [part.providers for suffix, part in served.items() if suffix]
    return not any(one & other for one, other in combinations(suffixed, 2))


def _is_subtree(fleet: World, served: Mapping[str, Part], suffixes: frozenset[str]) -> bool:
    """Point 2: one of the named groups' providers is an ancestor-or-self of all of them."""
    names = frozenset().union(*(served[suffix].providers for suffix in suffixes))
    return any(all(top in _lineage(fleet, name) for name in names) for top in names)


def _added(parts: Iterable[Part]) -> Counter[tuple[str, str]]:
    amounts: Counter[tuple[str, str]] = Counter()
    for part in parts:
        amounts.update(part.amounts)
    return amounts


def _sums_fit(fleet: World, amounts: Amounts) -> bool:
    """Point 3: sums are held to capacity and max_unit, not to min_unit and step_size."""
    for (provider, name), amount in amounts.items():
        stock = fleet.by_name[provider].stocks[name]
        if stock.used + amount > _capacity(stock) or amount > stock.max_unit:
            return False
    return True


# --- 5.6 Old microversions, and the names of section 4


def _is_nested(fleet: World, candidate: Candidate) -> bool:
    """Say whether two of the providers that give something are of one tree."""
    givers = {provider for (provider, _), _ in candidate.amounts}
    return len({_root(fleet, name) for name in givers}) < len(givers)


def _refuse_unknown_classes(fleet: World, group: Group) -> None:
    if not all(fleet.knows_class(name) for name in group.resources):
        raise UnknownName(f"a class of {group.resources}")


def _refuse_unknown_traits(fleet: World, traits: Iterable[str]) -> None:
    if not all(fleet.knows_trait(name) for name in traits):
        raise UnknownName(f"a trait of {sorted(traits)}")


def _text(candidate: Candidate, minor: int) -> str:
    allocations: dict[str, dict[str, int]] = {}
    for (provider, name), amount in candidate.amounts:
        allocations.setdefault(provider, {})[name] = amount
    return candidate_text(allocations, dict(candidate.mappings) if minor >= 34 else None)

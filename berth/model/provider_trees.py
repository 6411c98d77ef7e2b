# SPDX-License-Identifier: Apache-2.0
"""Trees of providers as clients edit them: what a tree is to be, and what changes on the way there.

Source: spec/beyond.md 6.3.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from msgspec import Struct, field

from berth.model.errors import ReparentNotAllowed, UnparentNotAllowed
from berth.model.ids import AggregateUUID, ProviderId, ProviderUUID, parse_uuid_lax
from berth.model.inventory import Inventory
from berth.model.names import similar
from berth.model.own_errors import TreeInvalid
from berth.model.printable import has_controls
from berth.model.shown import UNSET, Sometimes


class TreeProvider(Struct, frozen=True):
    """A provider of a tree, without what claims change."""

    uuid: ProviderUUID
    name: str
    #: None for the root.
    parent: ProviderUUID | None
    inventories: Mapping[str, Inventory] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[AggregateUUID] = frozenset()


Tree = Mapping[ProviderUUID, TreeProvider]


class WantedProvider(Struct, frozen=True):
    """A provider as a client wants it; None, or UNSET for the parent, leaves a part as it is.

    It has a uuid or a name.
    """

    uuid: ProviderUUID | None
    name: str | None
    #: The uuid or the name of a provider of the tree; None for the root.
    parent: Sometimes[str | None] = UNSET
    inventories: Mapping[str, Inventory] | None = None
    traits: frozenset[str] | None = None
    aggregates: frozenset[AggregateUUID] | None = None


class WantedTree(Struct, frozen=True):
    """A tree as a client wants it.

    Attributes:
        reference: the uuid or the name of a provider of the tree.
        remove_missing: whether providers that are not among these are removed.
        create_names: whether custom traits and resource classes that do not exist are created.
        spellings: the aggregates as the client wrote them.
    """

    reference: str
    providers: Sequence[WantedProvider]
    remove_missing: bool = False
    create_names: bool = False
    spellings: Mapping[AggregateUUID, str] = field(default_factory=dict)


#: The parts of a provider; a change of each increments its generation.
EDITED: Final = ("inventories", "traits", "aggregates")


class ProviderChange(Struct, frozen=True):
    """A provider before and after; None if it does not exist then."""

    before: TreeProvider | None
    after: TreeProvider | None

    @property
    def provider(self) -> TreeProvider:
        """The provider, as it is afterwards if it exists then."""
        provider = self.after or self.before
        assert provider is not None
        return provider

    @property
    def old(self) -> TreeProvider:
        """As `before`; one that does not exist then has nothing, and the name ""."""
        return self.before or TreeProvider(self.provider.uuid, "", None)

    @property
    def new(self) -> TreeProvider:
        """As `after`, in the same way."""
        return self.after or TreeProvider(self.provider.uuid, "", None)

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts that become others, in the order of `EDITED`."""
        if self.after is None:
            return ()
        return tuple(
            part for part in EDITED if getattr(self.old, part) != getattr(self.after, part)
        )


class Edit(NamedTuple):
    """What an edit of a tree did, or would do.

    Attributes:
        root: of the tree.
        is_new: whether the tree did not exist.
        after: the tree as it is then.
        names: of the providers before and after, by uuid.
        classes, traits: the names that it created.
    """

    root: ProviderUUID
    is_new: bool
    changes: tuple[ProviderChange, ...]
    after: Tree
    names: Mapping[ProviderUUID, str]
    classes: tuple[str, ...]
    traits: tuple[str, ...]


def changes_of(before: Tree, after: Tree) -> tuple[ProviderChange, ...]:
    """What changes from one state of a tree to another: parents first, removed ones last and
    children first."""
    kept = [
        ProviderChange(before.get(uuid), after[uuid])
        for uuid in parents_first(after)
        if before.get(uuid) != after[uuid]
    ]
    gone = [uuid for uuid in parents_first(before) if uuid not in after]
    return (*kept, *(ProviderChange(before[uuid], None) for uuid in reversed(gone)))


def parents_first(tree: Tree) -> list[ProviderUUID]:
    """The providers of a tree that hang below its root, each behind its parent."""
    children: dict[ProviderUUID | None, list[ProviderUUID]] = {}
    for uuid, provider in tree.items():
        children.setdefault(provider.parent, []).append(uuid)
    ordered = [*children.get(None, ())]
    for uuid in ordered:  # grows during the loop
        ordered += children.get(uuid, ())
    return ordered


def edited_tree(
    stored: Tree, wanted: WantedTree, new_uuid: Callable[[], ProviderUUID]
) -> dict[ProviderUUID, TreeProvider]:
    """The tree as it is to be.

    Args:
        stored: the tree at present; empty if it is new.
        new_uuid: for a new provider without one.

    Raises:
        TreeInvalid: it cannot be.
    """
    by_name = {provider.name: uuid for uuid, provider in stored.items()}
    places: dict[ProviderUUID, int] = {}
    for place, each in enumerate(wanted.providers):
        uuid = each.uuid or by_name.get(each.name or "") or new_uuid()
        if uuid in places:
            raise TreeInvalid(f"is provider {uuid}, which another item is", ("providers", place))
        places[uuid] = place
    kept = {uuid: each for uuid, each in stored.items() if not wanted.remove_missing}
    after = kept | {
        uuid: _edited(stored.get(uuid), uuid, wanted.providers[place], place)
        for uuid, place in places.items()
    }
    _check_names(after, places)
    _place_all(after, stored, wanted, places)
    _check_tree(after, stored, places)
    _check_reference(after, stored, wanted)
    return after


def _edited(
    before: TreeProvider | None, uuid: ProviderUUID, wanted: WantedProvider, place: int
) -> TreeProvider:
    """A provider as it is to be, still below its former parent."""
    if before is None and wanted.name is None:
        raise TreeInvalid(
            f"lacks a name, because the tree has no provider {uuid} yet", ("providers", place)
        )
    before = before or TreeProvider(uuid, "", None)
    if wanted.name not in (None, before.name) and has_controls(str(wanted.name)):
        raise TreeInvalid("must not have control characters", ("providers", place, "name"))
    return TreeProvider(
        uuid,
        before.name if wanted.name is None else wanted.name,
        before.parent,
        before.inventories if wanted.inventories is None else wanted.inventories,
        before.traits if wanted.traits is None else wanted.traits,
        before.aggregates if wanted.aggregates is None else wanted.aggregates,
    )


def _check_names(after: Tree, places: Mapping[ProviderUUID, int]) -> None:
    holders: dict[str, ProviderUUID] = {}
    for uuid, provider in after.items():
        if (holder := holders.setdefault(provider.name, uuid)) != uuid:
            place = places.get(uuid, places.get(holder, 0))
            raise TreeInvalid(
                f"{provider.name} is the name of two providers", ("providers", place, "name")
            )


def _place_all(
    after: dict[ProviderUUID, TreeProvider],
    stored: Tree,
    wanted: WantedTree,
    places: Mapping[ProviderUUID, int],
) -> None:
    """Give each listed provider its parent."""
    by_name = {provider.name: uuid for uuid, provider in after.items()}
    for uuid, place in places.items():
        reference = wanted.providers[place].parent
        if reference is UNSET:
            continue
        parent = None
        if reference is not None:
            parent = ProviderUUID(parse_uuid_lax(reference) or by_name.get(reference) or "")
            if parent not in after:
                raise TreeInvalid(
                    f"names no provider of the tree: {reference}",
                    ("providers", place, "parent"),
                    did_you_mean=similar(reference, by_name),
                )
        each = after[uuid]
        after[uuid] = TreeProvider(
            uuid, each.name, parent, each.inventories, each.traits, each.aggregates
        )


def _check_tree(after: Tree, stored: Tree, places: Mapping[ProviderUUID, int]) -> None:
    """Check that everything hangs below one root, which is the same as before."""
    roots = [uuid for uuid, provider in after.items() if provider.parent is None]
    was = [uuid for uuid, provider in stored.items() if provider.parent is None]
    for root in was:
        if root not in after:
            raise TreeInvalid(
                f"lacks the root, {stored[root].name} ({root}), which remove_missing would remove",
                ("providers",),
            )
        if root not in roots:
            steps = ("providers", places.get(root, 0), "parent")
            raise TreeInvalid("must be null: this is the root of the tree", steps)
    for uuid in roots:
        if uuid != (was or roots)[0]:
            at = ("providers", places.get(uuid, 0))
            raise TreeInvalid("lacks a parent: another provider is the root of the tree", at)
    reached = set(parents_first(after))
    for uuid, place in places.items():
        if uuid not in reached:
            parent = after[uuid].parent
            fault = (
                "is below itself"
                if parent in after
                else f"is below {parent}, which remove_missing would remove"
            )
            raise TreeInvalid(fault, ("providers", place))


def _check_reference(after: Tree, stored: Tree, wanted: WantedTree) -> None:
    if not stored and not any(_is(each, wanted.reference) for each in after.values()):
        raise TreeInvalid(
            f"has no provider {wanted.reference}, which the path names", ("providers",)
        )


def _is(provider: TreeProvider, reference: str) -> bool:
    return (parse_uuid_lax(reference) or reference) in (provider.uuid, provider.name)


def names_added(
    changes: Iterable[ProviderChange], part: Literal["inventories", "traits"]
) -> dict[str, ProviderUUID]:
    """The resource classes, or the traits, that providers get, each with a provider."""
    added: dict[str, ProviderUUID] = {}
    for change in changes:
        if change.after is not None:
            had = getattr(change.before, part) if change.before else ()
            for name in sorted(getattr(change.after, part)):
                if name not in had:
                    added.setdefault(name, change.after.uuid)
    return added


# --- Moving a provider to another parent ---------------------------------------------------------


def subtree(top: ProviderId, parents: Mapping[ProviderId, ProviderId | None]) -> list[ProviderId]:
    """`top` and everything below it, parents before their children.

    Cost: one pass over `parents`, which needs only the tree of `top`.
    """
    children: dict[ProviderId, list[ProviderId]] = defaultdict(list)
    for provider, parent in parents.items():
        if parent is not None:
            children[parent].append(provider)
    providers = [top]
    for provider in providers:  # grows during the loop
        providers.extend(children[provider])
    return providers


def check_move(
    provider: ProviderUUID,
    *,
    current: ProviderUUID | None,
    wanted: ProviderUUID | None,
    may_reparent: bool,
) -> None:
    """Refuse a change of parent that the client's microversion does not allow.

    A root may always move below another provider; `may_reparent`, which is true from microversion
    1.37, does not matter. The caller checks that the new parent exists and creates no loop.

    Raises:
        UnparentNotAllowed: a child may not become a root.
        ReparentNotAllowed: a child may not get another parent.
    Source: spec/rest-api.md 4.4.
    """
    if may_reparent or current is None:
        return
    if wanted is None:
        raise UnparentNotAllowed(provider, None)
    raise ReparentNotAllowed(provider, wanted)

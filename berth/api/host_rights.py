# SPDX-License-Identifier: Apache-2.0
"""What a caller that is bound to a host may read and name. Source: spec/beyond.md 1.7.

A request is refused here before its handler runs, by the fleet as the index has it. For writes that
is only the earlier of two answers: `berth.store.confined` decides again in the same transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from berth.api.paths import consumer_uuid, provider_uuid
from berth.candidates.question import Question
from berth.candidates.references import References
from berth.index import Index, Snapshot
from berth.index.draining import named_by
from berth.index.providers import named_provider
from berth.index.snapshot import Location, unpacked
from berth.model.consumer import ConsumerWrite
from berth.model.errors import DuplicateProviderName, DuplicateProviderUUID
from berth.model.explanation import Explanation
from berth.model.ids import AggregateUUID, ConsumerUUID
from berth.model.named import DrainName
from berth.model.own_errors import NotOfHost, OutsideHost
from berth.store import consumer_lists
from berth.store.allocations import consumer_allocations, held_by
from berth.store.engine.database import Database

#: What refuses a request, by the UUIDs or names in its path and by its query.
Check = Callable[..., None]


class HostRights(Struct, frozen=True):
    """The rights of a caller that is bound to a host."""

    host: str
    database: Database
    index: Index

    def check_references(self, *references: str, reading: bool = False) -> None:
        """Refuse providers outside the tree, by UUID or name; one that does not exist passes.

        Args:
            reading: a provider that shares its resources with the tree passes too.
        """
        snapshot = self.index.snapshot()
        uuids = filter(None, map(References(snapshot).provider, references))
        self.check_places(snapshot, map(snapshot.locate_uuid, uuids), reading=reading)

    def check_listed(self, snapshot: Snapshot, providers: Any) -> None:
        """Refuse to show providers, given as packed locations, outside the tree."""
        blocks, rows, nodes = (each.tolist() for each in unpacked(providers))
        self.check_places(snapshot, map(Location, blocks, rows, nodes), reading=True)

    def check_places(
        self, snapshot: Snapshot, places: Iterable[Location | None], *, reading: bool = False
    ) -> None:
        """As `check_references`, for places in a snapshot."""
        own = self._own(snapshot)
        for at in places:
            if at is None or (own is not None and at[:2] == own[:2]):
                continue
            if not (reading and own is not None and _shares(snapshot, own, at)):
                raise self._outside(snapshot, at)

    def check_consumers(self, *uuids: ConsumerUUID, reading: bool = False) -> None:
        """Refuse consumers that hold something outside the tree.

        Args:
            reading: those pass that hold something of the tree besides.
        """
        providers = sorted({provider for provider, _ in held_by(self.database, uuids)})
        snapshot = self.index.snapshot()
        places = [at for at in map(snapshot.locate, providers) if at is not None]
        own = self._own(snapshot)
        if reading and own is not None and any(at[:2] == own[:2] for at in places):
            return
        self.check_places(snapshot, places)

    def check_writes(self, writes: Iterable[ConsumerWrite], *, moving: bool = False) -> None:
        """Refuse claims outside the tree, and of consumers that hold something outside.

        Args:
            moving: a consumer may keep exactly what it holds of a provider outside.
        """
        for write in writes:
            stored = consumer_allocations(self.database, write.uuid)
            allocations = {} if stored is None else stored.allocations
            before = {uuid: amounts for uuid, (_, amounts) in allocations.items()}
            named = before.keys() | write.allocations.keys()
            if moving:
                named = {uuid for uuid in named if before.get(uuid) != write.allocations.get(uuid)}
            self.check_references(*sorted(named))

    def check_questions(self, questions: Iterable[Question]) -> None:
        """Refuse questions that are not restricted to the host by `host.in`.

        Raises:
            NotOfHost: one is not.
        """
        for question in questions:
            for within in question.host.within:
                self.check_references(*within)
            if not question.host.within:
                wanted = f'"host": {{"in": ["{self.host}"]}}'
                raise NotOfHost(self.host, f"Restrict the request: {wanted}.")

    def only_own(self, explanation: Explanation) -> Explanation:
        """An explanation without what it says of other hosts."""
        own = References(self.index.snapshot()).provider(self.host)
        near = explanation.nearest or ()
        return replace(
            explanation,
            nearest=explanation.nearest and [each for each in near if each.host.uuid == own],
        )

    def aggregates(self, references: Sequence[str]) -> frozenset[AggregateUUID] | None:
        """The aggregates of [berth]agent_aggregates; None for all."""
        if "*" in references:
            return None
        uuids = map(References(self.index.snapshot()).aggregates, references)
        return frozenset(map(AggregateUUID, chain.from_iterable(uuids)))

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Refuse with the host a name or a UUID that a provider outside the tree has."""
        try:
            yield
        except (DuplicateProviderName, DuplicateProviderUUID) as error:
            self.check_references(error.taken)
            raise

    def _own(self, snapshot: Snapshot) -> Location | None:
        """The host, if it is the root of its tree: below another root, it would rule that tree."""
        uuid = References(snapshot).provider(self.host)
        at = None if uuid is None else snapshot.locate_uuid(uuid)
        return at if at is not None and at.node == 0 else None

    def _outside(self, snapshot: Snapshot, at: Location) -> OutsideHost:
        block = snapshot.block(at.block_id)
        provider, root = (named_provider(block, node, at.row) for node in (at.node, 0))
        return OutsideHost(
            self.host, provider.name or provider.uuid, root=root.name or str(root.uuid)
        )


def _shares(snapshot: Snapshot, own: Location, at: Location) -> bool:
    """Whether a provider shares its resources with the tree."""
    tree_set = snapshot.block(own.block_id).tree_aggregate_sets.item(own.row)
    number = snapshot.block(at.block_id).provider_ids.item(at.node, at.row)
    return number in snapshot.sharing.serving(tree_set, snapshot.aggregate_sets)


# --- The operations that such a caller may use ----------------------------------------------------


def _any(rights: HostRights, query: Mapping[str, str], *parameters: str) -> None:
    """Nothing in the path or the query: the handler, or the transaction, checks."""


def _read_provider(rights: HostRights, query: Mapping[str, str], uuid: str, *more: str) -> None:
    rights.check_references(provider_uuid(uuid), reading=True)


def _write_provider(rights: HostRights, query: Mapping[str, str], uuid: str, *more: str) -> None:
    rights.check_references(provider_uuid(uuid))


def _tree(rights: HostRights, query: Mapping[str, str], reference: str) -> None:
    rights.check_references(reference)


def _read_consumer(rights: HostRights, query: Mapping[str, str], uuid: str) -> None:
    rights.check_consumers(consumer_uuid(uuid), reading=True)


def _write_consumer(rights: HostRights, query: Mapping[str, str], uuid: str) -> None:
    rights.check_consumers(consumer_uuid(uuid))


def _read_named(rights: HostRights, query: Mapping[str, str], project: str, name: str) -> None:
    rights.check_consumers(*_named(rights, project, name), reading=True)


def _write_named(rights: HostRights, query: Mapping[str, str], project: str, name: str) -> None:
    rights.check_consumers(*_named(rights, project, name))


def _named(rights: HostRights, project: str, name: str) -> Collection[ConsumerUUID]:
    consumer = consumer_lists.get_named_consumer(rights.database, project, name)
    return () if consumer is None else (consumer.uuid,)


def _listed(rights: HostRights, query: Mapping[str, str], *parameters: str) -> None:
    """A list of what is on a host or a provider."""
    asked = [query[name] for name in ("host", "provider") if name in query]
    if not asked:
        raise NotOfHost(rights.host, f"Restrict the list: host={rights.host}.")
    rights.check_references(*asked)


def _drain(rights: HostRights, query: Mapping[str, str], name: str) -> None:
    snapshot = rights.index.snapshot()
    drain = snapshot.names.records.drains.get(DrainName(name))
    if drain is not None:
        rights.check_places(snapshot, named_by(snapshot, drain.id))


def _for_each(check: Check, handlers: str) -> dict[str, Check]:
    return dict.fromkeys(handlers.split(), check)


#: By the handlers of the operations; one that is not named is not for such callers.
CHECKS: Final[Mapping[str, Check]] = {
    **_for_each(
        _any,
        """
        placement.providers:list_providers placement.providers:create_provider
        placement.allocations:manage_allocations placement.allocations:reshape
        placement.traits:list_traits placement.traits:show_trait
        placement.traits:ensure_trait placement.resource_classes:list_resource_classes
        placement.resource_classes:show_resource_class
        placement.resource_classes:create_resource_class
        placement.resource_classes:ensure_resource_class
        berth_v1.aggregates:list_aggregates berth_v1.aggregates:show_aggregate
        berth_v1.candidates:find_candidates berth_v1.explain:explain_request
        berth_v1.capacity:count_capacity berth_v1.place:place
        berth_v1.service:show_permissions
        """,
    ),
    **_for_each(
        _read_provider,
        """
        placement.providers:show_provider placement.inventories:list_inventories
        placement.inventories:show_inventory placement.traits:list_provider_traits
        placement.aggregates:list_aggregates placement.usages:show_provider_usages
        placement.allocations:list_provider_allocations
        """,
    ),
    **_for_each(
        _write_provider,
        """
        placement.providers:update_provider placement.providers:delete_provider
        placement.inventories:create_inventory placement.inventories:replace_inventories
        placement.inventories:delete_inventories placement.inventories:update_inventory
        placement.inventories:delete_inventory placement.traits:replace_provider_traits
        placement.traits:delete_provider_traits placement.aggregates:replace_aggregates
        """,
    ),
    **_for_each(_tree, "berth_v1.trees:show_tree berth_v1.trees:put_tree"),
    **_for_each(
        _read_consumer,
        """
        placement.allocations:show_allocations berth_v1.consumers:show_consumer
        berth_v1.place:show_placement berth_v1.leases:show_lease
        """,
    ),
    **_for_each(
        _write_consumer,
        """
        placement.allocations:replace_allocations placement.allocations:delete_allocations
        berth_v1.consumers:release_consumer berth_v1.leases:put_lease berth_v1.leases:end_lease
        """,
    ),
    **_for_each(
        _read_named,
        """
        berth_v1.consumers:show_named_consumer berth_v1.place:show_placement_by_name
        """,
    ),
    **_for_each(
        _write_named,
        """
        berth_v1.consumers:release_named_consumer berth_v1.consumers:claim_for_name
        """,
    ),
    **_for_each(_listed, "berth_v1.consumers:list_consumers berth_v1.drains:list_drains"),
    **_for_each(
        _drain,
        """
        berth_v1.drains:show_drain berth_v1.drains:put_drain berth_v1.drains:delete_drain
        """,
    ),
}

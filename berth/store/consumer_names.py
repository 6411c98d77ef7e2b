# SPDX-License-Identifier: Apache-2.0
"""Names of consumers, unique within a project.

A name is written in the transaction of the claim that gives it, and goes with its consumer: when
the consumer releases everything, or moves to another project. Source: spec/beyond.md 6.4.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from sqlalchemy import bindparam, delete, select

from berth.model.consumer import ConsumerWrite
from berth.model.ids import ConsumerUUID
from berth.model.own_errors import ConsumerNameTaken
from berth.store.consumers import Owners, StoredConsumer
from berth.store.engine.database import Database
from berth.store.engine.prepared import insert_of
from berth.store.engine.tables import berth_consumer_names, consumers, projects
from berth.store.engine.transaction import Change, Tx

_name = berth_consumer_names.c

#: The last column is NULL if the consumer is gone: another program released it.
_TAKEN: Final = (
    select(_name.project_id, _name.name, _name.consumer_uuid, consumers.c.id)
    .select_from(berth_consumer_names)
    .outerjoin(consumers, consumers.c.uuid == _name.consumer_uuid)
    .where(
        _name.project_id.in_(bindparam("projects", expanding=True)),
        _name.name.in_(bindparam("names", expanding=True)),
    )
)
_BY_NAME: Final = (
    select(_name.consumer_uuid, _name.name, projects.c.external_id)
    .join(projects, projects.c.id == _name.project_id)
    .join(consumers, consumers.c.uuid == _name.consumer_uuid)
    .where(projects.c.external_id == bindparam("project"), _name.name == bindparam("name"))
)
_INSERT: Final = insert_of(berth_consumer_names, "project_id", "name", "consumer_uuid")
_DELETE: Final = delete(berth_consumer_names).where(
    _name.consumer_uuid.in_(bindparam("consumers", expanding=True))
)


def consumer_named(tx: Tx, project_id: str, name: str) -> ConsumerUUID | None:
    """The consumer with a name; None if there is none."""
    for uuid, its_name, its_project in tx.rows(_BY_NAME, {"project": project_id, "name": name}):
        # A collation may find another spelling.
        if (its_name, its_project) == (name, project_id):
            return ConsumerUUID(uuid)
    return None


def named_consumers(
    db: Database, names: Collection[tuple[str, str]]
) -> dict[tuple[str, str], ConsumerUUID]:
    """The consumers with some names, by project and name."""
    with db.read() as tx:
        uuids = {(project, name): consumer_named(tx, project, name) for project, name in names}
    return {key: uuid for key, uuid in uuids.items() if uuid is not None}


def name_changes(
    tx: Tx,
    writes: Sequence[ConsumerWrite],
    stored: Mapping[ConsumerUUID, StoredConsumer],
    released: Iterable[StoredConsumer],
    owners: Owners,
) -> list[Change]:
    """The writes that give consumers the names of a claim, and take away those that go.

    An INSERT of them violates a unique key if another transaction has taken the name meanwhile.

    Args:
        stored: the records of the consumers.
        released: consumers that release everything, and have no write of their own.
        owners: the result of `ensure_owners` for these writes.

    Raises:
        ConsumerNameTaken: another consumer of the project has a name, and keeps it.
    """
    named = [write for write in writes if write.name is not None and write.allocations]
    losing = [consumer.uuid for consumer in released if consumer.is_named]
    losing += [
        write.uuid
        for write in writes
        if (consumer := stored.get(write.uuid)) is not None
        and consumer.is_named
        and _loses_name(write, consumer, owners)
    ]
    if named:
        losing += _stale(tx, named, losing, owners)
    rows = [
        {
            "project_id": owners.projects[write.project_id],
            "name": write.name,
            "consumer_uuid": write.uuid,
        }
        for write in named
    ]
    deletions = [Change(_DELETE, [{"consumers": chunk}]) for chunk in tx.chunks(losing)]
    return [*deletions, Change(_INSERT, rows)]


def _loses_name(write: ConsumerWrite, consumer: StoredConsumer, owners: Owners) -> bool:
    """Whether a consumer with a name loses it with a write, or gets another."""
    if not write.allocations or write.name is not None:
        return True
    return owners.projects[write.project_id] != consumer.project_id


def _stale(
    tx: Tx, named: Sequence[ConsumerWrite], losing: Sequence[ConsumerUUID], owners: Owners
) -> list[ConsumerUUID]:
    """Check that names are free; return the consumers that have one of them and are gone.

    Raises:
        ConsumerNameTaken: one is not.
    """
    wanted: dict[tuple[int, str | None], ConsumerWrite] = {}
    for write in named:
        first = wanted.setdefault((owners.projects[write.project_id], write.name), write)
        if first is not write:
            raise ConsumerNameTaken(write.project_id, str(write.name), first.uuid)
    stale = []
    for chunk in tx.chunks(named):
        parameters = {
            "projects": sorted({owners.projects[write.project_id] for write in chunk}),
            "names": sorted({str(write.name) for write in chunk}),
        }
        for project, name, uuid, consumer_id in tx.rows(_TAKEN, parameters):
            taking = wanted.get((project, name))
            if taking is None or uuid in losing:
                continue
            if consumer_id is not None:
                raise ConsumerNameTaken(taking.project_id, name, uuid)
            stale.append(uuid)
    return stale

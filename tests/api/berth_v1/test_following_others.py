# SPDX-License-Identifier: Apache-2.0
"""Who follows the fleet hears also of what another program writes, as soon as berth sees it.

Source: spec/beyond.md 6.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest

from berth.index import Index
from berth.model.ids import ProviderUUID
from berth.model.inventory import Inventory
from berth.model.shown import UNSET
from berth.store.engine.database import Database
from berth.store.inventories import replace_inventories
from berth.store.providers import create_provider, get_provider, update_provider
from tests.api.berth_v1.following import Counting, Follower
from tests.fresh import Fresh, opened_at
from tests.index.checking import checked
from tests.servers.statements import run

#: Of a cluster nothing else is to be seen here: test_following.py has one.
pytestmark = pytest.mark.engines("sqlite", "postgresql", "mariadb")

ROOT, CHILD, OTHER, NEW = (ProviderUUID(str(UUID(int=number))) for number in range(1, 5))

#: The columns of a provider that another program inserts with NEW as its UUID and its name.
_INSERT = "INSERT INTO resource_providers (uuid, name, generation, root_provider_id"


@dataclass
class Followed:
    """Two workers on the database of a URL, and a follower that asks both."""

    url: str
    workers: tuple[Database, Database]
    indexes: tuple[Index, Index]
    follower: Follower

    @property
    def reports(self) -> int:
        """Providers that the workers have said another program wrote."""
        observers = [db.observer for db in self.workers]
        return sum(observer.found for observer in observers if isinstance(observer, Counting))

    def create(self, uuid: ProviderUUID, parent: ProviderUUID | None = None) -> None:
        """A provider of berth, without inventory."""
        create_provider(self.workers[0], uuid=uuid, name=uuid, parent_uuid=parent)

    def rename(self, uuid: ProviderUUID) -> None:
        """A write of berth."""
        name = get_provider(self.workers[0], uuid).name
        update_provider(
            self.workers[0], uuid, name=f"{name}'", parent_uuid=UNSET, may_reparent=False
        )

    def follow(self) -> None:
        """Each worker brings the copy to its fleet, and that is what the database has."""
        for db, index in zip(self.workers, self.indexes, strict=True):
            self.follower.follow(db, index)
            assert checked(index) == []


@pytest.fixture
def followed(fresh: Fresh, tmp_path: Path) -> Iterator[Followed]:
    """A tree and a provider beside it, which the follower has."""
    url = fresh(tmp_path)
    workers = opened_at(url), opened_at(url)
    for worker in workers:
        worker.observer = Counting()
    for uuid, parent in ((ROOT, None), (OTHER, None), (CHILD, ROOT)):
        create_provider(workers[0], uuid=uuid, name=uuid, parent_uuid=parent)
    indexes = Index(workers[0]), Index(workers[1])
    indexes[1].snapshot()
    yield Followed(url, workers, indexes, Follower.of(indexes[0]))
    for worker in workers:
        worker.dispose()


def of(uuid: ProviderUUID, column: str = "id") -> str:
    """A column of a provider, for a statement."""
    return f"SELECT {column} FROM resource_providers WHERE uuid = '{uuid}'"


def deletion(uuid: ProviderUUID) -> str:
    """Delete a provider as OpenStack Placement does."""
    return f"DELETE FROM resource_providers WHERE uuid = '{uuid}'"


def test_a_child_that_another_program_has_deleted_is_gone(followed: Followed) -> None:
    """With berth's next write to its tree. Otherwise a copy would keep it for ever."""
    run(followed.url, deletion(CHILD))
    followed.rename(ROOT)
    followed.follow()
    assert followed.follower.lines.keys() == {ROOT, OTHER}
    assert followed.reports == 1


def test_a_child_that_another_program_has_created_appears(followed: Followed) -> None:
    """Also without an inventory, which would have shown that the usages do not know it."""
    run(
        followed.url,
        f"{_INSERT}, parent_provider_id) "
        f"SELECT '{NEW}', '{NEW}', 0, id, id FROM resource_providers WHERE uuid = '{ROOT}'",
    )
    followed.rename(ROOT)
    followed.follow()
    assert followed.follower.lines[NEW]["parent"] == ROOT
    assert followed.reports == 1


@pytest.mark.parametrize("written", [ROOT, OTHER], ids=["left", "entered"])
def test_a_child_that_another_program_has_moved_is_in_one_tree(
    followed: Followed, written: ProviderUUID
) -> None:
    """Whichever of the two trees berth writes next."""
    ((other,),) = run(followed.url, of(OTHER))
    run(
        followed.url,
        f"UPDATE resource_providers SET parent_provider_id = {other}, root_provider_id = {other} "
        f"WHERE uuid = '{CHILD}'",
    )
    followed.rename(written)
    followed.follow()
    assert followed.follower.lines[CHILD]["parent"] == OTHER


def test_an_id_that_another_program_has_given_to_another_provider(followed: Followed) -> None:
    """The one that had it is gone, although the usage of the new one had to be recounted."""
    ((number,),) = run(followed.url, of(OTHER))
    run(
        followed.url,
        f"UPDATE resource_providers SET root_provider_id = NULL WHERE uuid = '{OTHER}'",
        deletion(OTHER),
        f"{_INSERT}, id) VALUES ('{NEW}', '{NEW}', 1, NULL, {number})",
        f"UPDATE resource_providers SET root_provider_id = id WHERE uuid = '{NEW}'",
        "INSERT INTO inventories (resource_provider_id, resource_class_id, total, reserved, "
        f"min_unit, max_unit, step_size, allocation_ratio) VALUES ({number}, 0, 4, 0, 1, 4, 1, 1)",
    )
    assert followed.indexes[0].reload_foreign(OTHER)
    followed.follow()
    assert followed.follower.lines.keys() == {ROOT, CHILD, NEW}
    assert followed.follower.lines[NEW]["inventories"].keys() == {"VCPU"}


def test_a_provider_that_another_program_has_made_again(followed: Followed) -> None:
    """With the same UUID and another id."""
    ((number,),) = run(followed.url, of(CHILD))
    ((root,),) = run(followed.url, of(ROOT))
    run(
        followed.url,
        deletion(CHILD),
        f"{_INSERT}, parent_provider_id, id) "
        f"VALUES ('{CHILD}', 'again', 0, {root}, {root}, {number + 100})",
    )
    followed.rename(ROOT)
    followed.follow()
    assert followed.follower.lines[CHILD]["name"] == "again"


@pytest.mark.engines("sqlite")
def test_an_id_that_another_program_has_freed_and_berth_has_given_away(
    followed: Followed,
) -> None:
    """The journal names the id, but not the UUID of the one that had it."""
    run(followed.url, deletion(CHILD))
    followed.create(NEW)
    assert run(followed.url, of(NEW)) == [(3,)]
    followed.follow()
    assert followed.follower.lines.keys() == {ROOT, OTHER, NEW}
    assert followed.reports == 1


def test_what_berth_writes_is_never_taken_for_anothers(followed: Followed) -> None:
    """Whatever comes and goes between two looks."""
    for uuid in (NEW, ProviderUUID(str(UUID(int=9)))):
        followed.create(uuid, CHILD)
    replace_inventories(
        followed.workers[0],
        NEW,
        get_provider(followed.workers[0], NEW).generation,
        {"VCPU": Inventory(1)},
    )
    update_provider(followed.workers[1], CHILD, name="moved", parent_uuid=OTHER, may_reparent=True)
    followed.follow()
    update_provider(followed.workers[1], CHILD, name="alone", parent_uuid=None, may_reparent=True)
    followed.follow()
    assert followed.reports == 0

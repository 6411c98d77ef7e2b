# SPDX-License-Identifier: Apache-2.0
"""A fleet, and every kind of damage to a database: the statements that cause it, what a check says
about it, and what a repair does.

The cases damage different providers and consumers, so that all of them can be applied at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from sqlalchemy.engine import make_url

from berth.store.engine.database import Database
from tests.servers.statements import run
from tests.store.fleet import add_provider, claim, consumer, holding, provider

#: Providers and consumers of these numbers exist, and each of the latter holds 2 VCPU of the
#: provider of its number.
HOLDERS = range(12, 24)


@dataclass(frozen=True)
class Damage:
    """One kind of damage.

    Attributes:
        statements: they cause it.
        faults: (the sentence of a check, the action of a repair or None), for each fault.
    """

    statements: tuple[str, ...]
    faults: tuple[tuple[str, str | None], ...]


def fleet(db: Database) -> None:
    """An undamaged database: provider `n` has the id `n` on every engine."""
    parents = {2: 1, 4: 3, 8: 7}
    for number in range(1, 26):
        stock = {"VCPU": 8, "DISK_GB": 8} if number in HOLDERS else {}
        add_provider(db, number, parent=parents.get(number), **stock)
    holders = (
        holding(number, {number: {"VCPU": 2}}, project=f"project {number}", user="u")
        for number in HOLDERS
    )
    claim(db, *holders)


def damage(url: str, *cases: Damage) -> None:
    """Apply some kinds of damage to a database, without its foreign keys."""
    kind = make_url(url).get_backend_name()
    before: list[str] = []
    if kind == "mysql":
        before = ["SET SESSION foreign_key_checks = 0"]
    elif kind == "postgresql":
        before = [f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {key}" for table, key in _KEYS]
    run(url, *before, *(statement for case in cases for statement in case.statements))


#: The foreign keys that PostgreSQL does not let one look away from.
_KEYS = (
    ("resource_providers", "resource_providers_parent_provider_id_fkey"),
    ("resource_providers", "resource_providers_root_provider_id_fkey"),
    ("resource_provider_traits", "resource_provider_traits_trait_id_fkey"),
    ("resource_provider_traits", "resource_provider_traits_resource_provider_id_fkey"),
    ("consumers", "consumers_consumer_type_id_fkey"),
)

#: The name of each, at the margin; its statements, of which the short ones are in `_SHORT`; and
#: each fault (-) with its repair (+). `@1` is a provider with its name, and `#1` a consumer. What
#: stands further in continues the line. A fault of the counters of a project (=) is of its VCPU and
#: of its consumers, as they are and as they should be.
_TABLE: Final = """
a provider without a root
  UPDATE resource_providers SET root_provider_id = NULL WHERE id = 1
  - @1 has no root; following its parents, the root is the provider itself
  + make @1 its own root
a wrong root
  UPDATE resource_providers SET root_provider_id = 5 WHERE id = 4
  - @4 has @5 as its root; following its parents, the root is @3
  + make @3 the root of @4
a root and no parent
  UPDATE resource_providers SET root_provider_id = 5 WHERE id = 6
  - @6 has no parent, but @5 as its root
a loop
  UPDATE resource_providers SET parent_provider_id = 8 WHERE id = 7
  - @7 is below itself
  - @8 is below itself
a lost parent
  UPDATE resource_providers SET parent_provider_id = 9999 WHERE id = 9
  - @9 has provider number 9999 as its parent, which does not exist
generations
  UPDATE resource_providers SET generation = NULL WHERE id = 10
  UPDATE resource_providers SET generation = -1 WHERE id = 11
  - @10 has no generation
  + let the generation of @10 begin at 0
  - @11 has the generation -1
  + let the generation of @11 begin at 0
sums of usage
  sum 12 5
  DELETE FROM berth_usages WHERE resource_provider_id = 12 AND resource_class_id = 2
  INSERT INTO berth_usages VALUES (12, 7, 0, 0)
  - @12, VCPU: the sum of usage is 5, but its allocations make 2
  + set the sum of usage of VCPU on @12 to 2
  - @12, DISK_GB: there is an inventory but no sum of usage
  + set the sum of usage of DISK_GB on @12 to 0
  - @12, NUMA_THREAD: there is a sum of usage but no inventory
  + remove the sum of usage of NUMA_THREAD on @12
a provider that another program has written
  UPDATE resource_providers SET generation = 5 WHERE id = 23
  - @23 is at generation 5, but berth left it at 2: another program has written it
  + count the usage of @23 again
an inventory of no provider
  inventory 9001 2
  INSERT INTO berth_usages VALUES (9001, 2, 0, 0)
  - there is an inventory of DISK_GB on provider number 9001, which does not exist
  + remove the inventory of DISK_GB on provider number 9001
an inventory of no provider that is held
  inventory 9002 0
  INSERT INTO berth_usages VALUES (9002, 0, 1, 0)
  allocation 9002 13 1
  - there is an inventory of VCPU on provider number 9002, which does not exist, and it has
      allocations
  = project project 13, user u, without a consumer type: 2 1, 3 1
an inventory of no class
  inventory 14 5555
  INSERT INTO berth_usages VALUES (14, 5555, 0, 0)
  - @14 has an inventory of resource class number 5555, which does not exist
an impossible inventory
  UPDATE inventories SET total = 0, reserved = 1, step_size = 0
      WHERE resource_provider_id = 15 AND resource_class_id = 2
  - @15, DISK_GB: impossible inventory: total 0, reserved 1, min_unit 1, max_unit 2147483647,
      step_size 0, allocation_ratio 1
allocations of no inventory
  DELETE FROM inventories WHERE resource_provider_id = 16 AND resource_class_id = 0
  DELETE FROM berth_usages WHERE resource_provider_id = 16 AND resource_class_id = 0
  UPDATE berth_usages SET generation = 2 WHERE resource_provider_id = 16
  - @16, VCPU: there are allocations but no inventory (1, one of them of consumer #16)
an allocation twice
  allocation 17 17 1
  sum 17 3
  - consumer #17 has 2 allocations of VCPU on @17, where there may be one
  = project project 17, user u, without a consumer type: 2 1, 3 1
an allocation of nothing
  UPDATE allocations SET used = 0 WHERE consumer_id = '#18'
  sum 18 0
  - consumer #18 has an allocation of 0 VCPU on @18
  = project project 18, user u, without a consumer type: 2 1, 0 1
a consumer without a record
  DELETE FROM consumers WHERE uuid = '#19'
  - consumer #19 has allocations but no record
  + make a record of consumer #19, of project NOBODY and user NOBODY
  = project project 19, user u, without a consumer type: 2 1, 0 0
a record without allocations
  INSERT INTO consumers (uuid, project_id, user_id, generation) VALUES ('#99', 1, 1, 3)
  - consumer #99 has a record but no allocations
  + remove the record of consumer #99
a consumer's generation
  UPDATE consumers SET generation = -1 WHERE uuid = '#20'
  - consumer #20 has the generation -1
  + let the generation of consumer #20 begin at 0
a consumer of nobody
  UPDATE consumers SET project_id = 777 WHERE uuid = '#21'
  UPDATE consumers SET user_id = 777 WHERE uuid = '#22'
  UPDATE consumers SET consumer_type_id = 777 WHERE uuid = '#23'
  - consumer #21 is of project number 777, which does not exist
  - consumer #22 is of user number 777, which does not exist
  - consumer #23 is of type number 777, which does not exist
  = project project 21, user u, without a consumer type: 2 1, 0 0
  = project project 22, user u, without a consumer type: 2 1, 0 0
  = project project 23, user u, without a consumer type: 2 1, 0 0
  = project number 777, user u, without a consumer type: 0 0, 2 1
  = project project 22, user number 777, without a consumer type: 0 0, 2 1
  = project project 23, user u, consumer type number 777: 0 0, 2 1
counters of a project
  UPDATE berth_project_usages SET used_1 = used_1 + 5 WHERE project_id = (SELECT id FROM projects
      WHERE external_id = 'project 12')
  UPDATE berth_project_usages SET used_0 = used_0 - 1 WHERE project_id = (SELECT id FROM projects
      WHERE external_id = 'project 15')
  DELETE FROM berth_project_usages WHERE project_id = (SELECT id FROM projects
      WHERE external_id = 'project 16')
  = project project 12, user u, without a consumer type: 7 1, 2 1
  = project project 15, user u, without a consumer type: 2 0, 2 1
  = project project 16, user u, without a consumer type: 0 0, 2 1
traits
  INSERT INTO resource_provider_traits (trait_id, resource_provider_id)
      SELECT id, 9003 FROM traits WHERE name IN ('HW_CPU_X86_VMX', 'HW_CPU_X86_AVX')
  INSERT INTO resource_provider_traits (trait_id, resource_provider_id) VALUES (99999, 24)
  - provider number 9003 does not exist, but has 2 traits
  + remove the traits of provider number 9003
  - @24 has trait number 99999, which is not defined
aggregates
  INSERT INTO placement_aggregates (id, uuid) VALUES (501, 'agg'), (502, NULL)
  INSERT INTO resource_provider_aggregates (aggregate_id, resource_provider_id)
      VALUES (501, 9004), (99999, 25)
  - provider number 9004 does not exist, but has 1 aggregate
  + remove the aggregates of provider number 9004
  - @25 has aggregate number 99999, which is not defined
  - aggregate number 502 has no uuid
  - aggregate number 501 has the uuid 'agg', which is no UUID
numbers of resource classes
  INSERT INTO resource_classes (id, name) VALUES (500, 'CUSTOM_LOW')
  UPDATE resource_classes SET id = 300 WHERE name = 'FPGA'
  - resource class CUSTOM_LOW has number 500, which is reserved for standard classes: custom classes
      begin at 10000
  - resource class FPGA has number 300 instead of 16
the journal
  INSERT INTO berth_writer VALUES (77, 3, 0, '2026-01-01 00:00:00')
  INSERT INTO berth_journal (writer_id, seq, provider_id, created_at) VALUES
      (77, 3, 3, '2026-01-01 00:00:00'), (77, 4, 3, '2026-01-01 00:00:00'),
      (99, 1, 3, '2026-01-01 00:00:00')
  - the journal has commit 4 of writer 77, whose last commit is 3
  + remove the later journal entries of writer 77
  - the journal has commit 1 of writer 99, which does not exist
  + remove the later journal entries of writer 99
"""

_SHORT: Final[dict[str, Callable[..., str]]] = {
    "sum": lambda at, used: (
        f"UPDATE berth_usages SET used = {used} WHERE resource_provider_id = {at} "
        "AND resource_class_id = 0"
    ),
    "inventory": lambda at, of: (
        "INSERT INTO inventories (resource_provider_id, resource_class_id, total, reserved, "
        f"min_unit, max_unit, step_size, allocation_ratio) VALUES ({at}, {of}, 8, 0, 1, 8, 1, 1)"
    ),
    "allocation": lambda at, holder, used: (
        "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class_id, used) "
        f"VALUES ({at}, '{consumer(int(holder))}', 0, {used})"
    ),
}


def _spelled(text: str) -> str:
    """A line of the table, written out."""
    text = text.replace("NOBODY", "00000000-0000-0000-0000-000000000000")
    text = re.sub(r"@(\d+)", lambda at: f"provider p{at[1]} ({provider(int(at[1]))})", text)
    return re.sub(r"#(\d+)", lambda holder: consumer(int(holder[1])), text)


def _counters(text: str) -> Iterator[tuple[str, str]]:
    of, _, counts = text.rpartition(": ")
    was, now = (part.split() for part in counts.split(", "))
    for counted, stored, actual in zip(("VCPU", "consumers"), was, now, strict=True):
        if stored != actual:
            counter = f"{of}: the counter of {counted}"
            said = f"{counter} is {stored}, but the allocations make {actual}"
            yield said, f"set {counter} to {actual}"


def _case(lines: list[str]) -> Damage:
    statements: list[str] = []
    faults: list[tuple[str, str | None]] = []
    for line in lines:
        kind, _, text = line.partition(" ")
        if kind == "-":
            faults.append((text, None))
        elif kind == "+":
            faults[-1] = (faults[-1][0], text)
        elif kind == "=":
            faults += _counters(text)
        else:
            statements.append(_SHORT[kind](*text.split()) if kind in _SHORT else line)
    return Damage(tuple(statements), tuple(faults))


CASES: Final[dict[str, Damage]] = {
    name: _case(lines.strip().split("\n  "))
    for name, _, lines in (
        part.partition("\n")
        for part in re.split(r"\n(?=\S)", _spelled(_TABLE.replace("\n      ", " ")).strip())
    )
}

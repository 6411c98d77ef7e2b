# SPDX-License-Identifier: Apache-2.0
"""A fleet, and every kind of damage to a database: the statements that cause it, what a check says
about it, and what a repair does.

The cases damage different providers and consumers, so that all of them can be applied at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.engine import make_url

from berth.store.engine.database import Database
from tests.servers.statements import run
from tests.store.fleet import add_provider, claim, consumer, holding, provider

#: Providers and consumers of these numbers exist, and each of the latter holds 2 VCPU of the
#: provider of its number.
HOLDERS = range(12, 24)

_NOBODY = "00000000-0000-0000-0000-000000000000"


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


def named(number: int) -> str:
    """The name of a provider in the sentences of a check."""
    return f"provider p{number} ({provider(number)})"


def _counters(
    project: str,
    was: tuple[int, int],
    now: tuple[int, int],
    *,
    user: str = "u",
    of_type: str = "without a consumer type",
) -> tuple[tuple[str, str | None], ...]:
    """The faults of a project's counters of VCPU and of consumers, where these are wrong."""
    counter = f"project {project}, user {user}, {of_type}: the counter of"
    return tuple(
        (
            f"{counter} {counted} is {stored}, but the allocations make {actual}",
            f"set {counter} {counted} to {actual}",
        )
        for counted, stored, actual in zip(("VCPU", "consumers"), was, now, strict=True)
        if stored != actual
    )


def _inventory(provider_id: int, class_id: int, used: int | None = 0) -> tuple[str, ...]:
    columns = (
        "resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, "
        "allocation_ratio"
    )
    values = f"{provider_id}, {class_id}, 8, 0, 1, 8, 1, 1"
    made = f"INSERT INTO inventories ({columns}) VALUES ({values})"
    if used is None:
        return (made,)
    return (made, f"INSERT INTO berth_usages VALUES ({provider_id}, {class_id}, {used}, 0)")


def _allocation(provider_id: int, number: int, used: int) -> str:
    return (
        "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class_id, used) "
        f"VALUES ({provider_id}, '{consumer(number)}', 0, {used})"
    )


def _sum(provider_id: int, used: int) -> str:
    return (
        f"UPDATE berth_usages SET used = {used} WHERE resource_provider_id = {provider_id} "
        f"AND resource_class_id = 0"
    )


def _of_consumer(number: int, change: str) -> str:
    return f"UPDATE consumers SET {change} WHERE uuid = '{consumer(number)}'"


CASES = {
    "a provider without a root": Damage(
        ("UPDATE resource_providers SET root_provider_id = NULL WHERE id = 1",),
        (
            (
                f"{named(1)} has no root; following its parents, the root is the provider itself",
                f"make {named(1)} its own root",
            ),
        ),
    ),
    "a wrong root": Damage(
        ("UPDATE resource_providers SET root_provider_id = 5 WHERE id = 4",),
        (
            (
                f"{named(4)} has {named(5)} as its root; following its parents, the root is "
                f"{named(3)}",
                f"make {named(3)} the root of {named(4)}",
            ),
        ),
    ),
    "a root and no parent": Damage(
        ("UPDATE resource_providers SET root_provider_id = 5 WHERE id = 6",),
        ((f"{named(6)} has no parent, but {named(5)} as its root", None),),
    ),
    "a loop": Damage(
        ("UPDATE resource_providers SET parent_provider_id = 8 WHERE id = 7",),
        ((f"{named(7)} is below itself", None), (f"{named(8)} is below itself", None)),
    ),
    "a lost parent": Damage(
        ("UPDATE resource_providers SET parent_provider_id = 9999 WHERE id = 9",),
        ((f"{named(9)} has provider number 9999 as its parent, which does not exist", None),),
    ),
    "generations": Damage(
        (
            "UPDATE resource_providers SET generation = NULL WHERE id = 10",
            "UPDATE resource_providers SET generation = -1 WHERE id = 11",
        ),
        (
            (f"{named(10)} has no generation", f"let the generation of {named(10)} begin at 0"),
            (
                f"{named(11)} has the generation -1",
                f"let the generation of {named(11)} begin at 0",
            ),
        ),
    ),
    "sums of usage": Damage(
        (
            _sum(12, 5),
            "DELETE FROM berth_usages WHERE resource_provider_id = 12 AND resource_class_id = 2",
            "INSERT INTO berth_usages VALUES (12, 7, 0, 0)",
        ),
        (
            (
                f"{named(12)}, VCPU: the sum of usage is 5, but its allocations make 2",
                f"set the sum of usage of VCPU on {named(12)} to 2",
            ),
            (
                f"{named(12)}, DISK_GB: there is an inventory but no sum of usage",
                f"set the sum of usage of DISK_GB on {named(12)} to 0",
            ),
            (
                f"{named(12)}, NUMA_THREAD: there is a sum of usage but no inventory",
                f"remove the sum of usage of NUMA_THREAD on {named(12)}",
            ),
        ),
    ),
    "a provider that another program has written": Damage(
        ("UPDATE resource_providers SET generation = 5 WHERE id = 23",),
        (
            (
                f"{named(23)} is at generation 5, but berth left it at 2: another program has "
                f"written it",
                f"count the usage of {named(23)} again",
            ),
        ),
    ),
    "an inventory of no provider": Damage(
        _inventory(9001, 2),
        (
            (
                "there is an inventory of DISK_GB on provider number 9001, which does not exist",
                "remove the inventory of DISK_GB on provider number 9001",
            ),
        ),
    ),
    "an inventory of no provider that is held": Damage(
        (*_inventory(9002, 0, 1), _allocation(9002, 13, 1)),
        (
            (
                "there is an inventory of VCPU on provider number 9002, which does not exist, and "
                "it has allocations",
                None,
            ),
            *_counters("project 13", (2, 1), (3, 1)),
        ),
    ),
    "an inventory of no class": Damage(
        _inventory(14, 5555),
        (
            (
                f"{named(14)} has an inventory of resource class number 5555, which does not exist",
                None,
            ),
        ),
    ),
    "an impossible inventory": Damage(
        (
            "UPDATE inventories SET total = 0, reserved = 1, step_size = 0 "
            "WHERE resource_provider_id = 15 AND resource_class_id = 2",
        ),
        (
            (
                f"{named(15)}, DISK_GB: impossible inventory: total 0, reserved 1, min_unit 1, "
                f"max_unit 2147483647, step_size 0, allocation_ratio 1",
                None,
            ),
        ),
    ),
    "allocations of no inventory": Damage(
        (
            "DELETE FROM inventories WHERE resource_provider_id = 16 AND resource_class_id = 0",
            "DELETE FROM berth_usages WHERE resource_provider_id = 16 AND resource_class_id = 0",
            "UPDATE berth_usages SET generation = 2 WHERE resource_provider_id = 16",
        ),
        (
            (
                f"{named(16)}, VCPU: there are allocations but no inventory (1, one of them of "
                f"consumer {consumer(16)})",
                None,
            ),
        ),
    ),
    "an allocation twice": Damage(
        (_allocation(17, 17, 1), _sum(17, 3)),
        (
            (
                f"consumer {consumer(17)} has 2 allocations of VCPU on {named(17)}, where there "
                f"may be one",
                None,
            ),
            *_counters("project 17", (2, 1), (3, 1)),
        ),
    ),
    "an allocation of nothing": Damage(
        (
            f"UPDATE allocations SET used = 0 WHERE consumer_id = '{consumer(18)}'",
            _sum(18, 0),
        ),
        (
            (f"consumer {consumer(18)} has an allocation of 0 VCPU on {named(18)}", None),
            *_counters("project 18", (2, 1), (0, 1)),
        ),
    ),
    "a consumer without a record": Damage(
        (f"DELETE FROM consumers WHERE uuid = '{consumer(19)}'",),
        (
            (
                f"consumer {consumer(19)} has allocations but no record",
                f"make a record of consumer {consumer(19)}, of project {_NOBODY} and user "
                f"{_NOBODY}",
            ),
            *_counters("project 19", (2, 1), (0, 0)),
        ),
    ),
    "a record without allocations": Damage(
        (
            "INSERT INTO consumers (uuid, project_id, user_id, generation) "
            f"VALUES ('{consumer(99)}', 1, 1, 3)",
        ),
        (
            (
                f"consumer {consumer(99)} has a record but no allocations",
                f"remove the record of consumer {consumer(99)}",
            ),
        ),
    ),
    "a consumer's generation": Damage(
        (_of_consumer(20, "generation = -1"),),
        (
            (
                f"consumer {consumer(20)} has the generation -1",
                f"let the generation of consumer {consumer(20)} begin at 0",
            ),
        ),
    ),
    "a consumer of nobody": Damage(
        (
            _of_consumer(21, "project_id = 777"),
            _of_consumer(22, "user_id = 777"),
            _of_consumer(23, "consumer_type_id = 777"),
        ),
        (
            *(
                (f"consumer {consumer(number)} is of {what} number 777, which does not exist", None)
                for number, what in ((21, "project"), (22, "user"), (23, "type"))
            ),
            *(
                fault
                for number in (21, 22, 23)
                for fault in _counters(f"project {number}", (2, 1), (0, 0))
            ),
            *_counters("number 777", (0, 0), (2, 1)),
            *_counters("project 22", (0, 0), (2, 1), user="number 777"),
            *_counters("project 23", (0, 0), (2, 1), of_type="consumer type number 777"),
        ),
    ),
    "counters of a project": Damage(
        (
            "UPDATE berth_project_usages SET used_1 = used_1 + 5 WHERE project_id = "
            "(SELECT id FROM projects WHERE external_id = 'project 12')",
            "UPDATE berth_project_usages SET used_0 = used_0 - 1 WHERE project_id = "
            "(SELECT id FROM projects WHERE external_id = 'project 15')",
            "DELETE FROM berth_project_usages WHERE project_id = "
            "(SELECT id FROM projects WHERE external_id = 'project 16')",
        ),
        (
            *_counters("project 12", (7, 1), (2, 1)),
            *_counters("project 15", (2, 0), (2, 1)),
            *_counters("project 16", (0, 0), (2, 1)),
        ),
    ),
    "traits": Damage(
        (
            "INSERT INTO resource_provider_traits (trait_id, resource_provider_id) "
            "SELECT id, 9003 FROM traits WHERE name IN ('HW_CPU_X86_VMX', 'HW_CPU_X86_AVX')",
            "INSERT INTO resource_provider_traits (trait_id, resource_provider_id) "
            "VALUES (99999, 24)",
        ),
        (
            (
                "provider number 9003 does not exist, but has 2 traits",
                "remove the traits of provider number 9003",
            ),
            (f"{named(24)} has trait number 99999, which is not defined", None),
        ),
    ),
    "aggregates": Damage(
        (
            "INSERT INTO placement_aggregates (id, uuid) VALUES (501, 'agg'), (502, NULL)",
            "INSERT INTO resource_provider_aggregates (aggregate_id, resource_provider_id) "
            "VALUES (501, 9004), (99999, 25)",
        ),
        (
            (
                "provider number 9004 does not exist, but has 1 aggregate",
                "remove the aggregates of provider number 9004",
            ),
            (f"{named(25)} has aggregate number 99999, which is not defined", None),
            ("aggregate number 502 has no uuid", None),
            ("aggregate number 501 has the uuid 'agg', which is no UUID", None),
        ),
    ),
    "numbers of resource classes": Damage(
        (
            "INSERT INTO resource_classes (id, name) VALUES (500, 'CUSTOM_LOW')",
            "UPDATE resource_classes SET id = 300 WHERE name = 'FPGA'",
        ),
        (
            (
                "resource class CUSTOM_LOW has number 500, which is reserved for standard classes: "
                "custom classes begin at 10000",
                None,
            ),
            ("resource class FPGA has number 300 instead of 16", None),
        ),
    ),
    "the journal": Damage(
        (
            "INSERT INTO berth_writer VALUES (77, 3, 0, '2026-01-01 00:00:00', 3)",
            "INSERT INTO berth_journal (writer_id, seq, provider_id, created_at) VALUES "
            "(77, 3, 3, '2026-01-01 00:00:00'), (77, 4, 3, '2026-01-01 00:00:00'), "
            "(99, 1, 3, '2026-01-01 00:00:00')",
        ),
        (
            (
                "the journal has commit 4 of writer 77, whose last commit is 3",
                "remove the later journal entries of writer 77",
            ),
            (
                "the journal has commit 1 of writer 99, which does not exist",
                "remove the later journal entries of writer 99",
            ),
        ),
    ),
}

# SPDX-License-Identifier: Apache-2.0
"""The tables: OpenStack Placement's, unchanged, and berth's own, prefixed `berth_`.

OpenStack Placement must stay able to read and write its tables (spec/operations.md 7), so that a
database can be adopted in place and handed back. Times are naive UTC; `created_at` is set on
insert, `updated_at` on every update. There are few foreign keys: the service deletes related rows.
"""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    DateTime,
    Float,
    ForeignKey,
    FromClause,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    and_,
    bindparam,
    false,
)
from sqlalchemy.schema import SchemaItem

metadata: Final = MetaData()


def _of_placement(name: str, *parts: SchemaItem) -> Table:
    times = Column("created_at", DateTime), Column("updated_at", DateTime)
    return Table(name, metadata, *times, *parts)


def _of_names(name: str, column: str) -> Table:
    return _of_placement(
        name,
        Column("id", Integer, primary_key=True),
        Column(column, String(255), nullable=False),
        UniqueConstraint(column, name=f"uniq_{name}0{column}"),
    )


resource_providers: Final = _of_placement(
    "resource_providers",
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36), nullable=False),
    Column("name", String(200)),
    Column("generation", Integer),
    Column("root_provider_id", Integer, ForeignKey("resource_providers.id")),
    Column("parent_provider_id", Integer, ForeignKey("resource_providers.id")),
    UniqueConstraint("uuid", name="uniq_resource_providers0uuid"),
    UniqueConstraint("name", name="uniq_resource_providers0name"),
    Index("resource_providers_root_provider_id_idx", "root_provider_id"),
    Index("resource_providers_parent_provider_id_idx", "parent_provider_id"),
)

inventories: Final = _of_placement(
    "inventories",
    Column("id", Integer, primary_key=True),
    Column("resource_provider_id", Integer, nullable=False),
    Column("resource_class_id", Integer, nullable=False),
    *(
        Column(name, Integer, nullable=False)
        for name in ("total", "reserved", "min_unit", "max_unit", "step_size")
    ),
    Column("allocation_ratio", Float, nullable=False),
    UniqueConstraint(
        "resource_provider_id",
        "resource_class_id",
        name="uniq_inventories0resource_provider_resource_class",
    ),
    Index("inventories_resource_class_id_idx", "resource_class_id"),
)

#: At most one row per (consumer, provider, class); rows are only inserted and deleted.
allocations: Final = _of_placement(
    "allocations",
    Column("id", Integer, primary_key=True),
    Column("resource_provider_id", Integer, nullable=False),
    Column("consumer_id", String(36), nullable=False),  # the consumer's uuid
    Column("resource_class_id", Integer, nullable=False),
    Column("used", Integer, nullable=False),
    Index(
        "allocations_resource_provider_class_used_idx",
        "resource_provider_id",
        "resource_class_id",
        "used",
    ),
    Index("allocations_resource_class_id_idx", "resource_class_id"),
    Index("allocations_consumer_id_idx", "consumer_id"),
)

consumer_types: Final = _of_names("consumer_types", "name")

projects: Final = _of_names("projects", "external_id")

users: Final = _of_names("users", "external_id")

consumers: Final = _of_placement(
    "consumers",
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36), nullable=False),
    Column("project_id", Integer, nullable=False),
    Column("user_id", Integer, nullable=False),
    Column("generation", Integer, nullable=False, server_default="0"),
    Column(
        "consumer_type_id",
        Integer,
        ForeignKey("consumer_types.id", name="consumers_consumer_type_id_fkey"),
    ),
    UniqueConstraint("uuid", name="uniq_consumers0uuid"),
    Index("consumers_project_id_uuid_idx", "project_id", "uuid"),
    Index("consumers_project_id_user_id_uuid_idx", "project_id", "user_id", "uuid"),
    Index("consumers_consumer_type_id_idx", "consumer_type_id"),
)

#: The service assigns the ids: standard classes by their order, custom ones from 10000 on.
resource_classes: Final = _of_placement(
    "resource_classes",
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("name", String(255), nullable=False),
    UniqueConstraint("name", name="uniq_resource_classes0name"),
)

traits: Final = _of_names("traits", "name")

resource_provider_traits: Final = _of_placement(
    "resource_provider_traits",
    Column("trait_id", Integer, ForeignKey("traits.id"), primary_key=True),
    Column("resource_provider_id", Integer, ForeignKey("resource_providers.id"), primary_key=True),
    Index(
        "resource_provider_traits_resource_provider_trait_idx", "resource_provider_id", "trait_id"
    ),
)

placement_aggregates: Final = _of_placement(
    "placement_aggregates",
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36)),
    UniqueConstraint("uuid", name="uniq_placement_aggregates0uuid"),
)

resource_provider_aggregates: Final = _of_placement(
    "resource_provider_aggregates",
    Column("resource_provider_id", Integer, primary_key=True, autoincrement=False),
    Column("aggregate_id", Integer, primary_key=True, autoincrement=False),
    Index("resource_provider_aggregates_aggregate_id_idx", "aggregate_id"),
)

#: The sum of all allocations, one row for each inventory, created and deleted with it. The guard
#: of every claim is a condition on this row, so a claim costs the same for any number of consumers.
#: `generation`: the provider's new one at the last change of it for which berth wrote this row.
#: The largest of a provider's rows is the provider's generation, unless another program has
#: changed the provider (`foreign_writes`).
berth_usages: Final = Table(
    "berth_usages",
    metadata,
    Column("resource_provider_id", Integer, primary_key=True, autoincrement=False),
    Column("resource_class_id", Integer, primary_key=True, autoincrement=False),
    Column("used", BigInteger, nullable=False),
    Column("generation", Integer),
    sqlite_with_rowid=False,
)

#: What projects use: counters that each commit increments, in rows of its own writer, so that
#: claims for one project never wait for each other. The sum over the writers is the sum of the
#: allocations of a project, user and consumer type (0: none). A row has the counters of four
#: resource classes, from `first_class` on; class -1 stands for the number of consumers that have
#: allocations. So a claim of VCPU, MEMORY_MB and DISK_GB changes one row (`project_usages`).
berth_project_usages: Final = Table(
    "berth_project_usages",
    metadata,
    Column("project_id", Integer, primary_key=True, autoincrement=False),
    Column("user_id", Integer, primary_key=True, autoincrement=False),
    Column("consumer_type_id", Integer, primary_key=True, autoincrement=False),
    Column("first_class", Integer, primary_key=True, autoincrement=False),
    Column("writer_id", Integer, primary_key=True, autoincrement=False),
    Column("used_0", BigInteger, nullable=False),
    Column("used_1", BigInteger, nullable=False),
    Column("used_2", BigInteger, nullable=False),
    Column("used_3", BigInteger, nullable=False),
    Index("berth_project_usages_writer_id_idx", "writer_id"),
    sqlite_with_rowid=False,
)

#: The clock: one row for each process that writes. `seq` counts its commits. Journal rows up to
#: `trimmed_seq` are deleted: a reader that has not applied them must reload everything.
berth_writer: Final = Table(
    "berth_writer",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("trimmed_seq", BigInteger, nullable=False),
    Column("updated_at", DateTime, nullable=False),
)

#: The providers that each commit touched; provider 0 stands for "trait or class definitions".
#: `usage_only`: only the provider's usages changed.
berth_journal: Final = Table(
    "berth_journal",
    metadata,
    Column("writer_id", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("provider_id", Integer, primary_key=True, autoincrement=False),
    Column("usage_only", Boolean, nullable=False, server_default=false()),
    Column("created_at", DateTime, nullable=False),
    Column("gone_uuid", String(36)),
    sqlite_with_rowid=False,
)


#: Facts about the database. `identity`: 8 random bytes in hexadecimal digits, which tell its
#: revisions from those of other databases.
berth_meta: Final = Table(
    "berth_meta",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("value", String(255), nullable=False),
    sqlite_with_rowid=False,
)

#: The labels of aggregates: a row for each aggregate that has some, whether or not a provider is in
#: it. `labels` is a JSON object. `name` is the label of that key, which no two aggregates share.
berth_labels: Final = Table(
    "berth_labels",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("aggregate_uuid", String(36), nullable=False),
    Column("name", String(255)),
    Column("labels", Text, nullable=False),
    UniqueConstraint("aggregate_uuid", name="uniq_berth_labels0aggregate_uuid"),
    UniqueConstraint("name", name="uniq_berth_labels0name"),
)

#: Requests with a name. `id` is from 1 to `FLAVORS_MAX`, so the primary key limits their number.
#: `request` is a JSON object.
berth_flavors: Final = Table(
    "berth_flavors",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("name", String(255), nullable=False),
    Column("request", Text, nullable=False),
    Column("expose", Boolean, nullable=False),
    Column("description", String(255), nullable=False),
    UniqueConstraint("name", name="uniq_berth_flavors0name"),
)

#: What `POST /berth/v1/place` wrote: a row for each consumer that it placed, made in the commit of
#: its claim. `digest` is that of the body, `allocations_digest` that of what the consumer got; the
#: row counts for as long as the consumer holds exactly that. `mappings` is a JSON object: request
#: group -> uuids of providers.
berth_placements: Final = Table(
    "berth_placements",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("consumer_uuid", String(36), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("allocations_digest", String(64), nullable=False),
    Column("host_uuid", String(36), nullable=False),
    Column("mappings", Text, nullable=False),
    Column("created_at", DateTime, nullable=False),
    Column("request", Text),
    UniqueConstraint("consumer_uuid", name="uniq_berth_placements0consumer_uuid"),
)


#: The names of consumers, unique within a project. A row goes with its consumer; another program
#: that releases the consumer leaves it, and then it counts for nothing.
berth_consumer_names: Final = Table(
    "berth_consumer_names",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("project_id", Integer, nullable=False),
    Column("name", String(255), nullable=False),
    Column("consumer_uuid", String(36), nullable=False),
    UniqueConstraint("project_id", "name", name="uniq_berth_consumer_names0project_id0name"),
    UniqueConstraint("consumer_uuid", name="uniq_berth_consumer_names0consumer_uuid"),
)

#: Named sets of providers that get nothing new, unless `effect` is `none`. `id` is from 1 to
#: `DRAINS_MAX`, so the primary key limits their number. `generation` counts the changes: it is the
#: guard of each.
berth_drains: Final = Table(
    "berth_drains",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("name", String(255), nullable=False),
    Column("generation", Integer, nullable=False),
    Column("effect", String(16), nullable=False),
    Column("reason", String(255), nullable=False),
    Column("created_at", DateTime, nullable=False),
    Column("created_by", String(255), nullable=False),
    UniqueConstraint("name", name="uniq_berth_drains0name"),
)

#: The providers that each drain names; what is below them is drained too. A row goes with its
#: provider; another program that deletes the provider leaves it, and then it counts for nothing:
#: `provider_uuid` tells the provider from a later one with the same id.
berth_drained: Final = Table(
    "berth_drained",
    metadata,
    Column("drain_id", Integer, primary_key=True, autoincrement=False),
    Column("provider_id", Integer, primary_key=True, autoincrement=False),
    Column("provider_uuid", String(36), nullable=False),
    Index("berth_drained_provider_id_idx", "provider_id"),
    sqlite_with_rowid=False,
)


#: Leases: when berth takes back what consumers hold. A row counts for as long as the consumer is at
#: `consumer_generation`: every write of its allocations increments that, also one of another
#: program. `consumer_id` and `consumer_created_at` tell it from a later consumer with the same
#: uuid: SQLite gives an id again, but keeps microseconds; engines that keep only seconds give no id
#: again. `expires_at` is a whole second. `renewals` differs after each renewal, also within a
#: second.
berth_leases: Final = Table(
    "berth_leases",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("consumer_uuid", String(36), nullable=False),
    Column("consumer_id", Integer, nullable=False),
    Column("consumer_created_at", DateTime),
    Column("consumer_generation", Integer, nullable=False),
    Column("expires_at", DateTime, nullable=False),
    Column("renewals", Integer, nullable=False),
    UniqueConstraint("consumer_uuid", name="uniq_berth_leases0consumer_uuid"),
    Index("berth_leases_expires_at_idx", "expires_at"),
)


#: Whether a row of a drain is of the provider beside it.
NAMED_BY_DRAIN: Final[ColumnElement[bool]] = and_(
    berth_drained.c.provider_id == resource_providers.c.id,
    berth_drained.c.provider_uuid == resource_providers.c.uuid,
)
#: Whether a lease counts for the consumer beside it.
LEASE_COUNTS: Final[ColumnElement[bool]] = and_(
    berth_leases.c.consumer_uuid == consumers.c.uuid,
    berth_leases.c.consumer_id == consumers.c.id,
    # Old versions of OpenStack Placement may have left it out.
    berth_leases.c.consumer_created_at.is_not_distinct_from(consumers.c.created_at),
    berth_leases.c.consumer_generation == consumers.c.generation,
)


def same_inventory(left: FromClause, right: FromClause) -> ColumnElement[bool]:
    """Whether rows of two tables belong to the same provider and resource class."""
    return and_(
        left.c.resource_provider_id == right.c.resource_provider_id,
        left.c.resource_class_id == right.c.resource_class_id,
    )


def of_inventory(rows: FromClause) -> ColumnElement[bool]:
    """Whether rows belong to the parameters `provider` and `resource_class`."""
    return and_(
        rows.c.resource_provider_id == bindparam("provider"),
        rows.c.resource_class_id == bindparam("resource_class"),
    )

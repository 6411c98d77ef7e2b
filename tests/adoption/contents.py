# SPDX-License-Identifier: Apache-2.0
"""The contents of the databases in these tests, and ways to read all of it back: by requests, and
from the tables."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote
from uuid import UUID

from sqlalchemy import Inspector, inspect

from tests.client import Client, Response
from tests.servers.statements import connected

#: Microversions that every release of these tests has.
OLDEST_LATEST = "1.36"

HOST, CHILD, POOL, ODD, EMPTY = (str(UUID(int=number)) for number in range(1, 6))
ODD_NAME = 'Ödd "name" % 100'
LATER = str(UUID(int=6))
HOLDERS = [str(UUID(int=1000 + number)) for number in range(4)]
FAILED = str(UUID(int=2000))

#: One aggregate in each spelling that fits the column.
AGGREGATES = (
    "5e08ea53-c4c6-448e-9334-ac4953de3cfa",
    "6E08EA53-C4C6-448E-9334-AC4953DE3CFA",
    "7e08ea53c4c6448e9334ac4953de3cfa",
)
CLASSES = ("CUSTOM_GOLD", "CUSTOM__", "CUSTOM_GOLD_")
TRAITS = ("CUSTOM_FAST", "CUSTOM_FAST_", "CUSTOM_0")


def fill(client: Client) -> None:
    """Store everything that OpenStack Placement can store, including unusual things."""
    for uuid, name, parent in (
        (HOST, "host", None),
        (CHILD, "host child", HOST),
        (POOL, "pool", None),
        (ODD, ODD_NAME, None),
        (EMPTY, "soon empty", None),
    ):
        body = {"uuid": uuid, "name": name}
        _done(client.post("/resource_providers", json=body | _parent(parent), version=_V))
    _done(client.put(f"/resource_providers/{EMPTY}", json={"name": ""}, version=_V))
    for name in CLASSES:
        _done(client.put(f"/resource_classes/{name}", version=_V))
    for name in TRAITS:
        _done(client.put(f"/traits/{name}", version=_V))
    set_inventories(client, HOST, MEMORY_MB={"total": 4096, "reserved": 512, "step_size": 64})
    set_inventories(client, CHILD, VCPU={"total": 16, "allocation_ratio": 2.5}, CUSTOM__=3)
    set_inventories(client, POOL, DISK_GB=1000, CUSTOM_GOLD=7)
    set_traits(client, CHILD, *TRAITS)
    set_traits(client, POOL, "MISC_SHARES_VIA_AGGREGATE")
    set_aggregates(client, HOST, *AGGREGATES)
    set_aggregates(client, POOL, AGGREGATES[0])
    for number, holder in enumerate(HOLDERS):
        claim(client, holder, {CHILD: {"VCPU": number + 1}, POOL: {"DISK_GB": 10}}, f"p{number}")
    claim(client, HOLDERS[0], {}, "p0")  # its project and user are left behind
    refused = _claim(client, FAILED, {CHILD: {"VCPU": 1000}}, "never seen again")
    assert refused.status == 409, refused.text


def go_on(client: Client) -> None:
    """Later writes, by the service that has the database then."""
    _done(client.post("/resource_providers", json={"uuid": LATER, "name": "later"}, version=_V))
    _done(client.put("/resource_classes/CUSTOM_LATER", version=_V))
    _done(client.put("/traits/CUSTOM_LATER", version=_V))
    set_inventories(client, LATER, VCPU=8, CUSTOM_LATER=5)
    set_traits(client, LATER, "CUSTOM_LATER", "CUSTOM_FAST")
    set_aggregates(client, LATER, AGGREGATES[0], str(UUID(int=77)))
    claim(client, HOLDERS[0], {LATER: {"VCPU": 2, "CUSTOM_LATER": 1}}, "p0")
    claim(client, HOLDERS[1], {LATER: {"VCPU": 1}}, "p9")
    claim(client, HOLDERS[2], {}, "p2")
    # Some releases leave a record at generation 0 when a claim fails, others do not.
    again = {CHILD: {"VCPU": 1}}
    if _claim(client, FAILED, again, "seen again").status == 409:
        claim(client, FAILED, again, "seen again", generation=0)


def set_inventories(client: Client, provider: str, **stock: Any) -> None:
    """Replace a provider's inventories: `VCPU=8`, or the fields."""
    wanted = {
        name: fields if isinstance(fields, dict) else {"total": fields}
        for name, fields in stock.items()
    }
    body = {"inventories": wanted} | _seen(client, provider)
    _done(client.put(f"/resource_providers/{provider}/inventories", json=body, version=_V))


def set_traits(client: Client, provider: str, *names: str) -> None:
    body = {"traits": list(names)} | _seen(client, provider)
    _done(client.put(f"/resource_providers/{provider}/traits", json=body, version=_V))


def set_aggregates(client: Client, provider: str, *uuids: str) -> None:
    body = {"aggregates": list(uuids)} | _seen(client, provider)
    _done(client.put(f"/resource_providers/{provider}/aggregates", json=body, version=_V))


def claim(
    client: Client,
    consumer: str,
    allocations: dict[str, dict[str, int]],
    project: str,
    *,
    generation: int | None = None,
) -> None:
    _done(_claim(client, consumer, allocations, project, generation=generation))


def everything(client: Client) -> dict[str, Any]:
    """Every response that shows part of the contents, sorted."""
    answers = {path: _comparable(client.get(path, version=_V)) for path in _paths(client)}
    answers["candidates"] = _candidates(client)
    return answers


_V = OLDEST_LATEST


def _paths(client: Client) -> list[str]:
    providers = client.get("/resource_providers", version=_V).json["resource_providers"]
    uuids = sorted(provider["uuid"] for provider in providers)
    parts = ("", "/inventories", "/traits", "/aggregates", "/usages", "/allocations")
    projects = ("p0", "p1", "p2", "p3", "p9", "never seen again", "seen again")
    return [
        "/resource_providers",
        "/resource_classes",
        "/traits",
        "/traits?associated=true",
        f"/resource_providers?in_tree={CHILD}",
        f"/resource_providers?name={quote(ODD_NAME)}",
        *(f"/resource_providers?member_of={uuid}" for uuid in AGGREGATES),
        *(f"/resource_providers/{uuid}{part}" for uuid in uuids for part in parts),
        *(f"/allocations/{uuid}" for uuid in (*HOLDERS, FAILED)),
        *(f"/usages?project_id={quote(project)}" for project in projects),
        "/usages?project_id=p1&user_id=u",
    ]


def _candidates(client: Client) -> list[str]:
    answer = client.get(
        "/allocation_candidates?resources=VCPU:1,DISK_GB:1,MEMORY_MB:64", version=_V
    )
    assert answer.status == 200, answer.text
    candidates = _sorted(answer.json["allocation_requests"])
    return [json.dumps(candidate, sort_keys=True) for candidate in candidates]


def _comparable(response: Response) -> Any:
    assert response.status == 200, response.text
    return _sorted(response.json)


def _sorted(value: Any) -> Any:
    """The value with its lists sorted."""
    if isinstance(value, dict):
        return {key: _sorted(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted(
            (_sorted(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True)
        )
    return value


def _seen(client: Client, provider: str) -> dict[str, int]:
    shown = client.get(f"/resource_providers/{provider}", version=_V)
    return {"resource_provider_generation": shown.json["generation"]}


def _parent(uuid: str | None) -> dict[str, str]:
    return {} if uuid is None else {"parent_provider_uuid": uuid}


def _claim(
    client: Client,
    consumer: str,
    allocations: dict[str, dict[str, int]],
    project: str,
    *,
    generation: int | None = None,
) -> Response:
    current = client.get(f"/allocations/{consumer}", version=_V).json
    body = {
        "allocations": {uuid: {"resources": amounts} for uuid, amounts in allocations.items()},
        "project_id": project,
        "user_id": "u",
        "consumer_generation": current.get("consumer_generation", generation),
    }
    return client.put(f"/allocations/{consumer}", json=body, version=_V)


def _done(response: Response) -> None:
    assert response.status < 300, response.text


def structure(url: str) -> dict[str, Any]:
    """The structure of OpenStack Placement's tables: columns, keys, indexes."""
    with connected(url) as connection:
        inspector = inspect(connection)
        return {name: _structure_of(inspector, name) for name in _originals(inspector)}


def rows(url: str, *, without: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """Every row of OpenStack Placement's tables as text, with the columns' names."""
    with connected(url) as connection:
        inspector = inspect(connection)
        tables = {}
        for name in _originals(inspector):
            result = connection.exec_driver_sql(f"SELECT * FROM {name}")
            tables[name] = sorted(str(dict(sorted(row.items()))) for row in result.mappings())
        return {name: some for name, some in tables.items() if name not in without}


def _originals(inspector: Inspector) -> list[str]:
    return sorted(name for name in inspector.get_table_names() if not name.startswith("berth_"))


def _structure_of(inspector: Inspector, name: str) -> dict[str, Any]:
    return {
        "columns": {
            column["name"]: (str(column["type"]), column["nullable"], str(column["default"]))
            for column in inspector.get_columns(name)
        },
        "primary key": inspector.get_pk_constraint(name)["constrained_columns"],
        "indexes": sorted(
            (str(index["name"]), str(index["column_names"]), bool(index["unique"]))
            for index in inspector.get_indexes(name)
        ),
        "unique": sorted(
            (str(key["name"]), str(key["column_names"]))
            for key in inspector.get_unique_constraints(name)
        ),
        "references": sorted(
            (str(key["name"]), str(key["constrained_columns"]), key["referred_table"])
            for key in inspector.get_foreign_keys(name)
        ),
    }

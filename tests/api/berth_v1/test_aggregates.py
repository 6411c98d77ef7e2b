# SPDX-License-Identifier: Apache-2.0
"""`/berth/v1/aggregates`: labels, members, revisions, and what is refused.

Source: spec/beyond.md 7.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from berth.config import Settings
from berth.edge.app import create_app
from berth.index import Index
from berth.store.engine.database import Database
from tests.api.worlds import done, new_name, new_uuid, provider, put_aggregates
from tests.client import Client, Response

PATH = "/berth/v1/aggregates"
BERTH_REASON = "berth.request.invalid"


def label(api: Client, uuid: str, **labels: str) -> Response:
    """Replace the labels of an aggregate."""
    return api.put(f"{PATH}/{uuid}", json={"labels": labels})


def listed(api: Client, query: str) -> list[dict[str, Any]]:
    """The aggregates of a query."""
    aggregates: list[dict[str, Any]] = done(api.get(f"{PATH}?{query}"), 200).json["aggregates"]
    return aggregates


def test_an_aggregate_has_labels_before_it_has_members(api: Client) -> None:
    """And keeps them when providers come and go."""
    uuid, name = new_uuid(), new_name("az")
    assert api.get(f"{PATH}/{uuid}").status == 404
    shown = done(label(api, uuid, name=name, zone="z1"), 200).json
    assert shown == {
        "revision": shown["revision"],
        "uuid": uuid,
        "labels": {"name": name, "zone": "z1"},
        "members": 0,
    }
    host = provider(api, aggregates=[uuid])
    provider(api, aggregates=[uuid])
    assert api.get(f"{PATH}/{uuid}").json["members"] == 2
    put_aggregates(api, host, [])
    shown = done(api.get(f"{PATH}/{uuid}"), 200).json
    assert (shown["members"], shown["labels"]) == (1, {"name": name, "zone": "z1"})
    assert listed(api, f"label=name={name}") == [
        {"uuid": uuid, "labels": {"name": name, "zone": "z1"}, "members": 1}
    ]


def test_members_are_counted_in_trees_too(api: Client) -> None:
    """Each provider that is in the aggregate itself, in any spelling of its uuid."""
    uuid, other = new_uuid(), new_uuid()
    root = provider(api, aggregates=[uuid, other])
    provider(api, parent=root, aggregates=[uuid.upper()])
    provider(api, parent=root)
    assert api.get(f"{PATH}/{uuid}").json["members"] == 2
    assert api.get(f"{PATH}/{other}").json["members"] == 1
    members = {each["uuid"]: each["members"] for each in listed(api, "")}
    assert (members[uuid], members[other]) == (2, 1)


def test_labels_are_replaced_whole(api: Client) -> None:
    """An empty object removes them; without labels and members there is no such aggregate."""
    uuid, rack = new_uuid(), new_name("rack")
    done(label(api, uuid, zone="z1", rack=rack), 200)
    assert done(label(api, uuid, rack=rack), 200).json["labels"] == {"rack": rack}
    assert done(label(api, uuid), 200).json["labels"] == {}
    assert api.get(f"{PATH}/{uuid}").status == 404
    assert listed(api, f"label=rack={rack}") == []


def test_aggregates_are_found_by_labels(api: Client) -> None:
    """With several labels, those that have all of them, by uuid."""
    zone, rack = new_name("zone"), new_name("rack")
    first, second, third = sorted(new_uuid() for _ in range(3))
    done(label(api, third, zone=zone, rack=rack), 200)
    done(label(api, first, zone=zone), 200)
    done(label(api, second, rack=rack), 200)

    def found(query: str) -> list[str]:
        return [each["uuid"] for each in listed(api, query)]

    assert found(f"label=zone={zone}") == [first, third]
    assert found(f"label=zone={zone}&label=rack={rack}") == [third]
    assert found(f"label=zone={rack}") == []
    everything = found("")
    assert everything == sorted(everything) and {first, second, third} <= set(everything)


def test_a_name_belongs_to_one_aggregate(api: Client) -> None:
    """The error says to which."""
    uuid, name = new_uuid(), new_name("az")
    done(label(api, uuid, name=name), 200)
    done(label(api, uuid, name=name, zone="z1"), 200)
    refused = label(api, new_uuid(), name=name)
    assert (refused.status, refused.code) == (409, "berth.label.taken")
    assert uuid in refused.detail and name in refused.detail


def test_any_spelling_of_a_uuid_is_the_aggregate(api: Client) -> None:
    """It is shown in canonical form."""
    uuid = new_uuid()
    done(label(api, uuid.replace("-", "").upper(), zone="z1"), 200)
    assert api.get(f"{PATH}/{uuid.upper()}").json["uuid"] == uuid


@pytest.mark.parametrize("value", ["x", "ü\U0001f600 ", "x" * 255, "a/b&c;d", "!x", '"'])
def test_values_are_kept_as_they_are(api: Client, value: str) -> None:
    """Any text without `=` and without control characters."""
    uuid = new_uuid()
    done(label(api, uuid, **{"a.b_c-9": value}), 200)
    assert api.get(f"{PATH}/{uuid}").json["labels"] == {"a.b_c-9": value}


def test_32_labels_fit(api: Client) -> None:
    """One more is too many."""
    uuid = new_uuid()
    most = {f"{'k' * 60}{number}": "v" for number in range(32)}
    assert done(label(api, uuid, **most), 200).json["labels"] == most
    refused = label(api, uuid, **most, more="v")
    assert (refused.status, refused.code) == (400, "berth.request.too_large")
    assert refused.error["pointer"] == "/labels" and "max_labels" in refused.detail
    assert api.get(f"{PATH}/{uuid}").json["labels"] == most


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, ""),
        ([], ""),
        (None, ""),
        ({"labels": None}, "/labels"),
        ({"labels": ["zone=z1"]}, "/labels"),
        ({"labels": {}, "name": "x"}, "/name"),
        ({"labels": {"zone": 1}}, "/labels/zone"),
        ({"labels": {"zone": None}}, "/labels/zone"),
        ({"labels": {"zone": ["z1"]}}, "/labels/zone"),
        ({"labels": {"zone": ""}}, "/labels/zone"),
        ({"labels": {"zone": "a=b"}}, "/labels/zone"),
        ({"labels": {"zone": "x" * 256}}, "/labels/zone"),
        ({"labels": {"a.b": 1}}, "/labels/a.b"),
        ({"labels": {"Zone": "z1"}}, "/labels/Zone"),
        ({"labels": {"": "z1"}}, "/labels/"),
        ({"labels": {"9": "z1"}}, "/labels/9"),
        ({"labels": {"a b": "z1"}}, "/labels/a b"),
        ({"labels": {"a\n": "z1"}}, "/labels/a\n"),
        ({"labels": {"a/~": "z1"}}, "/labels/a~1~0"),
        ({"labels": {"x" * 64: "z1"}}, "/labels/" + "x" * 64),
    ],
)
def test_a_wrong_body_is_refused_where_it_is_wrong(api: Client, body: Any, pointer: str) -> None:
    """Nothing is written."""
    uuid = new_uuid()
    refused = api.put(f"{PATH}/{uuid}", json=body)
    assert (refused.status, refused.code) == (400, BERTH_REASON)
    assert refused.error["pointer"] == pointer
    assert api.get(f"{PATH}/{uuid}").status == 404


@pytest.mark.parametrize(
    "query",
    ["label=zone", "label==z1", "label=zone=", "label=Zone=z1", "label=zone=a=b", "label", "x=y"],
)
def test_a_wrong_query_is_refused(api: Client, query: str) -> None:
    """Also if a right one follows."""
    for text in (query, f"{query}&label=zone=z1"):
        refused = api.get(f"{PATH}?{text}")
        assert (refused.status, refused.code) == (400, BERTH_REASON), text


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_what_is_no_uuid_is_not_found(api: Client, method: str) -> None:
    """Whatever the body."""
    for text in ("az-1", "0" * 31, "%00"):
        refused = api.request(method, f"{PATH}/{text}", json={"labels": {}})
        assert refused.status == (404 if text != "%00" else 400)


def test_the_body_must_be_json(api: Client) -> None:
    """As on the old routes."""
    refused = api.put(f"{PATH}/{new_uuid()}", body=b"{}", headers={"Content-Type": "text/plain"})
    assert (refused.status, refused.code) == (415, "berth.undefined_code")
    refused = api.put(
        f"{PATH}/{new_uuid()}", body=b"{", headers={"Content-Type": "application/json"}
    )
    assert (refused.status, refused.code) == (400, BERTH_REASON)
    assert api.get(PATH, headers={"Accept": "text/plain"}).status == 406


def test_who_has_the_newest_answer_gets_304(client: Client) -> None:
    """With no body and the same tag, until any write is committed."""
    uuid = new_uuid()
    done(label(client, uuid, zone="z1"), 200)
    first = done(client.get(PATH), 200)
    tag = first.headers["ETag"]
    assert tag == f'"{first.json["revision"]}"'
    for sent in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = client.get(PATH, headers={"If-None-Match": sent})
        assert (again.status, again.body, again.headers["ETag"]) == (304, b"", tag)
        assert again.headers["Berth-API"] == "1.0"
    for sent in ('"other"', tag.strip('"'), ""):
        assert client.get(PATH, headers={"If-None-Match": sent}).status == 200
    provider(client, aggregates=[uuid])
    changed = client.get(PATH, headers={"If-None-Match": tag})
    assert changed.status == 200 and changed.headers["ETag"] != tag
    assert changed.json["aggregates"][0]["members"] == 1


def test_nothing_is_computed_for_304(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """One look at the clock is enough."""
    tag = client.get(PATH).headers["ETag"]
    with monkeypatch.context() as patched:
        patched.setattr("berth.api.berth_v1.aggregates.count_all_members", None)
        assert client.get(PATH, headers={"If-None-Match": tag}).status == 304


@contextmanager
def two_workers(settings: Settings, database: Database) -> Iterator[tuple[Client, Client]]:
    """Two services on one database, each with an index of its own."""
    one, other = (Client.of(create_app(settings, database, Index(database))) for _ in range(2))
    yield one, other


def test_every_worker_sees_labels_at_once(settings: Settings, database: Database) -> None:
    """With the next request, whichever worker took the write."""
    with two_workers(settings, database) as (one, other):
        uuid = new_uuid()
        tag = other.get(PATH).headers["ETag"]
        for zone in ("z1", "z2"):
            revision = done(label(one, uuid, zone=zone), 200).json["revision"]
            shown = other.get(PATH, headers={"If-None-Match": tag})
            assert shown.json["aggregates"][0]["labels"] == {"zone": zone}
            assert shown.json["revision"] == revision
            tag = shown.headers["ETag"]
        assert listed(other, "label=zone=z1") == []


#: The role of a caller, and whether it may read and write labels.
CALLERS = {
    "admin": (True, True),
    "service": (True, True),
    "auditor": (True, False),
    "reader": (False, False),
    "member": (False, False),
}


@pytest.mark.parametrize("role", CALLERS)
def test_auditors_read_and_do_not_write(api: Client, role: str) -> None:
    """By the base rule `berth_reader`."""
    caller = api.acting_as({"X-Auth-Token": "u:p", "X-Roles": role})
    reads, writes = CALLERS[role]
    uuid = new_uuid()
    done(label(api, uuid, zone="z1"), 200)
    for path in (PATH, f"{PATH}/{uuid}"):
        assert caller.get(path).status == (200 if reads else 403)
    written = label(caller, uuid, zone="z2")
    assert written.status == (200 if writes else 403)
    if not writes:
        assert written.code == "berth.undefined_code"
        assert "berth:aggregates:update" in written.detail

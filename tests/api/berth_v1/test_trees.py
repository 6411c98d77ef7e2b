# SPDX-License-Identifier: Apache-2.0
"""`/berth/v1/trees`: whole trees of providers, read and written (spec/beyond.md 6.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

import pytest

from berth.model.bounds import TREE_PROVIDERS_MAX
from tests.api.answers import assert_refused
from tests.api.claims import consumer, used
from tests.api.worlds import (
    custom_trait,
    done,
    generation,
    new_custom_name,
    new_name,
    new_uuid,
    provider,
    put_aggregates,
    put_inventories,
)
from tests.client import Client, Response

PATH: Final = "/berth/v1/trees"
PRECONDITION: Final = "berth.precondition.failed"
INVALID: Final = "berth.request.invalid"
UNKNOWN: Final = "berth.name.unknown"


def put(
    api: Client,
    reference: str,
    *providers: dict[str, Any],
    headers: dict[str, str] | None = None,
    query: str = "",
    **members: Any,
) -> Response:
    """Make a tree."""
    body = {"providers": list(providers), **members}
    return api.put(f"{PATH}/{reference}{query}", json=body, headers=headers or {})


def tree(api: Client, reference: str, query: str = "") -> dict[str, dict[str, Any]]:
    """The lines of a tree by name."""
    lines = done(api.get(f"{PATH}/{reference}{query}"), 200).json["providers"]
    return {line["name"]: line for line in lines}


def host(name: str) -> list[dict[str, Any]]:
    """A host with two NUMA nodes."""
    return [
        {"name": name, "inventories": {"DISK_GB": {"total": 100}}, "traits": ["HW_CPU_X86_AVX2"]},
        *(
            {
                "name": f"{name}_numa{number}",
                "parent": name,
                "inventories": {"VCPU": {"total": 32, "allocation_ratio": 4.0}},
                "traits": ["HW_NUMA_ROOT"],
            }
            for number in range(2)
        ),
    ]


def test_a_tree_is_created_in_one_call(api: Client) -> None:
    """Its root and everything below it, with the generations that separate requests would give."""
    name, aggregate = new_name(), new_uuid()
    lines = host(name)
    lines[0]["aggregates"] = [aggregate]
    created = done(put(api, name, *lines), 201)
    shown = tree(api, name, "?include=generation,inventories,traits,aggregates,drains")
    root = shown[name]
    assert created.headers["Location"].endswith(f"{PATH}/{root['uuid']}")
    assert [each["change"] for each in created.json["changes"]] == ["create"] * 3
    assert (root["parent"], root["root"], root["generation"]) == (None, root["uuid"], 3)
    assert (root["traits"], root["aggregates"]) == (["HW_CPU_X86_AVX2"], [aggregate])
    numa = shown[f"{name}_numa1"]
    assert (numa["parent"], numa["root"], numa["generation"]) == (root["uuid"], root["uuid"], 2)
    assert numa["inventories"]["VCPU"]["total"] == 32
    assert numa["inventories"]["VCPU"]["allocation_ratio"] == 4.0
    assert done(api.get(f"/resource_providers/{numa['uuid']}"), 200).json["generation"] == 2
    assert created.headers["ETag"] == api.get(f"{PATH}/{name}_numa0").headers["ETag"]


def test_a_tree_is_edited_however_its_aggregate_was_spelled(api: Client) -> None:
    """What differs in its spelling alone is no change."""
    name, aggregate = new_name(), new_uuid()
    done(put(api, name, *host(name)), 201)
    root = tree(api, name)[name]["uuid"]
    put_aggregates(api, root, [aggregate.replace("-", "")])
    tag = api.get(f"{PATH}/{name}").headers["ETag"]
    line = {"name": name, "aggregates": [aggregate]}
    same = done(put(api, name, line, headers={"If-Match": tag}), 200)
    assert same.json["changes"] == []


def test_claims_leave_the_tag_of_a_tree_alone(api: Client) -> None:
    """By default neither generations nor usages are shown, so whoever polls gets 304."""
    name = new_name()
    tag = done(put(api, name, *host(name)), 201).headers["ETag"]
    unchanged = {"If-None-Match": tag}
    numa = tree(api, name)[f"{name}_numa0"]["uuid"]
    consumer(api, {numa: {"VCPU": 4}})
    assert done(api.get(f"{PATH}/{name}", headers=unchanged), 304).body == b""
    shown = done(api.get(f"{PATH}/{name}?include=usages", headers=unchanged), 200)
    assert shown.json["totals"] == {
        "VCPU": {"capacity": 256, "used": 4, "free": 252, "largest_free": 128},
        "DISK_GB": {"capacity": 100, "used": 0, "free": 100, "largest_free": 100},
    }
    usages = {line["name"]: line["usages"] for line in shown.json["providers"]}
    assert usages[f"{name}_numa0"] == {"VCPU": 4}
    consumer(api, {numa: {"VCPU": 1}})
    again = api.get(
        f"{PATH}/{name}?include=usages", headers={"If-None-Match": shown.headers["ETag"]}
    )
    assert again.status == 200
    put_aggregates(api, numa, [new_uuid()])
    assert api.get(f"{PATH}/{name}", headers=unchanged).status == 200


def test_what_is_used_beyond_a_capacity_is_not_taken_off_what_others_have_free(
    api: Client,
) -> None:
    """Of a node that has shrunk below its use, nothing is free."""
    name = new_name()
    done(put(api, name, *host(name)), 201)
    numa = tree(api, name)[f"{name}_numa0"]["uuid"]
    consumer(api, {numa: {"VCPU": 100}})
    put_inventories(api, numa, {"VCPU": 64})
    totals = done(api.get(f"{PATH}/{name}?include=usages"), 200).json["totals"]
    assert totals["VCPU"] == {"capacity": 192, "used": 100, "free": 128, "largest_free": 128}


def test_the_tag_for_an_edit_is_shown_with_whatever_is_included(api: Client) -> None:
    """An agent reads generations too, which claims change, and edits without a conflict."""
    name = new_name()
    include = "?include=generation,inventories,traits,aggregates,drains"
    made = done(put(api, name, *host(name), query=include), 201)
    plain = done(api.get(f"{PATH}/{name}"), 200)
    assert made.json["etag"] == plain.json["etag"] == plain.headers["etag"]
    assert made.headers["etag"] != made.json["etag"]
    again = api.get(f"{PATH}/{name}{include}", headers={"If-None-Match": made.headers["etag"]})
    assert again.status == 304
    (numa0,) = (each for each in made.json["providers"] if each["name"] == f"{name}_numa0")
    consumer(api, {numa0["uuid"]: {"VCPU": 1}})
    after = done(api.get(f"{PATH}/{name}{include}"), 200)
    assert after.headers["etag"] != made.headers["etag"]
    assert after.json["etag"] == made.json["etag"]
    edited = put(api, name, {"name": name, "traits": []}, headers={"If-Match": made.json["etag"]})
    assert done(edited, 200).json["etag"] != made.json["etag"]


def test_what_is_shown_can_be_sent_back(api: Client) -> None:
    """And changes nothing."""
    name = new_name()
    done(put(api, name, *host(name)), 201)
    shown = done(api.get(f"{PATH}/{name}?include=generation,inventories,traits,aggregates"), 200)
    again = done(api.put(f"{PATH}/{name}", json=shown.json), 200)
    assert again.json["changes"] == []
    assert again.json["revision"] == shown.json["revision"], "nothing was written"


def test_only_what_is_given_changes(api: Client) -> None:
    """A part that is left out stays, and so does a provider that is not listed."""
    name = new_name()
    done(put(api, name, *host(name)), 201)
    before = tree(api, name, "?include=generation,inventories,traits")
    numa = before[f"{name}_numa0"]
    edit = {"uuid": numa["uuid"], "inventories": {"PCPU": {"total": 8}}}
    changed = done(put(api, f"{name}_numa1", edit), 200)
    assert [each["change"] for each in changed.json["changes"]] == ["update"]
    change = changed.json["changes"][0]
    assert (change["before"].keys(), change["after"].keys()) == ({"inventories"}, {"inventories"})
    after = tree(api, name, "?include=generation,inventories,traits")
    assert after.pop(f"{name}_numa0") == {
        **numa,
        "generation": numa["generation"] + 1,
        "inventories": {"PCPU": {**_RECORD, "total": 8}},
    }
    assert after == {key: line for key, line in before.items() if key != f"{name}_numa0"}


_RECORD: Final = {
    "reserved": 0,
    "min_unit": 1,
    "max_unit": 2147483647,
    "step_size": 1,
    "allocation_ratio": 1.0,
}


def test_providers_move_are_renamed_and_removed_at_once(api: Client) -> None:
    """Also if two exchange their names, and if one gets the name of one that goes."""
    name = new_name()
    lines = [*host(name), {"name": f"{name}_gpu", "parent": f"{name}_numa0"}]
    done(put(api, name, *lines), 201)
    uuids = {key: line["uuid"] for key, line in tree(api, name).items()}
    first, second, gpu = (uuids[f"{name}_{part}"] for part in ("numa0", "numa1", "gpu"))
    swapped = [
        {"uuid": first, "name": f"{name}_numa1"},
        {"uuid": second, "name": f"{name}_numa0"},
        {"uuid": gpu, "parent": f"{name}_numa0"},
    ]
    done(put(api, name, *swapped), 200)
    shown = tree(api, name)
    assert {key: line["uuid"] for key, line in shown.items()} == {
        name: uuids[name],
        f"{name}_numa0": second,
        f"{name}_numa1": first,
        f"{name}_gpu": gpu,
    }
    assert shown[f"{name}_gpu"]["parent"] == second
    heir = {"name": f"{name}_gpu", "uuid": new_uuid(), "parent": name}
    done(put(api, name, {"name": name}, heir, remove_missing=True), 200)
    assert {key: line["uuid"] for key, line in tree(api, name).items()} == {
        name: uuids[name],
        f"{name}_gpu": heir["uuid"],
    }
    assert api.get(f"/resource_providers/{gpu}").status == 404


def test_a_dry_run_answers_the_changes_and_writes_nothing(api: Client) -> None:
    """The uuid of a provider that does not have one yet is null."""
    name = new_name()
    answered = done(put(api, name, *host(name), query="?dry_run=true"), 200)
    assert [(each["change"], each["uuid"]) for each in answered.json["changes"]] == [
        ("create", None)
    ] * 3
    assert "providers" not in answered.json
    assert api.get(f"{PATH}/{name}").status == 404
    assert answered.json["changes"][1]["after"]["parent"] == name
    assert put(api, name, *host(name), query="?dry_run=perhaps").status == 400


def test_if_match_guards_against_other_editors(api: Client) -> None:
    """A claim in between is no conflict, and an edit is 412."""
    name = new_name()
    tag = done(put(api, name, *host(name)), 201).headers["ETag"]
    numa = tree(api, name)[f"{name}_numa0"]["uuid"]
    consumer(api, {numa: {"VCPU": 4}})
    edit = {"name": f"{name}_numa1", "traits": []}
    after = done(put(api, name, edit, headers={"If-Match": f'"x", {tag}'}), 200)
    late = put(api, name, {"name": name, "traits": []}, headers={"If-Match": tag})
    assert (late.status, late.code) == (412, PRECONDITION)
    assert tree(api, name)[name]["traits"] == ["HW_CPU_X86_AVX2"]
    weak = put(api, name, edit, headers={"If-Match": f"W/{after.headers['ETag']}"})
    assert weak.status == 412
    assert put(api, name, edit, headers={"If-Match": "*"}).status == 200
    assert used(api, numa) == {"VCPU": 4}


def test_if_none_match_insists_on_a_new_tree(api: Client) -> None:
    """And If-Match on one that exists."""
    name = new_name()
    assert put(api, name, *host(name), headers={"If-Match": "*"}).status == 412
    assert put(api, name, *host(name), headers={"If-Match": '"x"'}).status == 412
    done(put(api, name, *host(name), headers={"If-None-Match": "*"}), 201)
    again = put(api, f"{name}_numa0", *host(name), headers={"If-None-Match": "*"})
    assert (again.status, again.code) == (412, PRECONDITION)


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_what_is_in_use_is_not_removed(api: Client, query: str) -> None:
    """409 as on the other routes, and nothing else of the request is done either; a dry run says
    so beforehand."""
    name = new_name()
    done(put(api, name, *host(name)), 201)
    numa = tree(api, name)[f"{name}_numa0"]["uuid"]
    consumer(api, {numa: {"VCPU": 4}})
    before = tree(api, name, "?include=generation,inventories,traits,aggregates")
    retraited = {"name": name, "traits": [], "aggregates": [new_uuid()]}
    emptied = put(api, name, retraited, {"uuid": numa, "inventories": {}}, query=query)
    assert (emptied.status, emptied.code) == (409, "placement.inventory.inuse")
    assert "VCPU" in emptied.detail
    removed = put(api, name, retraited, remove_missing=True, query=query)
    assert (removed.status, removed.code) == (409, "placement.resource_provider.inuse")
    assert tree(api, name, "?include=generation,inventories,traits,aggregates") == before


def test_names_and_uuids_of_other_trees_are_conflicts(api: Client) -> None:
    """A tree is edited alone: it takes no provider from another."""
    name, other = new_name(), new_name()
    taken = provider(api, name=other)
    done(put(api, name, *host(name)), 201)
    for line in (
        {"name": other, "parent": name},
        {"name": new_name(), "uuid": taken, "parent": name},
        {"uuid": taken, "parent": name},
        {"uuid": tree(api, name)[name]["uuid"], "name": other},
    ):
        answered = put(api, name, line)
        assert (answered.status, answered.code) == (409, "placement.duplicate_name"), line


def test_names_that_do_not_exist_are_created_if_asked_for(api: Client) -> None:
    """Custom ones only; else 400, which points to the first and suggests similar names."""
    name, trait, resource_class = new_name(), new_custom_name(), new_custom_name()
    line = {"name": name, "traits": [trait], "inventories": {resource_class: {"total": 1}}}
    refused = put(api, name, line)
    assert (refused.status, refused.code) == (400, UNKNOWN)
    assert refused.json["errors"][0]["pointer"] == f"/providers/0/inventories/{resource_class}"
    created = done(put(api, name, line, create_names=True), 201).json
    assert created["created_resource_classes"] == [resource_class]
    assert created["created_traits"] == [trait]
    assert done(api.get(f"/traits/{trait}"), 204)
    assert done(api.get(f"/resource_classes/{resource_class}"), 200)
    misspelled = put(api, name, {"name": name, "traits": ["HW_CPU_X86_AVX3"]}, create_names=True)
    assert (misspelled.status, misspelled.code) == (400, UNKNOWN)
    error = misspelled.json["errors"][0]
    assert error["pointer"] == "/providers/0/traits/0"
    assert "HW_CPU_X86_AVX2" in error["did_you_mean"]


def test_aggregates_are_named_by_uuid_or_label(api: Client) -> None:
    """A label must stand for one aggregate."""
    name, aggregate, label = new_name(), new_uuid(), new_name("rack")
    done(api.put(f"/berth/v1/aggregates/{aggregate}", json={"labels": {"name": label}}), 200)
    done(put(api, name, {"name": name, "aggregates": [label]}), 201)
    assert tree(api, name)[name]["aggregates"] == [aggregate]
    spelled = aggregate.replace("-", "").upper()
    same = done(put(api, name, {"name": name, "aggregates": [spelled, f"name={label}"]}), 200)
    assert same.json["changes"] == []
    refused = put(api, name, {"name": name, "aggregates": [new_name()]})
    assert (refused.status, refused.code) == (400, UNKNOWN)
    assert refused.json["errors"][0]["pointer"] == "/providers/0/aggregates/0"


@pytest.mark.parametrize(
    ("lines", "members", "pointer"),
    [
        ([{"traits": []}], {}, "/providers/0"),
        ([{"name": "NAME"}, {"name": "NAME"}], {}, "/providers/1"),
        ([{"name": "NAME_new"}], {}, "/providers/0"),
        ([{"uuid": "11111111-0000-4000-8000-000000000000"}], {}, "/providers/0"),
        ([{"name": "NAME", "parent": "NAME_numa0"}], {}, "/providers/0/parent"),
        ([{"name": "NAME_numa0", "parent": None}], {}, "/providers/0"),
        ([{"name": "NAME_numa0", "parent": "NAME_numa0"}], {}, "/providers/0"),
        ([{"name": "NAME_numa0", "parent": "nowhere"}], {}, "/providers/0/parent"),
        ([{"uuid": "UUID", "name": "NAME_numa0"}], {}, "/providers/0/name"),
        ([{"name": "NAME_numa0"}], {"remove_missing": True}, "/providers"),
        (
            [{"name": "NAME", "inventories": {"VCPU": {"total": 1, "reserved": 2}}}],
            {},
            "/providers/0/inventories/VCPU",
        ),
        ([{"name": "NAME", "colour": "red"}], {}, "/providers/0/colour"),
        ([], {}, "/providers"),
        ([{"name": f"x{number}"} for number in range(TREE_PROVIDERS_MAX + 1)], {}, "/providers"),
    ],
)
def test_trees_that_cannot_be_are_refused(
    api: Client, lines: list[dict[str, Any]], members: dict[str, Any], pointer: str
) -> None:
    """With the pointer to the member at fault, and nothing changes."""
    name = new_name()
    created = done(put(api, name, *host(name)), 201)
    uuid = created.json["providers"][0]["uuid"]

    def filled(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return value.replace("NAME", name).replace("UUID", uuid)

    refused = put(
        api,
        name,
        *({key: filled(value) for key, value in line.items()} for line in lines),
        **members,
    )
    assert refused.status == 400, refused.text
    assert refused.json["errors"][0]["pointer"] == pointer
    assert api.get(f"{PATH}/{name}").headers["ETag"] == created.headers["ETag"]


def test_a_provider_whose_parent_would_go_must_move(api: Client) -> None:
    """It is not removed with it."""
    name = new_name()
    lines = [*host(name), {"name": f"{name}_gpu", "parent": f"{name}_numa0"}]
    done(put(api, name, *lines), 201)
    refused = put(api, name, {"name": name}, {"name": f"{name}_gpu"}, remove_missing=True)
    assert (refused.status, refused.json["errors"][0]["pointer"]) == (400, "/providers/1")
    moved = {"name": f"{name}_gpu", "parent": name}
    done(put(api, name, {"name": name}, moved, remove_missing=True), 200)
    assert tree(api, name).keys() == {name, f"{name}_gpu"}


def test_a_new_tree_has_the_provider_of_the_path(api: Client) -> None:
    """So that a path never creates a tree of another name."""
    name = new_name()
    refused = put(api, name, *host(new_name()))
    assert (refused.status, refused.code) == (400, INVALID)
    for part in ("VCPU", "usages,", "inventories,colour"):
        assert api.get(f"{PATH}/{name}?include={part}").status == 400
    missing = api.get(f"{PATH}/{name}")
    assert (missing.status, missing.code) == (404, "berth.not_found")


@pytest.mark.parametrize("spelled", [str.upper, lambda uuid: uuid.replace("-", "")])
def test_a_new_tree_may_have_its_uuid_in_any_spelling(
    api: Client, spelled: Callable[[str], str]
) -> None:
    """In the path, as for a tree that is there."""
    uuid = new_uuid()
    done(put(api, spelled(uuid), {"uuid": uuid, "name": new_name()}), 201)
    assert api.get(f"{PATH}/{uuid}").status == 200


def test_a_name_may_have_slashes(api: Client) -> None:
    """Servers decode them in the path: its rest is the name, or else there is no such provider."""
    name = f"{new_name()}//rack/7"
    quoted = quote(name, safe="")
    missing = api.get(f"{PATH}/{quoted}")
    assert_refused(missing, 404, f"There is no provider {name}.", code="berth.not_found")
    created = done(put(api, quoted, {"name": name, "traits": []}), 201)
    assert tree(api, quoted) == {name: created.json["providers"][0]}
    assert created.headers["location"].endswith(f"{PATH}/{created.json['providers'][0]['uuid']}")
    assert tree(api, name) == tree(api, quoted)
    assert api.get(f"{PATH}/{new_name()}/").status == 404
    assert api.get(f"{PATH}/").status == 404
    assert api.get(f"{PATH}/{name}%00").status == 400


def test_traits_and_generations_are_those_of_the_other_routes(api: Client) -> None:
    """A trait that a provider has already is not written again."""
    name, trait = new_name(), custom_trait(api)
    uuid = provider(api, {"VCPU": 1}, traits=[trait], name=name)
    seen = generation(api, uuid)
    both = ["HW_CPU_X86_AVX2", trait]
    done(put(api, name, {"name": name, "traits": both, "inventories": {"VCPU": {"total": 1}}}), 200)
    assert generation(api, uuid) == seen + 1

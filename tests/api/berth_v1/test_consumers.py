# SPDX-License-Identifier: Apache-2.0
"""`/berth/v1/consumers`: who holds what, for whom, and giving it back.

Source: spec/beyond.md 6.4.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.api.answers import CONCURRENT_UPDATE, assert_refused
from tests.api.claims import consumer, held
from tests.api.worlds import NOWHERE, done, new_name, new_uuid, provider
from tests.client import Client, Response

PATH = "/berth/v1/consumers"
INVALID, NOT_FOUND = "berth.request.invalid", "berth.not_found"

VCPU: Mapping[str, int] = {"VCPU": 64, "MEMORY_MB": 65536}


def ask(api: Client, **filters: str) -> Response:
    """The answer to a list."""
    return api.get(f"{PATH}?{urlencode(filters)}")


def lines_of(answer: Response) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The consumers of a list, and its last line."""
    done(answer, 200)
    assert answer.headers["content-type"] == "application/jsonl"
    *consumers, end = map(json.loads, answer.text.splitlines())
    assert (end["end"], end["lines"]) == (True, len(consumers))
    return consumers, end


def listed(api: Client, **filters: str) -> dict[str, dict[str, Any]]:
    """The consumers of a list by uuid."""
    consumers, end = lines_of(ask(api, **filters))
    assert "warnings" not in end
    return {each["uuid"]: each for each in consumers}


def test_a_host_shows_who_holds_something_of_its_tree(api: Client) -> None:
    """By the name or the uuid of any provider of the tree; `provider` is one provider alone."""
    name = new_name("gpu")
    host = provider(api, VCPU, name=name)
    card = provider(api, {"VGPU": 4}, parent=host, name=f"{name}_0")
    other = provider(api, VCPU)
    project, job = new_name("web"), {host: {"VCPU": 2}, card: {"VGPU": 1}}
    on_both = consumer(api, job, project=project, user="alice")
    on_host = consumer(api, {host: {"VCPU": 1}}, project=project, user="bob")
    elsewhere = consumer(api, {other: {"VCPU": 1}}, project=project)
    shown = listed(api, host=name)
    assert shown.keys() == {on_both, on_host}
    assert listed(api, host=f"{name}_0") == listed(api, host=host.upper()) == shown
    assert listed(api, provider=f"{name}_0").keys() == {on_both}
    assert listed(api, provider=host, host=card).keys() == {on_both, on_host}
    assert listed(api, provider=other, host=host) == {}
    assert listed(api, project_id=project).keys() == {on_both, on_host, elsewhere}
    created_at = shown[on_both].pop("created_at")
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", created_at)
    assert shown[on_both] == {
        "uuid": on_both,
        "name": None,
        "project_id": project,
        "user_id": "alice",
        "consumer_type": "INSTANCE",
        "generation": 1,
        "allocations": {
            host: {"name": name, "resources": {"VCPU": 2}},
            card: {"name": f"{name}_0", "resources": {"VGPU": 1}},
        },
        "lease": None,
    }


def test_filters_hold_together(api: Client) -> None:
    """Each narrows the list, whatever the others are."""
    host, project = provider(api, VCPU), new_name("web")
    claim = {host: {"VCPU": 1}}
    alice = consumer(api, claim, project=project, user="alice")
    bob = consumer(api, claim, project=project, user="bob", consumer_type="MIGRATION")
    stranger = consumer(api, claim, project=new_name("db"), user="alice")
    assert listed(api, host=host).keys() == {alice, bob, stranger}
    assert listed(api, host=host, user_id="alice").keys() == {alice, stranger}
    assert listed(api, host=host, project_id=project, user_id="alice").keys() == {alice}
    assert listed(api, project_id=project, consumer_type="MIGRATION").keys() == {bob}
    assert listed(api, project_id=project.upper()) == {}
    assert listed(api, provider=host, consumer_type="unknown") == {}


def test_a_list_has_a_limit(api: Client) -> None:
    """The first by their UUIDs; the last line says whether there are more."""
    host = provider(api, VCPU)
    uuids = sorted(consumer(api, {host: {"VCPU": 1}}) for _ in range(3))
    for limit, more in (("2", {"more": True}), ("3", {}), ("1000", {})):
        consumers, end = lines_of(ask(api, host=host, limit=limit))
        assert [each["uuid"] for each in consumers] == uuids[: int(limit)]
        assert end == {"end": True, "lines": len(consumers), **more}


def test_consumers_are_searched_by_a_part_of_their_name(api: Client) -> None:
    """Or by the beginning of their UUID, with or without dashes; in upper or lower case."""
    host, project = provider(api, VCPU), new_name("web")
    for name in ("render-17", "Render-18", "100%", "1000"):
        done(claim_for(api, project, name, **of(host, VCPU=1)), 200)
    (uuid,) = listed(api, project_id=project, name="render-17")
    for text, names in (
        ("render", {"render-17", "Render-18"}),
        ("ENDER-18", {"Render-18"}),
        ("0%", {"100%"}),
        ("100", {"100%", "1000"}),
        ("_", set()),
        (uuid[:12].upper(), {"render-17"}),
        (uuid.replace("-", ""), {"render-17"}),
        (uuid[1:], set()),
    ):
        found = listed(api, search=text, project_id=project)
        assert {each["name"] for each in found.values()} == names, text
        assert found.keys() <= listed(api, search=text).keys()


def test_a_consumer_without_a_type_is_of_unknown_type(api: Client) -> None:
    """As `GET /allocations` shows it."""
    host, uuid = provider(api, VCPU), new_uuid()
    body = {
        "allocations": {host: {"resources": {"VCPU": 1}}},
        "project_id": "web",
        "user_id": "alice",
        "consumer_generation": None,
    }
    done(api.put(f"/allocations/{uuid}", json=body, version="1.36"), 204)
    assert listed(api, host=host, consumer_type="unknown")[uuid]["consumer_type"] == "unknown"


def test_a_provider_that_does_not_exist_matches_nothing(api: Client) -> None:
    """None of those that there are, and the last line warns of it."""
    consumer(api, {provider(api, VCPU): {"VCPU": 1}}, project="web")
    for filters in ({"host": "no-such-host"}, {"provider": NOWHERE, "project_id": "web"}):
        consumers, end = lines_of(ask(api, **filters))
        (name, reference), *_ = filters.items()
        assert consumers == []
        assert end["warnings"] == [
            {"code": "unknown_provider", "at": f"/{name}", "reference": reference}
        ]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("colour=red", "colour"),
        ("host=", "host"),
        ("project_id=", "project_id"),
        ("consumer_type=instance", "consumer_type"),
        ("search=", "search"),
        ("limit=0", "limit must be a number from 1 to 1000"),
        ("limit=1001", "limit"),
    ],
)
def test_an_odd_filter_is_refused(api: Client, query: str, says: str) -> None:
    """With its name."""
    assert_refused(api.get(f"{PATH}?{query}"), 400, says, code=INVALID)


def test_one_consumer_is_shown_as_in_the_list(api: Client) -> None:
    """By its uuid in any spelling; one that holds nothing is not there."""
    host = provider(api, VCPU)
    uuid = consumer(api, {host: {"VCPU": 2}})
    shown = done(api.get(f"{PATH}/{uuid}"), 200).json
    assert shown == listed(api, host=host)[uuid]
    assert api.get(f"{PATH}/{uuid.replace('-', '').upper()}").json == shown
    assert_refused(api.get(f"{PATH}/{NOWHERE}"), 404, NOWHERE, code=NOT_FOUND)


def test_releasing_gives_everything_back(api: Client) -> None:
    """A second time there is nothing to release."""
    host = provider(api, VCPU)
    uuid = consumer(api, {host: {"VCPU": 2, "MEMORY_MB": 512}})
    done(api.delete(f"{PATH}/{uuid}"), 204)
    assert held(api, uuid) == {} and listed(api, host=host) == {}
    assert_refused(api.delete(f"{PATH}/{uuid}"), 404, uuid, code=NOT_FOUND)


def test_releasing_at_another_generation_is_refused(api: Client) -> None:
    """And changes nothing."""
    host = provider(api, VCPU)
    uuid = consumer(api, {host: {"VCPU": 2}})
    refused = api.delete(f"{PATH}/{uuid}?generation=7")
    assert_refused(refused, 409, "expected 1 but got 7", code=CONCURRENT_UPDATE)
    assert held(api, uuid) == {host: {"VCPU": 2}}
    for odd in ("generation=-1", "generation=one", "generations=1"):
        assert_refused(api.delete(f"{PATH}/{uuid}?{odd}"), 400, "generation", code=INVALID)
    done(api.delete(f"{PATH}/{uuid}?generation=1"), 204)
    assert held(api, uuid) == {}


def test_every_filter_may_be_met_by_another_allocation(api: Client) -> None:
    """A consumer on a host and on a provider of another host is on both."""
    host, other = provider(api, VCPU), provider(api, VCPU)
    on_both = consumer(api, {host: {"VCPU": 1}, other: {"VCPU": 1}})
    on_host, on_other = (consumer(api, {each: {"VCPU": 1}}) for each in (host, other))
    assert listed(api, host=host).keys() == {on_both, on_host}
    assert listed(api, provider=other).keys() == {on_both, on_other}
    assert listed(api, host=host, provider=other).keys() == {on_both}
    assert listed(api, host=host, provider=host).keys() == {on_both, on_host}


def test_json_lines_are_acceptable_as_json(api: Client) -> None:
    """Some clients always ask for `application/json`."""
    for accept in ("application/json", "application/jsonl", "*/*", "application/*"):
        done(api.get(f"{PATH}?host=x", headers={"Accept": accept}), 200)
    refused = api.get(f"{PATH}?host=x", headers={"Accept": "text/html"})
    assert refused.status == 406 and "Only application/jsonl is provided" in refused.text


# --- Names ---------------------------------------------------------------------------------------


def claim_for(api: Client, project: str, name: str, **body: Any) -> Response:
    """The answer to a claim for a name."""
    complete = {"user_id": "alice", "consumer_type": "JOB", **body}
    return api.put(f"{PATH}/{project}/{name}", json=complete)


def of(host: str, **resources: int) -> dict[str, Any]:
    """Allocations of one provider."""
    return {"allocations": {host: {"resources": resources}}}


def test_a_consumer_is_claimed_shown_and_released_by_its_name(api: Client) -> None:
    """The providers have names too; berth makes the uuid."""
    name, project = new_name("cn"), new_name("web")
    host = provider(api, VCPU, name=name)
    claimed = done(claim_for(api, project, "job-17", **of(name, VCPU=2)), 200).json
    uuid = claimed["uuid"]
    assert claimed == {"uuid": uuid, "name": "job-17", "project_id": project, "generation": 1}
    assert held(api, uuid) == {host: {"VCPU": 2}}
    shown = done(api.get(f"{PATH}/{project}/job-17"), 200).json
    assert shown == api.get(f"{PATH}/{uuid}").json == listed(api, host=host)[uuid]
    assert (shown["name"], shown["user_id"], shown["consumer_type"]) == ("job-17", "alice", "JOB")
    assert listed(api, name="job-17", project_id=project).keys() == {uuid}
    assert listed(api, name="job-18", host=host) == {}
    refused = api.delete(f"{PATH}/{project}/job-17?generation=2")
    assert_refused(refused, 409, "expected 1 but got 2", code=CONCURRENT_UPDATE)
    done(api.delete(f"{PATH}/{project}/job-17?generation=1"), 204)
    for gone in (api.get, api.delete):
        refused = gone(f"{PATH}/{project}/job-17")
        assert_refused(refused, 404, f"{project} has no consumer named job-17", code=NOT_FOUND)
    assert listed(api, host=host) == {}


def test_a_name_that_is_taken_is_refused(api: Client) -> None:
    """With who has it; nothing is written. It is free in another project, or when it is given
    back by an old route."""
    host, project = provider(api, VCPU), new_name("web")
    uuid = done(claim_for(api, project, "ü 1", **of(host, VCPU=1)), 200).json["uuid"]
    refused = claim_for(api, project, "%C3%BC%201", **of(host, VCPU=1))
    assert_refused(refused, 409, "ü 1", uuid, code="berth.consumer.name_taken")
    assert listed(api, host=host).keys() == {uuid}
    done(claim_for(api, new_name("db"), "%C3%BC%201", **of(host, VCPU=1)), 200)
    done(api.delete(f"/allocations/{uuid}"), 204)
    done(claim_for(api, project, "%C3%BC%201", **of(host, VCPU=1)), 200)


def test_what_a_named_consumer_has_is_replaced_at_its_generation(api: Client) -> None:
    """With a candidate as it came, and with the uuid that the client chose."""
    host, project, uuid = provider(api, VCPU), new_name("web"), new_uuid()
    request = {"groups": {"": {"resources": {"VCPU": 3}}}, "host": {"in": [host]}}
    asked = api.post("/berth/v1/candidates", json={"request": request})
    (candidate,) = done(asked, 200).json["candidates"]
    body = {member: candidate[member] for member in ("allocations", "mappings")}
    claimed = done(claim_for(api, project, "job", uuid=uuid.upper(), **body), 200).json
    assert (claimed["uuid"], claimed["generation"]) == (uuid, 1)
    claimed = done(claim_for(api, project, "job", generation=1, **of(host, VCPU=5)), 200).json
    assert (claimed["uuid"], claimed["generation"]) == (uuid, 2)
    assert held(api, uuid) == {host: {"VCPU": 5}}
    refused = claim_for(api, project, "job", generation=1, **of(host, VCPU=6))
    assert_refused(refused, 409, "expected 2 but got 1", code=CONCURRENT_UPDATE)
    refused = claim_for(api, project, "other", generation=1, **of(host, VCPU=6))
    assert_refused(refused, 404, "no consumer named other", code=NOT_FOUND)
    assert held(api, uuid) == {host: {"VCPU": 5}}


@pytest.mark.parametrize(
    ("body", "pointer", "says"),
    [
        (of("no-such-host", VCPU=1), "/allocations/no-such-host", "There is no provider"),
        (of("HOST", VCPUS=1), "/allocations/HOST/resources/VCPUS", "Did you mean VCPU"),
        ({"allocations": {}}, "/allocations", ""),
        (of("HOST", VCPU=0), "/allocations/HOST/resources/VCPU", ""),
        ({**of("HOST", VCPU=1), "user_id": ""}, "/user_id", ""),
        ({**of("HOST", VCPU=1), "lease": 5}, "/lease", ""),
        ({**of("HOST", VCPU=1), "generation": -1}, "/generation", ""),
    ],
)
def test_an_odd_claim_is_refused_where_it_is_odd(
    api: Client, body: dict[str, Any], pointer: str, says: str
) -> None:
    """And nothing is written."""
    host = provider(api, VCPU)
    sent = json.loads(json.dumps(body).replace("HOST", host))
    refused = claim_for(api, "web", new_name("job"), **sent)
    assert refused.status == 400 and says in refused.detail
    assert refused.error["pointer"] == pointer.replace("HOST", host)
    assert listed(api, host=host) == {}


def test_a_consumer_of_another_project_cannot_be_taken_over(api: Client) -> None:
    """The policy is asked about the project in the path, so the consumer must be of that project,
    even where the client knows its uuid and its generation."""
    theirs, ours, host = new_name("theirs"), new_name("ours"), provider(api, VCPU)
    uuid = done(claim_for(api, theirs, "db", **of(host, VCPU=2)), 200).json["uuid"]
    for seen in (1, None):
        refused = claim_for(api, ours, "db", uuid=uuid, generation=seen, **of(host, VCPU=1))
        says = f"Consumer {uuid} is not of project {ours}."
        assert_refused(refused, 409, says, code="berth.undefined_code")
    assert listed(api, host=host)[uuid]["project_id"] == theirs
    assert held(api, uuid) == {host: {"VCPU": 2}}


def test_a_provider_is_named_once(api: Client) -> None:
    """By its name or by its uuid."""
    name = new_name("cn")
    host = provider(api, VCPU, name=name)
    body = {"allocations": {each: {"resources": {"VCPU": 1}} for each in (host, name)}}
    refused = claim_for(api, "web", new_name("job"), **body)
    assert_refused(refused, 400, f"names provider {host}", code=INVALID)


def test_an_odd_name_is_refused(api: Client) -> None:
    """Too long, or with a control character, which people cannot type."""
    host = provider(api, VCPU)
    for project, name in (("web", "x" * 256), ("web", "a%0Ab"), ("y" * 256, "job")):
        refused = claim_for(api, project, name, **of(host, VCPU=1))
        assert_refused(refused, 400, "255", code=INVALID)
    done(claim_for(api, new_name("p"), "%F0%9F%98%80" * 255, **of(host, VCPU=1)), 200)


# --- Who may -------------------------------------------------------------------------------------

#: Whether a role may list all, those of its project, those of another; and release its own.
ROLES = {
    "admin": (200, 200, 200, 204),
    "service": (200, 200, 200, 204),
    "auditor": (200, 200, 200, 403),
    "reader": (403, 200, 403, 403),
    "member": (403, 403, 403, 403),
}


@pytest.mark.parametrize("role", ROLES)
def test_readers_see_their_own_project(api: Client, role: str) -> None:
    """And one consumer as the list; what is not theirs looks as what does not exist."""
    host, own, other = provider(api, VCPU), new_name("web"), new_name("db")
    mine = consumer(api, {host: {"VCPU": 1}}, project=own)
    foreign = consumer(api, {host: {"VCPU": 1}}, project=other)
    caller = api.acting_as({"X-Auth-Token": f"alice:{own}", "X-Roles": role})
    statuses = (
        ask(caller, host=host).status,
        ask(caller, project_id=own, host=host).status,
        ask(caller, project_id=other).status,
        caller.delete(f"{PATH}/{mine}").status,
    )
    assert statuses == ROLES[role]
    everything, its_own, _, release = ROLES[role]
    if release == 403:
        assert caller.get(f"{PATH}/{mine}").status == its_own
    assert caller.get(f"{PATH}/{foreign}").status == everything
    assert caller.get(f"{PATH}/{NOWHERE}").status == (404 if everything == 200 else 403)
    assert caller.delete(f"{PATH}/{NOWHERE}").status == (404 if release == 204 else 403)
    assert held(api, foreign) == {host: {"VCPU": 1}}


@pytest.mark.parametrize("role", ROLES)
def test_names_are_for_those_who_may(api: Client, role: str) -> None:
    """A path with a project needs no look at the consumer."""
    host, own, other = provider(api, VCPU), new_name("web"), new_name("db")
    caller = api.acting_as({"X-Auth-Token": f"alice:{own}", "X-Roles": role})
    everything, its_own, _, release = ROLES[role]
    for project, may_see in ((own, its_own), (other, everything)):
        done(claim_for(api, project, "job", **of(host, VCPU=1)), 200)
        assert caller.get(f"{PATH}/{project}/job").status == may_see
        assert caller.get(f"{PATH}/{project}/none").status == (404 if may_see == 200 else 403)
        assert claim_for(caller, project, "new", **of(host, VCPU=1)).status == (
            200 if release == 204 else 403
        )
        assert caller.delete(f"{PATH}/{project}/job").status == release


def test_a_reader_without_a_project_sees_nothing(api: Client) -> None:
    """No project is not the project of consumers that do not exist."""
    caller = api.acting_as({"X-Auth-Token": "alice", "X-Roles": "reader"})
    for path in (PATH, f"{PATH}?project_id=None", f"{PATH}?project_id=%FF", f"{PATH}/{NOWHERE}"):
        assert caller.get(path).status == 403

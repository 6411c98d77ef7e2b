# SPDX-License-Identifier: Apache-2.0
"""The form of errors: their fields, their codes, and the phrases that clients match.

Source: rest-api.md 1.11, 1.12 and 17.
"""

import pytest

from tests.api.answers import (
    CONCURRENT_UPDATE,
    DUPLICATE_NAME,
    INVENTORY_IN_USE,
    assert_refused,
    detail,
)
from tests.api.claims import claim_body, consumer
from tests.api.versions import at_least
from tests.api.worlds import NOBODY, NOWHERE, new_custom_name, new_name, new_uuid, provider
from tests.client import Client, Response
from tests.routes import VERSIONS


def refusals(api: Client, version: str = "1.39") -> dict[int, Response]:
    """An error of each status that does not depend on the state of the service."""
    return {
        400: api.post("/resource_providers", json={}, version=version),
        403: api.get("/resource_providers", headers=NOBODY, version=version),
        404: api.get(f"/resource_providers/{NOWHERE}", version=version),
        405: api.request("PATCH", "/resource_providers", version=version),
        409: api.post(
            "/resource_providers", json={"name": new_name(), "uuid": provider(api)}, version=version
        ),
        415: api.post("/resource_providers", version=version),
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_a_refusal_has_a_code_from_1_23(api: Client, version: str) -> None:
    """At every status."""
    for status, answer in refusals(api, version).items():
        assert ("code" in answer.error) == at_least(version, "1.23")
        code = DUPLICATE_NAME if status == 409 else "placement.undefined_code"
        assert_refused(answer, status, code=code, version=version)


def test_a_refusal_has_no_other_fields(api: Client) -> None:
    """In particular no range of versions."""
    for answer in refusals(api).values():
        assert set(answer.json) == {"errors"}
        assert set(answer.error) == {"status", "title", "detail", "code", "request_id"}


def test_a_detail_is_a_sentence_and_a_message_on_the_last_line(api: Client) -> None:
    """osc-placement shows the text after the last line break."""
    for answer in refusals(api).values():
        sentence, message = answer.detail.split("\n\n")
        assert sentence.strip()
        assert "\n" not in message


def test_a_detail_says_what_is_wrong_with_the_object_asked_for(api: Client) -> None:
    """The message names it."""
    answer = api.get(f"/resource_providers/{NOWHERE}")
    assert NOWHERE in detail(answer)


@pytest.mark.parametrize("text", ["line\nbreak", "carriage\r\nreturn"])
def test_a_message_stays_on_one_line(api: Client, text: str) -> None:
    """Line breaks in a name become blanks."""
    name = new_name(text)
    provider(api, name=name)
    answer = api.post("/resource_providers", json={"name": name})
    assert_refused(answer, 409, "Conflicting resource provider name:", code=DUPLICATE_NAME)
    assert "\n" not in answer.detail.split("\n\n", 1)[1]


def test_what_looks_like_html_is_removed_from_a_message(api: Client) -> None:
    """The name itself is stored unchanged."""
    name = new_name("a<script>b")
    uuid = provider(api, name=name)
    answer = api.post("/resource_providers", json={"name": name})
    assert "<script>" not in answer.detail
    assert api.get(f"/resource_providers/{uuid}").json["name"] == name


def test_conflicts_that_have_a_code_of_their_own(api: Client) -> None:
    """The error codes of the routes of providers and inventories."""
    host = provider(api, {"VCPU": 4, "DISK_GB": 4})
    provider(api, parent=host)
    consumer(api, {host: {"VCPU": 1}})
    busy = provider(api, {"VCPU": 4})
    consumer(api, {busy: {"VCPU": 1}})
    here = f"/resource_providers/{host}"
    drop = {"inventories": {}, "resource_provider_generation": 2}
    stale = {"inventories": {}, "resource_provider_generation": 1}
    again = {"resource_class": "VCPU", "total": 1}
    for answer, code in (
        (api.put(f"{here}/inventories", json=stale), CONCURRENT_UPDATE),
        (api.post(f"{here}/inventories", json=again), CONCURRENT_UPDATE),
        (api.delete(f"{here}/inventories/VCPU"), CONCURRENT_UPDATE),
        (api.put(f"{here}/inventories", json=drop), INVENTORY_IN_USE),
        (api.delete(f"{here}/inventories"), INVENTORY_IN_USE),
        (
            api.delete(f"/resource_providers/{busy}"),
            "placement.resource_provider.inuse",
        ),
        (api.delete(here), "placement.resource_provider.cannot_delete_parent"),
        (
            api.put(f"/allocations/{new_uuid()}", json=claim_body("1.39", {host: {"VCPU": 99}})),
            "placement.undefined_code",
        ),
    ):
        assert_refused(answer, 409, code=code)


def test_nova_tells_a_taken_name_from_a_taken_uuid(api: Client) -> None:
    """The phrase occurs if the name is taken, and not if the uuid is."""
    name = new_name()
    uuid = provider(api, name=name)
    phrase = "Conflicting resource provider name:"
    answer = api.post("/resource_providers", json={"name": name, "uuid": new_uuid()})
    assert_refused(answer, 409, phrase, code=DUPLICATE_NAME)
    answer = api.post("/resource_providers", json={"name": new_name(), "uuid": uuid})
    said = f"Conflicting resource provider uuid: {uuid}"
    assert_refused(answer, 409, said, code=DUPLICATE_NAME)
    assert phrase not in answer.detail
    answer = api.post("/resource_providers", json={"name": name, "uuid": uuid})
    assert_refused(answer, 409, "Conflicting resource provider", code=DUPLICATE_NAME)


def test_neutron_tells_a_missing_provider_from_a_missing_inventory(api: Client) -> None:
    """Both are 404, and neutron looks for the phrase."""
    uuid = provider(api)
    no_provider = "No resource provider with uuid"
    no_inventory = f"No inventory of class VCPU for {uuid}"
    for method in ("GET", "DELETE"):
        answer = api.request(method, f"/resource_providers/{NOWHERE}/inventories/VCPU")
        assert_refused(answer, 404, no_provider)
    assert_refused(api.get(f"/resource_providers/{NOWHERE}/inventories"), 404, no_provider)
    answer = api.get(f"/resource_providers/{uuid}/inventories/VCPU")
    assert_refused(answer, 404, no_inventory)
    answer = api.delete(f"/resource_providers/{uuid}/inventories/VCPU")
    assert_refused(answer, 404, "No inventory of class VCPU", "found for delete")


def test_osc_placement_shows_these_phrases(api: Client) -> None:
    """Its tests match them."""
    host = provider(api, {"VCPU": 4})
    consumer(api, {host: {"VCPU": 1}})
    here = f"/resource_providers/{host}"
    in_use = f"Inventory for 'VCPU' on resource provider '{host}' in use."
    stale = {"resource_provider_generation": 77}
    again = "Please update the generation and try again."
    for answer, phrase in (
        (api.get(f"/resource_providers/{NOWHERE}"), f"uuid {NOWHERE} found"),
        (api.delete(f"{here}/inventories"), in_use),
        (api.delete(f"/allocations/{NOWHERE}"), f"No allocations for consumer '{NOWHERE}'"),
        (api.put(f"{here}/aggregates", json={"aggregates": [], **stale}), again),
        (api.put(f"{here}/traits", json={"traits": [], **stale}), again),
        (api.put(f"{here}/aggregates", json={"aggregates": ["x"], **stale}), "is not a 'uuid'"),
        (
            api.put(
                f"{here}/inventories",
                json={
                    "inventories": {"NO_SUCH": {"total": 1}},
                    "resource_provider_generation": 2,
                },
            ),
            "Unknown resource class",
        ),
        (api.post("/resource_classes", json={"name": "VCPU"}), "JSON does not validate"),
        (api.get("/resource_classes/CUSTOM_NOT_THERE"), "No such resource class"),
        (api.delete("/resource_classes/VCPU"), "Cannot delete standard resource class"),
        (api.get(f"/traits/{new_custom_name()}"), "No such trait"),
    ):
        assert phrase in detail(answer)


def test_a_wrong_consumer_generation_is_named_as_such(api: Client) -> None:
    """nova fails on this phrase instead of retrying."""
    host = provider(api, {"VCPU": 4})
    holder = consumer(api, {host: {"VCPU": 1}})
    phrase = "consumer generation conflict"
    body = claim_body("1.39", {host: {"VCPU": 2}}, consumer_generation=None)
    answer = api.put(f"/allocations/{holder}", json=body)
    assert_refused(answer, 409, phrase, "expected 1 but got None", code=CONCURRENT_UPDATE)
    body = claim_body("1.39", {host: {"VCPU": 2}}, consumer_generation=7)
    answer = api.put(f"/allocations/{new_uuid()}", json=body)
    assert_refused(answer, 409, phrase, "expected null but got 7", code=CONCURRENT_UPDATE)
    body = {"inventories": {}, "resource_provider_generation": 77}
    answer = api.put(f"/resource_providers/{host}/inventories", json=body)
    assert phrase not in answer.detail

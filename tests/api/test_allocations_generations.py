# SPDX-License-Identifier: Apache-2.0
"""How claims change the generations of consumers and providers.

Source: rest-api.md 1.15, 10.3, 10.5, 10.6.
"""

from typing import Any

import pytest

from tests.api.answers import CONCURRENT_UPDATE, assert_refused
from tests.api.claims import claim_body, consumer, held
from tests.api.versions import at_least, versions
from tests.api.worlds import NOWHERE, generation, new_uuid, provider
from tests.client import Client, Response

CONFLICT = "consumer generation conflict"


def consumer_generation(api: Client, holder: str) -> Any:
    """The consumer's current generation."""
    return api.get(f"/allocations/{holder}").json["consumer_generation"]


def write(api: Client, method: str, holder: str, body: object, version: str = "1.39") -> Response:
    """Write one consumer by PUT or by POST."""
    if method == "PUT":
        return api.put(f"/allocations/{holder}", json=body, version=version)
    return api.post("/allocations", json={holder: body}, version=version)


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize("version", versions("1.28"))
def test_a_new_consumer_is_announced_by_null(api: Client, version: str, method: str) -> None:
    """It has generation 1 after its first write."""
    holder, host = new_uuid(), provider(api, {"VCPU": 4})
    for seen in (0, 1, -1):
        body = claim_body(version, {host: {"VCPU": 1}}, consumer_generation=seen)
        assert_refused(
            write(api, method, holder, body, version),
            409,
            CONFLICT,
            f"expected null but got {seen}",
            code=CONCURRENT_UPDATE,
        )
    body = claim_body(version, {host: {"VCPU": 1}}, consumer_generation=None)
    assert write(api, method, holder, body, version).status == 204
    assert consumer_generation(api, holder) == 1


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize("version", versions("1.28"))
def test_a_consumer_is_written_by_whoever_saw_its_last_state(
    api: Client, version: str, method: str
) -> None:
    """Another generation is 409; each accepted write increments it."""
    host = provider(api, {"VCPU": 4})
    holder = consumer(api, {host: {"VCPU": 1}})
    for seen in (0, 2, None, 2**40):
        body = claim_body(version, {host: {"VCPU": 2}}, consumer_generation=seen)
        assert_refused(
            write(api, method, holder, body, version),
            409,
            CONFLICT,
            "expected 1 but got",
            code=CONCURRENT_UPDATE,
        )
    assert held(api, holder) == {host: {"VCPU": 1}}
    body = claim_body(version, {host: {"VCPU": 2}}, consumer_generation=1)
    assert write(api, method, holder, body, version).status == 204
    assert consumer_generation(api, holder) == 2


@pytest.mark.parametrize("version", versions("1.0", "1.27"))
def test_nobody_asks_for_the_generation_before_1_28(api: Client, version: str) -> None:
    """It is still incremented."""
    host = provider(api, {"VCPU": 4})
    holder = consumer(api, {host: {"VCPU": 1}})
    body = claim_body(version, {host: {"VCPU": 2}})
    for expected in (2, 3):
        assert write(api, "PUT", holder, body, version).status == 204
        assert consumer_generation(api, holder) == expected
    if at_least(version, "1.13"):
        assert write(api, "POST", holder, body, version).status == 204
        assert consumer_generation(api, holder) == 4


def test_emptying_a_consumer_wants_its_generation_too(api: Client) -> None:
    """A stale one is 409, and the allocations stay."""
    host = provider(api, {"VCPU": 4})
    holder = consumer(api, {host: {"VCPU": 1}})
    for method in ("PUT", "POST"):
        body = claim_body("1.39", {}, consumer_generation=None)
        assert_refused(write(api, method, holder, body), 409, CONFLICT, code=CONCURRENT_UPDATE)
    assert held(api, holder) == {host: {"VCPU": 1}}


@pytest.mark.parametrize("version", ["1.0", "1.12", "1.28", "1.39"])
def test_a_claim_counts_each_provider_that_it_names_up_by_one(api: Client, version: str) -> None:
    """Also if the claim repeats the same amounts."""
    host, pool = provider(api, {"VCPU": 4, "MEMORY_MB": 4}), provider(api, {"DISK_GB": 4})
    before = generation(api, host), generation(api, pool)
    claims = {host: {"VCPU": 1, "MEMORY_MB": 1}, pool: {"DISK_GB": 1}}
    holder = new_uuid()
    for seen in (None, 1):
        body = claim_body(version, claims, consumer_generation=seen)
        assert write(api, "PUT", holder, body, version).status == 204
    assert (generation(api, host), generation(api, pool)) == (before[0] + 2, before[1] + 2)


def test_a_provider_that_is_only_left_keeps_its_generation(api: Client) -> None:
    """The consumer gets allocations elsewhere."""
    left, taken = provider(api, {"VCPU": 4}), provider(api, {"VCPU": 4})
    holder = consumer(api, {left: {"VCPU": 1}})
    before = generation(api, left), generation(api, taken)
    body = claim_body("1.39", {taken: {"VCPU": 1}}, consumer_generation=1)
    assert write(api, "PUT", holder, body).status == 204
    assert (generation(api, left), generation(api, taken)) == (before[0], before[1] + 1)


@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_emptying_a_consumer_counts_the_providers_that_it_held(api: Client, method: str) -> None:
    """Unlike DELETE, which increments none."""
    host, pool = provider(api, {"VCPU": 4}), provider(api, {"DISK_GB": 4})
    holder = consumer(api, {host: {"VCPU": 1}, pool: {"DISK_GB": 1}})
    before = generation(api, host), generation(api, pool)
    body = claim_body("1.39", {}, consumer_generation=1)
    assert write(api, method, holder, body).status == 204
    assert (generation(api, host), generation(api, pool)) == (before[0] + 1, before[1] + 1)


def test_a_provider_named_by_several_consumers_counts_once(api: Client) -> None:
    """In one POST."""
    host = provider(api, {"VCPU": 4})
    before = generation(api, host)
    body = {new_uuid(): claim_body("1.39", {host: {"VCPU": 1}}) for _ in range(3)}
    assert api.post("/allocations", json=body).status == 204
    assert generation(api, host) == before + 1


def test_a_refused_claim_counts_nothing(api: Client) -> None:
    """Neither of the provider nor of the consumer."""
    host = provider(api, {"VCPU": 4})
    holder = consumer(api, {host: {"VCPU": 1}})
    before = generation(api, host)
    body = claim_body("1.39", {host: {"VCPU": 5}}, consumer_generation=1)
    assert write(api, "PUT", holder, body).status == 409
    assert (generation(api, host), consumer_generation(api, holder)) == (before, 1)


@pytest.mark.deliberately_different("a failed write leaves no consumer behind (10.6, D)")
@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_a_claim_on_an_unknown_provider_leaves_no_consumer_behind(api: Client, method: str) -> None:
    """The next attempt creates it."""
    holder, host = new_uuid(), provider(api, {"VCPU": 4})
    assert write(api, method, holder, claim_body("1.39", {NOWHERE: {"VCPU": 1}})).status == 400
    assert write(api, method, holder, claim_body("1.39", {host: {"VCPU": 1}})).status == 204


@pytest.mark.deliberately_different("emptying nothing leaves no consumer behind (10.6, D)")
@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_emptying_a_consumer_that_is_not_there_leaves_none_behind(api: Client, method: str) -> None:
    """204, and the next attempt creates it."""
    holder, host = new_uuid(), provider(api, {"VCPU": 4})
    assert write(api, method, holder, claim_body("1.39", {})).status == 204
    assert write(api, method, holder, claim_body("1.39", {host: {"VCPU": 1}})).status == 204

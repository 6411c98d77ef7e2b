# SPDX-License-Identifier: Apache-2.0
"""Units and capacity, and claims on a provider that is over its capacity.

Source: rest-api.md 10.6 points 4 and 5.
"""

from typing import Any

import pytest

from tests.api.answers import assert_refused
from tests.api.claims import Claims, claim_body, consumer, held, used
from tests.api.worlds import new_uuid, provider, put_inventories
from tests.client import Client, Response

EXCEEDED = "The requested amount would exceed the capacity"


def claim(api: Client, claims: Claims, holder: str | None = None, seen: object = None) -> Response:
    """PUT a consumer's allocations."""
    body = claim_body("1.39", claims, consumer_generation=seen)
    return api.put(f"/allocations/{holder or new_uuid()}", json=body)


@pytest.mark.parametrize(
    ("units", "amount", "fits"),
    [
        ({}, 1, True),
        ({}, 100, True),
        ({"min_unit": 3}, 2, False),
        ({"min_unit": 3}, 3, True),
        ({"max_unit": 5}, 5, True),
        ({"max_unit": 5}, 6, False),
        ({"step_size": 4}, 8, True),
        ({"step_size": 4}, 6, False),
        ({"min_unit": 5, "step_size": 10}, 5, False),
        ({"min_unit": 5, "step_size": 10}, 10, True),
        ({"min_unit": 9, "max_unit": 8}, 9, False),
        ({"min_unit": 200}, 200, False),
    ],
)
def test_an_amount_obeys_the_units(
    api: Client, units: dict[str, Any], amount: int, fits: bool
) -> None:
    """`min_unit <= amount <= max_unit`, in steps of `step_size`."""
    host = provider(api, {"VCPU": {"total": 100} | units})
    answer = claim(api, {host: {"VCPU": amount}})
    if fits:
        assert answer.status == 204
    else:
        assert_refused(answer, 409, "Unable to allocate inventory")
    assert used(api, host) == {"VCPU": amount if fits else 0}


def test_the_refusal_of_an_amount_names_the_units(api: Client) -> None:
    """What was asked for, and what may be."""
    host = provider(api, {"VCPU": {"total": 100, "min_unit": 4, "max_unit": 8, "step_size": 2}})
    says = "Asked for 3; min_unit is 4, max_unit 8, step_size 2"
    assert_refused(claim(api, {host: {"VCPU": 3}}), 409, says)


@pytest.mark.parametrize(
    ("inventory", "capacity"),
    [
        ({"total": 10}, 10),
        ({"total": 10, "reserved": 4}, 6),
        ({"total": 10, "allocation_ratio": 1.5}, 15),
        ({"total": 10, "reserved": 3, "allocation_ratio": 1.5}, 10),
        ({"total": 3, "allocation_ratio": 0.5}, 1),
        ({"total": 10, "reserved": 10}, 0),
        ({"total": 10, "allocation_ratio": 0.0}, 0),
        ({"total": 10, "allocation_ratio": 0.7}, 7),
        ({"total": 2147483647}, 2147483647),
    ],
)
def test_the_capacity_can_be_used_and_not_one_more(
    api: Client, inventory: dict[str, Any], capacity: int
) -> None:
    """`used + amount <= (total - reserved) * allocation_ratio`."""
    host = provider(api, {"VCPU": inventory})
    assert_refused(claim(api, {host: {"VCPU": capacity + 1}}), 409)
    if capacity:
        assert claim(api, {host: {"VCPU": capacity}}).status == 204
    assert_refused(claim(api, {host: {"VCPU": 1}}), 409, EXCEEDED)


def test_all_consumers_together_stay_within_the_capacity(api: Client) -> None:
    """The allocations of other consumers count."""
    host = provider(api, {"VCPU": 10})
    holders = [consumer(api, {host: {"VCPU": 3}}) for _ in range(3)]
    assert_refused(claim(api, {host: {"VCPU": 2}}), 409, EXCEEDED)
    assert claim(api, {host: {"VCPU": 1}}).status == 204
    assert api.delete(f"/allocations/{holders[0]}").status == 204
    assert claim(api, {host: {"VCPU": 3}}).status == 204
    assert used(api, host) == {"VCPU": 10}


def test_what_a_consumer_held_itself_does_not_stand_in_its_way(api: Client) -> None:
    """They are replaced."""
    host = provider(api, {"VCPU": 10})
    holder = consumer(api, {host: {"VCPU": 6}})
    assert claim(api, {host: {"VCPU": 10}}, holder, 1).status == 204
    assert_refused(claim(api, {host: {"VCPU": 11}}, holder, 2), 409, EXCEEDED)
    assert used(api, host) == {"VCPU": 10}


def test_one_class_that_does_not_fit_refuses_all(api: Client) -> None:
    """On the same provider or on another one."""
    host, pool = provider(api, {"VCPU": 4, "MEMORY_MB": 4}), provider(api, {"DISK_GB": 4})
    for claims in (
        {host: {"VCPU": 1, "MEMORY_MB": 5}},
        {host: {"VCPU": 1}, pool: {"DISK_GB": 5}},
    ):
        assert_refused(claim(api, claims), 409, EXCEEDED)
    assert used(api, host) == {"VCPU": 0, "MEMORY_MB": 0}
    assert used(api, pool) == {"DISK_GB": 0}


@pytest.fixture
def overfull(api: Client) -> tuple[str, str]:
    """A host that shrank to 8 VCPU below the 10 in use, and the consumer with 6 of them."""
    host = provider(api, {"VCPU": 10})
    holder = consumer(api, {host: {"VCPU": 6}})
    consumer(api, {host: {"VCPU": 4}})
    put_inventories(api, host, {"VCPU": 8})
    return host, holder


@pytest.mark.parametrize("amount", [1, 4, 5, 6])
def test_over_capacity_a_consumer_may_be_written_if_that_is_no_worse(
    api: Client, overfull: tuple[str, str], amount: int
) -> None:
    """The same amount or less, even if the provider stays over its capacity (10.6 point 5)."""
    host, holder = overfull
    assert claim(api, {host: {"VCPU": amount}}, holder, 1).status == 204
    assert used(api, host) == {"VCPU": 4 + amount}


def test_over_capacity_nobody_may_grow(api: Client, overfull: tuple[str, str]) -> None:
    """Neither an existing consumer nor a new one."""
    host, holder = overfull
    assert_refused(claim(api, {host: {"VCPU": 7}}, holder, 1), 409, EXCEEDED)
    assert_refused(claim(api, {host: {"VCPU": 1}}), 409, EXCEEDED)
    assert used(api, host) == {"VCPU": 10}


def test_over_capacity_one_consumer_may_take_the_place_of_another(
    api: Client, overfull: tuple[str, str]
) -> None:
    """In one request: the sums before and after are compared."""
    host, holder = overfull
    successor = new_uuid()
    body = {
        holder: claim_body("1.39", {}, consumer_generation=1),
        successor: claim_body("1.39", {host: {"VCPU": 6}}),
    }
    assert api.post("/allocations", json=body).status == 204
    assert held(api, successor) == {host: {"VCPU": 6}}


def test_over_capacity_still_obeys_the_units(api: Client, overfull: tuple[str, str]) -> None:
    """The exception applies to the capacity only."""
    host, holder = overfull
    put_inventories(api, host, {"VCPU": {"total": 8, "max_unit": 2}})
    assert_refused(claim(api, {host: {"VCPU": 3}}, holder, 1), 409, "Unable to allocate")


@pytest.mark.parametrize("amount", [2**31, 2**63 - 1])
def test_more_than_a_provider_can_ever_have_does_not_fit(api: Client, amount: int) -> None:
    """Amounts have no maximum in the schema, but max_unit has."""
    host = provider(api, {"VCPU": 2147483647})
    assert_refused(claim(api, {host: {"VCPU": amount}}), 409)
    assert used(api, host) == {"VCPU": 0}


def test_no_inventory_of_any_class_is_a_conflict(api: Client) -> None:
    """409 for a provider without any inventory."""
    host = provider(api)
    assert_refused(claim(api, {host: {"VCPU": 1}}), 409, "Inventory for 'VCPU' on")

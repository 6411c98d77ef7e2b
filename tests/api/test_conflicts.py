# SPDX-License-Identifier: Apache-2.0
"""Concurrent requests for the same thing: which of them succeed.

Source: rest-api.md section 13. `tests/store` stages every step of these races; here clients collide
at random, and the tests check only what holds in every order.
"""

from collections import Counter
from functools import partial

import pytest

from tests.api.answers import CONCURRENT_UPDATE, DUPLICATE_NAME, UNDEFINED, assert_refused
from tests.api.claims import claim_body, consumer, held, used
from tests.api.together import at_once
from tests.api.worlds import generation, new_custom_name, new_name, new_uuid, provider
from tests.client import Client, Response
from tests.engines import ENGINES

CLIENTS = 8

# What a race comes to is for the engine to say.
pytestmark = pytest.mark.engines(*ENGINES)


def outcome(answers: list[Response], *says: str, code: str = UNDEFINED) -> Counter[int]:
    """The statuses; each refusal is a conflict with this code and message."""
    for answer in answers:
        if answer.status >= 400:
            assert_refused(answer, 409, *says, code=code)
    return Counter(answer.status for answer in answers)


def test_claims_on_one_provider_do_not_hinder_each_other(api: Client) -> None:
    """The service resolves conflicts of providers itself: every claim that fits is accepted."""
    host = provider(api, {"VCPU": CLIENTS})
    before = generation(api, host)

    def claim(client: Client) -> Response:
        body = claim_body("1.39", {host: {"VCPU": 1}}, project="together", user="together")
        return client.put(f"/allocations/{new_uuid()}", json=body)

    answers = at_once(api, [claim] * CLIENTS)

    assert [answer.status for answer in answers] == [204] * CLIENTS
    assert used(api, host) == {"VCPU": CLIENTS}
    assert generation(api, host) == before + CLIENTS


def test_the_last_unit_is_given_once(api: Client) -> None:
    """The others are refused for the capacity, not for a race."""
    host = provider(api, {"VCPU": 1})

    def claim(client: Client) -> Response:
        body = claim_body("1.39", {host: {"VCPU": 1}})
        return client.put(f"/allocations/{new_uuid()}", json=body)

    answers = at_once(api, [claim] * CLIENTS)

    assert outcome(answers, "would exceed the capacity") == {204: 1, 409: CLIENTS - 1}
    assert used(api, host) == {"VCPU": 1}


def test_of_two_who_make_one_consumer_one_wins(api: Client) -> None:
    """null means a new consumer, and it is new only once."""
    host, holder = provider(api, {"VCPU": 100}), new_uuid()

    def claim(client: Client, amount: int) -> Response:
        body = claim_body("1.39", {host: {"VCPU": amount}})
        return client.put(f"/allocations/{holder}", json=body)

    amounts = range(1, CLIENTS + 1)
    answers = at_once(api, [partial(claim, amount=amount) for amount in amounts])

    won = [amount for amount, answer in zip(amounts, answers, strict=True) if answer.status == 204]
    assert held(api, holder) == {host: {"VCPU": won[0]}}
    assert outcome(answers, code=CONCURRENT_UPDATE) == {204: 1, 409: CLIENTS - 1}


def test_of_those_who_saw_one_state_of_a_consumer_one_wins(api: Client) -> None:
    """The generation decides."""
    host = provider(api, {"VCPU": 100})
    holder = consumer(api, {host: {"VCPU": 50}})

    def claim(client: Client, amount: int) -> Response:
        body = claim_body("1.39", {host: {"VCPU": amount}}, consumer_generation=1)
        return client.put(f"/allocations/{holder}", json=body)

    answers = at_once(api, [partial(claim, amount=n) for n in range(1, CLIENTS + 1)])

    assert Counter(answer.status for answer in answers) == {204: 1, 409: CLIENTS - 1}
    assert api.get(f"/allocations/{holder}").json["consumer_generation"] == 2


@pytest.mark.parametrize("what", ["inventories", "traits", "aggregates"])
def test_of_those_who_saw_one_state_of_a_provider_one_wins(api: Client, what: str) -> None:
    """The others get 409 `concurrent_update` and must read it again."""
    host = provider(api, {"VCPU": 1})
    seen = generation(api, host)

    def replace(client: Client, number: int) -> Response:
        value: object = {
            "inventories": {"VCPU": {"total": number + 2}},
            "traits": ["HW_CPU_X86_VMX"],
            "aggregates": [new_uuid()],
        }[what]
        body = {what: value, "resource_provider_generation": seen}
        return client.put(f"/resource_providers/{host}/{what}", json=body)

    answers = at_once(api, [partial(replace, number=n) for n in range(CLIENTS)])

    assert outcome(answers, code=CONCURRENT_UPDATE) == {200: 1, 409: CLIENTS - 1}
    assert not any("consumer generation conflict" in answer.text for answer in answers)
    assert generation(api, host) == seen + 1


def test_of_those_who_add_one_inventory_one_wins(api: Client) -> None:
    """POST of an existing inventory is a conflict, like a lost race."""
    host = provider(api)

    def add(client: Client) -> Response:
        body = {"resource_class": "VCPU", "total": 4}
        return client.post(f"/resource_providers/{host}/inventories", json=body)

    answers = at_once(api, [add] * CLIENTS)

    assert outcome(answers, code=CONCURRENT_UPDATE) == {201: 1, 409: CLIENTS - 1}


@pytest.mark.parametrize("same", ["name", "uuid"])
def test_a_name_and_a_uuid_are_given_once(api: Client, same: str) -> None:
    """409 `duplicate_name`; the message says which of the two is taken."""
    fixed = {"name": new_name(), "uuid": new_uuid()}[same]

    def create(client: Client) -> Response:
        body = {"name": new_name(), "uuid": new_uuid()} | {same: fixed}
        return client.post("/resource_providers", json=body)

    answers = at_once(api, [create] * CLIENTS)

    assert outcome(answers, fixed, code=DUPLICATE_NAME) == {200: 1, 409: CLIENTS - 1}
    named = ["Conflicting resource provider name:" in answer.text for answer in answers]
    assert sum(named) == (CLIENTS - 1 if same == "name" else 0)


def test_a_name_is_created_once(api: Client) -> None:
    """And confirmed to all others, by PUT; by POST they are refused."""
    name = new_custom_name()
    for kind in ("traits", "resource_classes"):
        answers = at_once(api, [partial(Client.put, path=f"/{kind}/{name}")] * CLIENTS)
        assert outcome(answers) == {201: 1, 204: CLIENTS - 1}
    body = {"name": new_custom_name()}
    answers = at_once(api, [lambda client: client.post("/resource_classes", json=body)] * CLIENTS)
    assert outcome(answers) == {201: 1, 409: CLIENTS - 1}


def test_one_project_user_type_and_aggregate_may_be_new_to_all(api: Client) -> None:
    """Each is created once, and no client notices."""
    project, user, kind, aggregate = new_uuid(), new_uuid(), new_custom_name(), new_uuid()
    hosts = [provider(api, {"VCPU": 1}) for _ in range(CLIENTS)]
    seen = generation(api, hosts[0])

    def claim(client: Client, host: str) -> Response:
        body = claim_body(
            "1.39", {host: {"VCPU": 1}}, project=project, user=user, consumer_type=kind
        )
        return client.put(f"/allocations/{new_uuid()}", json=body)

    def join(client: Client, host: str) -> Response:
        body = {"aggregates": [aggregate], "resource_provider_generation": seen}
        return client.put(f"/resource_providers/{host}/aggregates", json=body)

    joined = at_once(api, [partial(join, host=host) for host in hosts])
    claimed = at_once(api, [partial(claim, host=host) for host in hosts])

    assert [answer.status for answer in joined] == [200] * CLIENTS
    assert [answer.status for answer in claimed] == [204] * CLIENTS
    usages = api.get(f"/usages?project_id={project}").json["usages"]
    assert usages == {kind: {"VCPU": CLIENTS, "consumer_count": CLIENTS}}


def test_a_provider_is_deleted_or_claimed_but_not_both(api: Client) -> None:
    """A claim that comes too late is refused with 400 or 409, a late delete with 409."""
    host, holder = provider(api, {"VCPU": 1}), new_uuid()
    body = claim_body("1.39", {host: {"VCPU": 1}})

    deleted, claimed = at_once(
        api,
        [
            lambda client: client.delete(f"/resource_providers/{host}"),
            lambda client: client.put(f"/allocations/{holder}", json=body),
        ],
    )

    if deleted.status == 204:
        assert claimed.status in (400, 409)
        assert held(api, holder) == {}
    else:
        assert (deleted.status, claimed.status) == (409, 204)
        assert used(api, host) == {"VCPU": 1}

# SPDX-License-Identifier: Apache-2.0
"""Reading allocations of a consumer and of a provider.

Source: rest-api.md 10.1, 10.2, 10.5 and 1.8.
"""

import pytest

from tests.api.answers import assert_refused
from tests.api.claims import claim_body, consumer, held
from tests.api.precedence import ALLOWED, FORBIDDEN, Ask, Row, assert_precedence
from tests.api.versions import at_least, versions
from tests.api.worlds import NOWHERE, generation, new_uuid, provider
from tests.client import Client


@pytest.mark.parametrize("version", versions("1.0"))
def test_a_consumer_shows_what_it_holds(api: Client, version: str) -> None:
    """Project and user from 1.12, generation from 1.28, type from 1.38."""
    host, pool = provider(api, {"VCPU": 4, "MEMORY_MB": 64}), provider(api, {"DISK_GB": 9})
    claims = {host: {"VCPU": 2, "MEMORY_MB": 32}, pool: {"DISK_GB": 5}}
    holder = consumer(api, claims, project="a project", user="a user")

    answer = api.get(f"/allocations/{holder}", version=version)

    expected: dict[str, object] = {
        "allocations": {
            uuid: {"generation": generation(api, uuid), "resources": resources}
            for uuid, resources in claims.items()
        }
    }
    if at_least(version, "1.12"):
        expected |= {"project_id": "a project", "user_id": "a user"}
    if at_least(version, "1.28"):
        expected["consumer_generation"] = 1
    if at_least(version, "1.38"):
        expected["consumer_type"] = "INSTANCE"
    assert answer.status == 200
    assert answer.json == expected


@pytest.mark.parametrize("name", [NOWHERE, "not-a-uuid", "%C3%9C", "a%20b"])
def test_a_consumer_of_nothing_shows_nothing(api: Client, name: str) -> None:
    """Never 404, whatever the name, and without other keys."""
    for version in versions("1.0"):
        answer = api.get(f"/allocations/{name}", version=version)
        assert (answer.status, answer.json) == (200, {"allocations": {}})


def test_a_missing_type_is_shown_as_unknown(api: Client) -> None:
    """A consumer that was created below 1.38 has none."""
    holder = new_uuid()
    body = claim_body("1.37", {provider(api, {"VCPU": 1}): {"VCPU": 1}})
    assert api.put(f"/allocations/{holder}", json=body, version="1.37").status == 204
    assert api.get(f"/allocations/{holder}").json["consumer_type"] == "unknown"


@pytest.mark.parametrize("version", versions("1.0"))
def test_a_provider_shows_who_holds_it(api: Client, version: str) -> None:
    """Without project and type at any microversion; with the consumer's generation from 1.28."""
    host, other = provider(api, {"VCPU": 4}), provider(api, {"DISK_GB": 4})
    holder = consumer(api, {host: {"VCPU": 1}, other: {"DISK_GB": 1}})
    two = consumer(api, {host: {"VCPU": 2}})

    answer = api.get(f"/resource_providers/{host}/allocations", version=version)

    generations = {"consumer_generation": 1} if at_least(version, "1.28") else {}
    assert answer.status == 200
    assert answer.json == {
        "resource_provider_generation": generation(api, host),
        "allocations": {
            holder: {"resources": {"VCPU": 1}} | generations,
            two: {"resources": {"VCPU": 2}} | generations,
        },
    }


def test_a_provider_that_nobody_holds_shows_nothing(api: Client) -> None:
    """An empty object."""
    answer = api.get(f"/resource_providers/{provider(api)}/allocations")
    assert answer.json == {"resource_provider_generation": 0, "allocations": {}}


@pytest.mark.parametrize("version", ["1.14", "1.15", "1.39"])
@pytest.mark.parametrize("of", ["nobody", "consumer", "provider"])
def test_reading_says_when_the_newest_allocation_was_made(
    api: Client, version: str, of: str
) -> None:
    """Both caching headers from 1.15; the current time if there are none."""
    host = provider(api, {"VCPU": 4})
    holder = consumer(api, {host: {"VCPU": 1}})
    path = {
        "nobody": f"/allocations/{NOWHERE}",
        "consumer": f"/allocations/{holder}",
        "provider": f"/resource_providers/{host}/allocations",
    }[of]
    headers = api.get(path, version=version).headers
    cached = at_least(version, "1.15")
    assert ("last-modified" in headers) is cached
    assert headers.get("cache-control") == ("no-cache" if cached else None)


@pytest.mark.deliberately_different("uuids are normalised to lower case and dashes (1.9)")
@pytest.mark.parametrize("spelling", ["upper", "undashed", "urn"])
def test_a_consumer_is_found_in_every_spelling_of_its_uuid(api: Client, spelling: str) -> None:
    """GET and DELETE accept what PUT accepts."""
    holder = consumer(api, {provider(api, {"VCPU": 1}): {"VCPU": 1}})
    name = {
        "upper": holder.upper(),
        "undashed": holder.replace("-", ""),
        "urn": f"urn:uuid:{holder}",
    }[spelling]
    assert held(api, name) == held(api, holder)
    assert held(api, name) != {}
    assert api.delete(f"/allocations/{name}").status == 204
    assert held(api, holder) == {}


@pytest.mark.parametrize("version", versions("1.0"))
def test_deleting_takes_all_that_the_consumer_holds(api: Client, version: str) -> None:
    """204; no provider's generation changes, and the consumer starts again."""
    host, other = provider(api, {"VCPU": 4}), provider(api, {"DISK_GB": 4})
    holder = consumer(api, {host: {"VCPU": 1}, other: {"DISK_GB": 1}})
    before = generation(api, host), generation(api, other)

    answer = api.delete(f"/allocations/{holder}", version=version)

    assert (answer.status, answer.body) == (204, b"")
    assert held(api, holder) == {}
    assert (generation(api, host), generation(api, other)) == before
    body = claim_body("1.39", {host: {"VCPU": 1}}, consumer_generation=None)
    assert api.put(f"/allocations/{holder}", json=body).status == 204
    assert api.get(f"/allocations/{holder}").json["consumer_generation"] == 1


@pytest.mark.parametrize("version", ["1.0", "1.22", "1.23", "1.39"])
@pytest.mark.parametrize("name", [NOWHERE, "not-a-uuid"])
def test_deleting_nothing_is_not_found(api: Client, version: str, name: str) -> None:
    """For any text that names no consumer with allocations."""
    answer = api.delete(f"/allocations/{name}", version=version)
    assert_refused(answer, 404, f"No allocations for consumer '{name}'", version=version)


def test_faults_of_reading_a_consumer_are_found_in_order(api: Client) -> None:
    """A P; no other error is possible."""
    assert_precedence(
        api,
        Ask("GET", "/allocations/nonsense", headers=FORBIDDEN | {"Accept": "text/plain"}),
        [
            Row("nothing", {}, 406),
            Row("Accept", {"headers": {"Accept": "application/json"}}, 403),
            Row("the role", {"headers": ALLOWED}, 200),
        ],
    )


def test_faults_of_reading_a_provider_are_found_in_order(api: Client) -> None:
    """A P L."""
    assert_precedence(
        api,
        Ask(
            "GET",
            f"/resource_providers/{NOWHERE}/allocations",
            headers=FORBIDDEN | {"Accept": "text/plain"},
        ),
        [
            Row("nothing", {}, 406),
            Row("Accept", {"headers": {"Accept": "application/json"}}, 403),
            Row("the role", {"headers": ALLOWED}, 404, "No resource provider with uuid"),
            Row("the provider", {"path": f"/resource_providers/{provider(api)}/allocations"}, 200),
        ],
    )


def test_faults_of_deleting_are_found_in_order(api: Client) -> None:
    """P L."""
    holder = consumer(api, {provider(api, {"VCPU": 1}): {"VCPU": 1}})
    assert_precedence(
        api,
        Ask("DELETE", f"/allocations/{NOWHERE}", headers=FORBIDDEN),
        [
            Row("nothing", {}, 403),
            Row("the role", {"headers": ALLOWED}, 404, "No allocations for consumer"),
            Row("the consumer", {"path": f"/allocations/{holder}"}, 204),
        ],
    )

# SPDX-License-Identifier: Apache-2.0
"""Usages of providers and of projects.

Source: rest-api.md section 9.
"""

from urllib.parse import quote

import pytest

from tests.api.answers import assert_refused
from tests.api.claims import claim_body, consumer
from tests.api.precedence import ALLOWED, FORBIDDEN, Ask, Row, assert_precedence
from tests.api.versions import versions
from tests.api.worlds import NOWHERE, custom_class, generation, new_uuid, provider
from tests.client import Client


@pytest.mark.parametrize("version", versions("1.0"))
def test_a_provider_shows_what_is_used_of_every_class_it_has(api: Client, version: str) -> None:
    """Including 0; at every microversion."""
    host = provider(api, {"VCPU": 8, "MEMORY_MB": 512})
    consumer(api, {host: {"VCPU": 3}})
    consumer(api, {host: {"VCPU": 2}})
    answer = api.get(f"/resource_providers/{host}/usages", version=version)
    assert answer.status == 200
    assert answer.json == {
        "resource_provider_generation": generation(api, host),
        "usages": {"VCPU": 5, "MEMORY_MB": 0},
    }


def test_a_provider_without_inventory_has_no_usages(api: Client) -> None:
    """Classes without inventory are not listed."""
    host = provider(api)
    answer = api.get(f"/resource_providers/{host}/usages")
    assert answer.json == {"resource_provider_generation": 0, "usages": {}}


def test_the_usages_of_a_provider_take_no_parameter(api: Client) -> None:
    """The query is ignored (1.3)."""
    assert api.get(f"/resource_providers/{provider(api)}/usages?foo=1&foo=%FF").status == 200


def test_faults_of_provider_usages_are_found_in_order(api: Client) -> None:
    """A P L."""
    path = f"/resource_providers/{provider(api)}/usages"
    assert_precedence(
        api,
        Ask(
            "GET",
            f"/resource_providers/{NOWHERE}/usages",
            headers=FORBIDDEN | {"Accept": "text/plain"},
        ),
        [
            Row("nothing", {}, 406),
            Row("Accept", {"headers": {"Accept": "application/json"}}, 403),
            Row("the role", {"headers": ALLOWED}, 404, "No resource provider with uuid"),
            Row("the provider", {"path": path}, 200),
        ],
    )


class Tenants:
    """One host, two users of one project, and a consumer of each kind.

    |           | type     | VCPU | MEMORY_MB |
    | user one  | INSTANCE |    1 |        10 |
    | user one  | INSTANCE |    2 |           |
    | user two  | VOLUME   |      |        20 |
    | user two  | none     |    4 |           |
    """

    def __init__(self, api: Client) -> None:
        self.project, self.one, self.two = new_uuid(), new_uuid(), new_uuid()
        host = provider(api, {"VCPU": 100, "MEMORY_MB": 100})
        self._claim(api, host, self.one, "INSTANCE", {"VCPU": 1, "MEMORY_MB": 10})
        self._claim(api, host, self.one, "INSTANCE", {"VCPU": 2})
        self._claim(api, host, self.two, "VOLUME", {"MEMORY_MB": 20})
        untyped = claim_body("1.37", {host: {"VCPU": 4}}, project=self.project, user=self.two)
        answer = api.put(f"/allocations/{new_uuid()}", json=untyped, version="1.37")
        assert answer.status == 204

    def _claim(
        self, api: Client, host: str, user: str, consumer_type: str, amounts: dict[str, int]
    ) -> None:
        consumer(api, {host: amounts}, project=self.project, user=user, consumer_type=consumer_type)


@pytest.mark.parametrize("version", versions("1.9", "1.37"))
def test_a_project_is_shown_the_sums_over_its_consumers_before_1_38(
    api: Client, version: str
) -> None:
    """Only classes with allocations; the user is an additional filter."""
    tenants = Tenants(api)
    path = f"/usages?project_id={tenants.project}"
    assert api.get(path, version=version).json == {"usages": {"VCPU": 7, "MEMORY_MB": 30}}
    answer = api.get(f"{path}&user_id={tenants.one}", version=version)
    assert answer.json == {"usages": {"VCPU": 3, "MEMORY_MB": 10}}


INSTANCES = {"VCPU": 3, "MEMORY_MB": 10, "consumer_count": 2}
VOLUMES = {"MEMORY_MB": 20, "consumer_count": 1}
UNTYPED = {"VCPU": 4, "consumer_count": 1}


@pytest.mark.parametrize("version", ["1.38", "1.39"])
@pytest.mark.parametrize(
    ("narrowed", "usages"),
    [
        ("", {"INSTANCE": INSTANCES, "VOLUME": VOLUMES, "unknown": UNTYPED}),
        ("&consumer_type=INSTANCE", {"INSTANCE": INSTANCES}),
        ("&consumer_type=VOLUME", {"VOLUME": VOLUMES}),
        ("&consumer_type=unknown", {"unknown": UNTYPED}),
        ("&consumer_type=all", {"all": {"VCPU": 7, "MEMORY_MB": 30, "consumer_count": 4}}),
        ("&consumer_type=NOBODY_HAS_IT", {}),
        ("&consumer_type=UNKNOWN", {}),
        ("&consumer_type=ALL", {}),
        ("&consumer_type=allfoo", {}),
        ("&user_id=ONE", {"INSTANCE": INSTANCES}),
        ("&user_id=ONE&consumer_type=unknown", {}),
        ("&user_id=ONE&consumer_type=all", {"all": INSTANCES}),
        ("&user_id=TWO", {"VOLUME": VOLUMES, "unknown": UNTYPED}),
        ("&user_id=TWO&consumer_type=VOLUME", {"VOLUME": VOLUMES}),
        ("&user_id=nobody", {}),
    ],
)
def test_a_project_is_shown_sums_by_type_of_consumer_from_1_38(
    api: Client, version: str, narrowed: str, usages: object
) -> None:
    """Consumers without a type count as `unknown`; `all` is the total."""
    tenants = Tenants(api)
    narrowed = narrowed.replace("ONE", tenants.one).replace("TWO", tenants.two)
    answer = api.get(f"/usages?project_id={tenants.project}{narrowed}", version=version)
    assert answer.status == 200
    assert answer.json == {"usages": usages}


def test_a_consumer_of_several_classes_is_counted_once(api: Client) -> None:
    """`consumer_count` counts consumers, not rows."""
    project = new_uuid()
    one, two = provider(api, {"VCPU": 2, "MEMORY_MB": 2}), provider(api, {"DISK_GB": 2})
    consumer(api, {one: {"VCPU": 1, "MEMORY_MB": 1}, two: {"DISK_GB": 1}}, project=project)
    usages = api.get(f"/usages?project_id={project}").json["usages"]
    assert usages["INSTANCE"]["consumer_count"] == 1


@pytest.mark.parametrize("version", ["1.9", "1.37", "1.38"])
def test_a_project_that_nobody_uses_has_no_usages(api: Client, version: str) -> None:
    """200, not 404."""
    answer = api.get(f"/usages?project_id={new_uuid()}", version=version)
    assert (answer.status, answer.json) == (200, {"usages": {}})


@pytest.mark.parametrize("project", ["Großes Projekt", "a/b", "a&b=c", "x" * 255, "p" + "%"])
def test_project_and_user_are_opaque(api: Client, project: str) -> None:
    """Any characters, up to 255 of them (1.10, 14)."""
    host = provider(api, {"VCPU": 9})
    before = api.get(f"/usages?project_id={quote(project)}", version="1.9").json["usages"]
    consumer(api, {host: {"VCPU": 2}}, project=project, user=project)
    path = f"/usages?project_id={quote(project)}&user_id={quote(project)}"
    after = api.get(path, version="1.9").json["usages"]
    assert after["VCPU"] == before.get("VCPU", 0) + 2


def test_projects_are_compared_exactly(api: Client) -> None:
    """Letter case distinguishes them (14)."""
    project = "project-" + new_uuid()
    consumer(api, {provider(api, {"VCPU": 9}): {"VCPU": 2}}, project=project)
    answer = api.get(f"/usages?project_id={project.upper()}", version="1.9")
    assert answer.json == {"usages": {}}


def test_of_a_repeated_parameter_the_last_counts(api: Client) -> None:
    """Only the last one is checked (1.6)."""
    tenants = Tenants(api)
    query = f"project_id=&project_id={tenants.project}&user_id=&user_id={tenants.one}"
    answer = api.get(f"/usages?{query}", version="1.9")
    assert answer.json == {"usages": {"VCPU": 3, "MEMORY_MB": 10}}


@pytest.mark.parametrize(
    ("version", "query"),
    [
        ("1.9", ""),
        ("1.9", "user_id=u"),
        ("1.9", "project_id="),
        ("1.9", "project_id=p&project_id="),
        ("1.9", "project_id=p&user_id="),
        ("1.9", "project_id=" + "p" * 256),
        ("1.9", "project_id=p&user_id=" + "u" * 256),
        ("1.9", "project_id=p&Project_id=q"),
        ("1.9", "project_id=p&foo=1"),
        ("1.37", "project_id=p&consumer_type=INSTANCE"),
        ("1.38", "project_id=p&consumer_type="),
        ("1.38", "project_id=p&consumer_type=instance"),
        ("1.38", "project_id=p&consumer_type=A-B"),
        ("1.38", "project_id=p&consumer_type=xall"),
        ("1.38", "project_id=p&consumer_type=" + "A" * 256),
        ("1.38", "project_id=p&foo=1"),
    ],
)
def test_a_query_that_is_not_in_the_schema_is_refused(
    api: Client, version: str, query: str
) -> None:
    """`project_id` is required; unknown parameters are refused; `consumer_type` came with 1.38."""
    answer = api.get(f"/usages?{query}", version=version)
    assert_refused(answer, 400, "Invalid query string parameters", version=version)


@pytest.mark.deliberately_different("undecodable bytes are a 400, not a 500 (1.6, D)")
@pytest.mark.parametrize("query", ["project_id=%FF", "%FF=1&project_id=p", "project_id=%C3%28"])
def test_undecodable_bytes_are_refused(api: Client, query: str) -> None:
    """A query must be UTF-8."""
    assert_refused(api.get(f"/usages?{query}"), 400)


@pytest.mark.parametrize("version", versions("1.0", "1.8"))
def test_there_are_no_project_usages_before_1_9(api: Client, version: str) -> None:
    """The route came with 1.9."""
    assert_refused(api.get("/usages?project_id=p", version=version), 404, version=version)


@pytest.mark.parametrize(("version", "cached"), [("1.14", False), ("1.15", True), ("1.38", True)])
@pytest.mark.parametrize("of", ["provider", "project"])
def test_usages_are_as_of_now(api: Client, version: str, cached: bool, of: str) -> None:
    """Both caching headers from 1.15 (1.8)."""
    path = "/usages?project_id=p"
    if of == "provider":
        path = f"/resource_providers/{provider(api)}/usages"
    headers = api.get(path, version=version).headers
    assert ("last-modified" in headers) is cached
    assert headers.get("cache-control") == ("no-cache" if cached else None)


def test_faults_of_project_usages_are_found_in_order(api: Client) -> None:
    """V A P B: the role is checked before the missing project."""
    assert_precedence(
        api,
        Ask("GET", "/usages?foo=1", version="1.8", headers=FORBIDDEN | {"Accept": "text/plain"}),
        [
            Row("nothing", {}, 404),
            Row("the microversion", {"version": "1.9"}, 406),
            Row("Accept", {"headers": {"Accept": "application/json"}}, 403),
            Row("the role", {"headers": ALLOWED}, 400),
            Row("the query", {"path": "/usages?project_id=p"}, 200),
        ],
    )


def test_a_class_used_by_nobody_any_more_is_not_listed(api: Client) -> None:
    """Only classes with allocations are listed."""
    project, name = new_uuid(), custom_class(api)
    host = provider(api, {name: 2})
    holder = consumer(api, {host: {name: 1}}, project=project)
    assert name in api.get(f"/usages?project_id={project}", version="1.9").json["usages"]
    assert api.delete(f"/allocations/{holder}").status == 204
    assert api.get(f"/usages?project_id={project}", version="1.9").json == {"usages": {}}

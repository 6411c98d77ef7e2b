# SPDX-License-Identifier: Apache-2.0
"""A second namespace of the API has its own routes, document and error codes, and changes nothing
else.
"""

from __future__ import annotations

from wsgiref.types import WSGIApplication

import jsonschema_rs
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from berth.api.errors import ErrorCodes, Refused
from berth.api.namespaces import PLACEMENT, namespace_of
from berth.api.openapi.document import describe
from berth.api.operation import (
    Answer,
    Body,
    Namespace,
    Operation,
    Parameter,
    Query,
    Segment,
    always,
    component,
    for_services,
)
from berth.api.operations.fragments import TEXT, exact_object
from berth.api.operations.service import DESCRIPTION
from berth.api.policy import list_rules
from berth.api.rendering import answer
from berth.api.request import Request, Response, Services
from berth.api.schema import Schema
from berth.config import Settings
from berth.edge.app import create_app
from berth.index import Index
from berth.store.engine.database import Database
from tests.client import Client

GREETING = {"greeting": {**TEXT, "description": "What is said."}}
BODY = always(Schema(exact_object(GREETING)))


def say_hello(services: Services, request: Request, response: Response, name: str) -> None:
    """Return a greeting."""
    if name == "nobody":
        raise Refused(404, "There is nobody.")
    answer(response, {"greeting": f"hello, {name}"})


HELLO = Operation(
    "GET",
    "/hello/{name}",
    segments={"name": Segment("Whom to greet.", TEXT, "alice")},
    handler=say_hello,
    rule=for_services("berth:hello", "Greet."),
    tag="Greetings",
    summary="Greet somebody",
    query=Query(Parameter(name="loud", means={0: "Whether to shout."}, example="yes")),
    answers=(
        Answer(
            200,
            component("Greeting", (0, exact_object(GREETING)), example={"greeting": "hello"}),
            means="The greeting.",
        ),
    ),
)
BERTH = Namespace(
    prefix="/berth/v1",
    title="berth",
    summary="Greetings.",
    tags={"Greetings": "What is said.", "Service": "The service itself."},
    operations=(HELLO, DESCRIPTION),
    codes=ErrorCodes(0, frozenset({"berth.undefined_code"}), "berth.undefined_code"),
    version="1.0",
    headers={"Berth-API": "1.0"},
)


@pytest.fixture
def both(settings: Settings, database: Database, index: Index) -> Client:
    """A client of an application with both namespaces."""
    return Client.of(create_app(settings, database, index, namespaces=(PLACEMENT, BERTH)))


def test_a_route_of_a_second_namespace_is_served(both: Client) -> None:
    """Its rule guards it, and the response has its version."""
    answered = both.get("/berth/v1/hello/alice")
    assert (answered.status, answered.json) == (200, {"greeting": "hello, alice"})
    assert answered.headers["Berth-API"] == "1.0"
    assert answered.headers["OpenStack-API-Version"] == "placement 1.39"
    refused = both.get("/berth/v1/hello/alice", headers={"X-Auth-Token": "u:p", "X-Roles": None})
    assert refused.status == 403
    assert refused.json["errors"][0]["code"] == "berth.undefined_code"
    assert "berth:hello" in {rule.name for rule in list_rules((PLACEMENT, BERTH))}


@pytest.mark.parametrize("version", ["1.0", "1.22", "1.39"])
def test_its_errors_have_its_codes_at_every_microversion(both: Client, version: str) -> None:
    """Including errors of earlier layers and of unknown paths."""
    answers = [
        both.get("/berth/v1/hello/nobody", version=version),
        both.get("/berth/v1/nothing", version=version),
        both.put("/berth/v1/hello/alice", version=version, json={}),
        both.request("GET", "/berth/v1/hello/" + "a" * 70_000, version=version),
    ]
    assert [answered.status for answered in answers] == [404, 404, 405, 414]
    for answered in answers:
        assert answered.json["errors"][0]["code"] == "berth.undefined_code"
    for answered in answers[:3]:
        assert answered.headers["Berth-API"] == "1.0"


def test_it_has_a_document_of_its_own(both: Client) -> None:
    """It is valid, has its own operations, rules, codes and version, and matches its responses."""
    document = both.get("/berth/v1/openapi.json").json
    OpenAPIV31SpecValidator(document).validate()
    assert set(document["paths"]) == {"/berth/v1/hello/{name}", "/berth/v1/openapi.json"}
    hello = document["paths"]["/berth/v1/hello/{name}"]["get"]
    assert hello["x-policy-rule"] == "berth:hello"
    assert [parameter["name"] for parameter in hello["parameters"]] == ["name", "loud"]
    assert document["info"]["version"] == "1.0"
    assert document["info"]["title"] == "berth"
    schemas = document["components"]["schemas"]
    code = schemas["Errors"]["properties"]["errors"]["items"]["properties"]["code"]
    assert code["enum"] and all(text.startswith("berth.") for text in code["enum"])
    assert "ResourceProvider" not in schemas
    errors = jsonschema_rs.Draft202012Validator(
        {"$ref": "#/components/schemas/Errors", "components": document["components"]}
    )
    assert errors.is_valid(both.get("/berth/v1/hello/nobody", version="1.0").json)


@pytest.mark.parametrize("version", ["1.0", "1.22", "1.23", "1.39"])
def test_the_old_routes_are_as_they_were(both: Client, app: WSGIApplication, version: str) -> None:
    """Responses, headers and documents; a path with a similar prefix is not in the second
    namespace."""
    alone = Client.of(app)
    for path in (
        *("/", "/openapi.json", "/resource_providers", "/resource_providers/x", "/nothing"),
        *("/traits", "/traits/x", "/berth", "/berth/v10/hello/alice", "/usages?a=b"),
    ):
        answers = [client.get(path, version=version) for client in (alone, both)]
        said = [
            (each.status, each.text.replace(each.headers["X-Openstack-Request-Id"] or "-", ""))
            for each in answers
        ]
        assert said[0] == said[1], path
        names = [sorted(map(str.lower, each.headers)) for each in answers]
        assert names[0] == names[1], path
        assert "berth-api" not in names[1]


def test_a_path_lies_in_the_namespace_of_its_prefix() -> None:
    """So is the prefix itself."""
    namespaces = (PLACEMENT, BERTH)
    assert namespace_of("/berth/v1", namespaces) is BERTH
    assert namespace_of("/berth/v1/hello", namespaces) is BERTH
    assert namespace_of("/berth/v1x", namespaces) is PLACEMENT
    assert namespace_of("/", namespaces) is PLACEMENT


def test_a_body_of_a_second_namespace_is_described() -> None:
    """By the descriptions in its schema."""
    operation = Operation(
        "PUT",
        "/greeting",
        handler=say_hello,
        rule=None,
        tag="Greetings",
        summary="Change the greeting",
        body=Body(BODY, always({"greeting": "hello"})),
        answers=(Answer(204),),
    )
    namespace = Namespace(
        prefix="/berth/v1", title="berth", summary="", tags={}, operations=(operation,), version="1"
    )
    document = describe(39, auth_strategy="token", namespace=namespace)
    body = document["components"]["schemas"]["SayHelloBody"]
    assert body["properties"]["greeting"]["description"] == "What is said."

# SPDX-License-Identifier: Apache-2.0
"""Schemathesis sends what the description of the API admits, and what it does not.

Nothing is to be answered that the document does not tell of, nothing is to be a fault of the
service, and what breaks the document's rules is to be refused. The requests are the same in each
run; `BERTH_OPENAPI_EXAMPLES` asks for more of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import APIOperation, BaseSchema, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from berth.api.openapi.examples import CONSUMER, PROVIDER
from berth.model.ids import parse_uuid_lax
from tests.api import configured
from tests.api.worlds import done
from tests.client import ADMIN, Client, WSGITransport

#: At each of them requests or answers have another form than at the one before.
MINORS: Final = [0, 12, 25, 39]

#: Requests at random for each operation, of each kind.
EXAMPLES: Final = int(os.environ.get("BERTH_OPENAPI_EXAMPLES", "3"))

GENERATION: Final = {"deterministic": True, "database": "none", "with-security-parameters": False}

CHECKS: Final = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    unsupported_method,
    negative_data_rejection,
]

#: COMPAT spec/rest-api.md 1.3 and 10.1: what the original does so is kept. A consumer may be any
#: text, and holds nothing; and where DELETE is refused below 1.5, that is without `Allow`.
KEPT: Final = {
    ("GET /allocations/{consumer_uuid}", "negative_data_rejection"),
    ("GET /resource_providers/{uuid}/inventories", "unsupported_method"),
}

PATH: Final = f"/resource_providers/{PROVIDER}"


class Stating:
    """In front of an application: each request is an administrator's, of one microversion."""

    def __init__(self, application: WSGIApplication, minor: int) -> None:
        self.application = application
        self.headers = {**ADMIN, "OpenStack-API-Version": f"placement 1.{minor}"}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Pass a request on."""
        for name, value in self.headers.items():
            environ[f"HTTP_{name.upper().replace('-', '_')}"] = value
        return self.application(environ, start_response)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A service of this module's own."""
    return configured.serve(tmp_path_factory.mktemp("fleet"))


@pytest.fixture(scope="module", params=MINORS, ids=[f"1.{minor}" for minor in MINORS])
def description(request: pytest.FixtureRequest, fleet: Client) -> BaseSchema:
    """The document of a microversion, as the service itself tells it.

    Without the header that names the microversion, which every request is given: one without it
    would be of another, which the document does not describe.
    """
    document = fleet.get("/openapi.json", version=f"1.{request.param}").json
    for methods in document["paths"].values():
        for operation in methods.values():
            operation["parameters"] = [one for one in operation["parameters"] if "name" in one]
    config = SchemathesisConfig.from_dict({"generation": GENERATION})
    description = schemathesis.openapi.from_dict(document, config=config)
    assert isinstance(fleet.transport, WSGITransport)
    description.app = Stating(fleet.transport.app, request.param)
    return description


def operations(description: BaseSchema) -> Iterator[APIOperation[Any, Any, Any, Any]]:
    """All that a document has."""
    for found in description.get_all_operations():
        assert isinstance(found, Ok), found.err()
        yield found.ok()


def test_the_edges_of_what_is_described(description: BaseSchema, fleet: Client) -> None:
    """Each parameter and each member at its bounds and a step beyond, left out, or of another
    type; methods that a path does not have."""
    for operation in operations(description):
        for case in description.iter_coverage_cases(
            operation,
            generation_modes=list(GenerationMode),
            generation_config=description.config.generation,
        ):
            send(case, fleet)


@pytest.mark.parametrize("mode", GenerationMode)
def test_whatever_is_sent(description: BaseSchema, fleet: Client, mode: GenerationMode) -> None:
    """All that the document admits, and what breaks its rules."""
    for operation in operations(description):

        @settings(
            max_examples=EXAMPLES,
            database=None,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        @given(operation.as_strategy(mode))
        def send_each(case: Case[Any]) -> None:
            send(case, fleet)

        with suppress(Unsatisfiable):  # a request that can have no fault
            send_each()


def send(case: Case[Any], fleet: Client) -> None:
    """Send a request, and judge the answer."""
    aim(case, fleet)
    label = case.operation.label
    judging = [check for check in CHECKS if (label, check.__name__) not in KEPT]
    case.validate_response(case.call(), checks=judging)


def aim(case: Case[Any], fleet: Client) -> None:
    """Let a request hit what there is: of the fleet's provider and its consumer, as they are now.

    What was no uuid, or no number, stays what it was.
    """
    build(fleet)
    for name, there in (("uuid", PROVIDER), ("consumer_uuid", CONSUMER)):
        given = case.path_parameters.get(name) if case.path_parameters else None
        if isinstance(given, str) and parse_uuid_lax(given):
            case.path_parameters[name] = there
    if isinstance(case.body, dict):
        seen = case.body.get("resource_provider_generation")
        if type(seen) is int:
            case.body["resource_provider_generation"] = fleet.get(PATH).json["generation"]


def build(fleet: Client) -> None:
    """A provider of which a consumer holds something, unless they are there."""
    if fleet.get(f"/allocations/{CONSUMER}").json["allocations"]:
        return
    if fleet.get(PATH).status == 404:
        provider: dict[str, Any] = {"uuid": PROVIDER, "name": PROVIDER}
        done(fleet.post("/resource_providers", json=provider), 200)
    stock = {
        "resource_provider_generation": fleet.get(PATH).json["generation"],
        "inventories": {"VCPU": {"total": 64}, "MEMORY_MB": {"total": 4096}},
    }
    done(fleet.put(f"{PATH}/inventories", json=stock), 200)
    claim = {
        "allocations": {PROVIDER: {"resources": {"VCPU": 1}}},
        "project_id": "demo",
        "user_id": "alice",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    done(fleet.put(f"/allocations/{CONSUMER}", json=claim), 204)

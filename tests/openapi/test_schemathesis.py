# SPDX-License-Identifier: Apache-2.0
"""Schemathesis sends requests that the OpenAPI document allows, and others.

The document must describe every response, no request may cause a 500, and invalid requests must be
refused. The requests are the same in each run; `BERTH_OPENAPI_EXAMPLES` increases their number.
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

from berth.api.examples import CONSUMER, PROVIDER
from berth.model.ids import parse_uuid_lax
from tests.api import configured
from tests.api.worlds import done
from tests.client import ADMIN, Client, WSGITransport
from tests.effort import is_full, scaled

#: At each of them requests or answers have another form than at the one before; in a usual run
#: the oldest and the newest will do.
MINORS: Final = [0, 12, 25, 39] if is_full() else [0, 39]
#: And that of berth's own API.
DOCUMENTS: Final[list[int | None]] = [*MINORS, None]

#: It takes minutes to make the edges of their bodies; `tests/api/berth_v1/test_refused.py` has most
#: of them by hand.
OF_THE_GRAMMAR: Final = frozenset(
    {
        *(f"POST /berth/v1/{name}" for name in ("candidates", "explain", "capacity", "place")),
        "PUT /berth/v1/flavors/{name}",
    }
)

#: Requests at random for each operation, of each kind.
EXAMPLES: Final = int(os.environ.get("BERTH_OPENAPI_EXAMPLES", scaled(2)))

#: A list with one item too many may make a body too large: 413.
REJECTED: Final = [400, 401, 403, 404, 405, 406, 409, 413, 415, "5xx"]

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
    """In front of an application: gives each request an administrator's token and a
    microversion."""

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
    """A service for this module."""
    return configured.serve(tmp_path_factory.mktemp("fleet"))


def named(minor: int | None) -> str:
    """What a document describes."""
    return "berth-v1" if minor is None else f"1.{minor}"


@pytest.fixture(scope="module", params=DOCUMENTS, ids=named)
def description(request: pytest.FixtureRequest, fleet: Client) -> BaseSchema:
    """The document of a microversion, or of berth's own API, as the service returns it.

    Without the header for the microversion, which every request gets: a request without it would
    have another one.
    """
    minor = 39 if request.param is None else request.param
    path = "/berth/v1/openapi.json" if request.param is None else "/openapi.json"
    document = fleet.get(path, version=f"1.{minor}").json
    for methods in document["paths"].values():
        for operation in methods.values():
            operation["parameters"] = [
                parameter for parameter in operation["parameters"] if "name" in parameter
            ]
    checks = {"negative_data_rejection": {"expected-statuses": REJECTED}}
    config = SchemathesisConfig.from_dict({"generation": GENERATION, "checks": checks})
    description = schemathesis.openapi.from_dict(document, config=config)
    assert isinstance(fleet.transport, WSGITransport)
    description.app = Stating(fleet.transport.app, minor)
    return description


def operations(description: BaseSchema) -> Iterator[APIOperation[Any, Any, Any, Any]]:
    """All operations of a document."""
    for found in description.get_all_operations():
        assert isinstance(found, Ok), found.err()
        yield found.ok()


def test_the_edges_of_what_is_described(description: BaseSchema, fleet: Client) -> None:
    """Each parameter and member at its bounds and a step beyond, missing, or of another type;
    methods that a path does not have. At full effort only, those of the grammar of requests."""
    for operation in operations(description):
        if operation.label in OF_THE_GRAMMAR and not is_full():
            continue
        for case in description.iter_coverage_cases(
            operation,
            generation_modes=list(GenerationMode),
            generation_config=description.config.generation,
        ):
            send(case, fleet)


@pytest.mark.parametrize("mode", GenerationMode)
def test_whatever_is_sent(description: BaseSchema, fleet: Client, mode: GenerationMode) -> None:
    """Everything that the document allows, and violations of its rules."""
    for operation in operations(description):

        @settings(
            max_examples=EXAMPLES,
            database=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        @given(operation.as_strategy(mode))
        def send_each(case: Case[Any]) -> None:
            send(case, fleet)

        with suppress(Unsatisfiable):  # a request that can have no fault
            send_each()


def send(case: Case[Any], fleet: Client) -> None:
    """Send a request, and check the response."""
    aim(case, fleet)
    label = case.operation.label
    judging = [check for check in CHECKS if (label, check.__name__) not in KEPT]
    case.validate_response(case.call(), checks=judging)


def aim(case: Case[Any], fleet: Client) -> None:
    """Make a request name existing objects: the provider and its consumer, with current
    generations.

    Values that were no uuids or numbers stay.
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
    """Create a provider and a consumer with allocations on it, unless they exist."""
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

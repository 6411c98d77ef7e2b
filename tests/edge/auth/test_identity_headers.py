# SPDX-License-Identifier: Apache-2.0
"""A client cannot set its own identity: every identity header is removed."""

from __future__ import annotations

from pathlib import Path

import pytest
from keystonemiddleware.auth_token import _request
from oslo_context import context

from berth.edge.auth.file_based import layer_of
from berth.edge.auth.http_basic import HttpBasic
from berth.edge.auth.identity import IDENTITY_HEADERS
from tests.edge.auth.gate import Gate, basic, hashed

ALICE = basic("alice", "secret")

#: The credentials themselves, which oslo.context reads too; they are removed where they were used.
CREDENTIALS = {"HTTP_X_AUTH_TOKEN", "HTTP_X_STORAGE_TOKEN", "HTTP_X_SERVICE_TOKEN"}

OF_KEYSTONEMIDDLEWARE = {
    "HTTP_" + name.upper().replace("-", "_")
    for name in _request._AuthTokenRequest.blank("/")._all_auth_headers()
}
OF_OSLO_CONTEXT = {
    name
    for names in context._ENVIRON_HEADERS.values()
    for name in names
    if name.startswith("HTTP_")
}

EVERY_HEADER = sorted(OF_KEYSTONEMIDDLEWARE | OF_OSLO_CONTEXT)


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Gate:
    """An application with one user, without roles."""
    path: Path = tmp_path_factory.mktemp("gate") / "htpasswd"
    path.write_text(f"alice:{hashed('secret')}\n")
    return Gate(layer_of(HttpBasic(path)))


def test_the_headers_are_those_of_keystonemiddleware_and_of_oslo_context() -> None:
    """Every header that one of them reads is removed."""
    wanted = (OF_KEYSTONEMIDDLEWARE | OF_OSLO_CONTEXT) - CREDENTIALS
    assert len(wanted) > 20
    assert wanted <= IDENTITY_HEADERS


@pytest.mark.parametrize("variable", EVERY_HEADER)
def test_no_header_of_a_client_reaches_the_application(gate: Gate, variable: str) -> None:
    """With valid credentials they change nothing; without, the request is refused."""
    header = {variable.removeprefix("HTTP_").replace("_", "-"): "admin"}
    assert gate.who(ALICE | header) == gate.who(ALICE)
    assert gate.status(header) == 401
    assert gate.who(header, path="/") == gate.who({}, path="/")


def test_an_identity_is_told_as_keystonemiddleware_does(gate: Gate) -> None:
    """So that whatever reads those headers works here too."""
    headers = gate.who(ALICE)["headers"]
    identity = {name: text for name, text in headers.items() if name in IDENTITY_HEADERS}
    assert identity == {
        "HTTP_X_IDENTITY_STATUS": "Confirmed",
        "HTTP_X_USER_ID": "alice",
        "HTTP_X_USER_NAME": "alice",
        "HTTP_X_PROJECT_ID": "alice",
        "HTTP_X_PROJECT_NAME": "alice",
        "HTTP_X_ROLES": "",
    }

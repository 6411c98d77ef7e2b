# SPDX-License-Identifier: Apache-2.0
"""The microversion of a request, and which layer refuses first.

Source: rest-api.md 1.1 and 1.2.
"""

import pytest

from tests.api.worlds import NOBODY, TITLES
from tests.client import Client
from tests.routes import VERSIONS


@pytest.mark.parametrize(
    ("header", "version"),
    [
        (None, "1.0"),
        ("", "1.0"),
        ("compute 2.1", "1.0"),
        ("placement", "1.0"),
        ("1.5", "1.0"),
        *((f"placement {version}", version) for version in VERSIONS),
        ("PLACEMENT 1.7", "1.7"),
        ("placement   1.8", "1.8"),
        ("  placement 1.8  ", "1.8"),
        ("compute 2.1, placement 1.6", "1.6"),
        ("placement 1.6, compute 2.1", "1.6"),
        ("placement 1.3,placement 1.4", "1.4"),
        ("placement latest", "1.39"),
        ("placement 1.05", "1.5"),
    ],
)
def test_the_version_header_is_read_generously(
    api: Client, header: str | None, version: str
) -> None:
    """1.0 to 1.39, and 1.0 without one for placement. Letter case of the service, blanks and other
    services do not matter; the last entry counts. The response repeats it."""
    answer = api.get("/", version=None, headers={"OpenStack-api-VERSION": header})
    assert (answer.status, answer.headers["OpenStack-API-Version"]) == (200, f"placement {version}")


@pytest.mark.parametrize(
    ("status", "text"),
    [
        *((400, text) for text in ("1", "1.", "1.2.3", "pony.horse", "Latest", "LATEST", "1.x")),
        *((400, ".5"), (406, "1.40"), (406, "2.0"), (406, "0.9"), (406, "1.-1")),
        (406, "1.1000000"),
    ],
)
def test_a_version_that_is_not_served_is_refused_before_all_else(
    api: Client, status: int, text: str
) -> None:
    """Before routing and policy, without a version header or an error code: 400 if it cannot be
    read, 406 with the supported range if it is not served."""
    asked = [("GET", "/", {}), ("GET", "/no/such/path", NOBODY), ("PATCH", "/traits", NOBODY)]
    for method, path, headers in asked:
        answer = api.request(method, path, version=text, headers=headers)
        assert answer.status == status
        assert answer.headers["Content-Type"] == "application/json"
        assert "OpenStack-API-Version" not in answer.headers
        error = answer.error
        assert (error["status"], error["title"]) == (status, TITLES[status])
        assert error["request_id"] == answer.headers["x-openstack-request-id"]
        assert "code" not in error
        if status == 400:
            assert f"invalid version string: {text}" in answer.detail
        else:
            assert f"Unacceptable version header: {text}" in answer.detail
            assert (error["min_version"], error["max_version"]) == ("1.0", "1.39")

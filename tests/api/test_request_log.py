# SPDX-License-Identifier: Apache-2.0
"""The request log: one line per request.

Source: operations.md section 4.
"""

import logging
import re
from typing import TYPE_CHECKING

import pytest

from tests.client import Client

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

pytestmark = pytest.mark.in_process

LOGGER = "placement.requestlog"


def lines(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    """The messages of the request log at this level."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == LOGGER and record.levelno == level
    ]


@pytest.mark.parametrize(
    ("request_line", "version", "token", "status", "logged"),
    [
        ("GET /resource_providers?name=a", "1.39", "admin", 200, "1.39"),
        ("GET /", None, None, 200, "1.0"),
        ("GET /traits?name=startswith:%41", "1.6", "admin", 200, "1.6"),
        ("DELETE /traits/CUSTOM_NOT_THERE", "1.39", "admin", 404, "1.39"),
        ("GET /traits", "1.39", None, 401, "-"),
        ("GET /traits", "7.7", "admin", 406, "-"),
    ],
)
def test_every_request_is_one_line(
    api: Client,
    caplog: pytest.LogCaptureFixture,
    request_line: str,
    version: str | None,
    token: str | None,
    status: int,
    logged: str,
) -> None:
    """Client, request and result; also for refused requests."""
    method, path = request_line.split()
    with caplog.at_level(logging.INFO, LOGGER):
        answer = api.request(method, path, version=version, headers={"X-Auth-Token": token})
    length = answer.headers.get("content-length") or "-"
    result = f"status: {status} len: {length} microversion: {logged}"
    assert lines(caplog, logging.INFO) == [f'127.0.0.1 "{request_line}" {result}']


def test_the_mount_prefix_is_part_of_the_line(
    shared_app: "WSGIApplication", caplog: pytest.LogCaptureFixture
) -> None:
    """`<uri>` = mount prefix + path + query."""
    with caplog.at_level(logging.DEBUG, LOGGER):
        Client.of(shared_app, script_name="/placement").get("/traits?associated=true")
    (line,) = lines(caplog, logging.INFO)
    assert '"GET /placement/traits?associated=true" status: 200' in line
    (line,) = lines(caplog, logging.DEBUG)
    assert line == 'Starting request: 127.0.0.1 "GET /placement/traits?associated=true"'


@pytest.mark.parametrize("path", ["/traits/%0A%0Aforged", "/traits/%FF", "/traits?name=%0Aforged"])
def test_a_request_cannot_forge_a_line(
    api: Client, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    """Its text stays within its own line."""
    with caplog.at_level(logging.INFO, LOGGER):
        api.get(path)
    (line,) = lines(caplog, logging.INFO)
    assert re.search(r"[\r\n]", line) is None

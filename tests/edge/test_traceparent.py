# SPDX-License-Identifier: Apache-2.0
"""`traceparent`: read strictly, and shown in the log and in the audit log."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from berth.edge.log_setup import ObjectFormatter
from berth.edge.request_log import REQUEST_LOG, record_of, trace_id_of
from tests.api import configured
from tests.client import Client

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
VALID = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.mark.parametrize(
    "header",
    [
        VALID,
        f"00-{TRACE}-00f067aa0ba902b7-00",
        f" {VALID}\t",
        f"cc-{TRACE}-00f067aa0ba902b7-01",
        f"01-{TRACE}-00f067aa0ba902b7-01-what-the-future-will-be-like",
    ],
)
def test_valid_headers(header: str) -> None:
    """Any flags; later versions may append members."""
    assert trace_id_of(header) == TRACE


@pytest.mark.parametrize(
    "header",
    [
        "",
        f"ff-{TRACE}-00f067aa0ba902b7-01",
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-00f067aa0ba902b7-01",
        f"00-{TRACE}-00f067aa0ba902b7-01-more",
        f"00-{TRACE}-00f067aa0ba902b7-01-",
        f"cc-{TRACE}-00f067aa0ba902b7-01.more",
        f"00-{TRACE}-00f067aa0ba902b7-1",
        f"00-{TRACE}-00f067aa0ba902b7",
        f"00-{TRACE[1:]}-00f067aa0ba902b7-01",
        f"0-{TRACE}-00f067aa0ba902b7-01",
        f"00_{TRACE}_00f067aa0ba902b7_01",
        f"{VALID},{VALID}",
        f"{VALID}\n",
    ],
)
def test_invalid_headers_are_ignored(header: str) -> None:
    """As the specification demands."""
    assert trace_id_of(header) is None


@pytest.fixture
def client(tmp_path: Path) -> Client:
    """A client of a service with an audit log."""
    return configured.serve(tmp_path, "[berth]\naudit_log = audit.jsonl\n")


def test_the_trace_is_in_the_request_log_and_the_audit_log(
    client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of requests that belong to one; the lines of others are as they were."""
    with caplog.at_level(logging.INFO, REQUEST_LOG.name):
        for header in ({"traceparent": VALID}, {"traceparent": "wrong"}, {}):
            client.put("/traits/CUSTOM_TRACED", headers=header)
    lines = [record.getMessage() for record in caplog.records if record.name == REQUEST_LOG.name]
    assert [line.endswith(f"microversion: 1.39 trace: {TRACE}") for line in lines] == [
        True,
        False,
        False,
    ]
    assert lines[1].endswith("microversion: 1.39") and lines[2].endswith("microversion: 1.39")
    audited = map(json.loads, (tmp_path / "audit.jsonl").read_text().splitlines())
    assert [line.get("trace_id") for line in audited] == [TRACE, None, None]


def test_every_json_line_of_the_request_has_the_trace(client: Client) -> None:
    """Not only its line in the request log; and nothing changes without a trace."""
    formatter = ObjectFormatter()
    seen = []
    record = logging.makeLogRecord({"msg": "x", "levelno": logging.INFO, "levelname": "INFO"})
    outcome = ("127.0.0.1", '"GET /"', "200", "1", "1.39")
    for header in ({"traceparent": VALID}, {}):
        client.get("/", headers=header)
        trace = f" trace: {TRACE}" if header else ""
        request = record_of(logging.INFO, (*outcome, trace), 0.25)
        for each in (record, request):
            shown = json.loads(formatter.format(each))
            seen.append((shown.get("extra") or {}).get("trace_id"))
    assert seen == [TRACE, TRACE, None, None]


def test_a_crash_is_logged_with_its_trace(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The first thing to look for in the traces."""

    def crash(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("berth.store.traits.create_trait", crash)
    response = client.put("/traits/CUSTOM_TRACED", headers={"traceparent": VALID})
    assert response.status == 500
    request_id = response.headers["x-openstack-request-id"]
    assert f"Unexpected error in request {request_id} of trace {TRACE}" in caplog.text

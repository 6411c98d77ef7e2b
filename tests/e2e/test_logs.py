# SPDX-License-Identifier: Apache-2.0
"""The log in an operator's configurations: JSON, rotated files, and no secrets."""

from __future__ import annotations

import json
import logging
import stat
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

from berth.config.options import AuthStrategy
from berth.edge.log_setup import ObjectFormatter
from tests.client import Client
from tests.e2e.serving import PATIENCE, Service, serving, wait_until
from tests.edge.auth.gate import basic
from tests.edge.auth.test_identity_headers import served

CHAIN = f"req-{uuid.uuid4()}"


def objects(service: Service, log: Path, **wanted: object) -> list[dict[str, Any]]:
    """The JSON objects of the log with these request fields."""
    entries = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    return [entry for entry in entries if wanted.items() <= entry["extra"].items()]


def test_a_request_is_an_object_with_fields_of_its_own(tmp_path: Path) -> None:
    """With use_json: caller, request, result and both ids; also for refused requests."""
    log = tmp_path / "berth.log"
    variables = {"OS_DEFAULT__USE_JSON": "true", "OS_DEFAULT__LOG_FILE": str(log)}
    with serving(tmp_path, variables=variables) as service:
        client = Client.at(service.url).acting_as(
            {"X-Auth-Token": "alice:web", "X-Roles": "admin", "X-Openstack-Request-Id": CHAIN}
        )
        answer = client.get("/traits?name=in:NOTHING", version="1.6")
        wait_until(lambda: bool(objects(service, log, method="GET")), "the request to be logged")
        (entry,) = objects(service, log, method="GET")
        seconds = entry["extra"].pop("seconds")
        assert 0 < seconds < PATIENCE
        assert entry["extra"] == {
            "remote_addr": "127.0.0.1",
            "method": "GET",
            "path": "/traits?name=in:NOTHING",
            "status": 200,
            "length": len(answer.text),
            "microversion": "1.6",
        }
        context = entry["context"]
        assert context["request_id"] == answer.headers["x-openstack-request-id"]
        assert context["global_request_id"] == CHAIN
        assert (context["user"], context["project"]) == ("alice", "web")
        assert (entry["name"], entry["levelname"]) == ("placement.requestlog", "INFO")
        refused = client.acting_as({}).put("/traits/CUSTOM_A")
        wait_until(lambda: bool(objects(service, log, status=401)), "the refusal to be logged")
        (entry,) = objects(service, log, status=401)
        assert entry["context"]["request_id"] == refused.headers["x-openstack-request-id"]
        assert entry["context"]["user"] is None
        assert (entry["extra"]["method"], entry["extra"]["microversion"]) == ("PUT", None)


def test_a_file_that_is_rotated_is_followed_by_all_workers(tmp_path: Path) -> None:
    """logrotate moves the file away: with watch_log_file, each worker continues in a new one."""
    log, moved = tmp_path / "berth.log", tmp_path / "berth.log.1"
    variables = {"OS_DEFAULT__LOG_FILE": str(log), "OS_DEFAULT__WATCH_LOG_FILE": "true"}

    def workers_in(path: Path) -> set[str]:
        lines = path.read_text().splitlines() if path.exists() else []
        return {line.split()[2] for line in lines if "placement.requestlog" in line}

    with serving(tmp_path, "--workers", "2", variables=variables) as service:

        def both_wrote(path: Path) -> bool:
            assert Client.at(service.url).get("/").status == 200
            return len(workers_in(path)) == 2

        wait_until(lambda: both_wrote(log), "both workers to log")
        log.rename(moved)
        wait_until(lambda: both_wrote(log), "both workers to log to the new file")
        assert workers_in(log) == workers_in(moved)
        assert [stat.S_IMODE(path.stat().st_mode) for path in (log, moved)] == [0o600, 0o600]


def test_a_log_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    """As logrotate created it, for a group that reads logs."""
    log = tmp_path / "berth.log"
    log.touch()
    log.chmod(0o640)
    with serving(tmp_path, variables={"OS_DEFAULT__LOG_FILE": str(log)}) as service:
        assert Client.at(service.url).get("/").status == 200
        wait_until(lambda: "GET /" in log.read_text(), "a line")
    assert stat.S_IMODE(log.stat().st_mode) == 0o640


@pytest.mark.parametrize(("option", "value"), [("LOG_FILE", "logs/a.log"), ("LOG_DIR", "logs")])
def test_a_log_that_goes_to_files_does_not_go_to_stderr_too(
    tmp_path: Path, option: str, value: str
) -> None:
    """Otherwise the systemd journal would have each line a second time."""
    folder = tmp_path / "logs"
    folder.mkdir()
    variables = {f"OS_DEFAULT__{option}": str(tmp_path / value)}
    with serving(tmp_path, variables=variables) as service:
        assert Client.at(service.url).get("/").status == 200
        wait_until(lambda: any("GET /" in log.read_text() for log in folder.iterdir()), "a line")
        service.terminate()
        assert "GET /" not in service.log.read_text()


#: What must not stand in any log, in the places where it comes.
SECRETS = ("5ecret-t0ken", "5ecret-pa55", "5ecret-b0dy", "5ecret-5ervice")


class Written(logging.Handler):
    """Collects everything that is logged, as text and as JSON, with tracebacks."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Format a record as a log would."""
        self.texts += [logging.Formatter().format(record), ObjectFormatter().format(record)]


@pytest.fixture
def written(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """Everything that is logged at DEBUG by any library."""
    caplog.set_level(logging.DEBUG)
    handler = Written()
    logging.getLogger().addHandler(handler)
    yield handler.texts
    logging.getLogger().removeHandler(handler)


def faults_of(secret: Mapping[str, str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Requests with these headers that end in each possible way."""
    json_type = {"Content-Type": "application/json", **secret}
    body = b'{"name": "5ecret-b0dy"'
    yield "GET", "/traits", {"headers": secret}
    yield "POST", "/resource_providers", {"headers": json_type, "body": body}
    yield "POST", "/resource_providers", {"headers": json_type, "body": body + b"}"}
    yield "POST", "/resource_providers", {"headers": json_type, "body": body + b', "wrong": 1}'}
    yield "PUT", "/traits/lower", {"headers": {**json_type, "Content-Length": "9" * 12}}
    yield "PUT", "/traits/lower", {"headers": {**json_type, "Content-Length": "900"}, "body": body}
    yield "GET", "/nowhere", {"headers": secret}
    yield "PATCH", "/traits", {"headers": secret}
    yield "GET", "/traits?name=" + "n" * 40_000, {"headers": secret}
    yield "GET", "/traits", {"headers": secret, "version": "7.7"}


@pytest.mark.parametrize("strategy", get_args(AuthStrategy))
def test_no_secret_stands_in_the_log(strategy: str, tmp_path: Path, written: list[str]) -> None:
    """At DEBUG, with every strategy of authentication and every result; nor bodies."""
    client, headers_of = served(strategy, tmp_path)
    # Without authentication a token is a name, and is logged as one.
    token = "operator" if strategy == "noauth2" else "5ecret-t0ken"
    wrong = {
        "X-Auth-Token": token,
        "X-Service-Token": "5ecret-5ervice",
        "X-Storage-Token": "5ecret-5ervice",
    }
    right = headers_of("operator") if strategy in ("http_basic", "token") else wrong
    secrets = [*SECRETS, *(value.partition(" ")[2] for value in right.values() if " " in value)]
    ends = set()
    for headers in (wrong, wrong | basic("operator", "5ecret-pa55"), wrong | dict(right)):
        for method, path, more in faults_of(headers):
            answer = client.acting_as({}).request(method, path, **more)
            ends.add(answer.status)
            assert answer.headers["x-openstack-request-id"].startswith("req-")
    # Keystone is not there to be asked about the token.
    status = {"keystone": 503, "noauth2": 404}.get(strategy, 401)
    assert ends >= {status, 413, 414}
    assert any("status: 413" in text for text in written)
    assert not [text for text in written for secret in filter(None, secrets) if secret in text]

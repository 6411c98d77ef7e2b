# SPDX-License-Identifier: Apache-2.0
"""Which service a command speaks to, and as whom."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cli.in_process import InProcess
from tests.e2e.serving import configured

PASSWORD = {
    "auth": {
        "username": "alice",
        "password": "secret",
        "project_name": "admin",
        "user_domain_id": "default",
        "project_domain_id": "default",
    },
}


class Recorder:
    """A service and an identity service that remember how callers prove who they are."""

    def __init__(self) -> None:
        self.url = ""
        #: The header of each request to the service.
        self.tokens: list[str | None] = []
        self.basic: list[str | None] = []
        #: The names that were given to the identity service.
        self.users: list[str] = []

    def answer(self, handler: BaseHTTPRequestHandler) -> tuple[int, dict[str, str], object]:
        """Answer a request to either."""
        path = handler.path.partition("?")[0]
        if path == "/v3/auth/tokens":
            length = int(handler.headers["Content-Length"])
            identity = json.loads(handler.rfile.read(length))["auth"]["identity"]
            self.users.append(identity["password"]["user"]["name"])
            return 201, {"X-Subject-Token": "of-keystone"}, self.token()
        if path.startswith("/v3"):
            version = {"id": "v3.14", "status": "stable", "links": [self.link()]}
            return 200, {}, {"version": version}
        self.tokens.append(handler.headers["X-Auth-Token"])
        self.basic.append(handler.headers["Authorization"])
        return 200, {}, {"resource_providers": []}

    def link(self) -> dict[str, str]:
        """The link of the identity service to itself."""
        return {"rel": "self", "href": f"{self.url}/v3/"}

    def token(self) -> object:
        """A token whose catalogue has this service as placement."""
        endpoint = {"interface": "public", "region": "r1", "region_id": "r1", "id": "e"}
        placement = {"type": "placement", "name": "placement"}
        return {
            "token": {
                "methods": ["password"],
                "expires_at": "2099-01-01T00:00:00.000000Z",
                "issued_at": "2026-01-01T00:00:00.000000Z",
                "user": {"id": "a", "name": "alice", "domain": {"id": "d", "name": "D"}},
                "project": {"id": "p", "name": "admin", "domain": {"id": "d", "name": "D"}},
                "catalog": [{**placement, "endpoints": [{**endpoint, "url": self.url}]}],
            }
        }


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """Both services, on one port."""
    with recording(Recorder()) as running:
        yield running


@contextmanager
def recording(recorder: Recorder) -> Iterator[Recorder]:
    """Serve until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = recorder.answer(self)
            text = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Type": "application/json"}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    recorder.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield recorder
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment that names no service, and an empty home."""
    for name in ("BERTH_URL", "BERTH_USER", "BERTH_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    for name in ("TOKEN", "CLOUD", "AUTH_URL", "AUTH_TYPE", "ENDPOINT", "USERNAME"):
        monkeypatch.delenv(f"OS_{name}", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_a_url_and_a_token(recorder: Recorder, in_process: InProcess) -> None:
    """As options, or as variables."""
    done = in_process("provider", "list", "--url", recorder.url, "--token", "t1")
    assert (done.returncode, recorder.tokens) == (0, ["t1"])


def test_the_environment_names_them_too(
    recorder: Recorder, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And an option comes first."""
    monkeypatch.setenv("BERTH_URL", recorder.url)
    monkeypatch.setenv("OS_TOKEN", "t2")
    monkeypatch.setenv("BERTH_USER", "alice")
    assert in_process("provider", "list").returncode == 0
    assert in_process("provider", "list", "--token", "t3").returncode == 0
    assert recorder.tokens == ["t2", "t3"]


def test_a_user_and_a_password(
    recorder: Recorder, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By HTTP basic authentication."""
    monkeypatch.setenv("BERTH_URL", recorder.url)
    monkeypatch.setenv("BERTH_USER", "alice")
    monkeypatch.setenv("BERTH_PASSWORD", "secret")
    assert in_process("provider", "list").returncode == 0
    assert recorder.basic == [f"Basic {base64.b64encode(b'alice:secret').decode()}"]


def test_keystone_by_the_usual_variables(
    recorder: Recorder, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service is the one in its catalogue."""
    monkeypatch.setenv("OS_AUTH_URL", f"{recorder.url}/v3")
    for name, value in PASSWORD["auth"].items():
        monkeypatch.setenv(f"OS_{name.upper()}", value)
    done = in_process("provider", "list")
    assert (done.returncode, done.stderr) == (0, "")
    assert (recorder.users, recorder.tokens) == (["alice"], ["of-keystone"])


def test_keystone_without_a_keystone(
    recorder: Recorder, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OS_AUTH_TYPE may name any plugin of keystoneauth."""
    for name, value in ("AUTH_TYPE", "admin_token"), ("ENDPOINT", recorder.url), ("TOKEN", "t4"):
        monkeypatch.setenv(f"OS_{name}", value)
    monkeypatch.setenv("OS_AUTH_TYPE", "admin_token")
    assert in_process("provider", "list").returncode == 0
    assert recorder.tokens == ["t4"]
    monkeypatch.setenv("OS_AUTH_TYPE", "telepathy")
    done = in_process("provider", "list")
    assert done.returncode == 1
    assert done.stderr.startswith("berth: Unknown auth_type telepathy; the installed ones are ")


@pytest.mark.parametrize("is_option", [True, False])
def test_an_entry_of_clouds_yaml(
    recorder: Recorder,
    in_process: InProcess,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    is_option: bool,
) -> None:
    """Named by --os-cloud or OS_CLOUD."""
    cloud = {**PASSWORD, "region_name": "r1"}
    cloud["auth"] = {**PASSWORD["auth"], "auth_url": f"{recorder.url}/v3"}
    (tmp_path / "clouds.yaml").write_text(json.dumps({"clouds": {"home": cloud}}))
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    if not is_option:
        monkeypatch.setenv("OS_CLOUD", "home")
    done = in_process("provider", "list", *(["--os-cloud", "home"] if is_option else []))
    assert (done.returncode, done.stderr) == (0, "")
    assert (recorder.users, recorder.tokens) == (["alice"], ["of-keystone"])


def test_a_cloud_that_is_in_no_file(in_process: InProcess, tmp_path: Path) -> None:
    """One sentence with its name."""
    done = in_process("provider", "list", "--os-cloud", "nowhere")
    assert done.returncode == 1
    assert done.stderr.startswith("berth: cloud nowhere: ") and done.stderr.count("\n") == 1


def test_the_extra_for_clouds_is_named(
    in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where openstacksdk is not installed."""
    monkeypatch.setitem(sys.modules, "openstack.config", None)
    done = in_process("provider", "list", "--os-cloud", "home")
    assert (done.returncode, done.stderr) == (
        4,
        "berth: clouds.yaml needs openstacksdk, which is not installed: "
        "pip install 'berthd[client]'\n",
    )


def test_a_url_without_anybody(in_process: InProcess) -> None:
    """It never falls back to the database."""
    done = in_process("provider", "list", "--url", "http://127.0.0.1:1")
    assert done.returncode == 2
    assert "needs authentication" in done.stderr


def test_a_token_without_a_service(in_process: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not reach a database that its owner did not mean."""
    monkeypatch.setenv("OS_TOKEN", "t5")
    done = in_process("provider", "list")
    assert (done.returncode, done.stderr) == (
        2,
        "berth: a token is for a service: name it with --url or BERTH_URL\n",
    )


def test_a_configuration_names_a_database(
    in_process: InProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whatever the environment says; with --url it is a contradiction."""
    conf = configured(tmp_path, f"sqlite:///{tmp_path}/berth.db")
    monkeypatch.setenv("BERTH_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("OS_TOKEN", "t6")
    done = in_process("provider", "list", "--config-file", str(conf))
    assert (done.returncode, done.stdout) == (0, "0 providers in 0 trees\n")
    done = in_process("provider", "list", "--config-file", str(conf), "--url", "http://x")
    assert done.returncode == 2 and "choose one" in done.stderr


def test_a_service_that_does_not_answer(in_process: InProcess) -> None:
    """One sentence with its address."""
    done = in_process("provider", "list", "--url", "http://127.0.0.1:1", "--token", "t")
    assert (done.returncode, done.stderr) == (
        11,
        "berth: GET /resource_providers got no answer from http://127.0.0.1:1: "
        "Connection refused\n",
    )


def test_nothing_but_the_light_install_is_imported_over_http(recorder: Recorder) -> None:
    """Neither the service nor what it needs."""
    code = (
        "import sys\nfrom berth.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\nfinally:\n    print(*sys.modules, file=sys.stderr)\n"
    )
    words = ("provider", "list", "--url", recorder.url, "--token", "t")
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "0 providers in 0 trees\n")
    imported = {name.partition(".")[0] for name in done.stderr.split()}
    assert imported & {"keystoneauth1"}
    assert not imported & {"numpy", "sqlalchemy", "oslo_config", "granian", "rich", "jsonschema"}

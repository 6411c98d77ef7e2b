# SPDX-License-Identifier: Apache-2.0
"""Which service a command speaks to, and as whom."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import click
import pytest

from berth.cli.deferred import loaded
from berth.cli.main import cli
from tests.cli.in_process import InProcess
from tests.e2e.serving import configured

PROVIDER = "11111111-2222-4333-8444-555555555555"

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


pytestmark = pytest.mark.usefixtures("at_home")


@pytest.mark.parametrize(
    ("variables", "options", "token"),
    [
        ({}, "--url URL --token t1", "t1"),
        ({"BERTH_URL": "URL", "OS_TOKEN": "t2", "BERTH_USER": "alice"}, "", "t2"),
        ({"BERTH_URL": "URL", "OS_TOKEN": "t2"}, "--token t3", "t3"),
        ({"BERTH_URL": "URL", "BERTH_USER": "alice", "BERTH_PASSWORD": "secret"}, "", None),
        # OS_AUTH_TYPE may name any plugin of keystoneauth.
        ({"OS_AUTH_TYPE": "admin_token", "OS_ENDPOINT": "URL", "OS_TOKEN": "t4"}, "", "t4"),
    ],
)
def test_a_service_is_named_by_options_or_variables(
    recorder: Recorder,
    in_process: InProcess,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    options: str,
    token: str | None,
) -> None:
    """An option comes first; a password is sent by HTTP basic authentication."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value.replace("URL", recorder.url))
    done = in_process("provider", "list", *options.replace("URL", recorder.url).split())
    assert (done.returncode, recorder.tokens) == (0, [token])
    if token is None:
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


@pytest.mark.parametrize(
    ("variables", "options", "code", "said"),
    [
        ({"OS_AUTH_TYPE": "telepathy"}, "", 1, "Unknown auth_type telepathy; the installed ones"),
        ({}, "--os-cloud nowhere", 1, "cloud nowhere: "),
        # It never falls back to a database that its owner did not mean.
        ({}, "--url http://127.0.0.1:1", 2, "http://127.0.0.1:1 needs authentication"),
        ({"OS_TOKEN": "t5"}, "", 2, "a token is for a service: name it with --url or BERTH_URL"),
        (
            {},
            "--url http://127.0.0.1:1 --token t",
            11,
            "GET /resource_providers got no answer from http://127.0.0.1:1: Connection refused",
        ),
    ],
)
def test_what_names_no_service_is_one_sentence(
    in_process: InProcess,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    options: str,
    code: int,
    said: str,
) -> None:
    """With what is missing."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = in_process("provider", "list", *options.split())
    assert (done.returncode, done.stderr.count("\n")) == (code, 1)
    assert done.stderr.startswith(f"berth: {said}")


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


def test_a_configuration_names_a_database(
    in_process: InProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, prepared: Path
) -> None:
    """Whatever the environment says; with --url it is a contradiction."""
    shutil.copy(prepared, tmp_path)
    conf = configured(tmp_path, f"sqlite:///{tmp_path}/berth.db")
    monkeypatch.setenv("BERTH_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("OS_TOKEN", "t6")
    done = in_process("provider", "list", "--config-file", str(conf))
    assert (done.returncode, done.stdout) == (0, "0 providers in 0 trees\n")
    assert done.stderr == f"Database: sqlite:///{tmp_path}/berth.db\n"
    done = in_process("provider", "list", "--config-file", str(conf), "--url", "http://x")
    assert done.returncode == 2 and "choose one" in done.stderr


def test_a_wrong_token_is_one_sentence(in_process: InProcess) -> None:
    """In the words of the service, without those that repeat the status, and without HTML."""

    class Refusing(Recorder):
        def answer(self, handler: BaseHTTPRequestHandler) -> tuple[int, dict[str, str], object]:
            message = (
                "This server could not verify.<br /><br />\nThe credentials are not valid.\n\n"
            )
            return 401, {}, {"message": message, "code": "401 Unauthorized"}

    with recording(Refusing()) as refusing:
        done = in_process("provider", "list", "--url", refusing.url, "--token", "wrong")
    assert (done.returncode, done.stdout) == (11, "")
    assert done.stderr == (
        "berth: The credentials are not valid; authentication failed: check the token or the "
        "password\n"
    )


@pytest.mark.parametrize(
    ("words", "token"),
    [
        (("provider", "list"), "t"),
        (("--debug", "provider", "list"), "t"),
        (("provider", "list"), ""),
        (("status",), ""),
    ],
)
@pytest.mark.parametrize("scheme", ["http://", ""])
def test_a_password_in_a_url_is_not_shown(
    in_process: InProcess,
    monkeypatch: pytest.MonkeyPatch,
    scheme: str,
    words: tuple[str, ...],
    token: str,
) -> None:
    """Whatever is wrong with the service or with the URL."""
    monkeypatch.setenv("BERTH_URL", f"{scheme}alice:secret@127.0.0.1:1")
    monkeypatch.setenv("OS_TOKEN", token)
    done = in_process(*words)
    assert done.returncode != 0
    assert "alice:***@127.0.0.1:1" in done.stdout + done.stderr
    assert "secret" not in done.stdout + done.stderr


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


# --- client.yaml ----------------------------------------------------------------------------------


@pytest.fixture
def client_file(tmp_path: Path, recorder: Recorder) -> Path:
    """The file of a user, with a token beside it."""
    folder = tmp_path / ".config" / "berth"
    folder.mkdir(parents=True)
    (folder / "token").write_text("of-file\n")
    path = folder / "client.yaml"
    path.write_text(f"url: {recorder.url}\ntoken_file: token\n")
    return path


def test_a_file_names_the_service_where_nothing_else_does(
    client_file: Path, recorder: Recorder, in_process: InProcess
) -> None:
    """With its token, which no other service gets, unless the caller has another one."""
    assert in_process("provider", "list").returncode == 0
    assert in_process("provider", "list", "--token", "t7").returncode == 0
    done = in_process("provider", "list", "--url", "http://127.0.0.1:1")
    assert done.returncode == 2 and "needs authentication" in done.stderr
    assert recorder.tokens == ["of-file", "t7"]


def test_a_file_that_cannot_be_used_is_named(client_file: Path, in_process: InProcess) -> None:
    """With the place of the mistake; the command does not go on to a database."""
    client_file.write_text("url: 127.0.0.1:8778\ntoken_file: token\n")
    done = in_process("provider", "list")
    assert done.returncode == 1
    assert done.stderr.startswith(f"berth: {client_file}, url: expected http:// or https://")


# --- Every command --------------------------------------------------------------------------------

#: The commands that use no service, each with the reason.
OF_THIS_MACHINE = {
    "agent": "reads the service from agent.yaml, as the daemon does",
    "audit-log": "reads the log files of the service on this machine",
    "completion": "prints a script for the shell",
    "config": "shows the configuration of the service on this machine",
    "db": "works on the database itself",
    "demo serve": "starts a service of its own, with a database of its own",
    "files": "prints a directory of this installation",
    "policy": "reads the policy files of the service on this machine",
    "serve": "is the service",
    "token": "changes the token file of the service on this machine",
    "user": "changes the user file of the service on this machine",
}

#: Values of required arguments that not every text is.
VALUES = {"seconds": "10m", "file": "-"}


def every_command(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """The commands below one, with the words that call each."""
    actual = loaded(command)
    if not isinstance(actual, click.Group):
        yield path, actual
        return
    for name, child in actual.commands.items():
        yield from every_command(child, (*path, name))


COMMANDS = {
    path: command
    for path, command in every_command(cli)
    if not {path[0], " ".join(path)} & OF_THIS_MACHINE.keys()
}


def arguments_of(command: click.Command) -> list[str]:
    """Something for each required argument and option."""
    words: list[str] = []
    for parameter in command.params:
        if parameter.required:
            flag = [parameter.opts[0]] if isinstance(parameter, click.Option) else []
            words += [*flag, VALUES.get(str(parameter.name), "x")]
    return words


def test_every_command_uses_the_service_that_the_environment_names(
    in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or stands in a list with its reason: none overlooks BERTH_URL and opens a database."""
    monkeypatch.setenv("BERTH_URL", "127.0.0.1:21110")
    for path, command in COMMANDS.items():
        done = in_process(*path, *arguments_of(command))
        assert (path, done.returncode, done.stdout) == (path, 2, "")
        assert done.stderr == (
            "berth: BERTH_URL must begin with http:// or https://, as in http://127.0.0.1:21110\n"
        )


def test_the_list_of_commands_without_a_service_has_no_others() -> None:
    """A command that is gone leaves it; one that uses a service is not in it."""
    paths = {" ".join(path): command for path, command in every_command(cli)}
    for name in OF_THIS_MACHINE:
        below = [
            command
            for path, command in paths.items()
            if path == name or path.startswith(f"{name} ")
        ]
        assert below, name
        options = {str(parameter.name) for command in below for parameter in command.params}
        assert "url" not in options


# --- A database that nothing names ----------------------------------------------------------------


@pytest.fixture
def unnamed(at_home: Path, prepared: Path) -> Path:
    """The database in the home directory, which exists and which nothing names."""
    folder = at_home / ".local" / "share" / "berth"
    folder.mkdir(parents=True)
    return Path(shutil.copy(prepared, folder))


def test_a_database_that_does_not_exist_is_refused_and_not_made(
    in_process: InProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A forgotten BERTH_URL is not answered from an empty fleet; nor is a misspelt database."""
    for words in ("who", "place VCPU=1 --for web/job-17", "drain create d1 cn1", "audit"):
        done = in_process(*words.split())
        path = tmp_path / ".local" / "share" / "berth" / "berth.db"
        assert (done.returncode, done.stdout) == (7, "")
        assert done.stderr == (
            f"berth: there is no database sqlite:///{path}: to use a service, name it with --url "
            "or BERTH_URL; to create the database, start `berth serve` or run `berth db upgrade`\n"
        )
    assert not (tmp_path / ".local").exists()
    url = f"sqlite:///{tmp_path}/none.db"
    done = in_process("who", "--config-file", str(configured(tmp_path, url)))
    assert (done.returncode, done.stdout) == (7, "")
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", url)
    done = in_process("provider", "create", "cn1")
    assert done.returncode == 7 and f"there is no database {url}: " in done.stderr
    assert not (tmp_path / "none.db").exists()


def test_the_first_line_on_stderr_names_the_database(
    unnamed: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, never in the output, and without its password."""
    done = in_process("who", "--json")
    assert done.returncode == 0 and json.loads(done.stdout) == {"end": True, "lines": 0}
    assert done.stderr == (f"Database: sqlite:///{unnamed} (no --url or BERTH_URL given)\n")
    of_db = in_process("db", "version")
    assert of_db.stderr == f"Database: sqlite:///{unnamed} (no --config-file given)\n"
    url = "postgresql://berth:secret@127.0.0.1:1/berth"
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", url)
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__MAX_RETRIES", "0")
    done = in_process("who")
    assert done.stderr.startswith("Database: postgresql://berth:***@127.0.0.1:1/berth (no --url")
    assert "secret" not in done.stderr


def test_nothing_changes_a_database_that_nothing_names(
    unnamed: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be another fleet than the one that the user means: until the environment names it."""
    conf = str(configured(unnamed.parent, f"sqlite:///{unnamed}"))
    created = in_process("provider", "create", "cn0", "--uuid", PROVIDER, "--config-file", conf)
    assert created.returncode == 0
    before = unnamed.read_bytes()
    for words in (
        "audit --fix --yes",
        "db check --repair",
        "db new-identity",
        "db release --yes",
        "demo load --remove",
        f"drain create d1 {PROVIDER}",
        "lease sweep",
        "provider create cn1",
        f"provider delete {PROVIDER}",
    ):
        done = in_process(*words.split())
        assert (words, done.returncode, done.stdout) == (words, 6, "")
        assert (
            f"berth: this would change sqlite:///{unnamed}, which nothing names: name "
            in done.stderr
        )
        assert "--config-file or OS_PLACEMENT_DATABASE__CONNECTION=sqlite:////" in done.stderr
        assert unnamed.read_bytes() == before
    for words, code in (
        ("provider list", 0),
        ("db check --repair --dry-run", 0),
        ("candidates VCPU=1", 14),
        ("place VCPU=1 --for web/job --dry-run", 14),
    ):
        assert in_process(*words.split()).returncode == code
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", f"sqlite:///{unnamed}")
    assert in_process("provider", "create", "cn1").stdout.startswith("created cn1 ")


def test_without_the_libraries_of_the_service_a_service_must_be_named(
    in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first step is to name one, not to install berth's own."""
    monkeypatch.delitem(sys.modules, "berth.cli.local_database", raising=False)
    monkeypatch.delattr("berth.cli.local_database", raising=False)
    monkeypatch.setitem(sys.modules, "oslo_config", None)
    done = in_process("who")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith("berth: no service is named: set --url or BERTH_URL, and ")

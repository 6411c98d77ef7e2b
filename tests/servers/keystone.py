# SPDX-License-Identifier: Apache-2.0
"""A real Keystone in a virtual environment of its own, on SQLite and a free port.

It is installed from the package index into `build/keystone` if it is missing, in the versions of
constraints.txt, and is used through its command and over HTTP only.
"""

from __future__ import annotations

import fcntl
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests

from tests.e2e.serving import PATIENCE
from tests.servers.ports import HOST, free_port
from tests.servers.process import ServerProcess, make_directory, own_account, remove_directory

#: Who administers it, in the project of the same name.
ADMINISTRATOR = "admin"
PASSWORD = "geheim-f3a1"
REGION = "RegionOne"

_ROOT = Path(__file__).resolve().parents[2]
_CONSTRAINTS = _ROOT / "constraints.txt"
_HERE = _ROOT / "build" / "keystone"

_CONFIGURATION = """\
[DEFAULT]
log_file = {directory}/keystone.log
use_stderr = False
[database]
connection = sqlite:///{directory}/keystone.db
[fernet_tokens]
key_repository = {directory}/keys
[fernet_receipts]
key_repository = {directory}/keys
# Without it, each request is some hundred statements.
[cache]
enabled = True
backend = dogpile.cache.memory
[identity]
password_hash_rounds = 4
"""

#: Runs some `keystone-manage` commands, which are separated by `--`, and then serves on a port. The
#: libraries take seconds to load; so they are loaded once, and each command has a fork. Who asks
#: for a token may say for how long it and the next ones are valid.
_SERVE = """
import os, sys
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from keystone.cmd import manage

configuration, port, *commands = sys.argv[1:]
for command in " ".join(commands).split(" -- ") if commands else ():
    if not (child := os.fork()):
        sys.argv = ["keystone-manage", "--config-file", configuration, *command.split()]
        manage.main()
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(f"keystone-manage {command} failed")

class Quiet(WSGIRequestHandler):
    def log_message(self, *parts):
        pass

class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

import keystone.conf
from keystone.server import wsgi

sys.argv = ["keystone", "--config-file", configuration]
keystone_application = wsgi.initialize_public_application()

def application(environ, start_response):
    if seconds := environ.get("HTTP_X_TEST_EXPIRATION"):
        keystone.conf.CONF.set_override("expiration", int(seconds), "token")
    return keystone_application(environ, start_response)

make_server("127.0.0.1", int(port), application, Server, Quiet).serve_forever()
"""


class NotInstalled(Exception):
    """Keystone is not installed and cannot be downloaded."""


class Keystone:
    """A Keystone with a region, an administrator, and the roles admin, member and reader.

    As a context manager it is closed at the end.
    """

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://{HOST}:{self.port}/v3"
        account = own_account()
        self._directory = make_directory(account)
        self._configuration = self._directory / "keystone.conf"
        self._configuration.write_text(_CONFIGURATION.format(directory=self._directory))
        self._process = ServerProcess(account, self._directory, self._directory / "log")
        self._token = ""
        #: Ids by name.
        self._roles: dict[str, str] = {}
        self._launch(
            f"fernet_setup --keystone-user {account.name} --keystone-group {account.gid}",
            "db_sync",
            f"bootstrap --bootstrap-username {ADMINISTRATOR} --bootstrap-password {PASSWORD}"
            f" --bootstrap-project-name {ADMINISTRATOR} --bootstrap-region-id {REGION}"
            f" --bootstrap-public-url {self.url} --bootstrap-internal-url {self.url}",
        )
        self._token = self.token(ADMINISTRATOR, PASSWORD, project=ADMINISTRATOR)

    def start(self) -> None:
        """Start it with its data, on its port."""
        self._launch()

    def stop(self) -> None:
        """Stop it; its port is then closed."""
        self._process.stop(signal.SIGTERM)

    def pause(self) -> None:
        """Freeze it: connections are accepted, and never answered."""
        self._process.pause()

    def resume(self) -> None:
        """Continue it."""
        self._process.resume()

    def close(self) -> None:
        """Stop it and remove its data."""
        self._process.kill()
        remove_directory(self._directory)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def token(
        self,
        user: str,
        password: str = PASSWORD,
        *,
        project: str | None = None,
        system: bool = False,
        domain: bool = False,
        seconds: int = 3600,
    ) -> str:
        """A token of a user: for a project, the system, the default domain, or unscoped.

        Args:
            seconds: how long it is valid.
        """
        identity = {
            "methods": ["password"],
            "password": {"user": {"name": user, "domain": {"id": "default"}, "password": password}},
        }
        scope: object = "unscoped"
        if project:
            scope = {"project": {"name": project, "domain": {"id": "default"}}}
        elif system:
            scope = {"system": {"all": True}}
        elif domain:
            scope = {"domain": {"id": "default"}}
        body = {"auth": {"identity": identity, "scope": scope}}
        answer = requests.post(
            f"{self.url}/auth/tokens",
            json=body,
            headers={"X-Test-Expiration": str(seconds)},
            timeout=PATIENCE,
        )
        assert answer.status_code == 201, answer.text
        return answer.headers["X-Subject-Token"]

    def credentials(self) -> dict[str, str]:
        """The environment of its administrator, for clients."""
        return {
            "OS_AUTH_URL": self.url,
            "OS_USERNAME": ADMINISTRATOR,
            "OS_PASSWORD": PASSWORD,
            "OS_PROJECT_NAME": ADMINISTRATOR,
            "OS_USER_DOMAIN_ID": "default",
            "OS_PROJECT_DOMAIN_ID": "default",
            "OS_IDENTITY_API_VERSION": "3",
            "OS_REGION_NAME": REGION,
        }

    def revoke(self, token: str) -> None:
        """Revoke a token."""
        self._ask("DELETE", "/auth/tokens", headers={"X-Subject-Token": token})

    def create(self, kind: str, **facts: Any) -> str:
        """Create a `user`, `project`, `role`, `service` or `endpoint`; its id."""
        return str(self._ask("POST", f"/{kind}s", json={kind: facts})[kind]["id"])

    def update(self, kind: str, identity: str, **facts: Any) -> None:
        """Change an object that `create` made."""
        self._ask("PATCH", f"/{kind}s/{identity}", json={kind: facts})

    def create_user(self, name: str, roles: Mapping[str, Sequence[str]]) -> str:
        """Create a user of the default domain with the password `PASSWORD`; return its id.

        Args:
            roles: by target: `projects/<id>`, `domains/<id>` or `system`.
        """
        if roles.keys() - self._roles.keys():
            found = self._ask("GET", "/roles")["roles"]
            self._roles.update({role["name"]: role["id"] for role in found})
        user = self.create("user", name=name, domain_id="default", password=PASSWORD)
        for role, places in roles.items():
            for place in places:
                self._ask("PUT", f"/{place}/users/{user}/roles/{self._roles[role]}")
        return user

    def _ask(self, method: str, path: str, **options: Any) -> Any:
        """Send a request as the administrator; return the JSON of the response."""
        headers: Mapping[str, str] = options.pop("headers", {})
        answer = requests.request(
            method,
            f"{self.url}{path}",
            headers={"X-Auth-Token": self._token, **headers},
            timeout=PATIENCE,
            **options,
        )
        assert answer.ok, f"{method} {path}: {answer.text}"
        return answer.json() if answer.content else None

    def _launch(self, *commands: str) -> None:
        joined = " -- ".join(commands).split()
        self._process.start(
            [_python(), "-W", "ignore", "-c", _SERVE, self._configuration, str(self.port), *joined]
        )
        self._process.wait_until_ready(self._is_ready)

    def _is_ready(self) -> bool:
        with suppress(requests.RequestException):
            return requests.get(self.url, timeout=PATIENCE).ok
        return False


def install() -> None:
    """Install Keystone, if it is not installed in the versions of constraints.txt.

    Raises:
        NotInstalled: it cannot be downloaded; with pip's message.
    """
    _HERE.mkdir(parents=True, exist_ok=True)
    constraints = _CONSTRAINTS.read_text()
    with (_HERE / "lock").open("w") as lock:
        # One of the processes that share the tests does it; the others find it done.
        fcntl.flock(lock, fcntl.LOCK_EX)
        installed = _HERE / "constraints.txt"
        if installed.exists() and installed.read_text() == constraints:
            return
        shutil.rmtree(_HERE / "venv", ignore_errors=True)
        pip = (sys.executable, "-m", "pip", "--python", str(_python()))
        for command in (
            (sys.executable, "-m", "venv", "--without-pip", str(_HERE / "venv")),
            (*pip, "install", "-q", "--no-compile", "-c", str(_CONSTRAINTS), "keystone"),
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                said = (done.stderr or done.stdout).strip().splitlines()
                raise NotInstalled(said[-1] if said else "pip failed")
        installed.write_text(constraints)


def _python() -> Path:
    return _HERE / "venv" / "bin" / "python"

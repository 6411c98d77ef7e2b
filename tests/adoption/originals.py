# SPDX-License-Identifier: Apache-2.0
"""Releases of OpenStack Placement, each in a virtual environment of its own, as black boxes.

They are installed from the package index into `build/peer/<release>` if they are missing, all at
the same time, and are used through their command and over HTTP only.
"""

from __future__ import annotations

import fcntl
import os
import selectors
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.client import Client
from tests.e2e.serving import PATIENCE, stop

#: Release -> the revision that its `db sync` makes: the newest, and the last of each before.
HEADS = {"16.0.0": "a082b8bb98d0", "8.0.0": "422ece571366", "2.0.1": "b5c396305c25"}

#: What old releases were written for.
_OLD = ("SQLAlchemy<2", "oslo.db<13", "oslo.policy<4", "setuptools<81")
_BESIDES: dict[str, tuple[str, ...]] = {
    "16.0.0": (),
    "8.0.0": _OLD,
    "2.0.1": _OLD,
}
_DRIVERS = ("psycopg2-binary", "pymysql")
#: What serves them where a page shows it.
_SERVERS = ("gunicorn",)

_ROOT = Path(__file__).resolve().parents[2]
_INSTALLED = "installed-with-a-server"

#: Serves the original on loopback and prints the port: one request at a time, which is enough for a
#: test, and nothing but the standard library besides the original.
_SERVE = """
from wsgiref.simple_server import WSGIRequestHandler, make_server
from placement.wsgi import init_application

class Quiet(WSGIRequestHandler):
    def log_message(self, *parts):
        pass

server = make_server("127.0.0.1", 0, init_application(), handler_class=Quiet)
print(server.server_port, flush=True)
server.serve_forever()
"""

_CONFIGURATION = """\
[DEFAULT]
log_file = {directory}/placement.log
use_stderr = False
[api]
auth_strategy = noauth2
[placement_database]
connection = {url}
[oslo_policy]
enforce_new_defaults = False
policy_file = {directory}/policy.yaml
"""


class NotInstalled(Exception):
    """A release is not installed and cannot be downloaded."""


@dataclass(frozen=True)
class Original:
    """An installed release, with one database."""

    release: str
    url: str
    #: For its configuration and its log.
    directory: Path

    @property
    def folder(self) -> Path:
        return _folder(self.release)

    def manage(self, *arguments: str) -> str:
        """Run its `placement-manage`; return the output."""
        program = str(_program(self.release, "placement-manage"))
        done = subprocess.run(
            [program, "--config-file", str(self._configured()), *arguments],
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    @contextmanager
    def serving(self) -> Iterator[Client]:
        """A client of its server, for the duration of the block."""
        self._configured()
        process = subprocess.Popen(
            [_program(self.release, "python"), "-c", _SERVE],
            env=_environment(OS_PLACEMENT_CONFIG_DIR=str(self.directory)),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield Client.at(f"http://127.0.0.1:{_port_of(process, self.directory)}")
        finally:
            stop(process)

    def _configured(self) -> Path:
        path = self.directory / "placement.conf"
        # Its own name for the driver that is installed for it.
        url = self.url.replace("postgresql://", "postgresql+psycopg2://")
        path.write_text(_CONFIGURATION.format(directory=self.directory, url=url))
        return path


def install_all() -> None:
    """Install every release that is missing.

    Raises:
        NotInstalled: one of them cannot be downloaded; with pip's message.
    """
    place = _ROOT / "build" / "peer"
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        # One of the processes that share the tests does it; the others find it done.
        fcntl.flock(lock, fcntl.LOCK_EX)
        with ThreadPoolExecutor(len(HEADS)) as pool:
            list(pool.map(_install, HEADS))


def _install(release: str) -> None:
    folder = _folder(release)
    if (folder / _INSTALLED).exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    packages = (f"openstack-placement=={release}", *_BESIDES[release], *_DRIVERS, *_SERVERS)
    # With the pip of the tests: a venv takes four seconds of a processor to install its own.
    pip = (sys.executable, "-m", "pip", "--python", str(_program(release, "python")))
    for command in (
        (sys.executable, "-m", "venv", "--without-pip", str(folder)),
        (*pip, "install", "-q", "--no-compile", *packages),
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise NotInstalled(f"release {release}: {said[-1] if said else 'pip failed'}")
    (folder / _INSTALLED).touch()


def _environment(**variables: str) -> dict[str, str]:
    """In which each module is compiled once, and not at each start again for seconds."""
    told = {**os.environ, **variables}
    told.pop("PYTHONDONTWRITEBYTECODE", None)
    return told


def _folder(release: str) -> Path:
    return _ROOT / "build" / "peer" / release


def _program(release: str, name: str) -> Path:
    return _folder(release) / "bin" / name


def _port_of(process: subprocess.Popen[bytes], directory: Path) -> int:
    """The port that it prints when it listens."""
    assert process.stdout is not None
    deadline = time.monotonic() + PATIENCE
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        assert selector.select(deadline - time.monotonic()), "the original did not start in time"
        line = process.stdout.readline()
    log = directory / "placement.log"
    assert line, f"the original did not start:\n{log.read_text() if log.exists() else ''}"
    return int(line)

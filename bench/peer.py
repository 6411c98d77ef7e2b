# SPDX-License-Identifier: Apache-2.0
"""OpenStack Placement, run as a black box beside berth.

It is installed with pip into a virtual environment of its own (`$BERTH_PEER_VENV`, by default
`build/peer/venv`) and served by uWSGI, as its operators do, on a SQLite file in a temporary
directory or on a database that is named. pyuwsgi is uWSGI, built already: from its source it takes
half a minute of both processors. Nothing of it is imported here: it is a server that
answers HTTP.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.server import RunningServer, ServerNotStarted, free_port, run_server

#: OpenStack Placement in the release that the specification describes, and its server.
PEER_RELEASE = "16.0.0"
PEER_PACKAGES = (f"openstack-placement=={PEER_RELEASE}", "pyuwsgi", "psycopg2-binary", "pymysql")

#: Files that exist once all of them are installed.
_INSTALLED = (
    *("bin/placement-manage", "bin/uwsgi"),
    *("lib/python*/site-packages/psycopg2", "lib/python*/site-packages/pymysql"),
)

_LOG_TAIL_CHARACTERS = 4000

_ROOT = Path(__file__).resolve().parent.parent
_CONFIGURATION = """\
[DEFAULT]
use_stderr = False
log_file = {directory}/placement.log
[api]
auth_strategy = noauth2
[placement_database]
connection = {url}
sync_on_startup = True
[oslo_policy]
policy_file = {directory}/policy.yaml
{extra}
"""


def peer_venv() -> Path:
    """The path of OpenStack Placement's virtual environment."""
    return Path(os.environ.get("BERTH_PEER_VENV") or _ROOT / "build" / "peer" / "venv")


def install_peer() -> Path:
    """Install OpenStack Placement if it is not there, and return its virtual environment.

    Raises:
        subprocess.CalledProcessError: pip or venv failed; their messages are on stderr.
    """
    venv = peer_venv()
    python = venv / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    if not all(any(venv.glob(pattern)) for pattern in _INSTALLED):
        subprocess.run([str(python), "-m", "pip", "install", "-q", *PEER_PACKAGES], check=True)
    return venv


@contextmanager
def run_peer(*, processes: int = 2, extra_configuration: str = "") -> Iterator[RunningServer]:
    """Serve OpenStack Placement on an empty database within the block.

    Args:
        processes: uWSGI worker processes, each with one thread.
        extra_configuration: more text for placement.conf, sections included.
    """
    with (
        tempfile.TemporaryDirectory(prefix="berth-peer-") as name,
        serve_peer(
            Path(name), processes=processes, extra_configuration=extra_configuration
        ) as server,
    ):
        yield server


def peer_database(directory: Path) -> Path:
    """The SQLite file that `serve_peer` serves."""
    return directory / "placement.sqlite"


@contextmanager
def serve_peer(
    directory: Path,
    *,
    processes: int = 2,
    extra_configuration: str = "",
    database_url: str | None = None,
) -> Iterator[RunningServer]:
    """Serve OpenStack Placement on a database, and create its tables if they are missing.

    Args:
        directory: for its configuration and its log.
        processes: uWSGI worker processes, each with one thread.
        extra_configuration: more text for placement.conf, sections included.
        database_url: the database; None: an SQLite file in the directory.
    """
    # Before the workers start: two that do this at the same time collide, and one fails.
    environment = make_tables(
        directory,
        database_url or f"sqlite:///{peer_database(directory)}",
        extra_configuration=extra_configuration,
    )
    venv = peer_venv()
    port = free_port()
    command = [
        str(venv / "bin" / "uwsgi"),
        *("--http-socket", f"127.0.0.1:{port}"),
        *("--virtualenv", str(venv)),
        *("--module", "placement.wsgi.api", "--callable", "application"),
        *("--processes", str(processes), "--master", "--lazy-apps", "--need-app"),
        *("--die-on-term", "--disable-logging", "--listen", "100", "--buffer-size", "65535"),
    ]
    with run_server(
        "original",
        command,
        port=port,
        environment=environment,
        directory=directory,
        # A worker without threads would wait on an idle connection and serve no other client; a
        # new connection on loopback costs a tenth of a millisecond.
        keeps_connections=False,
    ) as server:
        yield server


def make_tables(
    directory: Path, database_url: str, *, extra_configuration: str = ""
) -> dict[str, str]:
    """Create the tables and the standard names, as the service does at startup.

    Returns:
        The environment in which the service finds its configuration in `directory`.

    Raises:
        ServerNotStarted: with the end of its log.
    """
    venv = install_peer()
    # Which driver `postgresql://` means depends on SQLAlchemy's release.
    url = re.sub("^postgresql://", "postgresql+psycopg2://", database_url)
    (directory / "placement.conf").write_text(
        _CONFIGURATION.format(directory=directory, url=url, extra=extra_configuration)
    )
    environment = {**os.environ, "OS_PLACEMENT_CONFIG_DIR": str(directory)}
    made = subprocess.run(
        [str(venv / "bin" / "python"), "-c", "from placement.wsgi.api import application"],
        env=environment,
        capture_output=True,
        text=True,
    )
    if made.returncode != 0:
        log = directory / "placement.log"
        text = log.read_text() if log.exists() else made.stderr
        raise ServerNotStarted("original", log=text[-_LOG_TAIL_CHARACTERS:])
    return environment

# SPDX-License-Identifier: Apache-2.0
"""Other servers that run berth, each with its file from `contrib/wsgi/`.

Only ports, users and directories are replaced in the files. A server that is not installed raises
`Missing`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.client import Client
from tests.docs.pages import ROOT
from tests.e2e.serving import environment, stop, wait_until
from tests.servers.ports import free_port

FILES = ROOT / "contrib" / "wsgi"

#: Where Debian keeps Apache's modules, and the Python that its mod_wsgi runs.
_APACHE_MODULES = Path("/usr/lib/apache2/modules")
_APACHE_PYTHON = Path(f"/usr/bin/python3.{sys.version_info.minor}")

#: Who Apache becomes where it is started by root.
_APACHE_USER = "www-data"

_APACHE_BASICS = """\
ServerName localhost
ServerRoot {home}
DefaultRuntimeDir {home}
PidFile {home}/apache.pid
Mutex pthread
ErrorLog {home}/server.log
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule wsgi_module {modules}/mod_wsgi.so
WSGISocketPrefix {home}/wsgi
{user}
"""

_NGINX_BASICS = """\
daemon off;
pid {home}/nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {home}/body;
    proxy_temp_path {home}/proxy;
    fastcgi_temp_path {home}/fastcgi;
    uwsgi_temp_path {home}/uwsgi;
    scgi_temp_path {home}/scgi;
    include {site};
}}
"""


class Missing(Exception):
    """A server cannot be run on this machine; the message says why."""


@dataclass
class Running:
    """A server that serves berth."""

    url: str
    process: subprocess.Popen[bytes]
    #: What the server and berth write to their log.
    log: Path

    def client(self, prefix: str = "") -> Client:
        """A client of it, on a connection of its own."""
        return Client.at(self.url + prefix)


Server = Callable[..., AbstractContextManager[Running]]


def configure(home: Path, database: Path | None = None) -> None:
    """Write the placement.conf of a service without authentication that logs everything."""
    (home / "placement.conf").write_text(
        "[DEFAULT]\ndebug = True\n[api]\nauth_strategy = noauth2\n"
        "[oslo_middleware]\nenable_proxy_headers_parsing = True\n"
        f"[placement_database]\nconnection = sqlite:///{database or home / 'berth.db'}\n"
    )


@contextmanager
def gunicorn(home: Path, *, preload: bool = False) -> Iterator[Running]:
    """gunicorn with gunicorn.conf.py, in a directory with a placement.conf."""
    arguments = ["--preload"] if preload else []
    port = free_port()
    file = _adapted(home, "gunicorn.conf.py", {"8778": str(port)})
    with _started(home, port, _beside_python("gunicorn"), "--config", file, *arguments) as running:
        yield running


@contextmanager
def uwsgi(home: Path) -> Iterator[Running]:
    """uWSGI with uwsgi.ini, in a directory with a placement.conf."""
    port = free_port()
    file = _adapted(home, "uwsgi.ini", {"8778": str(port)})
    with _started(home, port, _beside_python("uwsgi"), "--ini", file) as running:
        yield running


@contextmanager
def apache(home: Path) -> Iterator[Running]:
    """Apache with apache.conf, in a directory with a placement.conf.

    Raises:
        Missing: Apache, or a mod_wsgi for this Python, or its user cannot read the environment.
    """
    program = shutil.which("apache2", path=f"{os.environ['PATH']}:/usr/sbin")
    of_python = _APACHE_MODULES / f"mod_wsgi.so-3.{sys.version_info.minor}"
    if program is None or not of_python.exists():
        raise Missing("apache2 and a mod_wsgi of this Python are not installed")
    by_root = os.geteuid() == 0
    if by_root:
        _give_away(home)
    port = free_port()
    libraries = f"{sysconfig.get_path('purelib')}:{ROOT}"
    shutil.copy(FILES / "berth.wsgi", home)
    site = _adapted(
        home,
        "apache.conf",
        {
            "8778": str(port),
            # mod_wsgi's own Python, which is not always the one that the tests run on.
            "python-home=/opt/berth": f"python-path={libraries}",
            "user=placement group=placement": f"user={_APACHE_USER}" if by_root else "",
            "/opt/berth/share/berth/wsgi": str(home),
            "/var/log/apache2/berth.log": str(home / "server.log"),
        },
    )
    basics = _APACHE_BASICS.format(
        home=home,
        modules=_APACHE_MODULES,
        user=f"User {_APACHE_USER}\nGroup {_APACHE_USER}" if by_root else "",
    )
    whole = home / "httpd.conf"
    whole.write_text(f"{basics}\nInclude {site}\n")
    with _started(home, port, program, "-D", "FOREGROUND", "-f", str(whole)) as running:
        yield running


@contextmanager
def nginx(home: Path, behind: Running) -> Iterator[Running]:
    """nginx with nginx.conf, in front of another server.

    Raises:
        Missing: nginx is not installed.
    """
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        raise Missing("nginx is not installed")
    port = free_port()
    there = behind.url.rpartition(":")[2]
    site = _adapted(home, "nginx.conf", {"8780": str(port), "8778": there})
    whole = home / "whole.conf"
    whole.write_text(_NGINX_BASICS.format(home=home, site=site))
    arguments = ("-p", str(home), "-c", str(whole))
    with _started(home, port, program, *arguments, log="nginx.log") as running:
        yield running


def _beside_python(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def _adapted(home: Path, name: str, changes: Mapping[str, str]) -> str:
    """A file of `contrib/wsgi/` adapted for a test; every text to replace must be in it."""
    text = (FILES / name).read_text()
    for old, new in changes.items():
        assert old in text, f"{name} does not say {old}"
        text = text.replace(old, new)
    file = home / name
    file.write_text(text)
    return str(file)


@contextmanager
def _started(home: Path, port: int, *command: str, log: str = "server.log") -> Iterator[Running]:
    """A server for the duration of the block, even if it does not start
    (`wait_until_it_answers`)."""
    written = home / log
    with written.open("a") as output:
        process = subprocess.Popen(
            command,
            env=environment(home, OS_PLACEMENT_CONFIG_DIR=str(home)),
            cwd=home,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield Running(f"http://127.0.0.1:{port}", process, written)
    finally:
        stop(process)


def wait_until_it_answers(running: Running) -> None:
    """Wait for a server's first response.

    Raises:
        AssertionError: it has exited, or does not answer; with its log.
    """

    def answers() -> bool:
        assert running.process.poll() is None, running.log.read_text()
        try:
            return running.client().get("/").status == 200
        except OSError:
            return False

    wait_until(answers, f"the server to answer, see {running.log}")


def _give_away(home: Path) -> None:
    """Give a directory to Apache's user, and check that this user can read the environment."""
    shutil.chown(home, _APACHE_USER)
    home.chmod(0o755)
    tried = subprocess.run(
        [_APACHE_PYTHON, "-c", "import berth.deploy"],
        user=_APACHE_USER,
        env={"PYTHONPATH": f"{sysconfig.get_path('purelib')}:{ROOT}"},
        cwd=home,
        capture_output=True,
        check=False,
    )
    if tried.returncode != 0:
        raise Missing(f"Apache's user {_APACHE_USER} cannot run what is in {ROOT}")

# SPDX-License-Identifier: Apache-2.0
"""The operator's page: static files, which run nothing that is not theirs. Source: spec/page.md."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

from berth.config import Settings, load, read_settings
from berth.edge.app import create_app
from berth.edge.page import PAGE
from berth.index import Index
from berth.store.engine.database import Database
from tests.candidates.engine import copy_of
from tests.client import Client

WEB = resources.files("berth.web")
TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
FILES = sorted(file.name for file in WEB.iterdir() if file.name.rpartition(".")[2] in TYPES)
CONTENTS = {name: WEB.joinpath(name).read_text() for name in FILES}


@pytest.fixture(scope="module")
def database(prepared: Path) -> Iterator[Database]:
    """An empty one."""
    with copy_of(prepared) as db:
        yield db


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Those of a service with tokens; the page is on unless the operator turns it off."""
    home = tmp_path_factory.mktemp("page")
    (home / "tokens").write_text("")
    conf = home / "placement.conf"
    conf.write_text(
        f"[api]\nauth_strategy = token\ntoken_file = {home}/tokens\n"
        "[placement_database]\nconnection = sqlite:///none\n"
    )
    return read_settings(load([str(conf)]))


@pytest.fixture(scope="module")
def stranger(settings: Settings, database: Database) -> Client:
    """A client without credentials, of a service below a prefix."""
    app = create_app(settings, database, Index(database))
    return Client.of(app, script_name="/placement").acting_as({})


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_sent_as_it_is(stranger: Client, name: str) -> None:
    """To anybody: it says nothing of the fleet. A browser that has it asks, and is told so."""
    answer = stranger.get(PAGE + name)
    assert (answer.status, answer.text) == (200, CONTENTS[name])
    assert answer.headers["content-type"] == TYPES[name.rpartition(".")[2]]
    tag = {"If-None-Match": answer.headers["etag"]}
    again = stranger.get(PAGE + name, headers=tag)
    assert (again.status, again.body) == (304, b"")
    for shown in (answer, again):
        assert shown.headers["cache-control"] == "no-cache"
        assert "script-src 'self';" in shown.headers["content-security-policy"]
        assert "default-src 'none';" in shown.headers["content-security-policy"]
        assert shown.headers["x-content-type-options"] == "nosniff"
        assert shown.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/berth/ui", 308), ("GET", PAGE + "nope.js", 404), ("DELETE", PAGE, 405)],
)
def test_an_answer_without_a_file_is_guarded_too(
    stranger: Client, method: str, path: str, status: int
) -> None:
    """Nothing below the page's address may run a script of its own or be framed."""
    answer = stranger.request(method, path)
    assert answer.status == status
    assert "default-src 'none';" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"


def test_a_browser_loads_less_than_100_kb() -> None:
    """All files together, as they are sent."""
    packed = sum(len(gzip.compress(content.encode(), mtime=0)) for content in CONTENTS.values())
    assert packed < 100_000


@pytest.mark.parametrize(
    ("accepted", "is_packed"),
    [
        ("gzip, deflate, br", True),
        ("br;q=1.0, GZIP;q=0.5", True),
        ("gzip;q=0", False),
        ("*", False),
    ],
)
def test_a_browser_gets_a_file_packed(stranger: Client, accepted: str, is_packed: bool) -> None:
    """A third of the bytes; who does not name gzip gets it as it is."""
    answer = stranger.get(PAGE + "map.js", headers={"Accept-Encoding": accepted})
    assert (answer.headers.get("content-encoding") == "gzip") is is_packed
    content = gzip.decompress(answer.body) if is_packed else answer.body
    assert content.decode() == CONTENTS["map.js"]
    assert int(answer.headers["content-length"]) == len(answer.body)
    assert answer.headers["vary"] == "accept-encoding"


def test_the_address_works_with_and_without_its_slash(stranger: Client) -> None:
    """Below a prefix too: the redirect is relative."""
    assert stranger.get(PAGE).text == CONTENTS["index.html"]
    moved = stranger.get(PAGE.rstrip("/"))
    assert (moved.status, moved.headers["location"]) == (308, "ui/")


def test_nothing_else_is_there(stranger: Client) -> None:
    """Neither Python, nor anything outside of the folder; and nothing takes a write."""
    for name in ("__init__.py", "../edge/page.py", "%2e%2e/edge/page.py", "nope.js", "/"):
        assert stranger.get(PAGE + name).status == 404, name
    refused = stranger.post(PAGE)
    assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")
    head = stranger.request("HEAD", PAGE)
    assert (head.status, head.body) == (200, b"")
    assert int(head.headers["content-length"]) == len(CONTENTS["index.html"])


def test_nothing_of_it_is_served_where_the_operator_turned_it_off(
    settings: Settings, database: Database
) -> None:
    """With `page = false` its paths are like any other that does not exist, and need a token."""
    app = create_app(replace(settings, page=False), database, Index(database))
    anybody = Client.of(app).acting_as({})
    for path in (PAGE.rstrip("/"), PAGE, *(PAGE + name for name in FILES)):
        answer = anybody.get(path)
        assert (answer.status, "content-security-policy" in answer.headers) == (401, False), path


def test_it_needs_no_other_address() -> None:
    """No file names another origin, but for namespaces of XML and sources in comments."""
    for name, content in CONTENTS.items():
        for address in re.findall(r"https?://[^\s\"')]+", content):
            assert address.startswith(("http://www.w3.org/", "https://personal.sron.nl/")), name


def test_nothing_is_inline_and_nothing_is_made_of_markup() -> None:
    """The policy forbids inline scripts and styles; and names must never become elements."""
    index = CONTENTS["index.html"]
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", index)
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    )
    for name, content in CONTENTS.items():
        assert not forbidden.search(content), name


def test_every_module_that_is_imported_is_there() -> None:
    """A file that is missing in the package would leave the page blank."""
    for name, content in CONTENTS.items():
        for imported in re.findall(r'from "\./([^"]+)"|import\("\./([^"]+)"\)', content):
            assert any(imported) and {*imported} - {""} <= {*FILES}, name
    assert {"main.js", "style.css", "icon.svg"} <= {*FILES}

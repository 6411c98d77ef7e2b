# SPDX-License-Identifier: Apache-2.0
"""The router: every literal segment of a path is compared."""

from __future__ import annotations

from typing import Any

import pytest

from berth.api.errors import Refused
from berth.api.router import Router
from berth.api.routes import routes_of
from tests.api.unit.test_routes import namespace

PATHS = [
    *("/", "/a", "/a/{b}", "/a/{b}/c", "/a/{b}/d", "/a/{b}/c/{d}/e", "/a/{b}/c/{d}/f"),
    *("/a/{b}/x/{d}/e", "/v/1/x", "/{any}/1/y"),
]


@pytest.fixture
def router() -> Router:
    """A router with these paths, without handlers."""
    nothing: Any = None
    return Router(routes_of([namespace(*PATHS)]), nothing)


@pytest.mark.parametrize(
    ("path", "template", "parameters"),
    [
        ("/", "/", {}),
        ("/a", "/a", {}),
        ("/a/1", "/a/{b}", {"b": "1"}),
        ("/a/1/c", "/a/{b}/c", {"b": "1"}),
        ("/a/1/d", "/a/{b}/d", {"b": "1"}),
        ("/a/1/c/2/e", "/a/{b}/c/{d}/e", {"b": "1", "d": "2"}),
        ("/a/1/c/2/f", "/a/{b}/c/{d}/f", {"b": "1", "d": "2"}),
        ("/a/1/x/2/e", "/a/{b}/x/{d}/e", {"b": "1", "d": "2"}),
        ("/v/1/x", "/v/1/x", {}),
        ("/v/1/y", "/{any}/1/y", {"any": "v"}),
    ],
)
def test_a_path_finds_its_route(
    router: Router, path: str, template: str, parameters: dict[str, str]
) -> None:
    """Routes may differ in any literal segment, even if only in a later one."""
    match = router.find(path)
    assert match is not None
    route, values = match
    assert (route.path, values) == (template, list(parameters.values()))


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/b",
        "/A",
        "/a/",
        "//a",
        "/a//c",
        "/a/1/c/",
        "/a/2/y",
        "/a/1/x/2/f",
        "/v/2/x",
        "/a/1/c/2",
    ],
)
def test_another_path_finds_none(router: Router, path: str) -> None:
    """Also one with a double or a trailing slash."""
    assert router.find(path) is None


def test_a_nul_is_refused_where_there_is_a_route(router: Router) -> None:
    """No database stores it."""
    with pytest.raises(Refused, match="NUL") as caught:
        router.find("/a/\0")
    assert caught.value.status == 400
    assert router.find("/b/\0") is None

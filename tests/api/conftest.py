# SPDX-License-Identifier: Apache-2.0
"""One server for all tests over HTTP on each engine: an application in this process, or the one at
`--berth-url`.

Tests share it by using names that no other test has (`tests.api.worlds`). Every response is also
checked against the OpenAPI document.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final, cast

import pytest

from berth import config, deploy
from tests.api.configured import serve
from tests.api.wire import Rule, one_for_each_route
from tests.client import Client
from tests.effort import SEED
from tests.engines import engine_of
from tests.openapi.conformance import check_described

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

    from tests.servers.server import Databases

PLACEMENT_CONF = """
[api]
auth_strategy = noauth2

[berth]
# Tests sweep when they want to.
lease_sweep_seconds = 0

[placement_database]
connection = {url}
sync_on_startup = True
sqlite_synchronous = False

[oslo_policy]
enforce_new_defaults = True
"""


@pytest.fixture(scope="session")
def shared_app(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> WSGIApplication:
    """The application of the whole session, made from a placement.conf as an operator writes it."""
    placement_conf = tmp_path_factory.mktemp("shared") / "placement.conf"
    placement_conf.write_text(PLACEMENT_CONF.format(url=databases.create_database()))
    return deploy.load_application(config.load([str(placement_conf)]))


@pytest.fixture(scope="session")
def api(engine: str, request: pytest.FixtureRequest) -> Client:
    """A client of the shared server."""
    url = request.config.getoption("--berth-url")
    return Client.at(url) if url else Client.of(request.getfixturevalue("shared_app"))


@pytest.fixture(autouse=True)
def answers_are_described(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check that `GET /openapi.json` describes every response."""
    if request.config.getoption("--original"):
        yield
        return
    Client.observers.append(check_described)
    yield
    Client.observers.remove(check_described)


@pytest.fixture(scope="module")
def wire(
    engine: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Client:
    """A client for the rows of a module's tables: of an application for them alone, because what
    can be read is read before and after each refusal; on a server, of the shared one."""
    if engine != "sqlite" or request.config.getoption("--berth-url"):
        return cast("Client", request.getfixturevalue("api"))
    folder = tmp_path_factory.mktemp("wire")
    shutil.copy(request.getfixturevalue("prepared"), folder / "placement.db")
    return serve(folder, "[oslo_policy]\nenforce_new_defaults = True\n")


#: On a server, one of so many tests is run that are no rows of wire tables.
_SHARE: Final = 4


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run on servers a part of the tests, others in each run, unless `--whole-api` asks for all: of
    the rows of wire tables one for each route, and of the other tests a quarter, each with one of
    its sets of parameters. Those that name their engines are run on each."""
    if config.getoption("--whole-api"):
        return
    here = Path(__file__).parent
    sets: dict[tuple[str, str], list[pytest.Item]] = {}
    rows: dict[str, dict[pytest.Item, Rule]] = {}
    for item in items:
        engine = engine_of(item)
        if engine in (None, "sqlite") or here not in item.path.parents:
            continue
        if rule := _rule_of(item):
            rows.setdefault(engine, {})[item] = rule
        elif not item.get_closest_marker("engines"):
            sets.setdefault((engine, item.nodeid.partition("[")[0]), []).append(item)
    others: set[pytest.Item] = set()
    for (engine, test), some in sets.items():
        rng = Random(f"{SEED} {engine} {test}")
        others.update(some)
        if os.environ.get("BERTH_PLANTED") or rng.randrange(_SHARE) == 0:
            others.remove(rng.choice(some))
    for engine, asked in rows.items():
        others |= asked.keys() - one_for_each_route(asked, Random(f"{SEED} {engine}"))
    if others:
        config.hook.pytest_deselected(items=list(others))
        items[:] = [item for item in items if item not in others]


def _rule_of(item: pytest.Item) -> Rule | None:
    call = getattr(item, "callspec", None)
    rule = call.params.get("rule") if call else None
    return rule if isinstance(rule, Rule) else None

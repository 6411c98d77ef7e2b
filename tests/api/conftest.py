# SPDX-License-Identifier: Apache-2.0
"""One server for all tests over HTTP on each engine: an application in this process, or the one at
`--berth-url`.

Tests share it by using names that no other test has (`tests.api.worlds`). Every response is also
checked against the OpenAPI document.
"""

from __future__ import annotations

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


#: How many of its sets of parameters a test is run with on an engine, unless `--whole-api` asks for
#: all: a file answers in a fraction of the time that a server takes, and a cluster takes longest.
_SETS_MAX: Final = {"postgresql": 1, "mariadb": 1, "galera": 1}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out on servers all rows of wire tables but one for each route, others in each run, and
    parameter sets of tests with many: the last ones stay, which for microversions are the newest,
    and a sample of the others."""
    if config.getoption("--whole-api"):
        return
    here = Path(__file__).parent
    sets: dict[tuple[str, str], list[pytest.Item]] = {}
    rows: dict[str, dict[pytest.Item, Rule]] = {}
    for item in items:
        if (engine := engine_of(item)) in _SETS_MAX and here in item.path.parents:
            if rule := _rule_of(item):
                rows.setdefault(engine, {})[item] = rule
            else:
                sets.setdefault((engine, item.nodeid.partition("[")[0]), []).append(item)
    others = {
        item for (engine, _), some in sets.items() for item in _left_out(some, _SETS_MAX[engine])
    }
    for engine, some in rows.items():
        others |= some.keys() - one_for_each_route(some, Random(f"{SEED} {engine}"))
    if others:
        config.hook.pytest_deselected(items=list(others))
        items[:] = [item for item in items if item not in others]


def _rule_of(item: pytest.Item) -> Rule | None:
    call = getattr(item, "callspec", None)
    rule = call.params.get("rule") if call else None
    return rule if isinstance(rule, Rule) else None


def _left_out(items: list[pytest.Item], most: int) -> list[pytest.Item]:
    step = max(1, -(-len(items) // most))
    kept = items[::-1][::step][:most]
    return [item for item in items if item not in kept]

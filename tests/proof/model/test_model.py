# SPDX-License-Identifier: Apache-2.0
"""The service and the plain model agree on every response of every history.

`BERTH_SEED` repeats a run, `BERTH_EFFORT=10` runs ten times as many histories. A failure is shrunk,
and shown as a script of requests that can be sent to any server.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from berth.config import Settings
from berth.store.engine.database import Database
from tests.candidates.strategies import AGGREGATES
from tests.client import NOTHING
from tests.effort import SEED, scaled
from tests.fresh import Fresh, opened_at
from tests.proof.model.aiming import Aiming
from tests.proof.model.plain_model import PlainModel, Record
from tests.proof.model.plain_reads import ProviderQuery
from tests.proof.model.reading import Reading
from tests.proof.model.server import emptied
from tests.proof.model.wire import PRELUDE
from tests.routes import OPERATIONS, PUBLIC

#: Requests that a history makes, besides those that look at its state after each of them.
STEPS = 40


#: Histories of a usual run.
HISTORIES = 25


class Machine(Aiming, Reading):
    """All rules."""


def machine(
    database: Database, settings: Settings, model: type[PlainModel] = PlainModel
) -> type[Machine]:
    """The state machine with a service of its own."""

    class Histories(Machine):
        fresh_server = staticmethod(lambda: emptied(database, settings))
        fresh_model = model
        accepted: ClassVar[set[tuple[str, str]]] = set()

    return Histories


def run(histories: type[Machine], most: int, steps: int = STEPS, **options: Any) -> None:
    """Run some histories, until one of them fails."""
    run_state_machine_as_test(
        hypothesis.seed(SEED)(histories),
        settings=hypothesis.settings(
            max_examples=most,
            stateful_step_count=steps,
            suppress_health_check=list(HealthCheck),
            **options,
        ),
    )


def test_the_service_does_as_the_plain_model_says(database: Database, settings: Settings) -> None:
    """Status, error code and body of every request, at the microversions that differ."""
    run(machine(database, settings), scaled(HISTORIES))


@pytest.mark.engines("postgresql", "mariadb", "galera")
def test_the_service_does_so_on_every_engine(
    engine: str, fresh: Fresh, settings: Settings, tmp_path: Path
) -> None:
    """The same, for some time."""
    db = opened_at(fresh(tmp_path))
    run(machine(db, settings), scaled(2 if engine == "galera" else 8))
    db.dispose()


@given(st.none())
@hypothesis.settings(max_examples=1, suppress_health_check=list(HealthCheck))
def test_every_route_has_a_rule(database: Database, settings: Settings, _: None) -> None:
    """A history in which each route succeeds; all but the version document, which shows no
    state."""
    histories = machine(database, settings)
    story = histories()
    story.begin_with_two_hosts()
    story.create_class(39, "CUSTOM_NEW")
    story.define_class(39, "CUSTOM_VF")
    story.define_trait(39, "CUSTOM_X")
    story.read_trait(39, "CUSTOM_X")
    story.read_class(39, "CUSTOM_NEW")
    story.add_inventory(39, "p1", "CUSTOM_NEW", Record(4))
    story.update_inventory(39, "p1", "VCPU", "right", Record(6))
    story.replace_traits(39, "p1", "right", frozenset({"CUSTOM_X"}))
    story.replace_aggregates(39, "p1", "right", frozenset({AGGREGATES[0]}))
    story.update_provider(39, "p2", "six", "p1")
    story.claim(39, "c1", "right", {"p1": {"VCPU": 2}}, "red", "ann", "INSTANCE")
    story.claim_for_several(39, {"c2": {"p2": {"DISK_GB": 1}}}, "right", "red", "INSTANCE")
    story.reshape_a_class_away(39, "p1", "p2", "CUSTOM_NEW")
    story.list_by(39, ProviderQuery())
    story.request(39, "GET", "/allocation_candidates?resources=VCPU:1", NOTHING)
    story.teardown()
    story.release(39, "c1")
    story.release(39, "c2")
    story.delete_traits(39, "p1")
    story.forget_trait(39, "CUSTOM_X")
    story.delete_inventory(39, "p1", "VCPU")
    story.delete_inventories(39, "p2")
    story.delete_provider(39, "p2")
    story.forget_class(39, "CUSTOM_NEW")
    story.the_fleet_and_its_index_hold()
    routes = {(route.template, method) for route, method in OPERATIONS}
    assert routes - histories.accepted == {(path, "GET") for path in PUBLIC}


def test_a_failure_is_told_as_a_script(database: Database, settings: Settings) -> None:
    """The model forgets inventories: the failure shows the requests so far, ready to be sent.
    (Hypothesis would shrink them, which takes a minute.)"""

    class Forgetful(PlainModel):
        def delete_inventories(self, minor: int, uuid: str) -> None:
            pass

        def replace_inventories(self, *_: object) -> None:
            pass

    histories = machine(database, settings, Forgetful)
    with pytest.raises(AssertionError, match="the model says") as failure:
        run(histories, 1, database=None, phases=(Phase.generate,))
    told = "\n".join(failure.value.__notes__)
    assert PRELUDE in told
    script = [line for line in told.splitlines() if line.startswith("api 1.")]
    assert re.match(r"api 1.39 POST /resource_providers '{.*}'  # 200", script[0])
    assert re.match(r"api 1.39 PUT /resource_providers/\S+/inventories '{.*}'  # 200", script[-1])

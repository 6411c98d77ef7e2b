# SPDX-License-Identifier: Apache-2.0
"""The gauges of capacity (spec/beyond.md 4.6): the figures, and when they are counted."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import pytest
from prometheus_client.core import Metric

from berth.api.berth_v1 import fleet_questions
from berth.candidates.capacity import Capacity, Counting
from berth.config import MetricsSettings
from berth.edge import fleet_gauges as capacity_gauges
from berth.edge.fleet_gauges import BUDGET_S, CapacityGauges
from berth.index import Index
from berth.model.capacity import Total
from berth.model.ids import AggregateUUID
from berth.model.named import Flavor, FlavorName
from berth.store.engine.database import Database
from berth.store.named import delete_flavor, put_flavor, replace_labels
from berth.store.traits import create_trait, delete_trait
from tests.client import Client
from tests.edge.auth.gate import Clock
from tests.exposed import scrape
from tests.world_in_store import build_in_store
from tests.worlds import aggregate_uuid, world

pytestmark = pytest.mark.in_process

FLEET: Final = replace(
    world("""
        cn1     VCPU=16(used:4)   MEMORY_MB=8192  @A
        cn2     VCPU=16(used:15)  MEMORY_MB=8192  @A
        cn3     VCPU=9            MEMORY_MB=4096  @A @B
        cn4     VCPU=64           MEMORY_MB=1024  @B
        cn5     VCPU=6            MEMORY_MB=6144
    """),
    labels={"A": {"zone": "z1"}, "B": {"zone": "z2"}},
)
#: cn1 6, cn3 4, cn4 1, cn5 3.
SMALL: Final = {"VCPU": 2, "MEMORY_MB": 1024}
#: cn1, cn4.
LARGE: Final = {"VCPU": 12, "MEMORY_MB": 1024}


@pytest.fixture
def fleet(database: Database) -> Database:
    """A database with the fleet and two flavors."""
    build_in_store(FLEET, database)
    put(database, "small", SMALL)
    put(database, "large", LARGE)
    return database


def put(db: Database, name: str, resources: dict[str, int], **others: Any) -> None:
    """Store a flavor of one group."""
    group = {"resources": resources, **others}
    put_flavor(db, FlavorName(name), Flavor(json.dumps({"groups": {"": group}})))


def settings(*, flavors_max: int = 50, by: str = "") -> MetricsSettings:
    """What to show."""
    return MetricsSettings(networks=(), classes_max=10, flavors_max=flavors_max, capacity_by=by)


class Gauges:
    """Some gauges, with their clock."""

    def __init__(self, index: Index, shown: MetricsSettings) -> None:
        self._index = index
        self.clock = Clock()
        self._gauges = CapacityGauges(shown, clock=self.clock)

    def read(self) -> dict[str, dict[tuple[str, ...], float]]:
        """The values of each metric, by its labels."""
        return {
            metric.name.removeprefix("berth_capacity_"): values(metric)
            for metric in self._gauges.collect(self._index.snapshot())
        }

    def count(self, name: str = "small") -> float | None:
        """How many more of a flavor fit; None if it is left out."""
        return self.read()["count"].get((name,))


def values(metric: Metric) -> dict[tuple[str, ...], float]:
    """The values of a metric by those of its labels."""
    return {tuple(sample.labels.values()): sample.value for sample in metric.samples}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The flavors that have been counted, in order."""
    names: list[str] = []

    def noted(*arguments: Any) -> Any:
        names.append(arguments[1])
        return fleet_questions.flavor_to_count(*arguments)

    monkeypatch.setattr(capacity_gauges, "flavor_to_count", noted)
    return names


def test_the_figures_of_a_flavor(fleet: Database, index: Index) -> None:
    """By hand: what fits, on how many hosts, and what is left of each class."""
    assert Gauges(index, settings()).read() == {
        "count": {("large",): 2 + 4 - 4, ("small",): 14},
        "at_most": {("large",): 2, ("small",): 14},
        "hosts": {("large",): 2, ("small",): 4},
        "stranded": {
            ("large", "VCPU"): 92 - 24,
            ("large", "MEMORY_MB"): 27648 - 2048,
            ("small", "VCPU"): 92 - 28,
            ("small", "MEMORY_MB"): 27648 - 14336,
        },
        "largest": {
            ("large", "VCPU"): 64,
            ("large", "MEMORY_MB"): 8192,
            ("small", "VCPU"): 64,
            ("small", "MEMORY_MB"): 8192,
        },
        "left_out": {("flavors_max",): 0, ("invalid",): 0, ("time",): 0},
    }


def test_the_metrics_say_what_the_api_answers(client: Client, fleet: Database) -> None:
    """For each exposed flavor, in either format of Prometheus; the others are no secret, but have
    no series."""
    hidden = {"request": {"groups": {"": {"resources": {"VCPU": 1}}}}, "expose": False}
    assert client.put("/berth/v1/flavors/hidden", json=hidden).status == 201
    answered = client.post("/berth/v1/capacity", json={}).json["flavors"]
    assert answered.pop("hidden")["count"] > 0
    metrics = scrape(client)
    for field in ("count", "at_most", "hosts"):
        expected = {name: figures[field] for name, figures in answered.items()}
        assert metrics.by("flavor", f"berth_capacity_{field}") == expected
    for field in ("stranded", "largest"):
        shown = {
            (sample.labels["flavor"], sample.labels["resource_class"]): sample.value
            for sample in metrics.samples(f"berth_capacity_{field}")
        }
        assert shown == {
            (name, resource_class): fragments[field]
            for name, figures in answered.items()
            for resource_class, fragments in figures["classes"].items()
        }
    openmetrics = client.get("/metrics", headers={"Accept": "application/openmetrics-text"}).text
    assert 'berth_capacity_count{flavor="small"} 14.0' in openmetrics.splitlines()


def test_bounds_that_differ(fleet: Database, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """What can be claimed, and what it cannot exceed; seldom are they not the same."""
    monkeypatch.setattr(Capacity, "total", lambda _: Total(3, 5))
    shown = Gauges(index, settings()).read()
    assert (shown["count"][("small",)], shown["at_most"][("small",)]) == (3, 5)


def test_a_fleet_that_has_not_changed_is_not_counted_again(
    fleet: Database, index: Index, counted: list[str]
) -> None:
    """Kept with the revision; any write ends them, of labels and flavors too."""
    gauges = Gauges(index, settings(by="zone"))
    first = gauges.read()
    assert gauges.read() == first
    assert counted == ["large", "small"]
    replace_labels(fleet, AggregateUUID(aggregate_uuid("B")), {"zone": "z3"})
    assert ("small", "z3") in gauges.read()["count"]
    put(fleet, "small", {"VCPU": 4, "MEMORY_MB": 1024})
    assert gauges.read()["count"][("small", "z3")] == 3
    delete_flavor(fleet, FlavorName("large"))
    assert ("large", "z3") not in gauges.read()["count"]
    assert counted == ["large", "small"] * 3 + ["small"]


def test_what_takes_too_long_is_left_out_and_counted_next(
    fleet: Database, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its counts may be too low. While nothing changes, each scrape goes on where the last one
    ended."""
    for number in range(4):
        put(fleet, f"a{number}", SMALL)
    gauges = Gauges(index, settings())
    _takes(monkeypatch, gauges, dict.fromkeys(("a0", "a1", "a2", "a3", "large", "small"), 0.4))
    for shown in (2, 4, 6, 6):
        read = gauges.read()
        assert len(read["count"]) == len(read["hosts"]) == shown
        assert read["left_out"] == {("flavors_max",): 0, ("invalid",): 0, ("time",): 6 - shown}
    put(fleet, "a0", LARGE)
    changed = gauges.read()
    assert changed["count"] == {("a0",): 2, ("a1",): 14}
    assert changed["left_out"][("time",)] == 4


def test_no_flavor_is_begun_when_the_time_is_over(
    fleet: Database, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the last one did not notice; its counts are complete."""
    put(fleet, "medium", SMALL)
    gauges = Gauges(index, settings())
    seconds = dict.fromkeys(("large", "medium", "small"), 0.6)
    begun = _takes(monkeypatch, gauges, seconds, notices=False)
    assert [*gauges.read()["count"]] == [("large",), ("medium",)]
    assert begun == ["large", "medium"]


def test_one_slow_flavor_does_not_keep_out_the_others(
    fleet: Database, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What alone takes half of the time comes last from then on, until it is fast."""
    gauges = Gauges(index, settings())
    seconds = {"large": 1.5, "small": 0.1}
    _takes(monkeypatch, gauges, seconds)
    assert gauges.read()["left_out"][("time",)] == 2
    assert [*gauges.read()["count"]] == [("small",)]
    put(fleet, "b", SMALL)
    seconds["b"] = 0.1
    assert [*gauges.read()["count"]] == [("b",), ("small",)]
    seconds["large"] = 0.1
    put(fleet, "b", LARGE)
    assert gauges.read()["left_out"][("time",)] == 0
    seconds.update(b=0.5, small=0.6)
    put(fleet, "b", SMALL)
    assert [*gauges.read()["count"]] == [("b",), ("large",)]


def _takes(
    monkeypatch: pytest.MonkeyPatch,
    gauges: Gauges,
    seconds: dict[str, float],
    *,
    notices: bool = True,
) -> list[str]:
    """Have each flavor take some part of the budget, and notice or not that it is over; the list of
    those that have been begun."""
    fragments = Counting.fragments
    to_count = fleet_questions.flavor_to_count
    names: list[str] = []

    def begin(snapshot: Any, name: FlavorName) -> Any:
        names.append(name)
        return to_count(snapshot, name)

    def end(counting: Any, capacity: Any) -> Any:
        left = fragments(counting, capacity)
        gauges.clock.now += seconds[names[-1]] * BUDGET_S
        if notices:
            counting.budget.is_spent()
        return left

    monkeypatch.setattr(capacity_gauges, "flavor_to_count", begin)
    monkeypatch.setattr(Counting, "fragments", end)
    return names


def test_there_is_a_bound_to_the_flavors(fleet: Database, index: Index, counted: list[str]) -> None:
    """The first by name are shown, and only these are counted."""
    for most, shown in ((1, ["large"]), (0, [])):
        read = Gauges(index, settings(flavors_max=most)).read()
        assert [*read["hosts"]] == [(name,) for name in shown]
        assert read["left_out"][("flavors_max",)] == 2 - most
    assert counted == ["large"]


def test_a_flavor_that_cannot_be_counted_is_left_out(fleet: Database, index: Index) -> None:
    """Its trait was deleted, it asks for nothing, or another release has written it."""
    create_trait(fleet, "CUSTOM_FAST")
    put(fleet, "fast", SMALL, required=["CUSTOM_FAST"])
    put(fleet, "any", {})
    put_flavor(fleet, FlavorName("strange"), Flavor('{"groups": 7}'))
    gauges = Gauges(index, settings())
    assert gauges.count("fast") == 0
    assert gauges.read()["left_out"][("invalid",)] == 2
    delete_trait(fleet, "CUSTOM_FAST")
    shown = gauges.read()
    assert [*shown["count"]] == [*shown["hosts"]] == [("large",), ("small",)]
    assert shown["left_out"] == {("flavors_max",): 0, ("invalid",): 3, ("time",): 0}


@pytest.mark.parametrize(
    ("by", "values_max", "count"),
    [
        # A host in two zones counts in both; the hosts in none have the empty value.
        ("zone", 3, {("large", ""): 0, ("large", "z1"): 1, ("large", "z2"): 1, ("small", ""): 3,
                     ("small", "z1"): 10, ("small", "z2"): 5}),
        # It would make too many series, so it is not used.
        ("zone", 2, {("large", ""): 2, ("small", ""): 14}),
        # All hosts have the empty value, which Prometheus takes for no label.
        ("rack", 3, {("large", ""): 2, ("small", ""): 14}),
    ],
)  # fmt: skip
def test_by_a_label(
    fleet: Database,
    index: Index,
    monkeypatch: pytest.MonkeyPatch,
    by: str,
    values_max: int,
    count: dict[tuple[str, ...], float],
) -> None:
    """As many values as the bound are fine."""
    monkeypatch.setattr(capacity_gauges, "CAPACITY_VALUES_MAX", values_max)
    shown = Gauges(index, settings(by=by)).read()
    assert shown["count"] == shown["at_most"] == count
    assert shown["hosts"] == {("large",): 2, ("small",): 4}


def test_pools_are_counted_once_in_a_zone(database: Database, index: Index) -> None:
    """As in an answer of the API: hosts of one zone share what their pool has."""
    shared = world("""
        cn1     VCPU=16  @A
        cn2     VCPU=16  @A
        pool    DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
    """)
    build_in_store(replace(shared, labels={"A": {"zone": "z1"}}), database)
    put(database, "disk", {"VCPU": 1, "DISK_GB": 10})
    shown = Gauges(index, settings(by="zone")).read()
    assert shown["count"] == {("disk", "z1"): 10}


def test_a_key_that_prometheus_could_not_spell(fleet: Database, index: Index) -> None:
    """Dots and dashes of the key are underscores; the values are as they are."""
    replace_labels(fleet, AggregateUUID(aggregate_uuid("A")), {"data.hall-1": 'a "b"'})
    gauges = CapacityGauges(settings(by="data.hall-1"))
    series = [
        sample.labels
        for metric in gauges.collect(index.snapshot())
        for sample in metric.samples
        if sample.name == "berth_capacity_count"
    ]
    assert {"flavor": "small", "data_hall_1": 'a "b"'} in series

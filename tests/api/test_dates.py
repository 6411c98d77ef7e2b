# SPDX-License-Identifier: Apache-2.0
"""`Last-Modified` with a clock that the test sets: the date of the newest object in the response.

The newest object is never the first or the last of its list here, and all dates are a year apart.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from berth.api import http_date
from berth.store.engine.database import Database
from berth.store.engine.opening import DatabaseOptions, open_database
from tests.api.claims import claim_body
from tests.api.worlds import NOWHERE, done, generation, new_name, new_uuid, provider
from tests.client import Client, Response
from tests.servers.statements import run

pytestmark = pytest.mark.engines("sqlite")


class Clock:
    """A clock at the last second of a year; it advances by a year when told to."""

    def __init__(self) -> None:
        self.year = 2029

    def __call__(self) -> datetime:
        return moment(self.year)

    def next_year(self) -> int:
        """Advance by a year; return the new year."""
        self.year += 1
        return self.year


def moment(year: int) -> datetime:
    """The last second of a year, in the database's form."""
    return datetime(year, 12, 31, 23, 59, 59)


@pytest.fixture
def clock() -> Clock:
    """The database's."""
    return Clock()


@pytest.fixture
def database(prepared: Path, tmp_path: Path, clock: Clock) -> Iterator[Database]:
    """A database with the test's clock."""
    path = shutil.copy(prepared, tmp_path / "berth.db")
    options = DatabaseOptions(synchronous=False)
    db = open_database(f"sqlite:///{path}", options=options, clock=clock)
    yield db
    db.dispose()


def year_of(answer: Response) -> int:
    """The year in `Last-Modified`, which must be the clock's moment."""
    said = answer.headers["Last-Modified"]
    year = int(said.split()[3])
    assert said == format_datetime(moment(year).replace(tzinfo=UTC), usegmt=True)
    return year


def made(client: Client, clock: Clock, path: str, body: Any = None) -> int:
    """PUT in the next year; return that year."""
    year = clock.next_year()
    answer = client.put(path) if body is None else client.put(path, json=body)
    assert answer.status in (200, 201, 204), answer.text
    return year


def three_providers(client: Client, clock: Clock) -> list[str]:
    """Three providers, each created a year after the other."""
    uuids = [new_uuid() for _ in range(3)]
    for number, uuid in enumerate(uuids):
        clock.next_year()
        done(client.post("/resource_providers", json={"uuid": uuid, "name": f"p{number}"}), 200)
    return uuids


def test_a_list_of_providers_has_the_date_of_its_newest_change(
    client: Client, clock: Clock
) -> None:
    """A change counts like a creation."""
    uuids = three_providers(client, clock)
    assert year_of(client.get("/resource_providers")) == clock.year
    changed = made(client, clock, f"/resource_providers/{uuids[1]}", {"name": "renamed"})
    assert year_of(client.get("/resource_providers")) == changed
    assert year_of(client.get(f"/resource_providers/{uuids[1]}")) == changed
    assert year_of(client.get(f"/resource_providers/{uuids[0]}")) < changed
    assert year_of(client.get(f"/resource_providers?in_tree={uuids[0]}")) < changed


def test_a_long_list_has_the_date_of_its_newest_in_trees_of_any_shape(
    client: Client, clock: Clock
) -> None:
    """Lone providers and hosts with a device, which the index keeps apart."""
    lone = [provider(client) for _ in range(8)]
    devices = [provider(client, parent=provider(client)) for _ in range(8)]
    for each in (lone[3], devices[3]):
        changed = made(client, clock, f"/resource_providers/{each}", {"name": new_name()})
        assert year_of(client.get("/resource_providers")) == changed


def test_an_inventory_has_the_date_of_its_last_change(client: Client, clock: Clock) -> None:
    """Not of its creation; a list of inventories has the newest date."""
    uuid = three_providers(client, clock)[0]
    path = f"/resource_providers/{uuid}/inventories"
    years = {}
    for name in ("VCPU", "MEMORY_MB", "DISK_GB"):
        years[name] = clock.next_year()
        done(client.post(path, json={"resource_class": name, "total": 4}), 201)
    assert year_of(client.get(path)) == years["DISK_GB"]
    body = {"total": 5, "resource_provider_generation": generation(client, uuid)}
    years["MEMORY_MB"] = made(client, clock, f"{path}/MEMORY_MB", body)
    assert {name: year_of(client.get(f"{path}/{name}")) for name in years} == years
    assert year_of(client.get(path)) == years["MEMORY_MB"]
    # A provider whose generation has changed has changed.
    assert year_of(client.get(f"/resource_providers/{uuid}")) == years["MEMORY_MB"]


def test_allocations_have_the_date_of_the_newest_claim(
    client: Client, clock: Clock, database: Database
) -> None:
    """That of each consumer, and for a provider the newest of all; every row counts."""
    uuid = three_providers(client, clock)[0]
    body = {"inventories": {"VCPU": {"total": 9}, "DISK_GB": {"total": 9}}}
    seen = {"resource_provider_generation": generation(client, uuid)}
    made(client, clock, f"/resource_providers/{uuid}/inventories", {**body, **seen})
    claimed = claim_body("1.39", {uuid: {"VCPU": 1, "DISK_GB": 1}})
    consumers = sorted(new_uuid() for _ in range(3))
    years = {
        consumer: made(client, clock, f"/allocations/{consumer}", claimed) for consumer in consumers
    }
    again = {**claimed, "consumer_generation": 1}
    years[consumers[1]] = made(client, clock, f"/allocations/{consumers[1]}", again)
    assert {
        consumer: year_of(client.get(f"/allocations/{consumer}")) for consumer in consumers
    } == years
    of_provider = f"/resource_providers/{uuid}/allocations"
    assert year_of(client.get(of_provider)) == years[consumers[1]]
    # A claim writes all of a consumer's rows at once; OpenStack Placement may have written more.
    for year, resource_class in ((2090, 0), (2091, 2)):
        run(
            str(database.engine.url),
            f"UPDATE allocations SET created_at = '{moment(year)}.000000' WHERE consumer_id = "
            f"'{consumers[0]}' AND resource_class_id = {resource_class}",
        )
        assert year_of(client.get(f"/allocations/{consumers[0]}")) == year
        assert year_of(client.get(of_provider)) == year


def test_lists_of_names_have_the_date_of_the_newest(client: Client, clock: Clock) -> None:
    """For resource classes, traits, and the traits of a provider."""
    uuid = three_providers(client, clock)[0]
    names = ["CUSTOM_C", "CUSTOM_A", "CUSTOM_B"]
    traits = {name: made(client, clock, f"/traits/{name}") for name in names}
    classes = {name: made(client, clock, f"/resource_classes/{name}") for name in names}
    for name in names:
        assert year_of(client.get(f"/traits/{name}")) == traits[name]
        assert year_of(client.put(f"/traits/{name}")) == traits[name]
        assert year_of(client.get(f"/resource_classes/{name}")) == classes[name]
    assert year_of(client.get("/resource_classes")) == classes["CUSTOM_B"]
    assert year_of(client.get("/traits")) == traits["CUSTOM_B"]
    assert year_of(client.get("/traits?name=in:CUSTOM_A,CUSTOM_C")) == traits["CUSTOM_A"]
    seen = {"resource_provider_generation": generation(client, uuid)}
    done(
        client.put(
            f"/resource_providers/{uuid}/traits", json={"traits": ["CUSTOM_A", "CUSTOM_C"], **seen}
        ),
        200,
    )
    assert year_of(client.get(f"/resource_providers/{uuid}/traits")) == traits["CUSTOM_A"]


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/allocation_candidates?resources=VCPU:1",
        f"/allocations/{NOWHERE}",
        "/usages?project_id=p",
        "/resource_providers/{uuid}/usages",
        "/resource_providers/{uuid}/allocations",
        "/resource_providers/{uuid}/traits",
    ],
)
def test_what_is_made_for_the_question_has_the_time_of_the_answer(
    client: Client, clock: Clock, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Responses without rows, and computed ones: candidates and usages."""
    uuid = three_providers(client, clock)[0]
    moment_s = datetime(2096, 2, 29, 12, 0, 0, tzinfo=UTC)
    with monkeypatch.context() as patched:
        patched.setattr("berth.api.http_date.time.time", moment_s.timestamp)
        answer = client.get(path.format(uuid=uuid))
    assert answer.status == 200
    assert answer.headers["Last-Modified"] == "Wed, 29 Feb 2096 12:00:00 GMT"


def test_times_are_those_of_greenwich_wherever_the_service_runs(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In responses and in the database; here in a time zone that is hours ahead."""
    try:
        with monkeypatch.context() as patched:
            patched.setenv("TZ", "TEST-13:30")
            time.tzset()
            moment_s = datetime(2096, 2, 29, 12, 0, 1, tzinfo=UTC)
            patched.setattr("berth.api.http_date.time.time", moment_s.timestamp)
            answer = client.get("/")
            patched.undo()
        assert answer.headers["Last-Modified"] == "Wed, 29 Feb 2096 12:00:01 GMT"
    finally:
        time.tzset()


def test_every_day_of_four_years_is_written_as_http_wants_it() -> None:
    """Every month, every weekday, a leap day; compared with the standard library."""
    day = datetime(2096, 1, 1, 1, 2, 3)
    for number in range(4 * 366):
        at = day + timedelta(days=number)
        assert http_date.http_date(at) == format_datetime(at.replace(tzinfo=UTC), usegmt=True)

# SPDX-License-Identifier: Apache-2.0
"""Drawn worlds behind the whole application, in this process, one after the other."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hypothesis import note
from sqlalchemy import update

from berth.api.berth_v1.fleet_questions import expanded
from berth.api.berth_v1.questions import read_request
from berth.candidates.question import Question
from berth.config import Settings
from berth.edge.app import create_app
from berth.index import Index, Snapshot
from berth.index.memory import Memory
from berth.store.engine.database import Database
from berth.store.engine.opening import DatabaseOptions, open_database
from berth.store.engine.tables import berth_writer
from tests.answers import Answer, candidate_text, read_answer
from tests.brute_force import Candidate
from tests.brute_place import Placed
from tests.client import Client
from tests.effort import repeat_with
from tests.fresh import wipe
from tests.world_in_store import build_in_store
from tests.worlds import World, world

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

#: A request as JSON.
Request = Mapping[str, Any]

#: More candidates than any small world has.
ALL = 10_000


class Standing:
    """A world, and a client of the service that has it.

    The service lives longer than the world: its index loads anew, with a memory of its own.
    """

    def __init__(self, db: Database, settings: Settings) -> None:
        self.db = db
        self.index = Index(db)
        self.fleet = World(())
        self._settings = settings
        self._apps: dict[tuple[tuple[str, Any], ...], WSGIApplication] = {}

    @property
    def client(self) -> Client:
        """A client with the usual settings."""
        return self.with_settings()

    def with_settings(self, **options: Any) -> Client:
        """A client of the service with other settings."""
        return Client.of(self.app(**options))

    def app(self, **options: Any) -> WSGIApplication:
        """The service with other settings."""
        key = tuple(options.items())
        if key not in self._apps:
            settings = replace(self._settings, **options)
            self._apps[key] = create_app(settings, self.db, self.index)
        return self._apps[key]

    def become(self, fleet: World | str) -> None:
        """Replace the world by another."""
        self.fleet = world(fleet) if isinstance(fleet, str) else fleet
        wipe(self.db)
        build_in_store(self.fleet, self.db)
        self.forget()

    def forget(self, memory: Memory | None = None) -> None:
        """Let the index load everything again, and remember nothing of what was asked."""
        self.index.memory = memory or Memory()
        trimmed = update(berth_writer).values(
            seq=berth_writer.c.seq + 1, trimmed_seq=berth_writer.c.seq + 1
        )
        with self.db.engine.begin() as connection:
            connection.execute(trimmed)

    def ask(self, route: str, /, **body: Any) -> Any:
        """The answer of `POST /berth/v1/{route}`, which is 200."""
        response = self.client.post(f"/berth/v1/{route}", json=body)
        assert response.status == 200, response.text
        return response.json

    def note(self) -> None:
        """Add to the report of a failure what is needed to repeat it."""
        note(f"{self.fleet}\n{self.fleet.labels}\n{self.fleet.flavors}\n{repeat_with()}")

    def candidates(self, request: Request, **body: Any) -> list[str]:
        """The candidates of a request, as texts, in their order."""
        answer = self.ask("candidates", request=request, **{"limit": ALL, **body})
        return [self.text(each) for each in answer["candidates"]]

    def text(self, candidate: Any) -> str:
        """A candidate in the form of 1.39, by names."""
        names = self.fleet.names
        return candidate_text(
            {names[uuid]: each["resources"] for uuid, each in candidate["allocations"].items()},
            {
                group: [names[each] for each in uuids]
                for group, uuids in candidate["mappings"].items()
            },
        )

    def read(self, candidate: Any) -> Candidate:
        """The same as a value."""
        names = self.fleet.names
        return Candidate(
            frozenset(
                ((names[uuid], name), amount)
                for uuid, given in candidate["allocations"].items()
                for name, amount in given["resources"].items()
            ),
            frozenset(
                (group, frozenset(names[uuid] for uuid in uuids))
                for group, uuids in candidate["mappings"].items()
            ),
        )

    def placed(self, candidate: Any) -> Placed:
        """The same with its host."""
        return Placed(self.read(candidate), self.fleet.names[candidate["host"]])

    def queried(self, query: str, minor: int = 39, **options: Any) -> Answer:
        """The answer to a query of microversion 1.`minor`, whose names are placeholders."""
        response = self.with_settings(**options).get(
            f"/allocation_candidates?{self.fleet.resolve(query)}", version=f"1.{minor}"
        )
        assert response.status == 200, response.text
        return read_answer(response.json, self.fleet, minor)


#: Replaces the world by another, and gives it.
Stand = Callable[[World | str], Standing]


def question_of(request: Request, snapshot: Snapshot) -> Question:
    """The request as a value of the product; it has no alternatives."""
    (asked,) = expanded(read_request(request, ""), snapshot)
    return asked.question


def wants(groups: str, **members: Any) -> dict[str, Any]:
    """A request in short: `wants("VCPU=8/parts:3; _A VGPU=1 FAST !SLOW", apart="'' _A at tree")`.

    A group begins with its name, if it has one; `/` begins the rule of a split; what is no amount
    is a trait. All other members are as they are sent, but for relations.
    """
    request: dict[str, Any] = {"groups": {}}
    for text in groups.split(";"):
        words = text.split()
        name = words.pop(0) if words[0] == "''" or words[0][0] in "_-" else ""
        group: dict[str, Any] = request["groups"].setdefault(name.strip("'"), {})
        for word in words:
            of_class, is_amount, amount = word.partition("=")
            if not is_amount:
                alternatives = word.split("|")
                item = word if len(alternatives) == 1 else alternatives
                group.setdefault("required", []).append(item)
                continue
            number, is_split, rule = amount.partition("/")
            group.setdefault("resources", {})[of_class] = int(number)
            if is_split:
                pairs = (each.split(":") for each in rule.split(",") if each)
                group.setdefault("split", {})[of_class] = {key: int(n) for key, n in pairs}
    for kind in {"together", "apart"} & members.keys():
        several = members.pop(kind)
        request[kind] = []
        for each in [several] if isinstance(several, str) else several:
            names, _, level = each.partition(" at ")
            related = [name.strip("'") for name in names.split()]
            request[kind].append({"groups": related, "at": level})
    return request | members


@contextmanager
def copy_of(prepared: Path) -> Iterator[Database]:
    """Copy a prepared SQLite file and open the copy; it is deleted afterwards."""
    with TemporaryDirectory() as directory:
        path = shutil.copy(prepared, Path(directory) / "berth.sqlite")
        db = open_database(f"sqlite:///{path}", options=DatabaseOptions(synchronous=False))
        try:
            yield db
        finally:
            db.dispose()


@contextmanager
def snapshot_of(
    fleet: World, prepared: Path, *, memory: Memory | None = None
) -> Iterator[Snapshot]:
    """A snapshot of a database that contains only this world."""
    with copy_of(prepared) as db:
        build_in_store(fleet, db)
        yield Index(db, memory=memory).snapshot()

# SPDX-License-Identifier: Apache-2.0
"""Runs the search on drawn worlds directly, without HTTP."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import cast

from berth.candidates import find_candidates
from berth.candidates.request import (
    CandidatesRequest,
    GroupPolicy,
    HostConditions,
    RequestGroup,
    ResponseForm,
    SearchSettings,
)
from berth.index import Index, Snapshot
from berth.index.memory import Memory
from berth.store.engine.database import Database
from berth.store.engine.opening import DatabaseOptions, open_database
from tests.answers import Answer, read_answer
from tests.fresh import wipe
from tests.queries import Group, Query
from tests.world_in_store import build_in_store
from tests.worlds import World, aggregate_uuid, provider_uuid

PLAIN = SearchSettings()


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


@contextmanager
def only(fleet: World, db: Database) -> Iterator[Index]:
    """An index of a database that contains only this world; afterwards it contains nothing."""
    build_in_store(fleet, db)
    try:
        yield Index(db)
    finally:
        wipe(db)


def ask(
    snapshot: Snapshot,
    fleet: World,
    query: Query,
    minor: int,
    *,
    settings: SearchSettings = PLAIN,
    seed: int = 0,
) -> Answer:
    """The candidates that the search finds, checked against the format of microversion
    1.`minor`."""
    return read_answer(
        json.loads(ask_raw(snapshot, query, minor, settings=settings, seed=seed)), fleet, minor
    )


def ask_raw(
    snapshot: Snapshot,
    query: Query,
    minor: int,
    *,
    settings: SearchSettings = PLAIN,
    seed: int = 0,
) -> bytes:
    """The body that the search renders."""
    return ask_with(snapshot, request_of(query), form_at(minor), settings=settings, seed=seed)


def ask_with(
    snapshot: Snapshot,
    request: CandidatesRequest,
    form: ResponseForm,
    *,
    settings: SearchSettings = PLAIN,
    seed: int = 0,
) -> bytes:
    """As `ask_raw`, for a request that is already decoded."""
    return bytes(find_candidates(snapshot, request, settings=settings, form=form, rng=Random(seed)))


def form_at(minor: int) -> ResponseForm:
    """The form of responses at microversion 1.`minor` (spec/allocation-candidates.md 7)."""
    return ResponseForm(
        allocations_as_list=minor < 12,
        traits=minor >= 17,
        all_classes=minor >= 27,
        trees=minor >= 29,
        mappings=minor >= 34,
    )


def request_of(query: Query) -> CandidatesRequest:
    """The decoded query, with UUIDs in place of names."""
    return CandidatesRequest(
        groups=tuple(_request_group(group) for group in query.groups),
        group_policy=cast("GroupPolicy | None", query.group_policy),
        limit=query.limit,
        host=HostConditions(
            required=tuple(frozenset((name,)) for name in query.root_required),
            forbidden=query.root_forbidden,
        ),
        same_subtree=query.same_subtree,
    )


def _request_group(group: Group) -> RequestGroup:
    return RequestGroup(
        suffix=group.suffix,
        resources=tuple(group.resources.items()),
        required=group.required,
        forbidden=group.forbidden,
        member_of=tuple(frozenset(map(aggregate_uuid, names)) for names in group.member_of),
        not_member_of=frozenset(map(aggregate_uuid, group.not_member_of)),
        in_tree=None if group.in_tree is None else frozenset((provider_uuid(group.in_tree),)),
    )

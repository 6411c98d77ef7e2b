# SPDX-License-Identifier: Apache-2.0
"""Asks questions of `/berth/v1` of drawn worlds directly, without HTTP; providers by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from berth.candidates import Budget, search
from berth.candidates.batch import Batch
from berth.candidates.fitting import fitting_hosts
from berth.candidates.plan import Plan
from berth.candidates.question import Item, Question, QuestionGroup
from berth.candidates.references import References, request_of
from berth.candidates.request import SearchSettings
from berth.candidates.resolve import NothingFits, resolve
from berth.index.snapshot import Snapshot
from tests.candidates.engine import snapshot_of
from tests.worlds import World


class Asked:
    """A snapshot of a world that answers questions."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def candidates(self, question: Question, *, wanted: int | None = None) -> list[str]:
        """The candidates, sorted: `provider:CLASS=amount`, by group if there are several."""
        try:
            plan = self._plan(question)
        except NothingFits:
            return []
        batches = search(
            self.snapshot, plan, SearchSettings(), wanted, rng=Random(0), budget=Budget()
        )
        return sorted(text for batch in batches for text in self._texts(plan, batch))

    def hosts(self, question: Question) -> list[str]:
        """The names of the hosts that fit, sorted."""
        try:
            plan = self._plan(question)
        except NothingFits:
            return []
        fitting = fitting_hosts(self.snapshot, plan, Budget())
        return sorted(
            self._name(block_id, 0, row)
            for block_id, mask in fitting.items()
            for row in mask.nonzero()[0].tolist()
        )

    def _plan(self, question: Question) -> Plan:
        request = request_of(question, References(self.snapshot))
        return resolve(self.snapshot, request, one_per_tree=False)

    def _name(self, block_id: int, node: int, row: int) -> str:
        name: bytes = self.snapshot.block(block_id).names.item(node, row)
        return name.decode().strip('"')

    def _texts(self, plan: Plan, batch: Batch) -> Iterator[str]:
        names = self.snapshot.names.class_names
        for place, position in enumerate(batch.positions.tolist()):

            def provider(choice: int, position: int = position) -> str:
                at = self.snapshot.locate(batch.trees.provider_id(choice, position))
                assert at is not None
                return self._name(at.block_id, at.node, at.row)

            given: dict[str, dict[str, int]] = {}
            for (choice, class_id), amounts in batch.given(plan).items():
                amount = amounts if isinstance(amounts, int) else int(amounts[place])
                given.setdefault(provider(choice), {})[names[class_id]] = amount
            text = " ".join(
                f"{name}:" + ",".join(f"{each}={n}" for each, n in sorted(amounts.items()))
                for name, amounts in sorted(given.items())
            )
            serving = batch.serving(plan)
            if len(serving) > 1:
                groups = (
                    f"{suffix}={'+'.join(sorted(map(provider, choices)))}"
                    for suffix, choices in sorted(serving.items())
                )
                text += " | " + " ".join(groups)
            yield text


@contextmanager
def asked(fleet: World, prepared: Path) -> Iterator[Asked]:
    """A database that contains only this world."""
    with snapshot_of(fleet, prepared) as snapshot:
        yield Asked(snapshot)


def items(text: str) -> tuple[Item, ...]:
    """`A !B C|D`: A, not B, and one of C and D."""
    return tuple(
        Item(tuple(each.removeprefix("!").split("|")), each.startswith("!"))
        for each in text.split()
    )


def group(amounts: str = "", **members: Any) -> QuestionGroup:
    """A group that asks for `VCPU=2 DISK_GB=10`."""
    resources = tuple((name, int(n)) for name, _, n in (e.partition("=") for e in amounts.split()))
    return QuestionGroup(resources, **members)


def question(**members: Any) -> Question:
    """A question; `groups` as an object."""
    groups = members.pop("groups")
    assert isinstance(groups, dict)
    return Question(tuple(groups.items()), **members)

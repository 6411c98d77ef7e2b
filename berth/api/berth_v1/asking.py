# SPDX-License-Identifier: Apache-2.0
"""What the questions of `/berth/v1` have in common: the request and the scenario.

Source: spec/beyond.md 1.4, 2.2 and 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from berth.api.berth_v1.pointed import refused
from berth.api.berth_v1.reading import Asked, JSONObject, read_items
from berth.api.berth_v1.refusals import unknown_name
from berth.api.operations.berth_v1.codes import TOO_LARGE
from berth.api.request import Services
from berth.candidates.plan import Plan
from berth.candidates.references import (
    References,
    UnknownName,
    UnknownReference,
    request_of,
    unknown_names,
    unknown_references,
)
from berth.candidates.resolve import NothingFits, resolve
from berth.candidates.what_if import (
    HostsAssumed,
    RatioAssumed,
    WhatIf,
    scenario_of,
    unknown_in,
)
from berth.index.draining import tolerating
from berth.index.scenario import imagine, providers_added
from berth.index.snapshot import Snapshot
from berth.model.bounds import ADDED_HOSTS_MAX, ADDED_PROVIDERS_MAX, ADDED_SHARING_MAX
from berth.model.budget import Budget
from berth.model.ids import ConsumerUUID, parse_uuid_lax
from berth.store.allocations import held_by

#: More warnings are left out.
WARNINGS_MAX: Final = 100


class Warnings:
    """The warnings of one answer."""

    def __init__(self) -> None:
        self.sent: list[dict[str, str]] = []

    def add(self, code: str, at: str, **facts: str) -> None:
        """Warn of a place of the body."""
        if len(self.sent) < WARNINGS_MAX:
            self.sent.append({"code": code, "at": at, **facts})

    def add_unknown(self, at: str, unknown: UnknownReference) -> None:
        """Warn of a reference that stands for nothing."""
        self.add(f"unknown_{unknown.kind}", at, reference=unknown.reference)

    def add_labels(self, keys: Mapping[str, str], snapshot: Snapshot) -> None:
        """Warn of the keys of labels that no aggregate has; `keys` by the pointers to them."""
        for at, key in keys.items():
            if not any(key == each for each, _ in snapshot.names.labels):
                self.add("unknown_label", at, reference=key)

    def add_of(self, asked: Iterable[Asked], references: References) -> None:
        """Warn of what some questions have without effect."""
        for part in chain.from_iterable(each.parts for each in asked):
            if part.has_limit:
                self.add("limit_ignored", part.pointer(""))
            for unknown in unknown_references(part.question, references):
                self.add_unknown(part.pointer(unknown.at), unknown)


def check_rights(services: Services, asked: Iterable[Asked]) -> None:
    """Refuse questions about other hosts than that to which the caller is bound.

    Raises:
        OutsideHost, NotOfHost: one is about more.
    """
    if services.rights is not None:
        parts = chain.from_iterable(each.parts for each in asked)
        services.rights.check_questions(part.question for part in parts)


def check_names(asked: Iterable[Asked], snapshot: Snapshot) -> None:
    """Refuse questions that name a resource class or a trait that does not exist.

    Raises:
        Refused: 400.
    """
    for part in chain.from_iterable(each.parts for each in asked):
        for unknown in unknown_names(part.question, snapshot):
            at = part.pointer(unknown.at)
            raise unknown_name(unknown._replace(at=at), flavor=part.flavor)


def read_what_if(sent: JSONObject, at: str) -> WhatIf:
    """The assumptions of a body, which its schema admits.

    Raises:
        Refused: 400.
    """
    uuids = map(parse_uuid_lax, sent.get("without_consumers", ()))
    return WhatIf(
        nothing_used=sent.get("nothing_used", False),
        without_consumers=tuple(uuid for uuid in uuids if uuid is not None),
        allocation_ratio=tuple(
            RatioAssumed(
                each["resource_class"], each["ratio"], read_items(each.get("member_of", ()))
            )
            for each in sent.get("allocation_ratio", ())
        ),
        undrain=tuple(sent.get("undrain", ())),
        drain=tuple(sent.get("drain", ())),
        without_hosts=tuple(sent.get("without_hosts", ())),
        add_hosts=_read_added(sent, at),
    )


def _read_added(sent: JSONObject, at: str) -> tuple[HostsAssumed, ...]:
    added = tuple(HostsAssumed(each["like"], each["count"]) for each in sent.get("add_hosts", ()))
    if sum(each.copies for each in added) > ADDED_HOSTS_MAX:
        raise refused(
            f"{at}/add_hosts",
            f"may add at most {ADDED_HOSTS_MAX} hosts (max_added_hosts) in all",
            code=TOO_LARGE,
        )
    return added


def assumed(
    services: Services,
    snapshot: Snapshot,
    what_if: WhatIf,
    at: str,
    warnings: Warnings,
    budget: Budget,
) -> Snapshot:
    """The snapshot that a question assumes.

    Raises:
        Refused: 400 for a resource class that does not exist, and for a scenario that is too large.
        SearchGaveUp: the budget is spent.
    """
    references = References(snapshot)
    for unknown in unknown_in(what_if, snapshot, references):
        if isinstance(unknown, UnknownName):
            raise unknown_name(unknown, within=at)
        warnings.add_unknown(at + unknown.at, unknown)
    consumers = [ConsumerUUID(uuid) for uuid in what_if.without_consumers]
    freed = held_by(services.database, consumers) if consumers else {}
    scenario = scenario_of(snapshot, what_if, references, freed)
    added, sharing = providers_added(snapshot, scenario)
    for count, most, bound, kind in (
        (added, ADDED_PROVIDERS_MAX, "max_added_providers", "providers"),
        (sharing, ADDED_SHARING_MAX, "max_added_sharing", "sharing providers"),
    ):
        if count > most:
            raise refused(
                f"{at}/add_hosts",
                f"would add {count:,} {kind}, more than {most:,} ({bound})",
                code=TOO_LARGE,
            )
    return imagine(snapshot, scenario, budget)


def group_names(asked: Sequence[Asked]) -> frozenset[str]:
    """The names of the groups of all alternatives."""
    return frozenset(name for each in asked for name, _ in each.question.groups)


def plans_of(
    fleet: Snapshot, several: Iterable[Asked], references: References
) -> Iterator[tuple[int, Snapshot, Plan]]:
    """The plans of some alternatives, without those that nothing can fit.

    Yields:
        its number, the fleet with the drains that it tolerates, and its plan.
    """
    for number, asked in enumerate(several):
        tolerant = tolerating(fleet, asked.question.tolerate)
        try:
            plan = resolve(tolerant, request_of(asked.question, references), one_per_tree=False)
        except NothingFits:
            continue
        yield number, tolerant, plan

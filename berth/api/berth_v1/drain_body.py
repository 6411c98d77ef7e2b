# SPDX-License-Identifier: Apache-2.0
"""The body of `PUT /berth/v1/drains/{name}`: which providers it names. Source: spec/beyond.md
7.1."""

from __future__ import annotations

from collections.abc import Iterable

from berth.api.berth_v1.pointed import refused
from berth.api.berth_v1.reading import JSONObject, read_host
from berth.api.berth_v1.refusals import (
    too_large,
    unknown_name,
    unknown_provider,
    unknown_reference,
)
from berth.api.errors import Refused
from berth.candidates.fitting import fitting_hosts
from berth.candidates.question import Question
from berth.candidates.references import (
    References,
    request_of,
    unknown_names,
    unknown_references,
)
from berth.candidates.resolve import NothingFits, resolve
from berth.index.draining import undrained
from berth.index.snapshot import Location, Snapshot
from berth.model.bounds import DRAIN_PROVIDERS_MAX
from berth.model.budget import Budget
from berth.model.drain import DrainName
from berth.model.errors import SearchGaveUp


def named_in(snapshot: Snapshot, sent: JSONObject, budget: Budget) -> list[Location] | None:
    """The providers that a body names, and the roots of the hosts that it selects; None if it says
    nothing of them.

    Raises:
        Refused: 400 for what does not exist, too many, and nothing at all; 503 if the time ends.
    """
    if "providers" not in sent and "select" not in sent:
        return None
    if "select" not in sent and not sent["providers"]:
        raise refused("/providers", "is empty: name a provider, or delete the drain")
    references = References(snapshot)
    named: dict[Location, None] = {}
    for place, reference in enumerate(sent.get("providers", ())):
        uuid = references.provider(reference)
        at = None if uuid is None else snapshot.locate_uuid(uuid)
        if at is None:
            raise unknown_provider(reference, f"/providers/{place}", references)
        named[at] = None
    if "select" in sent:
        named |= dict.fromkeys(_selected(snapshot, sent["select"], references, budget))
    if len(named) > DRAIN_PROVIDERS_MAX:
        raise too_large("max_drain_providers", DRAIN_PROVIDERS_MAX)
    return [*named]


def lacks_providers(name: DrainName) -> Refused:
    """400: a drain that does not exist can keep no providers."""
    return refused(
        "",
        "lacks providers, or select for the hosts that meet some conditions; only a drain that"
        f" exists keeps its own, and there is no drain {name}",
    )


def _selected(
    snapshot: Snapshot, sent: JSONObject, references: References, budget: Budget
) -> Iterable[Location]:
    """The roots of the hosts that meet some conditions, drained ones too.

    Raises:
        Refused: 400 for what does not exist, and without any condition.
        SearchGaveUp: the time ended: the list would not be whole.
    """
    question = _question(snapshot, sent, references)
    every = undrained(snapshot)
    try:
        plan = resolve(every, request_of(question, references), one_per_tree=False)
    except NothingFits:
        return ()
    hosts = fitting_hosts(every, plan, budget)
    if budget.ended is not None:
        raise SearchGaveUp(budget.seconds)
    return (
        Location(block_id, row, 0)
        for block_id, rows in hosts.items()
        for row in rows.nonzero()[0].tolist()
    )


def _question(snapshot: Snapshot, sent: JSONObject, references: References) -> Question:
    host = read_host(sent, "/select")
    if not any(sent.values()):
        raise refused("/select", "has no condition, and would drain every host: give one")
    question = Question((), host)
    for name in unknown_names(question, snapshot):
        raise unknown_name(name._replace(at=_in_select(name.at)))
    for reference in unknown_references(question, references):
        unknown = reference._replace(at=_in_select(reference.at))
        raise unknown_reference(unknown, references)
    return question


def _in_select(pointer: str) -> str:
    """A pointer into a request, whose conditions on the host are those of `select` here."""
    return f"/select{pointer.removeprefix('/host')}"

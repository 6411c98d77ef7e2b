# SPDX-License-Identifier: Apache-2.0
"""Drains: named sets of providers that get nothing new. Source: spec/beyond.md 7.1."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final

from berth.api.answers import SENT, Sent, insists_on_new
from berth.api.berth_v1.fleet_questions import flavor_to_count
from berth.api.berth_v1.grammar import HOST, Names, references
from berth.api.berth_v1.inputs import DRY_RUN_QUERY, BodySchema
from berth.api.berth_v1.questions import Asked, JSONObject, read_host
from berth.api.berth_v1.refusals import (
    check_name,
    named_record,
    no_record,
    refused,
    too_large,
    unknown_name,
    unknown_provider,
    unknown_reference,
)
from berth.api.berth_v1.revisions import after_write, answer_put, at_revision, is_unchanged, lists
from berth.api.contract import DONE, Body, Contract, Dated, Parameter, Query, always, puts, shows
from berth.api.errors import Refused
from berth.api.paths import is_dry_run
from berth.api.request import Call, Searching, Services, budget_of
from berth.api.schema import JSONSchema
from berth.api.shapes import FREE_TEXT_PATTERN, NAME
from berth.api.struct_schema import Input, shown, shown_at_revision
from berth.candidates import fitting_hosts
from berth.candidates.capacity import Counting
from berth.candidates.question import Question
from berth.candidates.references import References, unknown_names, unknown_references
from berth.candidates.resolve import NothingFits, resolve_question
from berth.index.draining import (
    Reach,
    assuming,
    drained_hosts,
    drained_in_use,
    drains_naming,
    excluding,
    named_by,
    reach,
    reaches,
    undrained,
)
from berth.index.providers import named_provider
from berth.index.snapshot import Location, Snapshot
from berth.model.bounds import CAPACITY_REQUESTS_MAX, DRAIN_PROVIDERS_MAX
from berth.model.budget import Budget
from berth.model.errors import ProviderNotFound, SearchGaveUp
from berth.model.ids import ConsumerUUID, ProviderUUID
from berth.model.named import Drain, DrainName, Effect
from berth.model.own_errors import AlreadyThere, DrainNotFound
from berth.model.shown import UNSET, Count, NamedProvider, Shown, Sometimes, shown_time
from berth.store import named as store

_REASON_LENGTH_MAX: Final = 255

_REASON: JSONSchema = {
    "type": "string",
    "maxLength": _REASON_LENGTH_MAX,
    "description": "Why; shown in lists and in the agent's log.",
}
_EFFECT: JSONSchema = {
    "type": "string",
    "enum": [effect.value for effect in Effect],
    "description": "`exclude`: the providers get nothing new. `none`: the drain is only announced.",
}


class _Body(Input):
    """A drain to create or to change; what is left out stays as it is."""

    providers: Annotated[Names | None, references("These providers, and all below them.")] = None
    select: Annotated[
        JSONObject | None,
        HOST,
        "The hosts that meet these conditions now, at least one condition; the list is kept.",
    ] = None
    reason: Annotated[str | None, {**_REASON, "pattern": FREE_TEXT_PATTERN}] = None
    effect: Annotated[Effect | None, _EFFECT] = None


_BODY: Final = BodySchema(_Body)

_SENT: Final = {
    "providers": ["cn7", "cn8_gpu_1"],
    "select": {"member_of": ["rack=r7"]},
    "reason": "firmware 4.2",
    "effect": "exclude",
}
_SHOWN: Final = {
    "name": "firmware-4.2",
    "reason": "firmware 4.2",
    "effect": "exclude",
    "created_at": "2026-07-01T08:00:00Z",
    "created_by": "admin",
    "hosts": 40,
    "providers": 280,
}

_CN7: Final = {"uuid": "4e8e5957-649f-477b-9e5b-f1f75b21c03c", "name": "cn7"}


_Consumers = Annotated[Count, "How many consumers have something on the providers."]


class Drained(Shown):
    """A drain."""

    name: Annotated[str, NAME]
    reason: Annotated[str, _REASON]
    effect: Annotated[Effect, _EFFECT]
    created_at: Annotated[str | None, "RFC 3339, in UTC; null in a dry run that would create it."]
    created_by: Annotated[str | None, "The user id of the creator."]
    hosts: Annotated[Count, "How many hosts have one of the providers."]
    providers: Annotated[
        Count, "How many providers there are, those below the named ones included."
    ]


class ListedDrain(Drained):
    """A drain in a list."""

    component = "ListedDrain"

    named: Annotated[
        Sometimes[list[NamedProvider]],
        "With `host`: the providers of that host that the drain names.",
    ] = UNSET


class Drains(Shown):
    """All drains, or those of one host."""

    drains: Annotated[list[ListedDrain], "By name."]


class LeftOnHost(Shown):
    """What is left on a host."""

    host: NamedProvider
    consumers: _Consumers


class ShownDrain(Drained):
    """A drain with what it names, and what is left on its hosts."""

    named: Annotated[
        list[NamedProvider],
        "The providers that the drain itself names, by name; those below them are drained too.",
    ]
    consumers: _Consumers
    left: Annotated[
        list[LeftOnHost],
        "Every host, with the consumers that are left on it; those with most first.",
    ]


class Fits(Shown):
    """How often a flavor fits before a drain, and with it."""

    now: Annotated[Count, "How often the flavor fits before this call."]
    then: Annotated[Count, "How often it fits with the drain in effect."]


class WrittenDrain(Drained):
    """A drain that was written, with what it does."""

    consumers: _Consumers
    capacity: Annotated[Mapping[str, Fits], "By exposed flavor."]
    complete: Annotated[
        bool, "False if the time did not suffice: then `capacity` has lower bounds."
    ]


_LISTED: Final = shown(ListedDrain, example=_SHOWN)
HOST_QUERY: Final = Query(
    Parameter(
        name="host",
        means="Only drains that name a provider of this host; any of its providers, by UUID or"
        " by name.",
        example="cn7",
        schema={"type": "string", "minLength": 1},
    )
)
_DRAINS: Final = shown_at_revision("Drains", Drains, example={"drains": [_SHOWN]}, parts=(_LISTED,))
_DRAIN: Final = shown_at_revision(
    "Drain",
    ShownDrain,
    example={
        **_SHOWN,
        "hosts": 1,
        "providers": 7,
        "named": [_CN7],
        "consumers": 24,
        "left": [{"host": _CN7, "consumers": 24}],
    },
)
_WRITTEN: Final = shown_at_revision(
    "WrittenDrain",
    WrittenDrain,
    example={
        **_SHOWN,
        "consumers": 812,
        "capacity": {"m1.large": {"now": 10234, "then": 9800}},
        "complete": True,
    },
)


#: As the database has it.
_CREATED_BY_LENGTH_MAX: Final = 255


@Contract(
    summary="List drains",
    query=HOST_QUERY,
    answers=lists(_DRAINS, means="All drains."),
)
def list_drains(call: Call) -> Sent | bytes:
    """List all drains, or those of one host."""
    host = call.query.get("host")
    snapshot = call.services.index.snapshot()
    if is_unchanged(call, snapshot):
        return SENT
    drains = snapshot.names.records.drains
    named = None if host is None else _named_on(snapshot, host)
    reached = reaches(snapshot)
    shown = [
        ListedDrain(
            *_members(name, drains[name]),
            *reached.get(drains[name].id, Reach(0, 0)),
            named=UNSET if named is None else named[name],
        )
        for name in sorted(drains if named is None else named)
    ]
    return at_revision(snapshot, Drains(shown))


@Contract(
    summary="Show a drain: what it names, and what is left on its hosts",
    answers=shows(_DRAIN, Dated.NO),
)
def show_drain(call: Call, name: str) -> bytes:
    """Show one drain: what it names, and what is left on its hosts."""
    snapshot = call.services.index.snapshot()
    drain = named_record("drain", DrainName(name), snapshot.names.records.drains)
    # As if it were the only one in effect, announced or not.
    only = excluding(snapshot, frozenset((drain.id,)))
    left = _consumers(call.services, only)
    shown = ShownDrain(
        *_members(name, drain),
        *reach(only),
        named=_named_by(snapshot, drain),
        consumers=_number(left),
        left=_left(only, left),
    )
    return at_revision(snapshot, shown)


@Contract(
    summary="Create or change a drain",
    details="Its providers, and all below them, get nothing new: no question and no search for"
    " candidates finds them. A claim that names one of them is still accepted, and nobody is"
    " evicted. A new drain must have `providers` or `select`, or both, and has the effect"
    " `exclude` unless it says otherwise. What is left out for a drain that exists stays as"
    " it is: its providers, its reason, its effect.",
    query=DRY_RUN_QUERY,
    body=Body(always(_BODY), always(_SENT)),
    answers=puts(_WRITTEN, means="Changed; or a dry run."),
    precondition="`If-None-Match: *` is sent and the drain exists.",
)
def put_drain(call: Call, name: str) -> bytes:
    """Create or replace a drain, or show what it would do."""
    check_name("drain", name)
    budget = budget_of(call)
    is_dry = is_dry_run(call.env)
    body = _BODY.read(call)
    snapshot = call.services.index.snapshot()
    stored = snapshot.names.records.drains.get(DrainName(name))
    if stored is not None and insists_on_new(call):
        raise AlreadyThere("drain", name)
    with Searching(call, budget):
        sent_providers = named_in(snapshot, body, budget)
        named = _kept(snapshot, stored, name) if sent_providers is None else sent_providers
        if call.services.rights is not None:
            call.services.rights.check_places(snapshot, named)
        without = frozenset() if stored is None else frozenset((stored.id,))
        then = assuming(snapshot, drained=named, without=without)
        capacity = _capacity(snapshot, then, budget)
        is_complete = budget.ended is None
    only = assuming(undrained(snapshot), drained=named, without=frozenset())
    consumers = _number(_consumers(call.services, only))
    is_new, (effect, reason) = False, _wanted(body, stored)
    if not is_dry:
        stays = sent_providers is None
        providers = [snapshot.block(at.block_id).uuid(at.node, at.row) for at in named]
        stored, is_new = _written(call, DrainName(name), None if stays else providers, body)
        effect, reason = stored.effect, stored.reason
        snapshot = after_write(call.services, snapshot)
    answer_put(call, call.path, is_new=is_new)
    shown = WrittenDrain(
        name,
        reason,
        effect,
        *_created(stored),
        *reach(only),
        consumers=consumers,
        capacity=capacity,
        complete=is_complete,
    )
    return at_revision(snapshot, shown)


@Contract(summary="Delete a drain", answers=DONE)
def delete_drain(call: Call, name: str) -> None:
    """Delete a drain: its providers may get something again."""
    if not store.delete_drain(call.services.database, DrainName(name)):
        raise no_record("drain", name, call.services.index.snapshot().names.records.drains)


def _named_on(snapshot: Snapshot, host: str) -> dict[DrainName, list[NamedProvider]]:
    """The drains that name providers of a host, each with those providers; none for a host that
    does not exist."""
    root = References(snapshot).root(host)
    named: dict[DrainName, list[NamedProvider]] = {}
    if root is not None:
        block = snapshot.block(root.block_id)
        for node in range(block.shape.size):
            provider = named_provider(block, node, root.row)
            for name in drains_naming(snapshot, root._replace(node=node)):
                named.setdefault(name, []).append(provider)
    return named


def _named_by(snapshot: Snapshot, drain: Drain) -> list[NamedProvider]:
    """The providers that a drain itself names, by name."""
    named = [
        named_provider(snapshot.block(at.block_id), at.node, at.row)
        for at in named_by(snapshot, drain.id)
    ]
    return sorted(named, key=_by_name)


def _wanted(body: _Body, stored: Drain | None) -> tuple[Effect, str]:
    """The effect and the reason that a body asks for; what it leaves out stays as it is."""
    effect, reason = (stored.effect, stored.reason) if stored else (Effect.EXCLUDE, "")
    return body.effect or effect, reason if body.reason is None else body.reason


def _kept(snapshot: Snapshot, stored: Drain | None, name: str) -> list[Location]:
    """The providers that a drain names already.

    Raises:
        Refused: 400, there is no such drain.
    """
    if stored is None:
        raise lacks_providers(DrainName(name))
    return [*named_by(snapshot, stored.id)]


def _written(
    call: Call, name: DrainName, providers: Sequence[str] | None, body: _Body
) -> tuple[Drain, bool]:
    """Write a drain; return it as written, and whether it is new.

    Args:
        providers: None if they stay as they are.

    Raises:
        Refused: 400, a provider, or the drain whose providers stay, has been deleted meanwhile.
    """
    try:
        return store.put_drain(
            call.services.database,
            name,
            None if providers is None else [ProviderUUID(uuid) for uuid in providers],
            effect=body.effect,
            reason=body.reason,
            created_by=(call.caller.user_id or "")[:_CREATED_BY_LENGTH_MAX],
            is_new=insists_on_new(call),
        )
    except DrainNotFound:
        raise lacks_providers(name) from None
    except ProviderNotFound as error:
        references = References(call.services.index.snapshot())
        raise unknown_provider(error.provider, "/providers", references) from None


def _capacity(snapshot: Snapshot, then: Snapshot, budget: Budget) -> dict[str, Fits]:
    """How often each exposed flavor fits now, and then; flavors that cannot be counted, and too
    many, are left out."""
    flavors = snapshot.names.records.flavors
    exposed = sorted(name for name in flavors if flavors[name].expose)
    before, after = Counting(snapshot, budget), Counting(then, budget)
    capacity: dict[str, Fits] = {}
    for name in exposed[:CAPACITY_REQUESTS_MAX]:
        asked = flavor_to_count(snapshot, name)
        if isinstance(asked, Asked):
            capacity[name] = Fits(
                now=before.capacity((asked.question,)).total().count,
                then=after.capacity((asked.question,)).total().count,
            )
    return capacity


def _consumers(services: Services, only: Snapshot) -> dict[Location, set[ConsumerUUID]]:
    """Host -> the consumers of its drained providers; without hosts that have none."""
    in_use = drained_in_use(only)
    consumers: defaultdict[Location, set[ConsumerUUID]] = defaultdict(set)
    for provider, several in store.consumers_on(services.database, in_use).items():
        consumers[in_use[provider]] |= several
    return consumers


def _number(consumers: Mapping[Location, set[ConsumerUUID]]) -> int:
    return len(set[ConsumerUUID]().union(*consumers.values()))


def _left(only: Snapshot, consumers: Mapping[Location, set[ConsumerUUID]]) -> list[LeftOnHost]:
    """Each host with the number of its consumers, those with most first."""
    left = [
        LeftOnHost(named_provider(only.block(at.block_id), 0, at.row), len(consumers.get(at, ())))
        for at in drained_hosts(only)
    ]
    return sorted(left, key=lambda each: (-each.consumers, _by_name(each.host)))


def _by_name(provider: NamedProvider) -> tuple[str, str]:
    """Where a provider stands among others; one without a name, in old data, comes first."""
    return provider.name or "", provider.uuid


def _members(name: str, drain: Drain) -> tuple[str, str, Effect, str | None, str | None]:
    """The members that every answer about a drain begins with."""
    return name, drain.reason, drain.effect, *_created(drain)


def _created(drain: Drain | None) -> tuple[str | None, str | None]:
    """When a drain was created, and by whom; one that does not exist was not."""
    return (None, None) if drain is None else (shown_time(drain.created_at), drain.created_by)


# --- The providers that a body names --------------------------------------------------------------


def named_in(snapshot: Snapshot, body: _Body, budget: Budget) -> list[Location] | None:
    """The providers that a body names, and the roots of the hosts that it selects; None if it says
    nothing of them.

    Raises:
        Refused: 400 for what does not exist, too many, and nothing at all; 503 if the time ends.
    """
    if body.providers is None and body.select is None:
        return None
    if body.select is None and not body.providers:
        raise refused("/providers", "is empty: name a provider, or delete the drain")
    references = References(snapshot)
    named: dict[Location, None] = {}
    for place, reference in enumerate(body.providers or ()):
        at = references.location(reference)
        if at is None:
            raise unknown_provider(reference, f"/providers/{place}", references)
        named[at] = None
    if body.select is not None:
        named |= dict.fromkeys(_selected(snapshot, body.select, references, budget))
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
        plan = resolve_question(every, question, references=references)
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

# SPDX-License-Identifier: Apache-2.0
"""Drains: named sets of providers that get nothing new. Source: spec/beyond.md 7.1."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from berth.api import audit
from berth.api.berth_v1 import body
from berth.api.berth_v1.drain_body import lacks_providers, named_in
from berth.api.berth_v1.expanding import flavor_to_count
from berth.api.berth_v1.reading import Asked, JSONObject
from berth.api.berth_v1.refusals import check_name, not_found, unknown_provider
from berth.api.berth_v1.revisions import after_write, is_unchanged
from berth.api.entity_tags import insists_on_new
from berth.api.errors import Refused
from berth.api.operations.berth_v1.drains import PUT
from berth.api.paths import is_dry_run
from berth.api.rendering import answer, answer_empty
from berth.api.request import Request, Response, Services
from berth.api.searching import Searching, budget_of
from berth.candidates.capacity import Counting
from berth.candidates.references import References
from berth.index.drained import (
    Reach,
    drained_hosts,
    drained_in_use,
    drains_naming,
    named_by,
    reach,
    reaches,
)
from berth.index.draining import assuming, excluding, undrained
from berth.index.named import named_provider
from berth.index.snapshot import Location, Snapshot
from berth.model.bounds import CAPACITY_REQUESTS_MAX
from berth.model.budget import Budget
from berth.model.drain import Drain, DrainName, Effect
from berth.model.errors import ProviderNotFound
from berth.model.ids import ConsumerUUID, ProviderUUID
from berth.model.own_errors import AlreadyThere, DrainNotFound
from berth.model.similar_names import similar
from berth.store import drains as store
from berth.store.replaced import ReplacedDrain

JSON = dict[str, Any]

#: As the database has it.
_CREATED_BY_LENGTH_MAX: Final = 255


def list_drains(services: Services, request: Request, response: Response) -> None:
    """List all drains, or those of one host."""
    host = request.query.get("host")
    snapshot = services.index.snapshot()
    if is_unchanged(request, response, snapshot):
        return
    drains = snapshot.names.drains
    named = {name: {} for name in drains} if host is None else _named_on(snapshot, host)
    reached = reaches(snapshot)
    shown = [
        {
            **_shown(name, drains[name]),
            **reached.get(drains[name].id, Reach(0, 0))._asdict(),
            **named[name],
        }
        for name in sorted(named)
    ]
    answer(response, {"revision": snapshot.revision, "drains": shown})


def show_drain(services: Services, request: Request, response: Response, name: str) -> None:
    """Show one drain: what it names, and what is left on its hosts."""
    snapshot = services.index.snapshot()
    drain = snapshot.names.drains.get(DrainName(name))
    if drain is None:
        raise _not_found(name, snapshot)
    only = _only(snapshot, drain)
    left = _consumers(services, only)
    answer(
        response,
        {
            "revision": snapshot.revision,
            **_shown(name, drain),
            **_reach(only),
            "named": _named_by(snapshot, drain),
            "consumers": _number(left),
            "left": _left(only, left),
        },
    )


def put_drain(services: Services, request: Request, response: Response, name: str) -> None:
    """Create or replace a drain, or show what it would do."""
    check_name("drain", name)
    budget = budget_of(services, request)
    is_dry = is_dry_run(request.env)
    sent: JSONObject = body.read(request, PUT)
    snapshot = services.index.snapshot()
    stored = snapshot.names.drains.get(DrainName(name))
    if stored is not None and insists_on_new(request):
        raise AlreadyThere("drain", name)
    with Searching(services, request, budget):
        sent_providers = named_in(snapshot, sent, budget)
        named = _kept(snapshot, name) if sent_providers is None else sent_providers
        if services.rights is not None:
            services.rights.check_places(snapshot, named)
        then = _after(snapshot, DrainName(name), named)
        capacity = _capacity(snapshot, then, budget)
        is_complete = budget.ended is None
    only = assuming(undrained(snapshot), drained=named, without=frozenset())
    shown = {**_reach(only), "consumers": _number(_consumers(services, only))}
    is_new, (effect, reason) = False, _wanted(sent, stored)
    if not is_dry:
        caller = request.caller.user_id or ""
        providers = [_uuid(snapshot, at) for at in named]
        stored, is_new = _written(
            services,
            DrainName(name),
            None if sent_providers is None else providers,
            sent,
            created_by=caller[:_CREATED_BY_LENGTH_MAX],
            replaced=audit.replacing_drain(request, providers, effect, reason),
            must_be_new=insists_on_new(request),
        )
        effect, reason = stored.effect, stored.reason
        snapshot = after_write(services, snapshot)
    if is_new:
        response.set_header("location", request.location(request.path))
    answer(
        response,
        {
            "revision": snapshot.revision,
            "name": name,
            "reason": reason,
            "effect": effect.value,
            **_created(stored),
            **shown,
            "capacity": capacity,
            "complete": is_complete,
        },
        status=201 if is_new else 200,
    )


def delete_drain(services: Services, request: Request, response: Response, name: str) -> None:
    """Delete a drain: its providers may get something again."""
    replaced = audit.deleting_drain(request)
    if not store.delete_drain(services.database, DrainName(name), replaced=replaced):
        raise _not_found(name, services.index.snapshot())
    answer_empty(response)


def _named_on(snapshot: Snapshot, host: str) -> dict[DrainName, JSON]:
    """The drains that name providers of a host, each with those providers; none for a host that
    does not exist."""
    root = References(snapshot).root(host)
    named: dict[DrainName, JSON] = {}
    if root is not None:
        block = snapshot.block(root.block_id)
        for node in range(block.shape.size):
            provider = named_provider(block, node, root.row)._asdict()
            for name in drains_naming(snapshot, root._replace(node=node)):
                named.setdefault(name, {"named": []})["named"].append(provider)
    return named


def _named_by(snapshot: Snapshot, drain: Drain) -> list[JSON]:
    """The providers that a drain itself names, by name."""
    named = [
        named_provider(snapshot.block(at.block_id), at.node, at.row)._asdict()
        for at in named_by(snapshot, drain.id)
    ]
    return sorted(named, key=_by_name)


def _not_found(name: str, snapshot: Snapshot) -> Refused:
    return not_found(f"There is no drain {name}.", similar(name, snapshot.names.drains))


def _wanted(sent: JSONObject, stored: Drain | None) -> tuple[Effect, str]:
    """The effect and the reason that a body asks for; what it leaves out stays as it is."""
    effect, reason = (stored.effect, stored.reason) if stored else (Effect.EXCLUDE, "")
    return Effect(sent.get("effect", effect.value)), sent.get("reason", reason)


def _kept(snapshot: Snapshot, name: str) -> list[Location]:
    """The providers that a drain names already.

    Raises:
        Refused: 400, there is no such drain.
    """
    drain = snapshot.names.drains.get(DrainName(name))
    if drain is None:
        raise lacks_providers(DrainName(name))
    return [*named_by(snapshot, drain.id)]


def _written(
    services: Services,
    name: DrainName,
    providers: Sequence[ProviderUUID] | None,
    sent: JSONObject,
    *,
    created_by: str,
    replaced: ReplacedDrain | None,
    must_be_new: bool,
) -> tuple[Drain, bool]:
    """Write a drain; return it as written, and whether it is new.

    Args:
        providers: None if they stay as they are.

    Raises:
        Refused: 400, a provider, or the drain whose providers stay, has been deleted meanwhile.
    """
    try:
        return store.put_drain(
            services.database,
            name,
            providers,
            effect=Effect(sent["effect"]) if "effect" in sent else None,
            reason=sent.get("reason"),
            created_by=created_by,
            replaced=replaced,
            is_new=must_be_new,
        )
    except DrainNotFound:
        raise lacks_providers(name) from None
    except ProviderNotFound as error:
        references = References(services.index.snapshot())
        raise unknown_provider(error.provider, "/providers", references) from None


def _uuid(snapshot: Snapshot, at: Location) -> ProviderUUID:
    return ProviderUUID(snapshot.block(at.block_id).uuid(at.node, at.row))


def _only(snapshot: Snapshot, drain: Drain) -> Snapshot:
    """The fleet as if a drain, announced or not, were the only one in effect."""
    return excluding(snapshot, frozenset((drain.id,)))


def _after(snapshot: Snapshot, name: DrainName, named: Sequence[Location]) -> Snapshot:
    """The fleet as if a drain of these providers were in effect, instead of what it is now."""
    stored = snapshot.names.drains.get(name)
    without = frozenset() if stored is None else frozenset((stored.id,))
    return assuming(snapshot, drained=named, without=without)


def _capacity(snapshot: Snapshot, then: Snapshot, budget: Budget) -> JSON:
    """How often each exposed flavor fits now, and then; flavors that cannot be counted, and too
    many, are left out."""
    flavors = snapshot.names.flavors
    exposed = sorted(name for name in flavors if flavors[name].expose)
    before, after = Counting(snapshot, budget), Counting(then, budget)
    capacity: JSON = {}
    for name in exposed[:CAPACITY_REQUESTS_MAX]:
        asked = flavor_to_count(snapshot, name)
        if isinstance(asked, Asked):
            capacity[name] = {
                "now": before.capacity((asked.question,)).total().count,
                "then": after.capacity((asked.question,)).total().count,
            }
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


def _left(only: Snapshot, consumers: Mapping[Location, set[ConsumerUUID]]) -> list[JSON]:
    """Each host with the number of its consumers, those with most first."""
    left = [
        {
            "host": named_provider(only.block(at.block_id), 0, at.row)._asdict(),
            "consumers": len(consumers.get(at, ())),
        }
        for at in drained_hosts(only)
    ]
    return sorted(left, key=lambda each: (-each["consumers"], _by_name(each["host"])))


def _by_name(provider: JSON) -> tuple[str, str]:
    """Where a provider stands among others; one without a name, in old data, comes first."""
    return provider["name"] or "", provider["uuid"]


def _reach(only: Snapshot) -> JSON:
    return reach(only)._asdict()


def _shown(name: str, drain: Drain) -> JSON:
    return {
        "name": name,
        "reason": drain.reason,
        "effect": drain.effect.value,
        **_created(drain),
    }


def _created(drain: Drain | None) -> JSON:
    """When a drain was created, and by whom; one that does not exist was not."""
    if drain is None:
        return {"created_at": None, "created_by": None}
    return {
        "created_at": f"{drain.created_at.replace(microsecond=0).isoformat()}Z",
        "created_by": drain.created_by,
    }

# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/place`: choose and claim in one call. Source: spec/beyond.md 5."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

import msgspec

from berth.api import audit, examples
from berth.api.berth_v1 import codes
from berth.api.berth_v1.candidates import CANDIDATE_MEMBERS, SCORE
from berth.api.berth_v1.consumers import project_of, project_of_path
from berth.api.berth_v1.fleet_questions import WARNING, Warnings, check_rights, expanded, narrowed
from berth.api.berth_v1.inputs import DRY_RUN_QUERY
from berth.api.berth_v1.own_requests import (
    Basis,
    OwnRequest,
    host_of,
    inferred_request,
    kept_request,
)
from berth.api.berth_v1.place_body import (
    BODY,
    EXAMPLE,
    EXAMPLE_CONSUMER,
    Consumers,
    NewConsumer,
    Wanted,
    conflict,
    project_of_body,
    read_body,
)
from berth.api.berth_v1.place_choosing import Attempt, Choice, Choosing
from berth.api.berth_v1.questions import Asked
from berth.api.berth_v1.refusals import not_found
from berth.api.contract import Body, Contract, Dated, always, component, ref, shows
from berth.api.errors import RETRY_AFTER_S, Refused
from berth.api.paths import consumer_uuid
from berth.api.request import Call, Searching, budget_of
from berth.api.schema import JSONSchema
from berth.api.shapes import (
    BOOLEAN,
    CONSUMER_NAME,
    COUNT,
    GENERATION,
    TEXT,
    UUID,
    UUID_36_PATTERN,
    described,
    list_of,
    object_by,
    open_object,
)
from berth.api.struct_schema import REVISION, REVISION_EXAMPLE
from berth.api.under_way import Claiming
from berth.candidates.place import Short
from berth.candidates.place.bounds import Limits
from berth.candidates.question import Question
from berth.candidates.render_ranked import Candidate
from berth.index.providers import named_provider
from berth.index.snapshot import Snapshot
from berth.model.consumer import ConsumerWrite
from berth.model.errors import (
    CapacityExceeded,
    ConcurrentUpdate,
    NoInventory,
    UnitViolation,
    UnknownClassInAllocation,
    UnknownProviderInAllocation,
)
from berth.model.ids import ConsumerUUID, Generation, ProviderUUID
from berth.model.own_errors import ConsumerNameTaken
from berth.model.shown import LEASE, Lease
from berth.store import allocations as store
from berth.store.consumers import named_consumers
from berth.store.engine.write_record import Holder
from berth.store.leases import expiry
from berth.store.placements import Placement, Standing, standings

_PLACEMENT_MEMBERS: Final[dict[str, JSONSchema]] = {
    **CANDIDATE_MEMBERS,
    "consumer_generation": GENERATION,
}
_PLACEMENT_EXAMPLE: Final[dict[str, Any]] = {
    "host": examples.PROVIDER,
    "allocations": {examples.PROVIDER: {"resources": {"VCPU": 8, "MEMORY_MB": 16384}}},
    "mappings": {"": [examples.PROVIDER]},
    "consumer_generation": 1,
}
_PROVIDER_NAMES: Final = described(
    object_by(UUID_36_PATTERN, TEXT),
    "The names of the hosts, and of the providers in `allocations`.",
)
_PLACED: Final = component(
    "PlacedConsumer",
    open_object(
        _PLACEMENT_MEMBERS,
        optional={
            "score": SCORE,
            "name": CONSUMER_NAME,
            "lease": LEASE,
            "from": described(UUID, "With `replace`: the host on which the consumer was."),
        },
    ),
)
_PLACEMENTS: Final = component(
    "Placements",
    open_object(
        {
            "revision": REVISION,
            "repeated": described(
                BOOLEAN, "Whether an earlier call with the same body has done it."
            ),
            "tries": described(COUNT, "How many candidates were tried; 0 if repeated."),
            "placements": described(
                object_by(UUID_36_PATTERN, ref("PlacedConsumer")),
                "By consumer, in the order of the body.",
            ),
            "warnings": list_of(ref("Warning")),
            "providers": _PROVIDER_NAMES,
        },
        optional={
            "alternative": described(COUNT, "Which of the alternatives was placed."),
        },
    ),
    example={
        "revision": REVISION_EXAMPLE,
        "repeated": False,
        "tries": 1,
        "placements": {
            EXAMPLE_CONSUMER: {
                **_PLACEMENT_EXAMPLE,
                "score": {"total": 0.81, "spread": 0.81, "prefer": []},
            }
        },
        "warnings": [],
        "providers": {examples.PROVIDER: "cn31"},
    },
    parts=(_PLACED, WARNING),
)
_PLACEMENT: Final = component(
    "Placement",
    open_object(
        {
            **_PLACEMENT_MEMBERS,
            "request": described(
                open_object({}), "What the consumer asked for, or what follows from what it holds."
            ),
            "basis": described(
                {"type": "string", "enum": [*Basis]},
                "`placed`: the request was kept; `flavor`: exactly one flavor can be what the"
                " consumer holds; `allocations`: what it holds is all that is known, and the answer"
                " has the warning `request_unknown`.",
            ),
            "warnings": list_of(ref("Warning")),
            "providers": _PROVIDER_NAMES,
        }
    ),
    example={
        **_PLACEMENT_EXAMPLE,
        "request": EXAMPLE["request"],
        "basis": "placed",
        "warnings": [],
        "providers": {examples.PROVIDER: "cn31"},
    },
    parts=(WARNING,),
)


#: What a claim raises if the fleet, or a consumer, is no longer as it was when it was chosen.
_LOST: Final = (
    CapacityExceeded,
    ConcurrentUpdate,
    NoInventory,
    UnitViolation,
    UnknownClassInAllocation,
    UnknownProviderInAllocation,
)


@Contract(
    summary="Choose hosts for consumers, and claim there",
    details="It can be repeated: a call whose consumers still hold what an earlier call with"
    " the same body gave them answers the same again, and writes nothing.",
    query=DRY_RUN_QUERY,
    body=Body(always(BODY), always(EXAMPLE)),
    answers=shows(_PLACEMENTS, Dated.NO, means="Where the consumers are."),
    conflict="Nothing fits, a consumer holds something already or has changed, or other"
    " requests were faster each time.",
    target=project_of_body,
)
def place(call: Call) -> bytes:
    """Choose hosts for some consumers, and claim there."""
    wanted = read_body(call, call.services.rng)
    own = wanted.conditions
    asked = expanded(wanted.requested, call.services.index.snapshot())
    if own.question != Question(()) or not asked:
        # Without a request, the conditions of the call must keep consumers on the caller's host.
        questions = [narrowed(each, own).question for each in asked] or [own.question]
        asked = tuple(Asked(each, (own._replace(question=each),)) for each in questions)
    check_rights(call.services, asked)
    return _Placing(call, wanted).placed()


_showing_placement: Final = partial(
    Contract,
    details="The request and the mappings of a placement count for as long as the consumer"
    " holds exactly what it got; afterwards they are inferred from what it holds.",
    answers=shows(_PLACEMENT, Dated.NO, means="The providers that serve each group."),
)


@_showing_placement(summary="Show where a consumer is, and what it asked for", target=project_of)
def show_placement(call: Call, consumer: str) -> dict[str, Any]:
    """Show where a consumer was placed."""
    return _shown(call, consumer_uuid(consumer), consumer)


@_showing_placement(
    summary="Show where a consumer with a name is, and what it asked for", target=project_of_path
)
def show_placement_by_name(call: Call, project: str, name: str) -> dict[str, Any]:
    """Show where the consumer of a project with a name was placed."""
    named = named_consumers(call.services.database, [(project, name)])
    if not named:
        raise not_found(f"Project {project} has no consumer named {name}.")
    return _shown(call, named[project, name], f"{project}/{name}")


def _shown(call: Call, uuid: ConsumerUUID, called: str) -> dict[str, Any]:
    standing = standings(call.services.database, [uuid])[uuid]
    if not standing.allocations:
        raise not_found(f"Consumer {called} holds nothing.")
    fleet = call.services.index.snapshot()
    own = kept_request(standing, fleet)
    if own is None:
        budget = budget_of(call)
        with Searching(call, budget):
            own = inferred_request(standing, fleet, budget)
    warnings = Warnings()
    if own.basis is Basis.ALLOCATIONS:
        warnings.add("request_unknown", "")
    shown = placement_of(standing, standing.placement or own)
    more = {"request": own.request, "basis": own.basis, "warnings": warnings.sent}
    names = names_of(fleet, (shown["host"], *shown["allocations"]))
    return {**shown, **more, "providers": names}


class _Placing:
    """One call."""

    def __init__(self, call: Call, wanted: Wanted) -> None:
        self._services = call.services
        self._call = call
        self._wanted = wanted
        self._consumers = Consumers(call.services, wanted)
        for uuid, each in self._consumers:
            audit.note_owner(call, uuid, Holder(each.project_id, each.user_id, each.name))
        if call.services.rights is not None:
            call.services.rights.check_consumers(*self._consumers.uuids)
        self._choosing = Choosing(call, wanted)
        #: When the lease that they get expires; None if they get none.
        self._lease_until: datetime | None = None

    def placed(self) -> bytes:
        """The body of the answer.

        Raises:
            Refused: 409 or 503, with nothing written.
        """
        for number in range(1, self._wanted.body.tries + 1):
            # The first call for new consumers does not look: a repetition fails to claim.
            looks = number > 1 or self._wanted.body.replace or self._wanted.is_dry_run
            if looks and (repeated := self._repeated()) is not None:
                return repeated
            attempt = self._choosing.attempt(
                self._consumers.given_back(), [*self._consumers.standings.values()]
            )
            if isinstance(attempt.choice, Short):
                return self._repeated_or_refused(attempt, attempt.choice)
            if self._is_done(attempt, attempt.choice):
                return self._answer(attempt.fleet, attempt.choice, attempt.warnings, number)
            if self._choosing.is_late:
                break
        # The claim of the last try may have failed because it is a repetition.
        if (repeated := self._repeated()) is not None:
            return repeated
        raise self._lost_races()

    def _repeated(self) -> bytes | None:
        """The answer of an earlier call with the same body, None if there was none.

        Raises:
            Refused: 409, a consumer holds something else.
            ConcurrentUpdate: it is at another generation than the one to be replaced.
        """
        consumers = self._consumers
        consumers.read()
        if not (before := consumers.placed_before):
            consumers.check()
            return None
        audit.repeating(self._call, consumers.uuids)
        snapshot = self._services.index.snapshot()
        placements = {uuid: placement_of(*each) for uuid, each in before.items()}
        head = {
            "revision": snapshot.revision,
            "repeated": True,
            "tries": 0,
            "warnings": [],
            "providers": names_of(
                snapshot,
                (
                    uuid
                    for each in placements.values()
                    for uuid in (each["host"], *each["allocations"])
                ),
            ),
        }
        more = {
            uuid: more_of(self._wanted, each, before[uuid][0].lease_until)
            for uuid, each in consumers
        }
        return joined(head, ((uuid, written(placements[uuid] | more[uuid])) for uuid in more))

    def _is_done(self, attempt: Attempt, choice: Choice) -> bool:
        """Claim what was chosen, or check that a dry run could; False if it must choose again."""
        claiming = attempt.claiming
        if claiming is None:
            self._lease_until = self._expiry()
            self._consumers.check_names()
            return True
        is_claimed = False
        try:
            self._lease_until = self._expiry()
            is_claimed = self._is_claimed(choice, attempt.kept, claiming)
        finally:
            self._services.under_way.end(claiming, is_written=is_claimed)
        return is_claimed

    def _expiry(self) -> datetime | None:
        """When a lease expires that is given now; None if the call asks for none."""
        seconds = self._wanted.body.lease_seconds
        return None if seconds is None else expiry(self._services.database, seconds)

    # --- Claiming --------------------------------------------------------------------------------

    def _is_claimed(self, choice: Choice, kept: Iterable[str], claiming: Claiming) -> bool:
        """Claim what was chosen; False if the fleet or a consumer has changed meanwhile."""
        candidates = choice.candidates
        writes = list(self._writes(candidates))
        uuids = self._consumers.uuids
        placed = dict(zip(uuids, map(self._placement, candidates, kept), strict=True))
        attempts = max(1, self._services.settings.allocation_conflict_retry_count)
        try:
            store.replace_allocations(
                self._services.database,
                writes,
                attempts=attempts,
                placed=placed,
                committing=claiming.committing,
            )
        except ConsumerNameTaken:
            # RACE tests/api/berth_v1/test_place_names.py: perhaps by the same call, sent twice,
            # which then has been repeated.
            if not self._consumers.look_up():
                raise
            return False
        except _LOST:
            return False
        self._services.observer.claimed(len(writes))
        return True

    def _writes(self, candidates: Iterable[Candidate]) -> Iterator[ConsumerWrite]:
        for (uuid, each), candidate in zip(self._consumers, candidates, strict=True):
            yield ConsumerWrite(
                uuid=uuid,
                allocations={
                    ProviderUUID(provider): given
                    for provider, given in candidate.allocations.items()
                },
                project_id=each.project_id,
                user_id=each.user_id,
                generation=each.consumer_generation,
                consumer_type=each.consumer_type,
                name=each.name,
                lease_until=self._lease_until,
            )

    def _placement(self, candidate: Candidate, kept: str) -> Placement:
        mappings = {
            group: [ProviderUUID(each) for each in providers]
            for group, providers in candidate.mappings.items()
        }
        return Placement(self._wanted.digest, ProviderUUID(candidate.host), mappings, kept)

    # --- Answers ---------------------------------------------------------------------------------

    def _answer(self, fleet: Snapshot, choice: Choice, warnings: Warnings, tries: int) -> bytes:
        hosts = {
            uuid: host_of(standing, fleet)
            for uuid, standing in self._consumers.standings.items()
            if self._wanted.body.replace and standing.allocations
        }
        shown = (uuid for each in choice.candidates for uuid in (each.host, *each.allocations))
        head: dict[str, Any] = {
            "revision": fleet.revision,
            "repeated": False,
            "tries": tries,
            "warnings": warnings.sent,
            "providers": names_of(fleet, (*shown, *hosts.values())),
        }
        if len(self._wanted.requested) > 1:
            head["alternative"] = choice.alternative
        chosen = zip(self._consumers, choice.candidates, strict=True)
        return joined(
            head,
            (
                (uuid, b"%b, %b" % (candidate.text[:-1], self._end_of(each, hosts.get(uuid))))
                for (uuid, each), candidate in chosen
            ),
        )

    def _end_of(self, consumer: NewConsumer, host: str | None) -> bytes:
        """What stands behind the candidate in the JSON of a consumer's placement.

        Args:
            host: on which the consumer was.
        """
        generation = b'"consumer_generation": %d' % _next(consumer.consumer_generation)
        more = more_of(self._wanted, consumer, self._lease_until)
        if host is not None:
            more["from"] = host
        return b"%b, %b" % (generation, written(more)[1:]) if more else generation + b"}"

    def _repeated_or_refused(self, attempt: Attempt, short: Short) -> bytes:
        """The answer of an earlier call with the same body, whose claims may be why nothing fits
        any more.

        Raises:
            Refused: 409, there is no place.
        """
        if (repeated := self._repeated()) is not None:
            return repeated
        count = len(self._consumers)
        at_most = self._choosing.most_placed(attempt, short)
        limits = in_words(self._wanted.limits)
        beside = {**self._choosing.explanation(attempt), "warnings": attempt.warnings.sent}
        if at_most >= count:
            raise conflict(
                self._services,
                codes.UNDECIDED,
                f"No places were found for all of the {count} consumers{limits}, and it is not"
                " proven that there are none.",
                "Place them in smaller calls, or loosen max_per or within.",
                beside=beside,
            )
        message = (
            f"At most {at_most} of the {count} consumers fit{limits}."
            if at_most
            else "No host fits the request."
        )
        raise conflict(self._services, codes.DOES_NOT_FIT, message, beside=beside, at_most=at_most)

    def _lost_races(self) -> Refused:
        again = "Send the same call again."
        if self._choosing.is_late:
            return Refused(
                503,
                "The time ended: there were places each time, and other requests were faster.",
                hint=again,
                code=codes.SEARCH_GAVE_UP,
                headers={"retry-after": RETRY_AFTER_S},
            )
        return conflict(
            self._services,
            codes.LOST_RACES,
            "There were places each time, and other requests were faster.",
            again,
        )


def _next(generation: Generation | None) -> int:
    """The generation of a consumer after its claim."""
    return 1 if generation is None else generation + 1


# --- The answers, and words for refusals ----------------------------------------------------------


JSON = dict[str, Any]


def placement_of(standing: Standing, placement: Placement | OwnRequest) -> JSON:
    """Where a consumer is."""
    return {
        "host": placement.host,
        "allocations": {
            provider: {"resources": amounts} for provider, amounts in standing.allocations.items()
        },
        "mappings": placement.mappings,
        "consumer_generation": standing.generation,
    }


def more_of(wanted: Wanted, consumer: NewConsumer, lease_until: datetime | None) -> JSON:
    """The members of a placement that only some calls have."""
    lease = {"lease": Lease.until(lease_until)} if wanted.body.lease_seconds else {}
    return lease | ({"name": consumer.name} if consumer.name else {})


def names_of(fleet: Snapshot, uuids: Iterable[str]) -> dict[str, str]:
    """The names of some providers, without those that are gone."""
    names = {}
    for uuid in dict.fromkeys(uuids):
        if (at := fleet.locate_uuid(uuid)) is not None:
            name = named_provider(fleet.block(at.block_id), at.node, at.row).name
            if name is not None:
                names[uuid] = name
    return names


def joined(head: JSON, placements: Iterable[tuple[ConsumerUUID, bytes]]) -> bytes:
    """An answer: its head, and the JSON of each placement."""
    shown = b", ".join(b'"%b": %b' % (uuid.encode(), text) for uuid, text in placements)
    return b'%b, "placements": {%b}}' % (written(head)[:-1], shown)


def written(members: Mapping[str, Any]) -> bytes:
    """JSON with the spaces that candidates have."""
    return json.dumps(members, ensure_ascii=False, default=msgspec.to_builtins).encode()


def in_words(limits: Limits) -> str:
    """The limits in effect, as the end of a sentence; empty if there are none."""
    most = ", ".join(f"{key}={number}" for key, number in limits.max_per.items())
    parts = [f"max_per {most}"] if most else []
    if limits.within is not None:
        parts.append(f"within {limits.within}")
    return f" with {' and '.join(parts)}" if parts else ""

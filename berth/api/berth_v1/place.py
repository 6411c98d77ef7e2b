# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/place`: choose and claim in one call. Source: spec/beyond.md 5."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from berth.api import audit
from berth.api.berth_v1.asking import Warnings, check_rights
from berth.api.berth_v1.candidate_values import Candidate
from berth.api.berth_v1.expanding import expanded, narrowed
from berth.api.berth_v1.own_requests import host_of, inferred_request, kept_request
from berth.api.berth_v1.place_answers import (
    conflict,
    in_words,
    joined,
    more_of,
    names_of,
    placement_of,
    written,
)
from berth.api.berth_v1.place_body import NewConsumer, Wanted, read_body
from berth.api.berth_v1.place_choosing import Attempt, Choice, Choosing
from berth.api.berth_v1.place_consumers import Consumers
from berth.api.berth_v1.reading import Asked
from berth.api.berth_v1.refusals import not_found
from berth.api.errors import RETRY_AFTER_S, Refused
from berth.api.operations.berth_v1 import codes
from berth.api.operations.berth_v1.place import Basis
from berth.api.paths import consumer_uuid
from berth.api.rendering import answer, answer_bytes
from berth.api.request import Request, Response, Services
from berth.api.searching import Searching, budget_of
from berth.api.under_way import Claiming
from berth.candidates.choosing import Short
from berth.candidates.question import Question
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
from berth.store import allocations as store
from berth.store.consumer_names import named_consumers
from berth.store.leases import expiry
from berth.store.placements import Placement, standings
from berth.store.replaced import Holder

#: What a claim raises if the fleet, or a consumer, is no longer as it was when it was chosen.
_LOST: Final = (
    CapacityExceeded,
    ConcurrentUpdate,
    NoInventory,
    UnitViolation,
    UnknownClassInAllocation,
    UnknownProviderInAllocation,
)


def place(services: Services, request: Request, response: Response) -> None:
    """Choose hosts for some consumers, and claim there."""
    wanted = read_body(request, services.rng)
    own = wanted.conditions
    asked = expanded(wanted.requested, services.index.snapshot())
    if own.question != Question(()) or not asked:
        # Without a request, the conditions of the call must keep consumers on the caller's host.
        questions = [narrowed(each, own).question for each in asked] or [own.question]
        asked = tuple(Asked(each, (own._replace(question=each),)) for each in questions)
    check_rights(services, asked)
    answer_bytes(response, _Call(services, request, wanted).placed())


def show_placement(services: Services, request: Request, response: Response, consumer: str) -> None:
    """Show where a consumer was placed."""
    _show(services, request, response, consumer_uuid(consumer), consumer)


def show_placement_by_name(
    services: Services, request: Request, response: Response, project: str, name: str
) -> None:
    """Show where the consumer of a project with a name was placed."""
    named = named_consumers(services.database, [(project, name)])
    if not named:
        raise not_found(f"Project {project} has no consumer named {name}.")
    _show(services, request, response, named[project, name], f"{project}/{name}")


def _show(
    services: Services, request: Request, response: Response, uuid: ConsumerUUID, called: str
) -> None:
    standing = standings(services.database, [uuid])[uuid]
    if not standing.allocations:
        raise not_found(f"Consumer {called} holds nothing.")
    fleet = services.index.snapshot()
    own = kept_request(standing, fleet)
    if own is None:
        budget = budget_of(services, request)
        with Searching(services, request, budget):
            own = inferred_request(standing, fleet, budget)
    warnings = Warnings()
    if own.basis is Basis.ALLOCATIONS:
        warnings.add("request_unknown", "")
    shown = placement_of(standing, standing.placement or own)
    more = {"request": own.request, "basis": own.basis, "warnings": warnings.sent}
    names = names_of(fleet, (shown["host"], *shown["allocations"]))
    answer(response, {**shown, **more, "providers": names})


class _Call:
    """One call."""

    def __init__(self, services: Services, request: Request, wanted: Wanted) -> None:
        self._services = services
        self._request = request
        self._wanted = wanted
        self._consumers = Consumers(services, wanted)
        for uuid, each in self._consumers:
            audit.note_owner(request, uuid, Holder(each.project_id, each.user_id, each.name))
        if services.rights is not None:
            services.rights.check_consumers(*self._consumers.uuids)
        self._choosing = Choosing(services, request, wanted)
        #: When the lease that they get expires; None if they get none.
        self._lease_until: datetime | None = None

    def placed(self) -> bytes:
        """The body of the answer.

        Raises:
            Refused: 409 or 503, with nothing written.
        """
        for number in range(1, self._wanted.tries + 1):
            # The first call for new consumers does not look: a repetition fails to claim.
            looks = number > 1 or self._wanted.replaces or self._wanted.is_dry_run
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
        audit.repeating(self._request, consumers.uuids)
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
        seconds = self._wanted.lease_seconds
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
                replaced=audit.claiming(self._request, writes),
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
                    ProviderUUID(provider): given["resources"]
                    for provider, given in candidate.allocations.items()
                },
                project_id=each.project_id,
                user_id=each.user_id,
                generation=each.generation,
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
            if self._wanted.replaces and standing.allocations
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
        texts = zip(self._consumers, choice.texts, strict=True)
        return joined(
            head,
            (
                (uuid, b"%b, %b" % (text[:-1], self._end_of(each, hosts.get(uuid))))
                for (uuid, each), text in texts
            ),
        )

    def _end_of(self, consumer: NewConsumer, host: str | None) -> bytes:
        """What stands behind the candidate in the JSON of a consumer's placement.

        Args:
            host: on which the consumer was.
        """
        generation = b'"consumer_generation": %d' % _next(consumer.generation)
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

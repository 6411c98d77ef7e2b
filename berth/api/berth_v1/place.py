# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/place`: choose and claim in one call. Source: spec/beyond.md 5."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Any, Final, NamedTuple
from uuid import uuid4

import msgspec

from berth.api.berth_v1.asking import (
    Warnings,
    assumed,
    check_names,
    group_names,
    searching,
    seconds_within,
)
from berth.api.berth_v1.expanding import expanded
from berth.api.berth_v1.explaining import explained
from berth.api.berth_v1.ordering import check_order, order_of
from berth.api.berth_v1.place_body import Wanted, read_body
from berth.api.berth_v1.pointed import refused
from berth.api.berth_v1.reading import Asked
from berth.api.berth_v1.refusals import not_found
from berth.api.errors import Refused
from berth.api.operations.berth_v1 import codes
from berth.api.operations.berth_v1.explanation import SECONDS
from berth.api.paths import consumer_uuid
from berth.api.rendering import answer, answer_bytes, encode
from berth.api.request import Request, Response, Services
from berth.api.under_way import Claiming, View
from berth.candidates.budget import Budget
from berth.candidates.choosing import Chosen, Short, choose
from berth.candidates.explain import Wanted as ExplanationWanted
from berth.candidates.listing import candidate_texts
from berth.candidates.order import Order
from berth.candidates.plan import Plan
from berth.candidates.ranking import Ranked
from berth.candidates.references import References, request_of
from berth.candidates.resolve import NothingFits, resolve
from berth.index.scenario import with_usage
from berth.index.snapshot import Snapshot
from berth.model.consumer import ConsumerWrite
from berth.model.errors import (
    CapacityExceeded,
    ConcurrentUpdate,
    ConsumerGenerationConflict,
    NoInventory,
    SearchGaveUp,
    UnitViolation,
    UnknownClassInAllocation,
    UnknownProviderInAllocation,
)
from berth.model.ids import ConsumerUUID, Generation, ProviderUUID
from berth.model.own_errors import ConsumerNameTaken
from berth.store import allocations as store
from berth.store.consumer_names import named_consumers
from berth.store.placements import Placement, Standing, standings

#: What a claim raises if the fleet, or a consumer, is no longer as it was when it was chosen.
_LOST: Final = (
    CapacityExceeded,
    ConcurrentUpdate,
    NoInventory,
    UnitViolation,
    UnknownClassInAllocation,
    UnknownProviderInAllocation,
)


class _Choice(NamedTuple):
    """What was chosen.

    Attributes:
        placements: the JSON object of each consumer's candidate, without its end.
    """

    alternative: int
    chosen: Chosen
    placements: list[bytes]


class _Attempt(NamedTuple):
    """One choice.

    Attributes:
        fleet: the state in which it was made.
        asked: the alternatives, with flavors looked up.
        claiming: to be ended when the outcome is known; None for a dry run.
    """

    fleet: Snapshot
    asked: Sequence[Asked]
    choice: _Choice | Short
    warnings: Warnings
    claiming: Claiming | None = None


class _Candidate(msgspec.Struct):
    """A candidate as it is shown."""

    host: str
    allocations: dict[str, dict[str, dict[str, int]]]
    mappings: dict[str, list[str]]


_candidates: Final = msgspec.json.Decoder(_Candidate)


def place(services: Services, request: Request, response: Response) -> None:
    """Choose hosts for some consumers, and claim there."""
    wanted = read_body(request, services.rng)
    answer_bytes(response, _Call(services, request, wanted).placed())


def show_placement(services: Services, request: Request, response: Response, consumer: str) -> None:
    """Show where a consumer was placed."""
    uuid = consumer_uuid(consumer)
    standing = standings(services.database, [uuid])[uuid]
    if standing.placement is None:
        raise not_found(f"Consumer {consumer} does not hold what was placed for it, or never was.")
    answer(response, _shown(standing, standing.placement))


def _shown(standing: Standing, placement: Placement) -> dict[str, Any]:
    return {
        "host": placement.host,
        "allocations": {
            provider: {"resources": amounts} for provider, amounts in standing.allocations.items()
        },
        "mappings": placement.mappings,
        "consumer_generation": standing.generation,
    }


class _Call:
    """One call."""

    def __init__(self, services: Services, request: Request, wanted: Wanted) -> None:
        self._services = services
        self._request = request
        self._wanted = wanted
        self._uuids = self._chosen_uuids()
        #: What the consumers hold; None as long as it does not matter.
        self._standings: dict[ConsumerUUID, Standing] | None = None
        seconds = services.search.time_budget_s
        self._deadline = monotonic() + seconds if seconds > 0 else None

    def placed(self) -> bytes:
        """The body of the answer.

        Raises:
            Refused: 409, with nothing written.
        """
        for number in range(1, self._wanted.tries + 1):
            # The first call for new consumers does not look: a repetition fails to claim.
            looks = number > 1 or self._wanted.replaces or self._wanted.is_dry_run
            if looks and (repeated := self._repeated()) is not None:
                return repeated
            attempt = self._attempt()
            try:
                if isinstance(attempt.choice, Short):
                    return self._repeated_or_refused(attempt, attempt.choice)
                if self._wanted.is_dry_run or self._is_claimed(attempt.choice):
                    return self._answer(attempt.fleet, attempt.choice, attempt.warnings, number)
            finally:
                if attempt.claiming is not None:
                    self._services.under_way.end(attempt.claiming)
            if self._deadline is not None and monotonic() > self._deadline:
                break
        # The claim of the last try may have failed because it is a repetition.
        if (repeated := self._repeated()) is not None:
            return repeated
        raise self._refused(
            codes.LOST_RACES,
            "There were places each time, and other requests were faster.",
            "Send the same call again.",
        )

    # --- Consumers -------------------------------------------------------------------------------

    def _chosen_uuids(self) -> list[ConsumerUUID]:
        """The uuids of the consumers: those of the body, those of the consumers that have the names
        already, or new ones.

        Raises:
            Refused: 400, two of the consumers are one.
        """
        consumers = self._wanted.consumers
        unknown = [(each.project_id, str(each.name)) for each in consumers if each.uuid is None]
        named = named_consumers(self._services.database, unknown) if unknown else {}
        uuids = [
            each.uuid or named.get((each.project_id, str(each.name))) or ConsumerUUID(str(uuid4()))
            for each in consumers
        ]
        if len(set(uuids)) < len(uuids):
            raise refused("/consumers", "names a consumer by its uuid and by its name")
        return uuids

    def _repeated(self) -> bytes | None:
        """The answer of an earlier call with the same body, None if there was none.

        Raises:
            Refused: 409, a consumer holds something else.
            ConsumerGenerationConflict: it is at another generation than the one to be replaced.
        """
        holders = self._standings = standings(self._services.database, self._uuids)
        placements = {
            uuid: _shown(standing, standing.placement) | ({"name": each.name} if each.name else {})
            for uuid, each in zip(self._uuids, self._wanted.consumers, strict=True)
            if (standing := holders[uuid]).placement
            and standing.placement.digest == self._wanted.digest
        }
        if len(placements) == len(self._uuids):
            head = {
                "revision": self._services.index.snapshot().revision,
                "repeated": True,
                "tries": 0,
                "placements": placements,
                "warnings": [],
            }
            return encode(head)
        self._check_consumers(holders)
        return None

    def _check_consumers(self, standing: dict[ConsumerUUID, Standing]) -> None:
        if self._wanted.replaces:
            for uuid, each in zip(self._uuids, self._wanted.consumers, strict=True):
                if (actual := standing[uuid].generation) != each.generation:
                    raise ConsumerGenerationConflict(uuid, seen=each.generation, actual=actual)
            return
        holding = [uuid for uuid in self._uuids if standing[uuid].generation is not None]
        if holding:
            shown = ", ".join(holding[:3]) + (" and others" if len(holding) > 3 else "")
            raise self._refused(
                codes.CONSUMER_HOLDS,
                f"Consumer {shown} holds something already."
                if len(holding) == 1
                else f"Consumers {shown} hold something already.",
                "Use replace to move them, or other uuids for new consumers.",
                consumers=holding,
            )

    # --- Choosing --------------------------------------------------------------------------------

    def _attempt(self) -> _Attempt:
        """Choose in the present state of the fleet.

        Raises:
            Refused: 400 for names that do not exist, 503 if there is no place for a search.
            SearchGaveUp: the time ended before it was known whether anything fits.
        """
        under_way = self._services.under_way
        with under_way.begun() as began:
            snapshot = self._services.index.snapshot()
            with searching(self._services, self._request, self._seconds_left()) as budget:
                if self._wanted.is_dry_run:
                    return self._attempted(under_way.view(began, snapshot), budget)
                with under_way.choosing(began, snapshot) as view:
                    attempt = self._attempted(view, budget)
                    if isinstance(attempt.choice, Short):
                        return attempt
                    claiming = under_way.add(attempt.choice.chosen.taken)
                    return attempt._replace(claiming=claiming)

    def _attempted(self, view: View, budget: Budget) -> _Attempt:
        wanted = self._wanted
        asked = expanded(wanted.requested, view.fleet)
        check_order(wanted.order, "/order", group_names(asked))
        check_names(asked, view.fleet)
        warnings = Warnings()
        fleet = self._supposed(view.ahead, warnings)
        references = References(fleet)
        warnings.add_of(asked, references)
        order = order_of(wanted.order, "/order", fleet, references, warnings)
        choice = self._chosen(fleet, asked, references, order, budget)
        if isinstance(choice, Short) and view.ahead is not view.fleet:
            fleet = self._supposed(view.fleet, Warnings())
            choice = self._chosen(fleet, asked, references, order, budget)
        if not isinstance(choice, Short):
            budget.candidates += len(choice.placements)
        elif budget.ended:
            raise SearchGaveUp(budget.seconds)
        return _Attempt(fleet, asked, choice, warnings)

    def _supposed(self, snapshot: Snapshot, warnings: Warnings) -> Snapshot:
        """The fleet without what the consumers give back, and with what a dry run assumes."""
        fleet = with_usage(snapshot, self._given_back())
        if self._wanted.what_if is None:
            return fleet
        return assumed(self._services, fleet, self._wanted.what_if, "/what_if", warnings)

    def _seconds_left(self) -> float:
        if self._deadline is None:
            return 0
        # Not 0, which would be no bound.
        return max(self._deadline - monotonic(), 0.001)

    def _given_back(self) -> Counter[Any]:
        """What the consumers hold that are to be replaced, as a change of what is used."""
        given_back: Counter[Any] = Counter()
        if self._wanted.replaces and self._standings is not None:
            for standing in self._standings.values():
                given_back.subtract(standing.used)
        return given_back

    def _chosen(
        self,
        fleet: Snapshot,
        several: Iterable[Asked],
        references: References,
        order: Order,
        budget: Budget,
    ) -> _Choice | Short:
        """Candidates for all consumers from the first alternative that has them."""
        at_most: int | None = 0
        for number, asked in enumerate(several):
            try:
                plan = resolve(fleet, request_of(asked.question, references), one_per_tree=False)
            except NothingFits:
                continue
            chosen = choose(fleet, plan, order, len(self._uuids), self._wanted.limits, budget)
            if isinstance(chosen, Chosen):
                texts = _texts(fleet, plan, order, chosen)
                return _Choice(number, chosen, texts)
            most = chosen.at_most
            at_most = None if at_most is None or most is None else max(at_most, most)
        return Short(at_most)

    # --- Claiming --------------------------------------------------------------------------------

    def _is_claimed(self, choice: _Choice) -> bool:
        """Claim what was chosen; False if the fleet or a consumer has changed meanwhile."""
        candidates = [_candidates.decode(text + b"}") for text in choice.placements]
        writes = [
            ConsumerWrite(
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
            )
            for uuid, each, candidate in zip(
                self._uuids, self._wanted.consumers, candidates, strict=True
            )
        ]
        placed = {
            uuid: Placement(
                self._wanted.digest,
                ProviderUUID(candidate.host),
                {
                    group: [ProviderUUID(each) for each in providers]
                    for group, providers in candidate.mappings.items()
                },
            )
            for uuid, candidate in zip(self._uuids, candidates, strict=True)
        }
        attempts = max(1, self._services.settings.allocation_conflict_retry_count)
        try:
            store.replace_allocations(
                self._services.database, writes, attempts=attempts, placed=placed
            )
        except ConsumerNameTaken:
            # RACE tests/api/berth_v1/test_place_names.py: perhaps by the same call, sent twice,
            # which then has been repeated.
            before, self._uuids = self._uuids, self._chosen_uuids()
            if self._uuids == before:
                raise
            return False
        except _LOST:
            return False
        self._services.observer.claimed(len(writes))
        return True

    # --- Answers ---------------------------------------------------------------------------------

    def _answer(self, fleet: Snapshot, choice: _Choice, warnings: Warnings, tries: int) -> bytes:
        head: dict[str, Any] = {
            "revision": fleet.revision,
            "repeated": False,
            "tries": tries,
            "warnings": warnings.sent,
        }
        if len(self._wanted.requested) > 1:
            head["alternative"] = choice.alternative
        shown = (
            b'"%b": %b, "consumer_generation": %d%b}'
            % (uuid.encode(), text, _next(each.generation), _name_member(each.name))
            for uuid, each, text in zip(
                self._uuids, self._wanted.consumers, choice.placements, strict=True
            )
        )
        return b'%b, "placements": {%b}}' % (encode(head)[:-1], b", ".join(shown))

    def _repeated_or_refused(self, attempt: _Attempt, short: Short) -> bytes:
        """The answer of an earlier call with the same body, whose claims may be why nothing fits
        any more.

        Raises:
            Refused: 409, there is no place.
        """
        if (repeated := self._repeated()) is not None:
            return repeated
        count = len(self._uuids)
        beside = self._explanation(attempt)
        if short.at_most is None:
            raise self._refused(
                codes.UNDECIDED,
                f"No places were found for all of the {count} consumers, and it is not proven"
                " that there are none.",
                "Place them in smaller calls, or loosen max_per or within.",
                beside=beside,
            )
        message = (
            f"At most {short.at_most} of the {count} consumers fit."
            if short.at_most
            else "No host fits the request."
        )
        raise self._refused(codes.DOES_NOT_FIT, message, "", beside=beside, at_most=short.at_most)

    def _explanation(self, attempt: _Attempt) -> dict[str, Any]:
        if not self._wanted.explains:
            return {}
        budget = Budget(monotonic, seconds=seconds_within(self._services, SECONDS))
        shown = explained(attempt.fleet, attempt.asked, wanted=ExplanationWanted(), budget=budget)
        return {"explanation": shown}

    def _refused(
        self,
        code: str,
        message: str,
        hint: str,
        *,
        beside: dict[str, Any] | None = None,
        **facts: object,
    ) -> Refused:
        self._services.observer.conflicted(code)
        return Refused(409, message, hint=hint, code=code, facts=facts, beside=beside or {})


def _name_member(name: str | None) -> bytes:
    return b"" if name is None else b', "name": %b' % encode(name)


def _texts(fleet: Snapshot, plan: Plan, order: Order, chosen: Chosen) -> list[bytes]:
    """The JSON of each candidate, without its end."""
    several = [(number, 0) for number in range(len(chosen.batches))]
    # Without a bound: a claim is never cut.
    texts = candidate_texts(
        fleet, plan, order, Ranked(chosen.batches, several, more=False), Budget()
    )
    return [text[:-1] for text in texts]


def _next(generation: Generation | None) -> int:
    """The generation of a consumer after its claim."""
    return 1 if generation is None else generation + 1

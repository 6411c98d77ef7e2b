# SPDX-License-Identifier: Apache-2.0
"""Choosing where the consumers of one placement go. Source: spec/beyond.md 5.4."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Any, Final, NamedTuple

import msgspec

from berth.api.berth_v1.asking import (
    Warnings,
    assumed,
    check_names,
    group_names,
    plans_of,
    seconds_within,
)
from berth.api.berth_v1.expanding import expanded, takes_anything
from berth.api.berth_v1.explaining import explained
from berth.api.berth_v1.ordering import check_order, order_of
from berth.api.berth_v1.place_body import Wanted
from berth.api.berth_v1.pointed import refused
from berth.api.berth_v1.reading import Asked
from berth.api.operations.berth_v1.explanation import SECONDS
from berth.api.request import Request, Services
from berth.api.searching import searching
from berth.api.under_way import Claiming, View
from berth.candidates.budget import Budget
from berth.candidates.choosing import Chosen, Short, choose, choose_from
from berth.candidates.explain import Wanted as ExplanationWanted
from berth.candidates.listing import Forms, candidate_texts
from berth.candidates.order import Order
from berth.candidates.plan import Plan
from berth.candidates.pool import Pool
from berth.candidates.proving import most_placed
from berth.candidates.references import References
from berth.index.scenario import with_usage
from berth.index.snapshot import Snapshot
from berth.model.errors import SearchGaveUp
from berth.model.ids import ClassId, ProviderId

#: Provider and class -> amount.
Used = Counter[tuple[ProviderId, ClassId]]


class Candidate(msgspec.Struct):
    """A candidate as it is shown."""

    host: str
    allocations: dict[str, dict[str, dict[str, int]]]
    mappings: dict[str, list[str]]


class Choice(NamedTuple):
    """What was chosen.

    Attributes:
        texts: the JSON of each consumer's candidate.
        candidates: the same, decoded.
    """

    alternative: int
    chosen: Chosen
    texts: list[bytes]
    candidates: list[Candidate]


class Attempt(NamedTuple):
    """One choice.

    Attributes:
        fleet: the state in which it was made.
        asked: the alternatives, with flavors looked up.
        claiming: to be ended when the outcome is known; None for a dry run.
    """

    fleet: Snapshot
    asked: Sequence[Asked]
    choice: Choice | Short
    warnings: Warnings
    claiming: Claiming | None = None


_candidates: Final = msgspec.json.Decoder(Candidate)


class Choosing:
    """The choices of one call, all within the time of a search."""

    def __init__(self, services: Services, request: Request, wanted: Wanted) -> None:
        self._services = services
        self._request = request
        self._wanted = wanted
        self._count = len(wanted.consumers)
        seconds = services.search.time_budget_s
        self._deadline = monotonic() + seconds if seconds > 0 else None

    @property
    def is_late(self) -> bool:
        """Whether the time has ended."""
        return self._deadline is not None and monotonic() > self._deadline

    def attempt(self, given_back: Used) -> Attempt:
        """Choose in the present state of the fleet.

        Args:
            given_back: what the consumers give back, as a change of what is used.

        Raises:
            Refused: 400 for names that do not exist, 503 if there is no place for a search.
            SearchGaveUp: the time ended before it was known whether anything fits.
        """
        under_way, index = self._services.under_way, self._services.index
        with (
            under_way.begun() as began,
            searching(self._services, self._request, self._seconds_left()) as budget,
        ):
            if self._wanted.is_dry_run:
                view = under_way.view(index.snapshot)
                return self._attempted(view, given_back, budget)
            with under_way.choosing(began, index.snapshot) as view:
                attempt = self._shared(view, budget) or self._attempted(view, given_back, budget)
                if isinstance(attempt.choice, Short):
                    return attempt
                claiming = under_way.add(attempt.choice.chosen.taken)
                return attempt._replace(claiming=claiming)

    def _shared(self, view: View, budget: Budget) -> Attempt | None:
        """A choice from what others have searched who asked the same, None if there is nothing."""
        if view.pools is None or self._wanted.question is None:
            return None
        # Calls with warnings do not choose from what others have searched.
        labels = Warnings()
        labels.add_labels(self._wanted.label_keys, view.fleet)
        if labels.sent:
            return None
        shared = view.pools.chosen(self._wanted.question, self._count, self._wanted.limits)
        if shared is None:
            return None
        pool, chosen = shared
        texts = _texts(pool.snapshot, pool.plan, pool.order, chosen, pool.forms)
        budget.candidates += len(texts)
        return Attempt(view.fleet, (), _choice(0, chosen, texts), Warnings())

    def _attempted(self, view: View, given_back: Used, budget: Budget) -> Attempt:
        wanted = self._wanted
        asked = expanded(wanted.requested, view.fleet)
        check_order(wanted.order, "/order", group_names(asked))
        check_names(asked, view.fleet)
        for each in asked:
            if not takes_anything(each):
                at = each.parts[0].at
                raise refused(at, "asks for no resources, so there is nothing to claim")
        warnings = Warnings()
        fleet = self._supposed(view.ahead, given_back, warnings)
        references = References(fleet)
        warnings.add_of(asked, references)
        warnings.add_labels(wanted.label_keys, fleet)
        order = order_of(wanted.order, "/order", fleet, references, warnings)
        shares = view.pools is not None and len(asked) == 1 and not warnings.sent
        choice = self._chosen(fleet, asked, references, order, budget, view if shares else None)
        if isinstance(choice, Short) and view.ahead is not view.fleet:
            fleet = self._supposed(view.fleet, given_back, Warnings())
            choice = self._chosen(fleet, asked, references, order, budget)
        if not isinstance(choice, Short):
            budget.candidates += len(choice.texts)
        elif budget.ended:
            raise SearchGaveUp(budget.seconds)
        return Attempt(fleet, asked, choice, warnings)

    def _supposed(self, snapshot: Snapshot, given_back: Used, warnings: Warnings) -> Snapshot:
        """The fleet without what the consumers give back, and with what a dry run assumes."""
        fleet = with_usage(snapshot, given_back)
        if self._wanted.what_if is None:
            return fleet
        return assumed(self._services, fleet, self._wanted.what_if, "/what_if", warnings)

    def _seconds_left(self) -> float:
        if self._deadline is None:
            return 0
        # Not 0, which would be no bound.
        return max(self._deadline - monotonic(), 0.001)

    def _chosen(
        self,
        fleet: Snapshot,
        several: Iterable[Asked],
        references: References,
        order: Order,
        budget: Budget,
        sharing: View | None = None,
    ) -> Choice | Short:
        """Candidates for all consumers from the first alternative that has them.

        Args:
            sharing: what is seen by those who may choose from the same pool later.
        """
        at_most: int | None = 0
        for number, tolerant, plan in plans_of(fleet, several, references):
            shared = None
            if tolerant is fleet:
                shared = self._chosen_to_share(sharing, plan, order, budget)
            chosen = shared or choose(
                tolerant, plan, order, self._count, self._wanted.limits, budget
            )
            if isinstance(chosen, Chosen):
                texts = _texts(tolerant, plan, order, chosen)
                return _choice(number, chosen, texts)
            most = chosen.at_most
            at_most = None if at_most is None or most is None else max(at_most, most)
        return Short(at_most)

    def _chosen_to_share(
        self, view: View | None, plan: Plan, order: Order, budget: Budget
    ) -> Chosen | None:
        """Candidates from a new pool, which is kept; None if it should not be, or has too few."""
        question = self._wanted.question
        if view is None or view.pools is None or question is None or plan.splits:
            return None
        self._services.under_way.fix()
        pool = Pool(view.ahead, plan, order, budget)
        chosen = choose_from(pool, self._count, self._wanted.limits)
        if chosen is not None and budget.ended is None:
            view.pools.keep(question, pool)
        return chosen

    def most_placed(self, attempt: Attempt) -> int:
        """No more of the consumers fit, whichever alternative they all get."""
        seconds = seconds_within(self._services, SECONDS)
        references = References(attempt.fleet)
        most = 0
        with searching(self._services, self._request, seconds) as budget:
            for _, tolerant, plan in plans_of(attempt.fleet, attempt.asked, references):
                most = max(most, most_placed(tolerant, plan, self._wanted.limits, budget))
        return most

    def explanation(self, attempt: Attempt) -> dict[str, Any]:
        """The member `explanation` of a refusal, if the call asks for it."""
        if not self._wanted.explains:
            return {}
        budget = Budget(monotonic, seconds=seconds_within(self._services, SECONDS))
        shown = explained(attempt.fleet, attempt.asked, wanted=ExplanationWanted(), budget=budget)
        return {"explanation": shown}


def _choice(alternative: int, chosen: Chosen, texts: list[bytes]) -> Choice:
    return Choice(alternative, chosen, texts, [*map(_candidates.decode, texts)])


def _texts(
    fleet: Snapshot, plan: Plan, order: Order, chosen: Chosen, forms: Forms | None = None
) -> list[bytes]:
    """The JSON of each candidate."""
    # Without a bound: a claim is never cut.
    return candidate_texts(fleet, plan, order, chosen.ranked, Budget(), forms)

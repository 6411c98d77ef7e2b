# SPDX-License-Identifier: Apache-2.0
"""Choosing where the consumers of one placement go. Source: spec/beyond.md 5.4."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from berth.api.berth_v1.codes import TOO_LARGE
from berth.api.berth_v1.explain import explained
from berth.api.berth_v1.fleet_questions import (
    Warnings,
    assumed,
    check_names,
    check_order,
    expanded,
    group_names,
    narrowed,
    order_of,
    plans_of,
    takes_anything,
)
from berth.api.berth_v1.own_requests import Basis, OwnRequest, inferred_request, kept_request
from berth.api.berth_v1.place_body import Wanted
from berth.api.berth_v1.questions import Asked
from berth.api.berth_v1.refusals import refused
from berth.api.berth_v1.routes import EXPLAIN_SECONDS
from berth.api.request import Call, Searching, budget_of
from berth.api.under_way import Claiming, View
from berth.candidates.explain import Wanted as ExplanationWanted
from berth.candidates.order import Order
from berth.candidates.place import Chosen, Short, choose, choose_from
from berth.candidates.place.bounds import most_placed
from berth.candidates.place.pool import Amounts, Pool
from berth.candidates.plan import Plan
from berth.candidates.references import References
from berth.candidates.render_ranked import Candidate, candidates_of
from berth.index.scenario import with_usage
from berth.index.snapshot import Snapshot
from berth.model.bounds import GROUPS_MAX
from berth.model.errors import SearchGaveUp
from berth.model.ids import ClassId, ProviderId
from berth.store.placements import Standing

#: Provider and class -> amount.
Used = Counter[tuple[ProviderId, ClassId]]


class Choice(NamedTuple):
    """What was chosen.

    Attributes:
        candidates: of each consumer.
    """

    alternative: int
    taken: Amounts
    candidates: list[Candidate]


class Alike(NamedTuple):
    """Consumers with one request.

    Attributes:
        asked: the alternatives, with flavors looked up.
        places: which of the consumers of the call.
    """

    asked: Sequence[Asked]
    places: Sequence[int] = ()


class Attempt(NamedTuple):
    """One choice.

    Attributes:
        fleet: the state in which it was made.
        alike: those for which there are no places, if there are none.
        kept: the request that is kept with each consumer; "" for none.
        claiming: to be ended when the outcome is known; None for a dry run.
    """

    fleet: Snapshot
    alike: Alike
    choice: Choice | Short
    warnings: Warnings
    kept: Sequence[str]
    claiming: Claiming | None = None


class Choosing:
    """The choices of one call, all within the time of a search."""

    def __init__(self, call: Call, wanted: Wanted) -> None:
        self._call = call
        self._services = call.services
        self._wanted = wanted
        self._count = len(wanted.consumers)
        self._budget = budget_of(call)

    @property
    def is_late(self) -> bool:
        """Whether the time has ended."""
        return self._budget.is_spent()

    def attempt(self, given_back: Used, standings: Sequence[Standing]) -> Attempt:
        """Choose in the present state of the fleet.

        Args:
            given_back: what the consumers give back, as a change of what is used.
            standings: what they have, if each keeps its own request.

        Raises:
            Refused: 400 for names that do not exist, 503 if there is no place for a search.
            SearchGaveUp: the time ended before it was known whether anything fits.
        """
        under_way, index = self._services.under_way, self._services.index
        budget = self._budget
        with under_way.begun() as began:
            if self._wanted.is_dry_run:
                with Searching(self._call, budget):
                    return self._attempted(under_way.view(index.snapshot), given_back, standings)
            within = budget.spare_seconds()
            # Whoever waits for those before it needs no place yet.
            with (
                under_way.choosing(began, index.snapshot, within=within) as view,
                Searching(self._call, budget),
            ):
                attempt = self._shared(view) or self._attempted(view, given_back, standings)
                if isinstance(attempt.choice, Short):
                    return attempt
                claiming = under_way.add(attempt.choice.taken)
                return attempt._replace(claiming=claiming)

    def _shared(self, view: View) -> Attempt | None:
        """A choice from what others have searched who asked the same, None if there is nothing."""
        if view.pools is None or self._wanted.question is None:
            return None
        # Calls with warnings do not choose from what others have searched.
        labels = Warnings()
        labels.add_labels(self._wanted.label_keys, view.fleet)
        if labels.sent:
            return None
        question, limits = self._wanted.question, self._wanted.limits
        shared = view.pools.chosen(question, self._count, limits, self._budget)
        if shared is None:
            return None
        pool, chosen = shared
        ranked, forms = chosen.ranked, pool.forms
        candidates = candidates_of(pool.snapshot, pool.plan, pool.order, ranked, forms)
        self._budget.candidates += len(candidates)
        choice = Choice(0, chosen.taken, candidates)
        return Attempt(view.fleet, Alike(()), choice, Warnings(), self._kept)

    @property
    def _kept(self) -> Sequence[str]:
        return [self._wanted.kept] * self._count

    def _attempted(self, view: View, given_back: Used, standings: Sequence[Standing]) -> Attempt:
        wanted, warnings, kept = self._wanted, Warnings(), self._kept
        if wanted.requested:
            several = [self._alike(expanded(wanted.requested, view.fleet), range(self._count))]
        else:
            own = [*self._own(standings, view.fleet, warnings)]
            several, kept = [*self._divided(own, view.fleet)], [each.kept for each in own]
        asked = [each for alike in several for each in alike.asked]
        check_order(wanted.order, group_names(asked))
        check_names(asked, view.fleet)
        fleet = self._supposed(view.ahead, given_back, warnings)
        references = References(fleet)
        warnings.add_of(asked, references)
        warnings.add_labels(wanted.label_keys, fleet)
        order = order_of(wanted.order, fleet, references, warnings)
        shares = view.pools is not None and len(asked) == 1 and not warnings.sent
        sharing = view if shares else None
        alike, choice = self._chosen_each(fleet, several, references, order, sharing)
        if isinstance(choice, Short) and view.ahead is not view.fleet:
            fleet = self._supposed(view.fleet, given_back, Warnings())
            alike, choice = self._chosen_each(fleet, several, References(fleet), order, None)
        if not isinstance(choice, Short):
            self._budget.candidates += len(choice.candidates)
        elif self._budget.ended:
            raise SearchGaveUp(self._budget.seconds)
        return Attempt(fleet, alike, choice, warnings, kept)

    def _own(
        self, standings: Sequence[Standing], fleet: Snapshot, warnings: Warnings
    ) -> Iterator[OwnRequest]:
        """What each consumer has asked for.

        Raises:
            Refused: 400 for one that holds nothing, or holds from too many providers.
        """
        for place, standing in enumerate(standings):
            at = f"/consumers/{place}"
            if not standing.allocations:
                raise refused(at, "holds nothing, so it has no request of its own: give request")
            own = kept_request(standing, fleet)
            own = own or inferred_request(standing, fleet, self._budget)
            if own.basis is Basis.ALLOCATIONS:
                if len(standing.allocations) > GROUPS_MAX:
                    message = f"holds from more than {GROUPS_MAX} providers (max_groups)"
                    raise refused(at, f"{message}: give request", code=TOO_LARGE)
                warnings.add("request_unknown", at)
            yield own

    def _divided(self, own: Sequence[OwnRequest], fleet: Snapshot) -> Iterator[Alike]:
        """The consumers with each of the requests.

        Raises:
            Refused: 400 for limits over several requests.
        """
        places: dict[bytes, list[int]] = {}
        for place, each in enumerate(own):
            places.setdefault(msgspec.json.encode(each.request), []).append(place)
        limits = self._wanted.limits
        if len(places) > 1 and (limits.max_per or limits.within):
            member = "/max_per" if limits.max_per else "/within"
            raise refused(member, "needs one request, and these consumers have several")
        for several in places.values():
            first = several[0]
            yield self._alike(own[first].asked(fleet, f"/consumers/{first}"), several)

    def _alike(self, asked: Iterable[Asked], places: Sequence[int]) -> Alike:
        """Consumers with one request, under the conditions of the call.

        Raises:
            Refused: 400.
        """
        narrow = [narrowed(each, self._wanted.conditions) for each in asked]
        for each in narrow:
            if not takes_anything(each):
                at = each.parts[-1].at
                raise refused(at, "asks for no resources, so there is nothing to claim")
        return Alike(narrow, places)

    def _chosen_each(
        self,
        fleet: Snapshot,
        several: Sequence[Alike],
        references: References,
        order: Order,
        sharing: View | None,
    ) -> tuple[Alike, Choice | Short]:
        """Candidates for all consumers, one request after another; or those that have none."""
        taken: Counter[tuple[ProviderId, ClassId]] = Counter()
        candidates: dict[int, Candidate] = {}
        for alike in several:
            ahead = with_usage(fleet, taken, self._budget)
            choice = self._chosen(ahead, alike, references, order, sharing)
            if isinstance(choice, Short):
                # Other choices might have left more to these.
                return alike, Short(None) if taken else choice
            if len(several) == 1:
                return alike, choice
            taken.update(choice.taken)
            candidates.update(zip(alike.places, choice.candidates, strict=True))
        in_order = [candidates[place] for place in range(self._count)]
        return several[0], Choice(0, taken, in_order)

    def _supposed(self, snapshot: Snapshot, given_back: Used, warnings: Warnings) -> Snapshot:
        """The fleet without what the consumers give back, and with what a dry run assumes."""
        fleet = with_usage(snapshot, given_back)
        return assumed(self._services, fleet, self._wanted.what_if, warnings, self._budget)

    def _chosen(
        self,
        fleet: Snapshot,
        alike: Alike,
        references: References,
        order: Order,
        sharing: View | None,
    ) -> Choice | Short:
        """Candidates for all these consumers from the first alternative that has them.

        Args:
            sharing: what is seen by those who may choose from the same pool later.
        """
        at_most: int | None = 0
        count, limits, budget = len(alike.places), self._wanted.limits, self._budget
        for number, tolerant, plan in plans_of(fleet, alike.asked, references):
            shared = self._chosen_to_share(sharing, plan, order) if tolerant is fleet else None
            chosen = shared or choose(tolerant, plan, order, count, limits, budget)
            if isinstance(chosen, Chosen):
                candidates = candidates_of(tolerant, plan, order, chosen.ranked)
                return Choice(number, chosen.taken, candidates)
            most = chosen.at_most
            at_most = None if at_most is None or most is None else max(at_most, most)
        return Short(at_most)

    def _chosen_to_share(self, view: View | None, plan: Plan, order: Order) -> Chosen | None:
        """Candidates from a new pool, which is kept; None if it should not be, or has too few."""
        question = self._wanted.question
        if view is None or view.pools is None or question is None or plan.splits:
            return None
        if order.by == "preserve":
            # It spends the budget of the call that made it.
            return None
        self._services.under_way.fix()
        pool = Pool(view.ahead, plan, order, self._budget)
        chosen = choose_from(pool, self._count, self._wanted.limits, self._budget)
        if chosen is not None and self._budget.ended is None:
            view.pools.keep(question, pool)
        return chosen

    def most_placed(self, attempt: Attempt, short: Short) -> int:
        """No more of the consumers fit, whichever alternative they all get."""
        others = self._count - len(attempt.alike.places)
        if short.at_most is not None:
            return others + short.at_most
        references = References(attempt.fleet)
        most = 0
        budget = self._budget
        with Searching(self._call, budget):
            for _, tolerant, plan in plans_of(attempt.fleet, attempt.alike.asked, references):
                most = max(most, most_placed(tolerant, plan, self._wanted.limits, budget))
        return others + most

    def explanation(self, attempt: Attempt) -> dict[str, Any]:
        """The member `explanation` of a refusal, if the call asks for it."""
        if not self._wanted.body.explain:
            return {}
        # Not 0, which would be no bound.
        part = self._budget.part(max(min(EXPLAIN_SECONDS, self._budget.seconds_left()), 0.001))
        fleet, asked, wanted = attempt.fleet, attempt.alike.asked, ExplanationWanted()
        with Searching(self._call, part):
            shown = explained(fleet, asked, wanted, part, rights=self._services.rights)
        return {"explanation": shown}

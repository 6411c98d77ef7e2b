# SPDX-License-Identifier: Apache-2.0
"""From the JSON of an order, which its schema admits, to an order of candidates.

Source: spec/beyond.md 2.7.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, Literal

from berth.api.berth_v1.asking import Warnings
from berth.api.berth_v1.expanding import stored_question
from berth.api.berth_v1.pointed import pointer_of, refused
from berth.api.berth_v1.reading import JSONObject, check_no_conflict, read_items
from berth.api.berth_v1.refusals import unknown_name
from berth.api.errors import Refused
from berth.candidates.order import HOST, Order, Preference
from berth.candidates.plan import Plan
from berth.candidates.question import Item
from berth.candidates.references import (
    References,
    UnknownName,
    UnknownReference,
    member_of,
    not_member_of,
    request_of,
    unknown_names,
)
from berth.candidates.resolve import (
    NothingFits,
    membership_test,
    resolve,
    trait_ids,
    trait_test,
)
from berth.index.snapshot import Snapshot
from berth.model.bounds import PRESERVE_AMONG_MAX
from berth.model.flavor import FlavorName
from berth.model.similar_names import similar

#: The strategy of an order that names none.
_DEFAULT: Final = "any"

#: How many hosts `preserve` scores, unless the order says otherwise.
_AMONG: Final = 512


def check_order(order: JSONObject, at: str, groups: Collection[str]) -> None:
    """Check what a schema cannot say.

    Args:
        at: the pointer to the order in the body.
        groups: the names of all groups.

    Raises:
        Refused: 400.
    """
    for place, preference in enumerate(order.get("prefer", ())):
        of = preference.get("of", HOST)
        if of != HOST and of not in groups:
            raise refused(f"{at}/prefer/{place}/of", f'names no group of the request: "{of}"')
        required = f"{at}/prefer/{place}/required"
        check_no_conflict(read_items(preference.get("required", ())), required)
    if order.get("by") != "preserve":
        if "preserve" in order:
            raise refused(f"{at}/preserve", 'needs "by": "preserve"')
    elif "preserve" not in order:
        raise refused(at, "lacks preserve, the flavors to leave room for")
    elif order.get("among", 1) > PRESERVE_AMONG_MAX:
        message = f"must be at most {PRESERVE_AMONG_MAX:,} with preserve (max_preserve_among)"
        raise refused(f"{at}/among", message)


def order_of(
    order: JSONObject,
    at: str,
    snapshot: Snapshot,
    references: References,
    warnings: Warnings,
) -> Order:
    """The order that a snapshot gives to the names of a body.

    Raises:
        Refused: 400 for a resource class, a trait or a flavor that does not exist.
    """
    ids = snapshot.names.class_ids
    classes = order.get("classes", {})
    _check("resource_class", ((pointer_of(("classes", name)), name) for name in classes), ids, at)
    return Order(
        by=order.get("by", _DEFAULT),
        weight=order.get("weight", 1),
        classes={ids[name]: weight for name, weight in classes.items()},
        prefer=tuple(
            _preference(each, f"{at}/prefer/{place}", snapshot, references, warnings)
            for place, each in enumerate(order.get("prefer", ()))
        ),
        seed=order.get("seed", 0),
        among=order.get("among", _AMONG if "preserve" in order else None),
        preserve=tuple(_preserved(order.get("preserve", {}), f"{at}/preserve", snapshot)),
    )


def _preserved(
    sent: Mapping[str, float], at: str, snapshot: Snapshot
) -> Iterator[tuple[Plan, float]]:
    """The flavors to leave room for; one that nothing can fit has no room to lose."""
    references = References(snapshot)
    stored = snapshot.names.flavors
    for name, weight in sent.items():
        pointer = at + pointer_of((name,))
        if name not in stored:
            raise unknown_name(UnknownName(pointer, "flavor", name, similar(name, stored)))
        try:
            part = stored_question(name, stored[FlavorName(name)], snapshot, pointer)
        except Refused:
            message = "names a flavor that this release cannot read; set it again"
            raise refused(pointer, message) from None
        for unknown in unknown_names(part.question, snapshot):
            raise unknown_name(unknown._replace(at=pointer), flavor=name)
        if not any(group.resources for _, group in part.question.groups):
            raise refused(pointer, "names a flavor that asks for no resources")
        request = request_of(part.question, references)
        try:
            yield resolve(snapshot, request, one_per_tree=False), weight
        except NothingFits:
            continue


def _preference(
    sent: JSONObject, at: str, snapshot: Snapshot, references: References, warnings: Warnings
) -> Preference:
    required = read_items(sent.get("required", ()))
    members = read_items(sent.get("member_of", ()))
    _check("trait", _named("/required", required), snapshot.names.trait_ids, at)
    for place, reference in _named("/member_of", members):
        if not references.aggregates(reference):
            unknown = UnknownReference(place, "aggregate", reference)
            warnings.add_unknown(at + place, unknown)
    traits = frozenset(name for item in required for name in item.names)
    positive = [frozenset(item.names) for item in required if not item.is_negated]
    negative = [name for item in required if item.is_negated for name in item.names]
    return Preference(
        weight=sent["weight"],
        of=sent.get("of", HOST),
        traits=trait_test(trait_ids(snapshot, traits), positive, negative),
        membership=membership_test(
            snapshot, member_of(members, references), not_member_of(members, references)
        ),
    )


def _named(at: str, items: Iterable[Item]) -> Iterable[tuple[str, str]]:
    """The pointer to each name of a list of items, and the name."""
    for place, item in enumerate(items):
        for number, name in enumerate(item.names):
            yield f"{at}/{place}/{number}" if len(item.names) > 1 else f"{at}/{place}", name


def _check(
    kind: Literal["resource_class", "trait"],
    named: Iterable[tuple[str, str]],
    existing: Mapping[str, Any],
    at: str,
) -> None:
    for place, name in named:
        if name not in existing:
            raise unknown_name(UnknownName(place, kind, name, similar(name, existing)), within=at)

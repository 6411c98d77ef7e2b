# SPDX-License-Identifier: Apache-2.0
"""From the JSON of an order, which its schema admits, to an order of candidates.

Source: spec/beyond.md 2.7.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, Literal

from berth.api.berth_v1.asking import Warnings
from berth.api.berth_v1.pointed import pointer_of, refused
from berth.api.berth_v1.reading import JSONObject, check_no_conflict, read_items
from berth.api.berth_v1.refusals import unknown_name
from berth.candidates.order import HOST, Order, Preference
from berth.candidates.question import Item
from berth.candidates.references import (
    References,
    UnknownName,
    UnknownReference,
    member_of,
    not_member_of,
    similar,
)
from berth.candidates.resolve import membership_test, trait_ids, trait_test
from berth.index.snapshot import Snapshot

#: The strategy of an order that names none.
_DEFAULT: Final = "any"


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


def order_of(
    order: JSONObject,
    at: str,
    snapshot: Snapshot,
    references: References,
    warnings: Warnings,
) -> Order:
    """The order that a snapshot gives to the names of a body.

    Raises:
        Refused: 400 for a resource class or a trait that does not exist.
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
        among=order.get("among"),
    )


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

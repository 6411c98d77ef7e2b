# SPDX-License-Identifier: Apache-2.0
"""Query parameters that providers and candidates share, with the parsers of their values: amounts,
traits, aggregates.

Each parser takes one value and refuses a malformed one with 400; the layers below check that names
exist.
Source: spec/rest-api.md 4.1 and spec/allocation-candidates.md 2.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from berth.api.contract import Parameter, always
from berth.api.errors import Refused
from berth.api.examples import AGGREGATE, PROVIDER
from berth.api.microversion import ByMicroversion
from berth.api.schema import QUERY
from berth.model.ids import AggregateUUID, parse_uuid_lax

FORBIDDEN_TRAITS_SINCE = 22
REPEATED_MEMBER_OF_SINCE = 24
FORBIDDEN_MEMBER_OF_SINCE = 32
ANY_TRAITS_SINCE = 39

_UUID = "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_NAME = "[A-Z0-9_]+"
_AMOUNT = f"{_NAME}:[1-9][0-9]*"


def list_pattern(item: str) -> str:
    """Comma-separated items."""
    return f"{item}(,{item})*"


_TRAITS = f"^{list_pattern(_NAME)}$"
#: A list of traits without `in:`.
TRAITS_OR_FORBIDDEN = f"^{list_pattern(f'!?{_NAME}')}$"
_ANY_TRAITS = f"^(in:{list_pattern(_NAME)}|{list_pattern(f'!?{_NAME}')})$"

RESOURCES = Parameter(
    name="resources",
    means="Amounts of resource classes, `CLASS:AMOUNT,...`; providers must have all of them free.",
    example="VCPU:2,MEMORY_MB:4096",
    pattern=always(f"^{list_pattern(_AMOUNT)}$"),
)
REQUIRED = Parameter(
    name="required",
    means={
        0: "Required traits, `TRAIT,...`.",
        FORBIDDEN_TRAITS_SINCE: "`!TRAIT` excludes a trait.",
        ANY_TRAITS_SINCE: "`in:TRAIT,...` requires any of these traits. "
        "If repeated, providers must match all.",
    },
    example="HW_CPU_X86_AVX2",
    pattern=ByMicroversion(
        {
            0: _TRAITS,
            FORBIDDEN_TRAITS_SINCE: TRAITS_OR_FORBIDDEN,
            ANY_TRAITS_SINCE: _ANY_TRAITS,
        }
    ),
    repeats_since=ANY_TRAITS_SINCE,
)
MEMBER_OF = Parameter(
    name="member_of",
    means={
        0: "Only members of this aggregate, or of any aggregate in `in:UUID,...`.",
        FORBIDDEN_MEMBER_OF_SINCE: "A leading `!` excludes members.",
        REPEATED_MEMBER_OF_SINCE: "If repeated, providers must match all.",
    },
    example=AGGREGATE,
    pattern=ByMicroversion(
        {
            0: f"^({_UUID}|in:{list_pattern(_UUID)})$",
            FORBIDDEN_MEMBER_OF_SINCE: f"^!?({_UUID}|in:{list_pattern(_UUID)})$",
        }
    ),
    repeats_since=REPEATED_MEMBER_OF_SINCE,
)
IN_TREE = Parameter(
    name="in_tree",
    means="Only providers in the same tree as this provider.",
    example=PROVIDER,
    pattern=always(f"^{_UUID}$"),
)


class TraitCondition(Struct, frozen=True):
    """Required sets of traits, ANDed (any one of a set will do), and forbidden traits.

    A set appears as often as it was requested.
    """

    required: tuple[frozenset[str], ...]
    forbidden: frozenset[str]


class MembershipCondition(Struct, frozen=True):
    """Required sets of aggregates, ANDed (any one of a set will do), and forbidden ones."""

    member_of: tuple[frozenset[AggregateUUID], ...]
    not_member_of: frozenset[AggregateUUID]


#: No condition at all.
ANY_TRAITS = TraitCondition((), frozenset())
ANY_MEMBERSHIP = MembershipCondition((), frozenset())


def parse_resources(value: str) -> dict[str, int]:
    """`VCPU:2,MEMORY_MB:1024`: amounts of at least 1; the last one of a class counts."""
    if not value.strip():
        raise _badly_formed("empty string")
    amounts = {}
    for item in value.split(","):
        parts = item.split(":")
        if len(parts) != 2:
            raise _badly_formed(item)
        resource_class, amount = parts
        amounts[resource_class] = _parse_amount(resource_class, amount)
    return amounts


def parse_traits(values: Iterable[str], microversion: int) -> TraitCondition:
    """AND all values of `required`."""
    required: list[frozenset[str]] = []
    forbidden: set[str] = set()
    for value in values:
        if value.startswith("in:"):
            required.append(parse_any_traits(value, microversion))
        else:
            names, excluded = parse_trait_list(value, microversion)
            required += [frozenset((name,)) for name in names]
            forbidden |= excluded
    return TraitCondition(tuple(required), frozenset(forbidden))


def parse_any_traits(value: str, microversion: int) -> frozenset[str]:
    """`in:A,B`: any one will do."""
    if microversion < ANY_TRAITS_SINCE:
        raise any_traits_refused(value)
    names = _trait_items(value.removeprefix("in:"), value, microversion)
    if any(name.startswith("!") for name in names):
        raise Refused(
            400,
            f"{QUERY}: The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' does not support forbidden "
            f"traits. Got: {value}",
        )
    return frozenset(names)


def any_traits_refused(value: str) -> Refused:
    """The 400 for `in:` where it is not supported."""
    return Refused(
        400,
        f"{QUERY}: The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' only supported since "
        f"microversion 1.39. Got: {value}",
    )


def parse_trait_list(value: str, microversion: int) -> tuple[list[str], set[str]]:
    """`A,!B`: required traits in order, and forbidden ones."""
    required = []
    forbidden = set()
    for item in _trait_items(value, value, microversion):
        if not item.startswith("!"):
            required.append(item)
        elif microversion < FORBIDDEN_TRAITS_SINCE:
            raise Refused(400, f"{_trait_form(value, microversion)} Got: {value}")
        else:
            forbidden.add(item.lstrip("!"))
    return required, forbidden


def parse_member_of(
    values: list[str], microversion: int, *, key: str = "member_of"
) -> MembershipCondition:
    """AND all values of `member_of`; `key` is the parameter with its suffix."""
    if len(values) > 1 and microversion < REPEATED_MEMBER_OF_SINCE:
        raise Refused(
            400,
            f"Multiple {key} parameters are not supported",
            hint="Microversion 1.24 and later support them.",
        )
    member_of = []
    not_member_of: set[AggregateUUID] = set()
    for value in values:
        aggregates = _parse_aggregates(value)
        if value.startswith("!"):
            if microversion < FORBIDDEN_MEMBER_OF_SINCE:
                raise Refused(
                    400,
                    f"Forbidden {key} parameters are not supported in the specified microversion",
                    hint="Microversion 1.32 and later support them.",
                )
            not_member_of |= aggregates
        else:
            member_of.append(aggregates)
    return MembershipCondition(tuple(dict.fromkeys(member_of)), frozenset(not_member_of))


def _parse_amount(resource_class: str, amount: str) -> int:
    try:
        number = int(amount)
    except ValueError:
        raise Refused(
            400,
            f"Requested resource {resource_class} expected positive integer amount. Got: {amount}.",
        ) from None
    if number < 1:
        raise Refused(
            400,
            f"Requested resource {resource_class} requires amount >= 1. Got: {number}.",
        )
    return number


def _badly_formed(got: str) -> Refused:
    return Refused(
        400,
        "Badly formed resources parameter. Expected resources query string parameter in form: "
        f"?resources=VCPU:2,MEMORY_MB:1024. Got: {got}.",
    )


def _trait_items(items: str, value: str, microversion: int) -> list[str]:
    names = [item.strip() for item in items.split(",")]
    if not all(name.lstrip("!") for name in names):
        form = _trait_form(value, microversion)
        raise Refused(400, f"{form} Got an empty trait in: {value}")
    return names


def _trait_form(value: str, microversion: int) -> str:
    """The message that shows the form a value should have."""
    if value.startswith("in:"):
        form = "in:HW_CPU_X86_VMX,CUSTOM_MAGIC"
    elif microversion >= FORBIDDEN_TRAITS_SINCE:
        form = "HW_CPU_X86_VMX,!CUSTOM_MAGIC"
    else:
        form = "HW_CPU_X86_VMX,CUSTOM_MAGIC"
    return f"{QUERY}: Expected 'required' parameter value of the form: {form}."


def _parse_aggregates(value: str) -> frozenset[AggregateUUID]:
    """The uuids of one value, with or without its leading `!`."""
    listed = value.removeprefix("!")
    if listed.startswith("in:"):
        items = listed.removeprefix("in:").split(",")
    elif "," in listed:
        raise Refused(
            400,
            "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword "
            f"using the valid microversion. Got: {value}",
        )
    else:
        items = [listed]
    return frozenset(map(_parse_aggregate, items))


def _parse_aggregate(item: str) -> AggregateUUID:
    uuid = parse_uuid_lax(item)
    if uuid is None:
        raise Refused(
            400,
            f"{QUERY}: Expected 'member_of' parameter to contain valid UUID(s). Got: {item}",
        )
    return AggregateUUID(uuid)

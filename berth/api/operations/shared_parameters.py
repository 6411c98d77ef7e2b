# SPDX-License-Identifier: Apache-2.0
"""Query parameters that providers and candidates share; `berth.api.filters` reads their values."""

from __future__ import annotations

from berth.api import filters
from berth.api.microversion import ByMicroversion
from berth.api.operation import Parameter, always
from berth.api.operations.examples import AGGREGATE, PROVIDER

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
    means={
        0: "Amounts of resource classes, `CLASS:AMOUNT,...`; providers must have all of them free."
    },
    example="VCPU:2,MEMORY_MB:4096",
    pattern=always(f"^{list_pattern(_AMOUNT)}$"),
)
REQUIRED = Parameter(
    name="required",
    means={
        0: "Required traits, `TRAIT,...`.",
        filters.FORBIDDEN_TRAITS_SINCE: "`!TRAIT` excludes a trait.",
        filters.ANY_TRAITS_SINCE: "`in:TRAIT,...` requires any of these traits. "
        "If repeated, providers must match all.",
    },
    example="HW_CPU_X86_AVX2",
    pattern=ByMicroversion(
        {
            0: _TRAITS,
            filters.FORBIDDEN_TRAITS_SINCE: TRAITS_OR_FORBIDDEN,
            filters.ANY_TRAITS_SINCE: _ANY_TRAITS,
        }
    ),
    repeats_since=filters.ANY_TRAITS_SINCE,
)
MEMBER_OF = Parameter(
    name="member_of",
    means={
        0: "Only members of this aggregate, or of any aggregate in `in:UUID,...`.",
        filters.FORBIDDEN_MEMBER_OF_SINCE: "A leading `!` excludes members.",
        filters.REPEATED_MEMBER_OF_SINCE: "If repeated, providers must match all.",
    },
    example=AGGREGATE,
    pattern=ByMicroversion(
        {
            0: f"^({_UUID}|in:{list_pattern(_UUID)})$",
            filters.FORBIDDEN_MEMBER_OF_SINCE: f"^!?({_UUID}|in:{list_pattern(_UUID)})$",
        }
    ),
    repeats_since=filters.REPEATED_MEMBER_OF_SINCE,
)
IN_TREE = Parameter(
    name="in_tree",
    means={0: "Only providers in the same tree as this provider."},
    example=PROVIDER,
    pattern=always(f"^{_UUID}$"),
)

# SPDX-License-Identifier: Apache-2.0
"""Allocation candidates (1.10): the allowed query keys, and the response.

Source: spec/allocation-candidates.md 2, 3 and 7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from berth.api import filters
from berth.api.errors import QUERY_BAD_VALUE, QUERY_DUPLICATE_KEY, Refused
from berth.api.microversion import ByMicroversion
from berth.api.operation import (
    Operation,
    Parameter,
    Query,
    always,
    component,
    for_services,
    ref,
    shows,
)
from berth.api.operations import examples, shared_parameters
from berth.api.operations.allocations import CLAIM, CLAIM_AS_LIST
from berth.api.operations.fragments import (
    AMOUNTS,
    CLASS_NAME_PATTERN,
    SHOWN_TRAITS,
    TEXT,
    UUID,
    UUID_36_PATTERN,
    UUID_OR_NULL,
    exact_object,
    list_of,
    object_by,
)
from berth.api.query_string import Pairs, values_of
from berth.api.schema import QUERY, JSONSchema, Schema

TAG = "Allocation candidates"

GRANULAR_SINCE = 25
STRING_SUFFIX_SINCE = 33
#: When the response changes its form.
BY_PROVIDER_SINCE = 12
TRAITS_SINCE = 17
TREES_SINCE = 29
MAPPINGS_SINCE = 34

#: Fields of `berth.candidates.request.CandidatesRequest`.
Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestParameter(Parameter):
    """A parameter of the whole request, with its reader.

    The reader takes all values in order, at least one, and the microversion.
    """

    read: Callable[[list[str], int], Fields]


#: Schedulers send a handful; thousands would take many seconds.
SAME_SUBTREE_MAX = 400


def _read_limit(values: list[str], microversion: int) -> Fields:
    try:
        return {"limit": int(values[0])}
    except ValueError:
        # Python refuses thousands of digits; such a limit has no effect.
        return {}


def _read_group_policy(values: list[str], microversion: int) -> Fields:
    return {"group_policy": values[0]}


def _read_root_required(values: list[str], microversion: int) -> Fields:
    if len(values) > 1:
        raise Refused(
            400,
            "Query parameter 'root_required' may be specified only once.",
            code=QUERY_DUPLICATE_KEY,
        )
    for value in values:
        if value.startswith("in:"):
            raise filters.any_traits_refused(value)
    condition = filters.parse_traits(values, microversion)
    if conflicts := frozenset().union(*conflicting_traits(condition)):
        raise Refused(
            400,
            "Conflicting required and forbidden traits found in root_required: "
            f"{', '.join(sorted(conflicts))}",
            code=QUERY_BAD_VALUE,
        )
    return {
        "host": {
            "required": tuple(dict.fromkeys(condition.required)),
            "forbidden": condition.forbidden,
        }
    }


def _read_same_subtree(values: list[str], microversion: int) -> Fields:
    subtrees = []
    for value in values:
        suffixes = frozenset(item.strip() for item in value.split(","))
        if "" in suffixes:
            raise Refused(
                400,
                # COMPAT: with the space at the end.
                "Empty string (unsuffixed group) can not be specified in `same_subtree` ",
                code=QUERY_BAD_VALUE,
            )
        subtrees.append(suffixes)
    distinct = tuple(dict.fromkeys(subtrees))
    if len(distinct) > SAME_SUBTREE_MAX:
        raise too_many("different `same_subtree` values", SAME_SUBTREE_MAX, len(distinct))
    return {"same_subtree": distinct}


def too_many(things: str, most: int, got: int) -> Refused:
    """400: the request has too many of something."""
    return Refused(
        400,
        f"{QUERY}: A request may have at most {most} {things}. Got: {got}",
        code=QUERY_BAD_VALUE,
    )


def conflicting_traits(condition: filters.TraitCondition) -> list[frozenset[str]]:
    """The required sets of traits that are entirely forbidden."""
    return [wanted for wanted in condition.required if wanted <= condition.forbidden]


#: Parameters of a group; each suffix stands for another group.
_GROUP = (
    replace(shared_parameters.RESOURCES, since=10),
    replace(shared_parameters.REQUIRED, since=17),
    replace(shared_parameters.MEMBER_OF, since=21),
    replace(shared_parameters.IN_TREE, since=31),
)

#: In reading order.
_REQUEST = (
    RequestParameter(
        name="limit",
        means={0: "The maximum number of candidates."},
        example="10",
        since=16,
        schema={"type": ["integer", "string"], "pattern": r"^[1-9][0-9]*\Z"},
        read=_read_limit,
    ),
    RequestParameter(
        name="group_policy",
        means={
            0: "`isolate`: a different provider for each suffixed group; `none`: groups may share"
            " a provider. Required if more than one group has a suffix."
        },
        example="none",
        since=25,
        schema={"type": "string", "enum": ["none", "isolate"]},
        read=_read_group_policy,
    ),
    RequestParameter(
        name="root_required",
        means={
            0: "Traits that the root of the tree must have, `TRAIT,...`; `!TRAIT` excludes a trait."
        },
        example=shared_parameters.REQUIRED.example,
        since=35,
        pattern=always(shared_parameters.TRAITS_OR_FORBIDDEN),
        read=_read_root_required,
    ),
    RequestParameter(
        name="same_subtree",
        means={
            0: "Comma-separated suffixes of groups: one of the providers of these groups must be "
            "an ancestor of all others. If repeated, candidates must match all."
        },
        example="_A,_B",
        since=36,
        pattern=always(f"^{shared_parameters.list_pattern('[a-zA-Z0-9_-]{1,64}')}$"),
        repeats_since=0,
        read=_read_same_subtree,
    ),
)
GROUP_KEYS = tuple(parameter.name for parameter in _GROUP)


def read_request_parameters(pairs: Pairs, microversion: int) -> Fields:
    """Read the whole request's parameters.

    Raises:
        Refused: 400.
    """
    fields: dict[str, Any] = {}
    for parameter in _REQUEST:
        if values := values_of(pairs, parameter.name):
            fields |= parameter.read(values, microversion)
    return fields


def _keys_at(microversion: int) -> Schema:
    properties = {
        parameter.name: parameter.schema
        for parameter in _REQUEST
        if parameter.since <= microversion
    }
    group_keys = [parameter.name for parameter in _GROUP if parameter.since <= microversion]
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if microversion < GRANULAR_SINCE:
        properties |= dict.fromkeys(group_keys, TEXT)
        schema["required"] = ["resources"]
    schema["additionalProperties"] = False
    if microversion >= GRANULAR_SINCE:
        suffix = "[1-9][0-9]*" if microversion < STRING_SUFFIX_SINCE else "[a-zA-Z0-9_-]{1,64}"
        schema["patternProperties"] = {rf"^{key}({suffix})?\Z": TEXT for key in group_keys}
    return Schema(schema, subject=QUERY)


KEYS = Query(
    *_GROUP,
    *_REQUEST,
    schema=ByMicroversion(
        {
            minor: _keys_at(minor)
            for minor in sorted(
                {
                    GRANULAR_SINCE,
                    STRING_SUFFIX_SINCE,
                    *(each.since for each in (*_GROUP, *_REQUEST)),
                }
            )
        }
    ),
)


def _candidate(microversion: int) -> JSONSchema:
    resources = {"resources": {**AMOUNTS, "minProperties": 1}}
    if microversion < BY_PROVIDER_SINCE:
        provider = {"resource_provider": exact_object({"uuid": UUID})}
        allocations = list_of(exact_object({**provider, **resources}))
    else:
        allocations = object_by(UUID_36_PATTERN, exact_object(resources), at_least_one=True)
    providers = {**list_of(UUID), "minItems": 1}
    mappings = {"mappings": object_by(r"^[a-zA-Z0-9_-]{0,64}\Z", providers)}
    return exact_object(
        {"allocations": allocations, **(mappings if microversion >= MAPPINGS_SINCE else {})}
    )


def _provider_summary(microversion: int) -> JSONSchema:
    room = exact_object(
        {"capacity": {"type": "integer"}, "used": {"type": "integer", "minimum": 0}}
    )
    traits = {"traits": SHOWN_TRAITS}
    trees = {"parent_provider_uuid": UUID_OR_NULL, "root_provider_uuid": UUID}
    return exact_object(
        {
            "resources": object_by(CLASS_NAME_PATTERN, room),
            **(traits if microversion >= TRAITS_SINCE else {}),
            **(trees if microversion >= TREES_SINCE else {}),
        }
    )


def _example(allocations: object) -> dict[str, object]:
    return {
        "allocation_requests": [
            {"allocations": allocations, "mappings": {"": [examples.PROVIDER]}}
        ],
        "provider_summaries": {
            examples.PROVIDER: {
                "resources": {"VCPU": {"capacity": 248, "used": 16}},
                "traits": ["HW_CPU_X86_AVX2"],
                "parent_provider_uuid": None,
                "root_provider_uuid": examples.PROVIDER,
            }
        },
    }


_CANDIDATE = component(
    "AllocationCandidate",
    *((minor, _candidate(minor)) for minor in (10, BY_PROVIDER_SINCE, MAPPINGS_SINCE)),
)
PROVIDER_SUMMARY = component(
    "ProviderSummary",
    *((minor, _provider_summary(minor)) for minor in (10, TRAITS_SINCE, TREES_SINCE)),
)
_CANDIDATES = component(
    "AllocationCandidates",
    (
        10,
        exact_object(
            {
                "allocation_requests": list_of(ref("AllocationCandidate")),
                "provider_summaries": object_by(UUID_36_PATTERN, ref("ProviderSummary")),
            }
        ),
    ),
    example=ByMicroversion(
        {
            0: _example(CLAIM_AS_LIST["allocations"]),
            BY_PROVIDER_SINCE: _example(CLAIM["allocations"]),
        }
    ),
    parts=(_CANDIDATE, PROVIDER_SUMMARY),
)

OPERATIONS = (
    Operation(
        "GET",
        "/allocation_candidates",
        handler="allocation_candidates:list_candidates",
        rule=for_services("placement:allocation_candidates:list", "List allocation candidates."),
        tag=TAG,
        summary="List allocation candidates",
        details="At least one group must request resources. Rejects unknown parameters.",
        since=10,
        query=KEYS,
        answers=shows(_CANDIDATES, means="The candidates; empty if nothing fits."),
        is_search=True,
    ),
)

# SPDX-License-Identifier: Apache-2.0
"""The query of `GET /allocation_candidates` (1.10): its parameters, and what they ask for.

Source: spec/allocation-candidates.md 2 to 4; the checks here are in the order of 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from berth.api import filters
from berth.api.contract import Parameter, Query, always
from berth.api.errors import QUERY_BAD_VALUE, QUERY_DUPLICATE_KEY, QUERY_MISSING_VALUE, Refused
from berth.api.microversion import ByMicroversion
from berth.api.query_string import Pairs, parse_pairs, values_of
from berth.api.schema import QUERY, Schema
from berth.api.shapes import TEXT
from berth.candidates.question import Item, Question, QuestionGroup, QuestionHost, QuestionRelation
from berth.model.ids import parse_uuid_lax

GRANULAR_SINCE = 25
STRING_SUFFIX_SINCE = 33
RESOURCELESS_GROUPS_SINCE = 36

#: Schedulers send a handful; thousands would take many seconds.
GROUPS_MAX = 64
SAME_SUBTREE_MAX = 400

#: What parameters of the whole request say, by name.
Fields = Mapping[str, Any]


class RequestParameter(Parameter, frozen=True, kw_only=True):
    """A parameter of the whole request, with its reader.

    The reader takes all values in order, at least one, and the microversion.
    """

    read: Callable[[list[str], int], Fields]


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
    if conflicts := frozenset().union(*_conflicting_traits(condition)):
        raise Refused(
            400,
            "Conflicting required and forbidden traits found in root_required: "
            f"{', '.join(sorted(conflicts))}",
            code=QUERY_BAD_VALUE,
        )
    return {"root_required": condition}


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
        raise _too_many("different `same_subtree` values", SAME_SUBTREE_MAX, len(distinct))
    return {"same_subtree": distinct}


def _too_many(things: str, most: int, got: int) -> Refused:
    """400: the request has too many of something."""
    return Refused(
        400,
        f"{QUERY}: A request may have at most {most} {things}. Got: {got}",
        code=QUERY_BAD_VALUE,
    )


def _conflicting_traits(condition: filters.TraitCondition) -> list[frozenset[str]]:
    """The required sets of traits that are entirely forbidden."""
    return [wanted for wanted in condition.required if wanted <= condition.forbidden]


#: Parameters of a group; each suffix stands for another group.
_GROUP = (
    replace(filters.RESOURCES, since=10),
    replace(filters.REQUIRED, since=17),
    replace(filters.MEMBER_OF, since=21),
    replace(filters.IN_TREE, since=31),
)

#: In reading order.
_REQUEST = (
    RequestParameter(
        name="limit",
        means="The maximum number of candidates.",
        example="10",
        since=16,
        schema={"type": ["integer", "string"], "pattern": r"^[1-9][0-9]*\Z"},
        read=_read_limit,
    ),
    RequestParameter(
        name="group_policy",
        means="`isolate`: a different provider for each suffixed group; `none`: groups may share"
        " a provider. Required if more than one group has a suffix.",
        example="none",
        since=25,
        schema={"type": "string", "enum": ["none", "isolate"]},
        read=_read_group_policy,
    ),
    RequestParameter(
        name="root_required",
        means="Traits that the root of the tree must have, `TRAIT,...`; `!TRAIT` excludes a trait.",
        example=filters.REQUIRED.example,
        since=35,
        pattern=always(filters.TRAITS_OR_FORBIDDEN),
        read=_read_root_required,
    ),
    RequestParameter(
        name="same_subtree",
        means="Comma-separated suffixes of groups: one of the providers of these groups must be "
        "an ancestor of all others. If repeated, candidates must match all.",
        example="_A,_B",
        since=36,
        pattern=always(f"^{filters.list_pattern('[a-zA-Z0-9_-]{1,64}')}$"),
        repeats_since=0,
        read=_read_same_subtree,
    ),
)
_GROUP_KEYS = tuple(parameter.name for parameter in _GROUP)


def _request_parameters(pairs: Pairs, microversion: int) -> Fields:
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


class DecodedQuery(NamedTuple):
    """A decoded query string: its question, and what else it asks for.

    Attributes:
        limit: the largest number of candidates, at least 1; None for all.
        group_policy, same_subtree: as sent.
    """

    question: Question
    limit: int | None
    group_policy: str | None
    same_subtree: tuple[frozenset[str], ...]


def decode(query_string: str, microversion: int) -> DecodedQuery:
    """Decode a raw query string.

    Raises:
        Refused: 400 for every error that can be found without the data.
    """
    pairs = parse_pairs(query_string)
    _check_keys(pairs, microversion)
    fields = _request_parameters(pairs, microversion)
    drafts = _decode_groups(pairs, microversion)
    same_subtree: tuple[frozenset[str], ...] = fields.get("same_subtree", ())
    if microversion < RESOURCELESS_GROUPS_SINCE:
        _check_all_have_resources(drafts)
    else:
        _check_resourceless_are_named(drafts, same_subtree)
    _check_no_conflicts(drafts)
    suffixes = tuple(draft.suffix for draft in drafts if draft.suffix)
    policy = fields.get("group_policy")
    if policy is None and len(suffixes) > 1:
        raise Refused(
            400,
            'The "group_policy" parameter is required when specifying more than one '
            '"resources{N}" parameter.',
        )
    at_root: filters.TraitCondition = fields.get("root_required", filters.ANY_TRAITS)
    question = Question(
        groups=tuple((draft.suffix, draft.finished()) for draft in drafts),
        host=QuestionHost(required=_items_of(dict.fromkeys(at_root.required), at_root.forbidden)),
        together=tuple(
            QuestionRelation(tuple(sorted(names)), "subtree")
            for names in same_subtree
            if len(names) > 1
        ),
        apart=(QuestionRelation(suffixes, "provider"),)
        if policy == "isolate" and len(suffixes) > 1
        else (),
        is_query=True,
    )
    return DecodedQuery(question, fields.get("limit"), policy, same_subtree)


class _Draft(Struct):
    """A group while its keys are read; `keys` are as sent, for messages."""

    suffix: str
    keys: list[str] = field(default_factory=list)
    resources: dict[str, int] = field(default_factory=dict)
    traits: filters.TraitCondition = filters.ANY_TRAITS
    memberships: filters.MembershipCondition = filters.ANY_MEMBERSHIP
    in_tree: str | None = None

    def finished(self) -> QuestionGroup:
        """The group."""
        memberships = self.memberships
        return QuestionGroup(
            resources=tuple(self.resources.items()),
            required=_items_of(dict.fromkeys(self.traits.required), self.traits.forbidden),
            member_of=_items_of(memberships.member_of, memberships.not_member_of),
            in_tree=None if self.in_tree is None else (self.in_tree,),
        )


def _items_of(required: Iterable[frozenset[str]], forbidden: Iterable[str]) -> tuple[Item, ...]:
    """Conditions: sets of names, of each of which one is there, and names that are not."""
    if not required and not forbidden:
        return ()
    return (
        *(Item(tuple(sorted(names))) for names in required),
        *(Item((name,), is_negated=True) for name in sorted(forbidden)),
    )


def _check_keys(pairs: Pairs, microversion: int) -> None:
    """Check that all keys are allowed, and each occurrence of values with a schema."""
    schema = KEYS.schema.at(microversion)
    last = dict(pairs)
    schema.check(last)
    # The rest has passed; checking it again would be slow with many limits and many groups.
    mandatory = {key: value for key, value in last.items() if key == "resources"}
    for key in ("limit", "group_policy"):
        for earlier in values_of(pairs, key)[:-1]:
            schema.check({**mandatory, key: earlier})


def _decode_groups(pairs: Pairs, microversion: int) -> list[_Draft]:
    """The groups, ordered by first key; all values of a key are read together."""
    values: dict[str, list[str]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    drafts: dict[str, _Draft] = {}
    for key, given in values.items():
        parameter = next((name for name in _GROUP_KEYS if key.startswith(name)), None)
        if parameter is not None:
            suffix = key.removeprefix(parameter)
            draft = drafts.setdefault(suffix, _Draft(suffix))
            draft.keys.append(key)
            _decode_into(draft, key, parameter, given, microversion)
    if len(drafts) > GROUPS_MAX:
        raise _too_many("request groups", GROUPS_MAX, len(drafts))
    return list(drafts.values())


def _decode_into(
    draft: _Draft, key: str, parameter: str, values: list[str], microversion: int
) -> None:
    if parameter == "resources":
        for value in values:
            draft.resources = filters.parse_resources(value)
    elif parameter == "required":
        counting = values if microversion >= filters.ANY_TRAITS_SINCE else values[-1:]
        draft.traits = filters.parse_traits(counting, microversion)
    elif parameter == "member_of":
        draft.memberships = filters.parse_member_of(values, microversion, key=key)
    else:
        for value in values:
            draft.in_tree = _parse_in_tree(value)


def _parse_in_tree(value: str) -> str:
    uuid = parse_uuid_lax(value.strip())
    if uuid is None:
        raise Refused(
            400, f"{QUERY}: Expected 'in_tree' parameter to be a format of uuid. Got: {value}"
        )
    return uuid


def _check_all_have_resources(drafts: list[_Draft]) -> None:
    """Up to 1.35: there is a group, and each requests resources."""
    orphans = [draft for draft in drafts if not draft.resources]
    traits = _keys_of((draft for draft in orphans if draft.traits.required), "required")
    if traits:
        raise Refused(
            400,
            # COMPAT: with two spaces.
            "All traits parameters must be associated with resources.  Found the following "
            f"orphaned traits keys: {traits}",
        )
    memberships = _keys_of(orphans, "member_of")
    if memberships:
        raise Refused(
            400,
            "All member_of parameters must be associated with resources. Found the following "
            f"orphaned member_of keys: {memberships}",
        )
    if orphans:
        raise Refused(400, "All request groups must specify resources.")
    if not drafts:
        raise Refused(
            400, "At least one request group (`resources` or `resources{$S}`) is required."
        )


def _keys_of(drafts: Iterable[_Draft], parameter: str) -> str:
    return ", ".join(key for draft in drafts for key in draft.keys if key.startswith(parameter))


def _check_resourceless_are_named(
    drafts: list[_Draft], same_subtree: tuple[frozenset[str], ...]
) -> None:
    """From 1.36: each group without resources is in a `same_subtree`, which names real groups."""
    if not any(draft.resources for draft in drafts):
        raise Refused(
            400,
            "There must be at least one resources or resources[$S] parameter.",
            code=QUERY_MISSING_VALUE,
        )
    named: frozenset[str] = frozenset().union(*same_subtree)
    unnamed = [draft for draft in drafts if not draft.resources and draft.suffix not in named]
    if unnamed:
        raise Refused(
            400,
            "Resourceless suffixed group request should be specified in `same_subtree` query "
            f"param: bad group(s) - {[draft.suffix for draft in unnamed]}.",
            code=QUERY_BAD_VALUE,
        )
    suffixes = sorted({draft.suffix for draft in drafts})
    unreal = sorted(named.difference(suffixes))
    if unreal:
        raise Refused(
            400,
            f"Real suffixes should be specified in `same_subtree`: {unreal} not found in "
            f"{suffixes}.",
            code=QUERY_BAD_VALUE,
        )


def _check_no_conflicts(drafts: list[_Draft]) -> None:
    conflicts = [
        f"required{draft.suffix}: ({', '.join(names)})"
        for draft in drafts
        # COMPAT: in this order, and as often as requested.
        for names in sorted(map(sorted, _conflicting_traits(draft.traits)))
    ]
    if conflicts:
        raise Refused(
            400,
            "Conflicting required and forbidden traits found in the following traits keys: "
            + ", ".join(conflicts),
        )

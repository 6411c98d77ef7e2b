# SPDX-License-Identifier: Apache-2.0
"""What an explanation says. Source: spec/beyond.md 3.3 to 3.6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Literal

from berth.model.consumer import Consumer
from berth.model.inventory import Reason
from berth.model.shown import TEXT, UNSET, Count, NamedProvider, Pointer, Shown, Sometimes, Warned

_AtLeast = Annotated[
    Sometimes[bool], "True if the time cut the figures short: they are lower bounds."
]
_Words = Annotated[str, "The constraint in words."]


class Verdict(Enum):
    """Why nothing fits, or that something does."""

    UNKNOWN_NAME = "unknown_name"
    FITS = "fits"
    GAVE_UP = "gave_up"
    DRAINED = "drained"
    NEVER = "never"
    FRAGMENTED = "fragmented"
    USED_UP = "used_up"


class Hosts(Shown):
    """How many hosts there are, and how many fit."""

    total: Annotated[Count, "All hosts: root providers with their trees."]
    pools: Annotated[Count, "Of these, trees whose providers with inventory all share it."]
    fit: Annotated[Count, "Hosts that fit."]
    fit_if_undrained: Annotated[Count, "Hosts that would fit without drains."]
    fit_if_empty: Annotated[Count, "Hosts that would fit with nothing drained and nothing used."]
    at_least: _AtLeast = UNSET


class Stage(Shown, kw_only=True):
    """One constraint."""

    at: Pointer
    text: _Words
    has: Annotated[Sometimes[Count], "Hosts with any inventory of the class."] = UNSET
    if_empty: Annotated[Sometimes[Count], "Hosts that fit the amount alone with nothing used."] = (
        UNSET
    )
    alone: Annotated[int | None, "Hosts that fit this constraint alone; null for relations."]
    left: Annotated[Count, "Hosts that fit this constraint and all before it."]
    at_least: _AtLeast = UNSET


class Relaxation(Shown):
    """A change with which some host fits."""

    drop: Annotated[Sequence[Pointer], "The constraints to leave out."]
    hosts: Annotated[Count, "Hosts that fit without them."]
    reduce_to: Annotated[
        Sometimes[Count], "The largest smaller amount with which some host fits."
    ] = UNSET
    hosts_reduced: Annotated[Sometimes[Count], "Hosts that fit with that amount."] = UNSET
    at_least: _AtLeast = UNSET


class Lack(Shown):
    """A constraint that a host lacks; of a class, with what its best provider has."""

    at: Pointer
    text: _Words
    asked: Annotated[Sometimes[Count], "The amount of the request."] = UNSET
    possible: Annotated[
        Sometimes[Count], "The largest smaller amount with which the host fits; 0 if none."
    ] = UNSET
    reason: Annotated[
        Sometimes[Reason],
        "What keeps `provider` from giving the amount; `conditions` stands for something else in"
        " the request.",
    ] = UNSET
    unmet: Annotated[
        Sometimes[Sequence[Pointer]],
        "With the reason `conditions`: the conditions on the group that `provider` does not meet,"
        " if no provider of the host meets them all.",
    ] = UNSET
    provider: Annotated[Sometimes[NamedProvider], "The provider that could give most."] = UNSET
    free: Annotated[Sometimes[Count], "What is left of its capacity."] = UNSET
    capacity: Annotated[Sometimes[Count], "What it can give in total."] = UNSET
    max_unit: Annotated[Sometimes[Count], "The most that it gives at once."] = UNSET


class NearHost(Shown, kw_only=True):
    """A host that fits if nothing of what it lacks is asked for; it needs all of that."""

    host: Annotated[NamedProvider, "The root of the host."]
    named: Annotated[
        Sometimes[bool], "True for a host that the request names; these come first."
    ] = UNSET
    consumers: Annotated[
        Sometimes[Sequence[Consumer]],
        "Of a named host: the first consumers, by UUID, that hold some of the classes that it"
        " lacks. Only in the answer of `POST /berth/v1/explain`, without a scenario, and for"
        " callers who may list the consumers of all projects.",
    ] = UNSET
    more_consumers: Annotated[Sometimes[bool], "True if there may be more."] = UNSET
    lacks: Annotated[
        Sequence[Lack], "The constraints to leave out for it to fit, all of which are needed."
    ]


class Impossible(Shown):
    """Some constraints that no host meets together even with nothing used, each of them needed."""

    at: Annotated[
        Sequence[Pointer],
        "The constraints; without any one of them, some host could meet the others.",
    ]
    kind: Annotated[
        Literal["amount", "no_inventory", "classes", "relation", "conditions"],
        TEXT,
        "`amount`, `no_inventory`, `classes`, `relation` or `conditions`; there may be others in"
        " later versions.",
    ]
    text: Annotated[str, "What is impossible, in words."]
    most: Annotated[
        Sometimes[Count], "With `amount`: the largest amount that some host could hold."
    ] = UNSET
    on_host: Annotated[
        Sometimes[Count],
        "With `amount`, if several providers could give it: what one host has in all.",
    ] = UNSET
    providers: Annotated[Sometimes[Count], "How many providers of that host have some."] = UNSET


class Unknown(Shown):
    """A name that does not exist."""

    at: Pointer
    kind: Annotated[
        str,
        {**TEXT, "enum": ["resource_class", "trait"]},
        "What the name should stand for.",
    ]
    name: Annotated[str, "The name that does not exist."]
    did_you_mean: Annotated[Sequence[str], "Similar names that exist."]
    hosts: Annotated[
        Sometimes[Mapping[str, Count]],
        "In an explanation: how many hosts fit with each similar name instead; without those that"
        " were not searched in time.",
    ] = UNSET


class Explanation(Shown, kw_only=True):
    """How a request fits, and why it does not."""

    component = "Explanation"

    complete: Annotated[bool, "False if the time cut some figure short."]
    verdict: Annotated[
        Verdict,
        TEXT,
        "`unknown_name`, `fits`, `gave_up`, `drained`, `never`, `fragmented` or `used_up`; there"
        " may be others in later versions.",
    ]
    summary: Annotated[str, "The verdict in words, and what would help most."]
    hosts: Annotated[Hosts, "How many hosts there are, and how many fit."]
    stages: Annotated[
        Sequence[Stage], "The constraints of the request, in the order in which they are counted."
    ]
    binding: Annotated[
        Sequence[Pointer], "The constraints that each alone keep every host from fitting."
    ]
    relaxations: Annotated[
        Sometimes[Sequence[Relaxation]],
        "Changes with which some host fits, the most helpful first. Absent if some host fits.",
    ] = UNSET
    split_would_fit: Annotated[
        Sometimes[Count],
        "Hosts that would fit if every amount could come from several providers. Absent if some"
        " host fits, or if several groups ask for the same class.",
    ] = UNSET
    nearest: Annotated[
        Sometimes[Sequence[NearHost]],
        "The hosts that come nearest, with what each lacks. Absent if some host fits.",
    ] = UNSET
    impossible: Annotated[
        Sometimes[Sequence[Impossible]],
        "With the verdict `never`: constraints that no host meets together, even with nothing"
        " used.",
    ] = UNSET
    paint: Annotated[
        Sometimes[bytes],
        "One byte for each host, in ascending order of UUIDs: 255 if it fits, 254 if the time"
        " ended before, otherwise the number of the stage that it no longer fits.",
    ] = UNSET
    unknown: Annotated[
        Sequence[Unknown],
        "Names that do not exist. The figures leave out constraints with them.",
    ]
    warnings: Sequence[Warned]
    #: Empty until the API adds it: the search knows a question only.
    request: Annotated[
        Mapping[str, Any], {"type": "object"}, "The request as it was understood."
    ] = {}


class Explanations(Shown):
    """The explanations of several alternatives."""

    complete: bool
    alternatives: Annotated[
        Sequence[Explanation],
        "Instead of all other members: the explanation of each alternative of the request.",
    ]

# SPDX-License-Identifier: Apache-2.0
"""How often a request fits. Source: spec/beyond.md 4.2 to 4.4.

With a scenario, the figures without it stand beside each of them, as `now`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from berth.model.explanation import Unknown
from berth.model.shown import UNSET, ClassName, Count, NamedProvider, Shown, Sometimes

_COUNT = "How many more can be placed."
_AT_MOST = "An upper bound: certainly no more can be placed."
_EXACT = "Whether `count` and `at_most` are equal."
_HOSTS = "How many hosts fit at least one."
_NOW = "The same without `what_if`; only with it."
_NOW_OR_NULL = "The same without `what_if`; null for a host that it adds."


class Total(Shown):
    """How often a request fits on some hosts together: a lower and an upper bound."""

    count: Annotated[Count, _COUNT]
    at_most: Annotated[Count, _AT_MOST]


class OnHosts(Total):
    """The same, and how many of the hosts fit; not of a single host."""

    hosts: Annotated[Sometimes[Count], _HOSTS] = UNSET


class OfFleet(Total):
    """The same of all hosts."""

    exact: Annotated[bool, _EXACT]
    hosts: Annotated[Count, _HOSTS]


class OfValue(Shown, kw_only=True):
    """The same of the hosts with one value of a label, or of one host."""

    name: Annotated[Sometimes[str | None], "The name of the host; only in `host`."] = UNSET
    count: Annotated[Count, _COUNT]
    at_most: Annotated[Count, _AT_MOST]
    hosts: Annotated[Sometimes[Count], _HOSTS] = UNSET
    now: Annotated[Sometimes[OnHosts | None], _NOW_OR_NULL] = UNSET


class OfHost(Shown, kw_only=True):
    """The same of one host."""

    host: Annotated[NamedProvider, "The root of the host's tree."]
    count: Annotated[Count, _COUNT]
    at_most: Annotated[Count, _AT_MOST]
    now: Annotated[Sometimes[Total | None], _NOW_OR_NULL] = UNSET


class Fragments(Shown):
    """What is left of one class."""

    free: Annotated[
        Count,
        "What is free on the hosts that satisfy everything but amounts, and of the sharing"
        " providers that serve them.",
    ]
    usable: Annotated[Count, "How much of it these placements would use."]
    stranded: Annotated[int, "The rest of it."]
    largest: Annotated[
        Count, "With this amount the request, otherwise unchanged, would fit some host."
    ]


class FragmentsNow(Fragments):
    """The same, and what is left without the scenario."""

    now: Annotated[Sometimes[Fragments], _NOW] = UNSET


class Capacity(Shown, kw_only=True):
    """How often a request fits, or why that of a flavor is not counted."""

    count: Annotated[Sometimes[Count], _COUNT] = UNSET
    at_most: Annotated[Sometimes[Count], _AT_MOST] = UNSET
    exact: Annotated[Sometimes[bool], _EXACT] = UNSET
    hosts: Annotated[Sometimes[Count], _HOSTS] = UNSET
    now: Annotated[Sometimes[OfFleet], _NOW] = UNSET
    alternative: Annotated[
        Sometimes[Count],
        "Which of the alternatives was counted: the first that fits some host.",
    ] = UNSET
    classes: Annotated[
        Sometimes[Mapping[ClassName, FragmentsNow]], "What is left of each class of the request."
    ] = UNSET
    by: Annotated[
        Sometimes[Mapping[str, Mapping[str, OfValue]]],
        "The hosts of each value of each key of the question; hosts by UUID.",
    ] = UNSET
    best: Annotated[
        Sometimes[Sequence[OfHost]], "The hosts with the highest counts, the highest first."
    ] = UNSET
    unknown: Annotated[
        Sometimes[Sequence[Unknown]],
        "Names in a stored flavor that no longer exist; it is not counted then.",
    ] = UNSET
    invalid: Annotated[
        Sometimes[str], "Why a stored flavor cannot be read; it is not counted then."
    ] = UNSET

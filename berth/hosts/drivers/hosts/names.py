# SPDX-License-Identifier: Apache-2.0
"""The names of traits and resource classes that operators or devices choose."""

from __future__ import annotations

import re
from functools import cache

import os_traits

from berth.model.names import CUSTOM_PREFIX


@cache
def standard_traits() -> frozenset[str]:
    """The standard traits that this host's library knows; a service may know fewer."""
    return frozenset(os_traits.get_traits())


def trait_name(text: str) -> str:
    """A standard trait in whatever case, or else a custom one."""
    upper = text.upper()
    return upper if upper in standard_traits() else custom_name(upper)


def custom_name(*parts: str) -> str:
    """The custom trait or resource class made of some parts, with a single CUSTOM_ prefix."""
    normal = re.sub(r"[^A-Z0-9]+", "_", "_".join(parts).upper()).strip("_")
    return CUSTOM_PREFIX + normal.removeprefix(CUSTOM_PREFIX)

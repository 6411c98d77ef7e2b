# SPDX-License-Identifier: Apache-2.0
"""Random queries for candidates: groups, suffixes and what relates them, at every microversion."""

from __future__ import annotations

from urllib.parse import quote

from compare.histories.dice import Dice
from compare.histories.picture import Picture
from compare.histories.writers import amounts, placement_filters, traits_asked, version_text
from compare.script.step import Step, request

_GROUPS_SINCE = 25
_WORDS_SINCE = 33
_SUBTREES_SINCE = 36
#: member_of, in_tree, required.
_FILTERS_SINCE = (21, 31, 17)


def show_candidates(dice: Dice, picture: Picture) -> Step:
    """GET /allocation_candidates."""
    minor = dice.minor(dice.one_of((10, _GROUPS_SINCE, _SUBTREES_SINCE)))
    suffixes = _suffixes(dice, minor)
    parameters: list[str] = []
    if not suffixes or dice.chance(0.6):
        parameters += _group(dice, picture, minor, "")
    for suffix in suffixes:
        parameters += _group(dice, picture, minor, suffix)
    if minor >= _SUBTREES_SINCE and suffixes:
        parameters += _subtree(dice, picture, minor, suffixes)
    groups_count = len(suffixes) + any("_N=" in each for each in parameters)
    if minor >= _GROUPS_SINCE and dice.chance(0.97 if groups_count > 1 else 0.2):
        parameters.append(f"group_policy={dice.one_of(('none', 'isolate'))}")
    if minor >= 16 and dice.chance(0.25):
        parameters.append(f"limit={dice.one_of((1, 2, 5, 1000))}")
    if minor >= 35 and dice.chance(0.08):
        parameters.append(f"root_required={traits_asked(dice, picture, 38)}")
    query = "&".join(quote(each, safe="=:,!&") for each in parameters)
    return request("GET", f"/allocation_candidates?{query}", version_text(minor))


def _suffixes(dice: Dice, minor: int) -> list[str]:
    if minor < _GROUPS_SINCE:
        return []
    words = ["1", "2", "3", "10"] if minor < _WORDS_SINCE else ["_A", "_B", "3", "-c_D"]
    count = dice.weighted((0, 1, 2, 3, 4), (40, 22, 25, 10, 3))
    return words[:count]


def _group(dice: Dice, picture: Picture, minor: int, suffix: str) -> list[str]:
    classes_max = 2 if suffix == "" else 1 + dice.chance(0.15)
    filters = placement_filters(
        dice, picture, minor, suffix, since=_FILTERS_SINCE, share=0.15 if suffix == "" else 0.1
    )
    return [f"resources{suffix}={amounts(dice, picture, classes_max)}", *filters]


def _subtree(dice: Dice, picture: Picture, minor: int, suffixes: list[str]) -> list[str]:
    """same_subtree over some of the groups, now and then with a group that has no resources."""
    parts: list[str] = []
    named = dice.some_of(suffixes, 1, len(suffixes))
    if dice.chance(0.2):
        parts.append(f"required_N={traits_asked(dice, picture, minor)}")
        named.append("_N")
    elif not dice.chance(0.35):
        return []
    return [*parts, f"same_subtree={','.join(named)}"]

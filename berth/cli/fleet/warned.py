# SPDX-License-Identifier: Apache-2.0
"""The warnings of an answer for people: what a request names that does not exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from berth.cli.columns import print_line


def print_warnings(warnings: Iterable[Mapping[str, str]]) -> None:
    """Print what does not exist, each once."""
    for line in dict.fromkeys(filter(None, map(_in_words, warnings))):
        print_line(line)


def _in_words(warning: Mapping[str, str]) -> str:
    """A warning as a sentence; empty for one that is about no name."""
    if "reference" not in warning:
        return ""
    noun = warning["code"].removeprefix("unknown_")
    has = "No aggregate has the label" if noun == "label" else f"There is no {noun}"
    return f"{has} {warning['reference']}; it matches nothing."

# SPDX-License-Identifier: Apache-2.0
"""The accepted spellings of a uuid, and their normal forms."""

from __future__ import annotations

import pytest

from berth.model.ids import parse_uuid_36, parse_uuid_dashed, parse_uuid_lax

CANONICAL = "0fe7c0de-1234-4abc-8def-00112233aabb"
BARE = CANONICAL.replace("-", "")


@pytest.mark.parametrize(
    "text",
    [
        CANONICAL,
        CANONICAL.upper(),
        BARE,
        BARE.upper(),
        f"{{{CANONICAL}}}",
        f"urn:uuid:{CANONICAL}",
        f"{BARE[:3]}-{BARE[3:]}",
    ],
)
def test_every_spelling_of_python_is_the_same_uuid(text: str) -> None:
    """Dashed, undashed, dashed anywhere, in capitals, in braces, as a URN."""
    assert parse_uuid_lax(text) == CANONICAL


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        f" {CANONICAL}",
        f"{CANONICAL}\n",
        CANONICAL[:-1],
        f"{CANONICAL}0",
        "g" * 32,
        "٣" * 32,
    ],
)
def test_anything_else_is_not_a_uuid(text: str) -> None:
    """Blanks, line breaks, other lengths, other letters, other digits."""
    assert parse_uuid_lax(text) is None
    assert parse_uuid_36(text) is None
    assert parse_uuid_dashed(text) is None


def test_thirty_six_dashes_pass_for_a_key_of_a_body() -> None:
    """Keys are checked for their characters and length only, and converted to lower case."""
    assert parse_uuid_36("-" * 36) == "-" * 36
    assert parse_uuid_36(CANONICAL.upper()) == CANONICAL
    assert parse_uuid_36("A" * 36) == "a" * 36
    assert parse_uuid_36(BARE) is None


def test_a_query_takes_the_dashed_form_only() -> None:
    """In upper or lower case."""
    assert parse_uuid_dashed(CANONICAL.upper()) == CANONICAL
    for text in (BARE, f"{{{CANONICAL}}}", f"urn:uuid:{CANONICAL}", "-" * 36):
        assert parse_uuid_dashed(text) is None

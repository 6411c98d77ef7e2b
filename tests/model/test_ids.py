# SPDX-License-Identifier: Apache-2.0
"""What is no uuid, and what passes for one as a key of a body. The spellings that are one:
tests/api/test_uuids.py and tests/rows/test_spellings.py."""

from __future__ import annotations

import pytest

from berth.model.ids import parse_uuid_36, parse_uuid_dashed, parse_uuid_lax

UUID = "0fe7c0de-1234-4abc-8def-00112233aabb"


@pytest.mark.parametrize(
    "text", ["", f" {UUID}", f"{UUID}\n", UUID[:-1], f"{UUID}0", "g" * 32, "\u0663" * 32]
)
def test_anything_else_is_not_a_uuid(text: str) -> None:
    """Blanks, line breaks, other lengths, other letters, other digits."""
    assert parse_uuid_lax(text) is None
    assert parse_uuid_36(text) is None
    assert parse_uuid_dashed(text) is None


def test_thirty_six_dashes_pass_for_a_key_of_a_body() -> None:
    """Keys are checked for their characters and length only."""
    assert parse_uuid_36("-" * 36) == "-" * 36
    assert parse_uuid_dashed("-" * 36) is None

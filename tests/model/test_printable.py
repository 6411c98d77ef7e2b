# SPDX-License-Identifier: Apache-2.0
"""A client's text, as logs and terminals show it; and sentences that no request shows."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.model import errors
from berth.model.ids import ConsumerUUID, ProviderUUID
from berth.model.printable import CONTROLS, printable, printable_json, without_passwords

TEXTS = st.text(st.characters(exclude_categories=()))


@given(TEXTS)
def test_a_text_is_one_line_that_can_be_seen(text: str) -> None:
    """Whatever a client sends; what can be seen stays as it is."""
    assert printable(text).isprintable()
    assert not re.search(f"[{CONTROLS}]", printable(text))
    assert not text.isprintable() or printable(text) == text


@given(
    st.recursive(TEXTS | st.none(), lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner))
)
def test_json_means_the_same(value: object) -> None:
    """With line breaks between its members only."""
    shown = printable_json(json.dumps(value, indent=2, ensure_ascii=False))
    assert shown.replace("\n", "").isprintable()
    assert json.loads(shown) == json.loads(json.dumps(value))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", r"\x1b[31m"),
        ("a\nb\r", r"a\nb\r"),
        ("\x9b\x7f", r"\x9b\x7f"),
        ("\u202egpj", r"\u202egpj"),
        ("\u200b\ufeff\u2028", r"\u200b\ufeff\u2028"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("Zürich 東京 🚀", "Zürich 東京 🚀"),
    ],
)
def test_what_cannot_be_seen_is_an_escape(text: str, shown: str) -> None:
    """As in Python; letters of every language and pictures are what they are."""
    assert printable(text) == shown


def test_each_password_of_a_text_is_masked() -> None:
    """Such as those of two databases between which rows are copied."""
    text = "from mysql://a:secret@x/y to postgresql://b:secret@z"
    assert without_passwords(text) == "from mysql://a:***@x/y to postgresql://b:***@z"


def test_what_clients_match_and_what_they_must_not() -> None:
    """They distinguish a taken uuid from a taken name, and a lost race from a wrong generation."""
    uuid = ProviderUUID("p-uuid")
    unknown = str(errors.UnknownClassInInventory(uuid, "X"))
    assert "Unknown resource class in inventory" in unknown
    assert "provider name" not in str(errors.DuplicateProviderUUID(uuid))
    for error in (errors.LostRace("resource provider p"), errors.ConsumerRace([ConsumerUUID("c")])):
        assert "consumer generation conflict" not in str(error)

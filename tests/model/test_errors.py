# SPDX-License-Identifier: Apache-2.0
"""Sentences that clients match, where no request shows them; the others: tests/api/test_errors.py
and tests/api/test_error_sentences.py."""

from __future__ import annotations

from berth.model import errors
from berth.model.ids import ConsumerUUID, ProviderUUID

P = ProviderUUID("p-uuid")


def test_what_clients_match_and_what_they_must_not() -> None:
    """They distinguish a taken uuid from a taken name, and a lost race from a wrong generation."""
    unknown = str(errors.UnknownClassInInventory(P, "X"))
    assert "Unknown resource class in inventory" in unknown
    assert "provider name" not in str(errors.DuplicateProviderUUID(P))
    for error in (errors.LostRace("resource provider p"), errors.ConsumerRace([ConsumerUUID("c")])):
        assert "consumer generation conflict" not in str(error)

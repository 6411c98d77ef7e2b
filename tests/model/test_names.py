# SPDX-License-Identifier: Apache-2.0
"""Valid names of classes, traits and consumer types."""

from __future__ import annotations

import pytest

from berth.model.names import (
    is_class_name,
    is_custom_class_name,
    is_custom_trait_name,
)
from berth.model.standard import (
    STANDARD_CLASS_IDS,
    STANDARD_CLASSES,
    STANDARD_TRAITS,
    is_standard_class,
)


@pytest.mark.parametrize("name", ["CUSTOM_A", "CUSTOM_0", "CUSTOM__", "CUSTOM_" + "A" * 248])
def test_custom_names(name: str) -> None:
    """Capitals, digits and underscores after the prefix, 255 characters in all."""
    assert is_custom_class_name(name)
    assert is_custom_trait_name(name)


@pytest.mark.parametrize(
    "name",
    ["CUSTOM_", "custom_a", "CUSTOM_a", "VCPU", "CUSTOM_A\n", "CUSTOM_Ä", "CUSTOM_" + "A" * 249],
)
def test_other_names_cannot_be_created(name: str) -> None:
    """A line break at the end is invalid too."""
    assert not is_custom_class_name(name)
    assert not is_custom_trait_name(name)


def test_class_names_in_bodies() -> None:
    """Any capitals, digits and underscores."""
    assert is_class_name("VCPU") and is_class_name("ALL") and is_class_name("0")
    assert not any(map(is_class_name, ("", "all", "VCPU\n")))


def test_standard_classes_have_their_index_as_id() -> None:
    """In the library's order, which never changes at its beginning."""
    assert STANDARD_CLASSES[:3] == ("VCPU", "MEMORY_MB", "DISK_GB")
    assert STANDARD_CLASS_IDS["MEMORY_MB"] == 1
    assert is_standard_class("PCPU") and not is_standard_class("CUSTOM_A")
    assert "HW_CPU_X86_VMX" in STANDARD_TRAITS

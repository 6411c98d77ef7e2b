# SPDX-License-Identifier: Apache-2.0
"""The standard resource classes and traits, from os-resource-classes and os-traits."""

from typing import Final

import os_resource_classes
import os_traits

from berth.model.ids import ClassId

#: Ordered by id: the id of a standard class is its index.
STANDARD_CLASSES: Final[tuple[str, ...]] = tuple(os_resource_classes.STANDARDS)

STANDARD_CLASS_IDS: Final[dict[str, ClassId]] = {
    name: ClassId(index) for index, name in enumerate(STANDARD_CLASSES)
}

STANDARD_TRAITS: Final[tuple[str, ...]] = tuple(sorted(os_traits.get_traits()))

#: The lowest id of a custom class.
CUSTOM_CLASS_ID_MIN: Final = 10_000


def is_standard_class(name: str) -> bool:
    """Whether this is a standard resource class, which cannot be renamed or deleted."""
    return name in STANDARD_CLASS_IDS

# SPDX-License-Identifier: Apache-2.0
"""The resource classes and traits that exist everywhere, as the field's own libraries list them."""

from typing import Final

import os_resource_classes
import os_traits

from berth.model.ids import ClassId

#: In order of their ids: the id of a standard class is its index here.
STANDARD_CLASSES: Final[tuple[str, ...]] = tuple(os_resource_classes.STANDARDS)

STANDARD_CLASS_IDS: Final[dict[str, ClassId]] = {
    name: ClassId(index) for index, name in enumerate(STANDARD_CLASSES)
}

STANDARD_TRAITS: Final[tuple[str, ...]] = tuple(sorted(os_traits.get_traits()))

#: Classes that users create have ids from here on.
CUSTOM_CLASS_ID_MIN: Final = 10_000


def is_standard_class(name: str) -> bool:
    """Whether this resource class exists everywhere and can be neither renamed nor deleted."""
    return name in STANDARD_CLASS_IDS

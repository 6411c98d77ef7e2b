# SPDX-License-Identifier: Apache-2.0
"""How the things that users name may be called.

The patterns are spelled as clients see them in error texts. Python's `$` also matches before a
final line break, so they must be applied with `fullmatch`, as the predicates here do.
Source: spec/rest-api.md 1.10.
"""

import re
from typing import Final

NAME_LENGTH_MAX: Final = 255
PROVIDER_NAME_LENGTH_MAX: Final = 200

#: A resource class wherever one is mentioned.
CLASS_NAME_PATTERN: Final = r"^[A-Z0-9_]+$"
#: A resource class that users may create.
CUSTOM_CLASS_NAME_PATTERN: Final = r"^CUSTOM_[A-Z0-9_]+$"
#: A trait that users may create.
CUSTOM_TRAIT_NAME_PATTERN: Final = r"^CUSTOM_[A-Z0-9_]+$"
CONSUMER_TYPE_PATTERN: Final = r"^[A-Z0-9_]+$"

CUSTOM_PREFIX: Final = "CUSTOM_"

_class_name = re.compile(CLASS_NAME_PATTERN)
_custom_class_name = re.compile(CUSTOM_CLASS_NAME_PATTERN)
_custom_trait_name = re.compile(CUSTOM_TRAIT_NAME_PATTERN)
_consumer_type = re.compile(CONSUMER_TYPE_PATTERN)


def is_class_name(text: str) -> bool:
    """Whether a body may mention a resource class of this name."""
    return _class_name.fullmatch(text) is not None


def is_custom_class_name(text: str) -> bool:
    """Whether a user may create a resource class of this name."""
    return len(text) <= NAME_LENGTH_MAX and _custom_class_name.fullmatch(text) is not None


def is_custom_trait_name(text: str) -> bool:
    """Whether a user may create a trait of this name."""
    return len(text) <= NAME_LENGTH_MAX and _custom_trait_name.fullmatch(text) is not None


def is_consumer_type(text: str) -> bool:
    """Whether a consumer may have a type of this name."""
    return len(text) <= NAME_LENGTH_MAX and _consumer_type.fullmatch(text) is not None

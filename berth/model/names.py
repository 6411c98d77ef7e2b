# SPDX-License-Identifier: Apache-2.0
"""Valid names of resource classes, traits and consumer types.

Error messages quote the patterns. Python's `$` also matches before a trailing newline, so apply
them with `fullmatch`, as the functions here do.
Source: spec/rest-api.md 1.10.
"""

import re
from typing import Final

NAME_LENGTH_MAX: Final = 255
PROVIDER_NAME_LENGTH_MAX: Final = 200

#: Any resource class.
CLASS_NAME_PATTERN: Final = r"^[A-Z0-9_]+$"
#: A resource class that users may create.
CUSTOM_CLASS_NAME_PATTERN: Final = r"^CUSTOM_[A-Z0-9_]+$"
#: A trait that users may create.
CUSTOM_TRAIT_NAME_PATTERN: Final = r"^CUSTOM_[A-Z0-9_]+$"
CONSUMER_TYPE_PATTERN: Final = r"^[A-Z0-9_]+$"
#: The key of a label; not anchored. Source: spec/beyond.md 7.2.
LABEL_KEY: Final = "[a-z][a-z0-9_.-]{0,62}"

#: A flavor or a drain. HTTP clients resolve `.` and `..` in a path, so no URL could name these two.
PATH_NAME_PATTERN: Final = r"^(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,255}\Z"

CUSTOM_PREFIX: Final = "CUSTOM_"

_class_name = re.compile(CLASS_NAME_PATTERN)
_custom_class_name = re.compile(CUSTOM_CLASS_NAME_PATTERN)
_custom_trait_name = re.compile(CUSTOM_TRAIT_NAME_PATTERN)
_path_name = re.compile(PATH_NAME_PATTERN)
_label_key = re.compile(LABEL_KEY)


def is_class_name(text: str) -> bool:
    """Whether a request body may contain a resource class of this name."""
    return _class_name.fullmatch(text) is not None


def is_custom_class_name(text: str) -> bool:
    """Whether a user may create a resource class of this name."""
    return len(text) <= NAME_LENGTH_MAX and _custom_class_name.fullmatch(text) is not None


def is_custom_trait_name(text: str) -> bool:
    """Whether a user may create a trait of this name."""
    return len(text) <= NAME_LENGTH_MAX and _custom_trait_name.fullmatch(text) is not None


def is_path_name(text: str) -> bool:
    """Whether a flavor or a drain may have this name."""
    return _path_name.fullmatch(text) is not None


def is_label_key(text: str) -> bool:
    """Whether a label may have this key."""
    return _label_key.fullmatch(text) is not None

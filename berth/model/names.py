# SPDX-License-Identifier: Apache-2.0
"""Valid names of resource classes, traits and consumer types.

Error messages quote the patterns. Python's `$` also matches before a trailing newline, so apply
them with `fullmatch`, as the functions here do.
Source: spec/rest-api.md 1.10.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import AnyStr, Final

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


# --- Existing names that a client may have meant: spec/beyond.md 3.6 -----------------------------

_SUGGESTIONS_MAX: Final = 3
_SIMILARITY_MIN: Final = 0.75
#: Comparing one name with a thousand takes some 20 ms, and much longer for a long name.
_LENGTH_MAX: Final = 64
_COMPARED_MAX: Final = 1000
#: Looking at this many takes some 20 ms.
_EXISTING_MAX: Final = 200_000


def similar(name: str, existing: Iterable[str]) -> tuple[str, ...]:
    """The existing names that are most similar, the closest first."""
    if len(name) > _LENGTH_MAX:
        return ()
    return tuple(get_close_matches(name, [*existing], _SUGGESTIONS_MAX, _SIMILARITY_MIN))


def likely(name: AnyStr, existing: Iterable[AnyStr]) -> list[AnyStr]:
    """At most a thousand of many names, of which each begins or ends like one: so do all that
    differ from it in one place."""
    half, length = len(name) // 2, len(name)
    begin, end = name[:half], name[length - half :]
    alike: list[AnyStr] = []
    for each in islice(existing, _EXISTING_MAX):
        if abs(len(each) - length) <= 1 and (each.startswith(begin) or each.endswith(end)):
            alike.append(each)
    return alike[:_COMPARED_MAX]

# SPDX-License-Identifier: Apache-2.0
"""Types of the values in operators' YAML files; `validation.convert` makes them.

They refuse what the service would refuse, and what is certainly a slip, such as a standard trait
that does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from pathlib import PosixPath
from typing import Annotated, ClassVar, Self

from msgspec import Meta, Struct

from berth.model import names
from berth.model.ids import parse_uuid_dashed
from berth.model.inventory import ALLOCATION_RATIO_MAX, MAX_INT
from berth.model.standard import STANDARD_CLASSES, STANDARD_TRAITS

Text = Annotated[str, Meta(min_length=1)]
ProviderName = Annotated[str, Meta(min_length=1, max_length=names.PROVIDER_NAME_LENGTH_MAX)]
Count = Annotated[int, Meta(ge=1, le=MAX_INT)]
CountOrZero = Annotated[int, Meta(ge=0, le=MAX_INT)]
Ratio = Annotated[float, Meta(gt=0, le=ALLOCATION_RATIO_MAX)]

#: A resource class or a trait that is not a standard one.
CustomName = Annotated[
    str,
    Meta(
        pattern=r"^CUSTOM_[A-Z0-9_]+\Z",
        max_length=names.NAME_LENGTH_MAX,
        description="CUSTOM_ and capital letters, digits and _",
    ),
]


class UUIDText(str):
    """A uuid in its usual spelling, in lower case."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read one.

        Raises:
            ValueError: it is not a uuid.
        """
        uuid = parse_uuid_dashed(value) if isinstance(value, str) else None
        if uuid is None:
            raise ValueError("expected a uuid")
        return cls(uuid)


class FilePath(PosixPath):
    """The path of a file or a directory."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read one.

        Raises:
            ValueError: it is not text, or empty.
        """
        if not (isinstance(value, str) and value):
            raise ValueError("expected a path")
        return cls(value)


class AbsolutePath(PosixPath):
    """A path from the root."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read one.

        Raises:
            ValueError: it is not an absolute path.
        """
        if not (isinstance(value, str) and value.startswith("/")):
            raise ValueError("expected an absolute path")
        return cls(value)


class _Name(str):
    """The name of a resource class or a trait: a standard one, or one that begins with CUSTOM_."""

    #: What has such a name.
    noun: ClassVar[str]
    standard: ClassVar[Collection[str]]

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read one.

        Raises:
            ValueError: the service would refuse the name, or it is not allowed here.
        """
        if not (isinstance(value, str) and re.fullmatch(r"[A-Z0-9_]+", value)):
            raise ValueError(f"expected the name of a {cls.noun} (capital letters, digits and _)")
        if len(value) > names.NAME_LENGTH_MAX:
            raise ValueError(f"has {len(value)} characters; the limit is {names.NAME_LENGTH_MAX}")
        if value == names.CUSTOM_PREFIX:
            raise ValueError(f"something must follow the prefix {value}")
        if value.startswith(names.CUSTOM_PREFIX) or value in cls.standard:
            return cls(value)
        near = get_close_matches(value, cls.standard, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ValueError(
            f"{value} is not a standard {cls.noun}; {hint}Your own must begin with CUSTOM_"
        )


class ClassName(_Name):
    """The name of a resource class."""

    noun = "resource class"
    standard = STANDARD_CLASSES


class TraitName(_Name):
    """The name of a trait."""

    noun = "trait"
    standard = STANDARD_TRAITS


class Record(Struct, frozen=True, forbid_unknown_fields=True):
    """The inventory of one resource class, with the service's own defaults."""

    total: Count
    reserved: CountOrZero = 0
    min_unit: Count = 1
    max_unit: Count = MAX_INT
    step_size: Count = 1
    allocation_ratio: Ratio = 1.0

    def __post_init__(self) -> None:
        """Refuse fields that contradict each other.

        Raises:
            ValueError: they do.
        """
        if self.reserved > self.total:
            raise ValueError(f"reserved ({self.reserved}) is more than total ({self.total})")
        if self.min_unit > self.max_unit:
            raise ValueError(f"min_unit ({self.min_unit}) is more than max_unit ({self.max_unit})")


def refuse_duplicates(**lists: Iterable[str] | None) -> None:
    """See that each list names each thing once.

    Raises:
        ValueError: one of them does not.
    """
    for key, items in lists.items():
        seen: set[str] = set()
        for item in items or ():
            if item in seen:
                raise ValueError(f"{key} lists {item} twice")
            seen.add(item)

# SPDX-License-Identifier: Apache-2.0
"""YAML files that operators write, read strictly: every fault is told, with its place in the file.

A place is written as `children[0].inventories.VGPU.total`. What is checked here is what the service
would refuse, and what is certainly a slip: a key twice, a key that means nothing, a standard name
that does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import yaml

from berth.hosts.errors import BadConfiguration
from berth.model import names
from berth.model.inventory import MAX_INT, Inventory
from berth.model.standard import STANDARD_CLASSES, STANDARD_TRAITS

#: The fields of an inventory record, with what the service takes for those that are left out.
_RECORD_DEFAULTS: Final[Mapping[str, int | float]] = {
    name: value for name, value in asdict(Inventory(total=1)).items() if name != "total"
}

#: No single-precision number is larger.
_RATIO_MAX: Final = 3.4e38

_RECORD_FIELDS: Final = ("total", *_RECORD_DEFAULTS)


class Document:
    """A YAML file, and what was found to be wrong with it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.faults: list[str] = []

    def load(self) -> Any:
        """What the file holds.

        Raises:
            BadConfiguration: it cannot be read, or is no YAML.
        """
        try:
            return yaml.load(self.path.read_bytes(), _Loader)
        except OSError as error:
            raise BadConfiguration([f"{self.path} cannot be read: {error.strerror}"]) from error
        except yaml.MarkedYAMLError as error:
            where = error.problem_mark
            line = f", line {where.line + 1}" if where else ""
            raise BadConfiguration([f"{self.path}{line}: {error.problem}"]) from error
        except (yaml.YAMLError, ValueError) as error:
            raise BadConfiguration([f"{self.path} is no YAML: {error}"]) from error

    def fault(self, at: str, text: str) -> None:
        """Note what is wrong at a place; the empty one is the file itself."""
        self.faults.append(f"{self.path}, {at}: {text}" if at else f"{self.path}: {text}")

    def refuse_faults(self) -> None:
        """End here where something is wrong.

        Raises:
            BadConfiguration: with all of it.
        """
        if self.faults:
            raise BadConfiguration(self.faults)

    # --- Shapes -----------------------------------------------------------------------------------

    def mapping(
        self, value: object, at: str, *, keys: Collection[str] | None = None
    ) -> dict[str, Any]:
        """A mapping with no other keys than these; an empty one where it is none."""
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.fault(at, f"is {_shown(value)}, and must be a mapping{_of(keys)}")
            return {}
        for key in value:
            if not isinstance(key, str):
                self.fault(_below(at, key), f"the key {_shown(key)} must be text")
            elif keys is not None and key not in keys:
                self.fault(_below(at, key), f"there is no such key; {_hint(key, keys)}")
        return {
            key: inner
            for key, inner in value.items()
            if isinstance(key, str) and (keys is None or key in keys)
        }

    def items(self, value: object, at: str) -> Iterator[tuple[str, Any]]:
        """The places and values of a list."""
        if value is None:
            return
        if not isinstance(value, list):
            self.fault(at, f"is {_shown(value)}, and must be a list")
            return
        for index, item in enumerate(value):
            yield f"{at}[{index}]", item

    # --- Names ------------------------------------------------------------------------------------

    def provider_name(self, value: object, at: str) -> str | None:
        """The name of a provider; None where it cannot be one."""
        most = names.PROVIDER_NAME_LENGTH_MAX
        if not isinstance(value, str):
            self.fault(at, f"is {_shown(value)}, and must be text of 1 to {most} characters")
        elif not 1 <= len(value) <= most:
            self.fault(at, f"has {len(value)} characters; 1 to {most} are possible")
        else:
            return value
        return None

    def uuid(self, value: object, at: str) -> str | None:
        """A uuid in its usual spelling; None where it is none."""
        if isinstance(value, str):
            with suppress(ValueError):
                if str(UUID(value)) == value.lower():
                    return value.lower()
        self.fault(at, f"is {_shown(value)}, and must be a uuid")
        return None

    def traits(self, value: object, at: str, *, custom_only: bool = False) -> frozenset[str]:
        """The names of traits, each of them once."""
        return self._distinct(
            (self._trait(item, place, custom_only=custom_only), place)
            for place, item in self.items(value, at)
        )

    def aggregates(self, value: object, at: str) -> frozenset[str]:
        """The uuids of aggregates, each of them once."""
        return self._distinct(
            (self.uuid(item, place), place) for place, item in self.items(value, at)
        )

    def resource_class(self, value: object, at: str, *, custom_only: bool = False) -> str | None:
        """The name of a resource class; None where it cannot be one."""
        return self._name(value, at, "resource class", STANDARD_CLASSES, custom_only=custom_only)

    # --- Inventories ------------------------------------------------------------------------------

    def inventories(
        self, value: object, at: str, *, custom_only: bool = False
    ) -> dict[str, dict[str, int | float]]:
        """Records by resource class; fields that are left out are what the service takes then."""
        made = {}
        for name, record in self.mapping(value, at).items():
            place = _below(at, name)
            if self.resource_class(name, place, custom_only=custom_only) is not None:
                made[name] = self._record(record, place)
        return made

    def _record(self, value: object, at: str) -> dict[str, int | float]:
        given = self.mapping(value, at, keys=_RECORD_FIELDS)
        before = len(self.faults)
        if "total" not in given and (value is None or isinstance(value, dict)):
            self.fault(at, "total is missing: how many there are")
        for name, amount in given.items():
            self._amount(name, amount, f"{at}.{name}")
        record = {**_RECORD_DEFAULTS, **given}
        if len(self.faults) == before and "total" in record:
            if record["reserved"] > record["total"]:
                self.fault(
                    f"{at}.reserved",
                    f"is {record['reserved']}, more than the total of {record['total']}",
                )
            if record["min_unit"] > record["max_unit"]:
                self.fault(
                    f"{at}.min_unit",
                    f"is {record['min_unit']}, more than the max_unit of {record['max_unit']}",
                )
        return record

    def _amount(self, name: str, value: Any, at: str) -> None:
        least = 0 if name == "reserved" else 1
        if name == "allocation_ratio":
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not 0 < value < 3e38
            ):
                self.fault(at, f"is {_shown(value)}, and must be a number above 0")
        elif type(value) is not int or not least <= value <= MAX_INT:
            leave = "; leave the class out where there is none" if name == "total" else ""
            self.fault(
                at,
                f"is {_shown(value)}, and must be a whole number from {least} to {MAX_INT}"
                f"{leave if value == 0 else ''}",
            )

    # --- Inside -----------------------------------------------------------------------------------

    def _trait(self, value: object, at: str, *, custom_only: bool) -> str | None:
        return self._name(value, at, "trait", STANDARD_TRAITS, custom_only=custom_only)

    def _name(
        self, value: object, at: str, what: str, standard: Collection[str], *, custom_only: bool
    ) -> str | None:
        if not isinstance(value, str):
            self.fault(at, f"is {_shown(value)}, and must be the name of a {what}")
        elif not re.fullmatch(r"[A-Z0-9_]+", value):
            self.fault(
                at, f"{value!r} is no {what}: names are made of capital letters, digits and _"
            )
        elif len(value) > names.NAME_LENGTH_MAX:
            self.fault(
                at, f"has {len(value)} characters; 1 to {names.NAME_LENGTH_MAX} are possible"
            )
        elif value == names.CUSTOM_PREFIX:
            self.fault(at, f"{value} is no {what}: something must follow the prefix")
        elif value.startswith(names.CUSTOM_PREFIX) or (value in standard and not custom_only):
            return value
        elif custom_only:
            self.fault(at, f"{value} is not yours to give: a {what} here begins with CUSTOM_")
        else:
            near = get_close_matches(value, standard, n=1)
            meant = f"did you mean {near[0]}? " if near else ""
            self.fault(
                at,
                f"there is no standard {what} {value}; {meant}One of your own begins with CUSTOM_",
            )
        return None

    def _distinct(self, found: Iterator[tuple[str | None, str]]) -> frozenset[str]:
        seen: set[str] = set()
        for name, at in found:
            if name in seen:
                self.fault(at, f"{name} stands there twice")
            elif name is not None:
                seen.add(name)
        return frozenset(seen)


class _Loader(yaml.SafeLoader):
    """Safe, and strict about keys that stand in a mapping twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping, each key of which stands there once."""
        seen = set()
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode):
                if key_node.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None,
                        None,
                        f"the key {key_node.value} stands there twice",
                        key_node.start_mark,
                    )
                seen.add(key_node.value)
        return super().construct_mapping(node, deep)


def _below(at: str, key: object) -> str:
    return f"{at}.{key}" if at else str(key)


def _shown(value: object) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _of(keys: Collection[str] | None) -> str:
    return "" if keys is None else f" with some of the keys {', '.join(keys)}"


def _hint(key: str, keys: Collection[str]) -> str:
    near = get_close_matches(key, keys, n=1)
    return f"did you mean {near[0]}?" if near else f"possible are {', '.join(keys)}"

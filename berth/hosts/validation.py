# SPDX-License-Identifier: Apache-2.0
"""Converts YAML documents to msgspec structs, and reports every fault with its place.

msgspec stops at the first fault, writes `[...]` for the key of a mapping, and does not parse such
keys. An operator who edits a file wants all faults at once, so values are checked part by part.

A type of our own has a class method `parse`, which raises ValueError. A constraint may have a
description: "expected <description>" is the message then.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin

import msgspec
import yaml

from berth.hosts.errors import BadConfiguration
from berth.hosts.files import refusing
from berth.model.structs import read_annotations

Kind = TypeVar("Kind")

#: A place in a document, such as `children[0].inventories`, and what is wrong there.
_Fault = tuple[str, str]

#: What operators call the types that msgspec names.
_TYPE_NAMES: Final = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "object": "a mapping",
    "str": "text",
}


def convert(value: object, kind: type[Kind], source: object, *, at: str = "") -> Kind:
    """Convert a YAML value.

    Args:
        source: the file or driver that the value comes from; each fault begins with it.
        at: the place of the value in it.

    Raises:
        BadConfiguration: with every fault.
    """
    read_annotations(kind)
    try:
        faults = list(_faults(value, kind, at))
    except RecursionError:
        faults = [(at, "contains itself: a YAML alias is inside of what it stands for")]
    if faults:
        raise BadConfiguration(*(fault_text(source, *fault) for fault in faults))
    return msgspec.convert(value, kind, dec_hook=_parse)


def fault_text(source: object, at: str, text: str) -> str:
    """Say what is wrong at a place of a file; an empty place is the whole file."""
    return f"{source}, {at}: {text}" if at else f"{source}: {text}"


def load_yaml(path: Path) -> Any:
    """Read a YAML file.

    Raises:
        BadConfiguration: the file cannot be read, is not YAML, or has a key twice.
    """
    with refusing(f"cannot read {path}"):
        text = path.read_bytes()
    return parse_yaml(text, str(path))


def parse_yaml(text: str | bytes, path: str) -> Any:
    """Decode the text of a YAML file.

    Raises:
        BadConfiguration: it is not YAML, or has a key twice.
    """
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise BadConfiguration(f"{path}{line}: {error.problem}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise BadConfiguration(f"{path} is not YAML: {error}") from error


def suggestion(name: str, names: Collection[str]) -> str:
    """Name the closest of some names, or all of them."""
    near = get_close_matches(name, names, n=1)
    return f"did you mean {near[0]}?" if near else f"possible keys: {', '.join(sorted(names))}"


class _Loader(yaml.SafeLoader):
    """A safe loader that refuses a key that is in a mapping twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Construct a mapping whose keys are distinct."""
        seen = set()
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode):
                if key_node.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"duplicate key {key_node.value}", key_node.start_mark
                    )
                seen.add(key_node.value)
        return super().construct_mapping(node, deep)


def _parse(kind: Any, value: object) -> object:
    return kind.parse(value)


def _faults(value: object, kind: Any, at: str) -> Iterator[_Fault]:
    """Everything that is wrong with a value, parts first."""
    kind = _fitting(value, kind)
    faults = list(_faults_of_parts(value, kind, at))
    if not faults:
        # A fault of the value as a whole: its type, its bounds, or a contradiction of its parts.
        try:
            msgspec.convert(value, kind, dec_hook=_parse)
        except msgspec.ValidationError as error:
            faults = [(at, _worded(str(error), kind, value))]
    yield from faults


def _faults_of_parts(value: object, kind: Any, at: str) -> Iterator[_Fault]:
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    inner = [argument for argument in get_args(kind) if argument is not Ellipsis]
    if isinstance(value, Mapping):
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            yield from _faults_of_fields(value, kind, at)
        elif len(inner) == 2:
            for key, part in value.items():
                yield from _faults(key, inner[0], _below(at, key))
                yield from _faults(part, inner[1], _below(at, key))
    elif isinstance(value, Sequence) and not isinstance(value, str) and len(inner) == 1:
        for index, part in enumerate(value):
            yield from _faults(part, inner[0], f"{at}[{index}]")


def _faults_of_fields(
    value: Mapping[object, object], struct: type[msgspec.Struct], at: str
) -> Iterator[_Fault]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    for key, part in value.items():
        if not isinstance(key, str):
            yield _below(at, key), f"the key {key!r} must be text"
        elif key in fields:
            yield from _faults(part, fields[key].type, _below(at, key))
        elif struct.__struct_config__.forbid_unknown_fields:
            yield _below(at, key), f"unknown key; {suggestion(key, fields)}"
    for key, field in fields.items():
        if field.required and key not in value:
            yield _below(at, key), "is missing"


def _fitting(value: object, kind: Any) -> Any:
    """The member of a union that a value is meant to be: only None is ever an alternative."""
    if value is None or get_origin(kind) not in (Union, UnionType):
        return kind
    members = [member for member in get_args(kind) if member is not NoneType]
    return members[0] if len(members) == 1 else kind


def _worded(message: str, kind: Any, value: object) -> str:
    """Put a message of msgspec into an operator's words, with the value that it is about."""
    if isinstance(kind, type) and issubclass(kind, Enum):
        message = f"expected {' or '.join(member.value for member in kind)}"
    elif description := _description(kind):
        message = f"expected {description}"
    else:
        message = re.sub(r" - at `[^`]*`$|, got `\w+`", "", message)
        message = re.sub(r"`(\w+)`", lambda name: _TYPE_NAMES.get(name[1], name[0]), message)
        message = message.replace("Expected", "expected").replace(" | null", "")
    if not message.startswith("expected"):
        return message
    shown = "nothing" if value is None else repr(value)
    return f"{message}, got {shown if len(shown) <= 60 else f'{shown[:57]}...'}"


def _description(kind: Any) -> str | None:
    metas = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
    return next((meta.description for meta in metas if meta.description), None)


def _below(at: str, key: object) -> str:
    return f"{at}.{key}" if at else str(key)

# SPDX-License-Identifier: Apache-2.0
"""nova's flavors as requests: what nova asks placement for when it schedules a server of a flavor.

nova's images and ports add more, and a server that boots from a volume asks for less disk; none of
that is part of a flavor. Source: nova, "Extra Specs" and `nova.scheduler.utils.ResourceRequest`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TextIO

import click

Json = Mapping[str, Any]

#: `resources:VGPU`, `trait1:CUSTOM_A100`: the kind, the group and the name.
_OF_GROUP: Final = re.compile(r"(resources|trait)([a-zA-Z0-9_-]{1,64})?:([A-Z0-9_]+)")
#: `openstack` before 5.0 prints extra specs as a text.
_OF_TEXT: Final = re.compile(r"([^\s,=]+)='([^']*)'")
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9._-]")

_MB_PER_GB: Final = 1024
_DESCRIPTION_MAX: Final = 255

#: What `hw:cpu_thread_policy` asks of a host with dedicated CPUs.
_THREADS: Final = {
    "prefer": [],
    "require": ["HW_CPU_HYPERTHREADING"],
    "isolate": ["!HW_CPU_HYPERTHREADING"],
}


class NovaFlavor(NamedTuple):
    """A flavor of nova, for berth.

    Attributes:
        name: in berth, where names have fewer characters.
        left_out: extra specs that a request cannot express, or that say nothing about resources.
    """

    name: str
    request: dict[str, Any]
    description: str
    left_out: list[str]


def read_flavors(file: TextIO) -> list[NovaFlavor]:
    """The flavors of `openstack flavor list --long -f json`, or of `GET /flavors/detail`.

    Raises:
        UsageError: the file has something else.
    """
    try:
        read = json.load(file)
        items = read["flavors"] if isinstance(read, dict) else read
        return [_flavor({key.lower(): value for key, value in item.items()}) for item in items]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise click.UsageError(
            f"{file.name} has no flavors of nova with their extra specs: write it with"
            " 'openstack flavor list --all --long -f json', or ask nova for /flavors/detail at"
            " microversion 2.61 or later"
        ) from error


def _flavor(item: Json) -> NovaFlavor:
    """Raises: KeyError, TypeError, ValueError: it is no flavor."""
    name = str(item["name"])
    specs = _Specs(_specs_of(item))
    request = specs.request(_amounts(item, is_dedicated=specs.is_dedicated))
    description = str(item.get("description") or "")[:_DESCRIPTION_MAX]
    return NovaFlavor(_NOT_IN_A_NAME.sub("-", name), request, description, specs.left_out)


def _specs_of(item: Json) -> dict[str, str]:
    specs = item["properties"] if "properties" in item else item["extra_specs"]
    if isinstance(specs, str):
        return dict(_OF_TEXT.findall(specs))
    return {str(key): str(value) for key, value in specs.items()}


def _amounts(item: Json, *, is_dedicated: bool) -> dict[str, int]:
    ephemeral = item.get("ephemeral", item.get("os-flv-ext-data:ephemeral"))
    swap = -(-int(item.get("swap") or 0) // _MB_PER_GB)
    return {
        "PCPU" if is_dedicated else "VCPU": int(item["vcpus"]),
        "MEMORY_MB": int(item["ram"]),
        "DISK_GB": int(item["disk"]) + int(ephemeral or 0) + swap,
    }


class _Specs:
    """Extra specs, sorted by what they become."""

    def __init__(self, specs: Mapping[str, str]) -> None:
        self.is_dedicated = specs.get("hw:cpu_policy") == "dedicated"
        self.left_out: list[str] = []
        self._resources: dict[str, dict[str, int]] = {"": {}}
        self._traits: dict[str, list[str]] = {"": []}
        self._isolates = specs.get("group_policy") == "isolate"
        for key, value in specs.items():
            if not self._takes(key, value):
                self.left_out.append(f"{key}={value}")

    def request(self, amounts: Mapping[str, int]) -> dict[str, Any]:
        """The request of a flavor, whose own amounts the specs replace; 0 is none."""
        resources = {**self._resources, "": {**amounts, **self._resources[""]}}
        groups: dict[str, Any] = {}
        for name, wanted in resources.items():
            if present := {each: number for each, number in wanted.items() if number}:
                groups[name] = {"resources": present}
        for name, traits in self._traits.items():
            if name in groups:
                groups[name] |= {"required": traits} if traits else {}
            else:
                self.left_out += _without_resources(name, traits)
        named = [name for name in groups if name]
        isolates = self._isolates and len(named) > 1
        apart = {"apart": [{"groups": named, "at": "provider"}]} if isolates else {}
        return {"groups": groups, **apart}

    def _takes(self, key: str, value: str) -> bool:
        """Whether a request can say what a spec says."""
        if match := _OF_GROUP.fullmatch(key):
            kind, group, name = match[1], match[2] or "", match[3]
            if kind == "resources":
                return self._takes_resource(group, name, value)
            return self._takes_trait(group, name, value)
        if key == "group_policy":
            return value in ("none", "isolate")
        if key == "hw:cpu_policy":
            return value in ("shared", "dedicated")
        if key == "hw:cpu_thread_policy" and self.is_dedicated and value in _THREADS:
            self._traits[""] += _THREADS[value]
            return True
        return False

    def _takes_resource(self, group: str, name: str, value: str) -> bool:
        if value.isdecimal():
            self._resources.setdefault(group, {})[name] = int(value)
        return value.isdecimal()

    def _takes_trait(self, group: str, name: str, value: str) -> bool:
        marks = {"required": "", "forbidden": "!"}
        if value in marks:
            self._traits.setdefault(group, []).append(f"{marks[value]}{name}")
        return value in marks


def _without_resources(group: str, traits: list[str]) -> Iterator[str]:
    """The specs of a group that asks for nothing, whose traits a request cannot express."""
    for trait in traits:
        value = "forbidden" if trait.startswith("!") else "required"
        yield f"trait{group}:{trait.removeprefix('!')}={value}"

# SPDX-License-Identifier: Apache-2.0
"""nova's flavors as requests: what nova asks placement for when it schedules a server of a flavor.

nova's images and ports add more, and a server that boots from a volume asks for less disk; none of
that is part of a flavor. Source: nova, "Extra Specs" and `nova.scheduler.utils.ResourceRequest`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TextIO

import click

from berth.cli.columns import counted, request_in_words
from berth.cli.failure import CommandFailed, ExitCode
from berth.cli.fleet.access import Access
from berth.cli.fleet.client import Client
from berth.cli.fleet.nouns import put_named
from berth.cli.output import say
from berth.model.paths import FLAVORS, path_of
from berth.model.refusals import Conflict, Refused

Json = Mapping[str, Any]

#: `resources:VGPU`, `trait1:CUSTOM_A100`: the kind, the group and the name.
_OF_GROUP: Final = re.compile(r"(resources|trait)([a-zA-Z0-9_-]{1,64})?:([A-Z0-9_]+)")
#: `openstack` before 5.0 prints extra specs as a text.
_OF_TEXT: Final = re.compile(r"([^\s,=]+)='([^']*)'")
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9._-]")

_MB_PER_GB: Final = 1024
_DESCRIPTION_MAX: Final = 255

#: Values that nova reads as true.
_TRUE: Final = frozenset({"1", "t", "true", "on", "y", "yes"})
#: A range of CPUs, or CPUs that are not meant: `0-3`, `^1`.
_CPUS: Final = re.compile(r"\s*(\^?)(\d+)(?:-(\d+))?\s*")

#: Traits that extra specs ask for by their values.
_TRAITS_OF: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "hw:tpm_version": {
        "1.2": ["COMPUTE_SECURITY_TPM_1_2"],
        "2.0": ["COMPUTE_SECURITY_TPM_2_0"],
    },
    "os:secure_boot": {
        "required": ["COMPUTE_SECURITY_UEFI_SECURE_BOOT"],
        "optional": [],
        "disabled": [],
    },
    "hw:pci_numa_affinity_policy": {"socket": ["COMPUTE_SOCKET_PCI_NUMA_AFFINITY"]},
    "hw:maxphysaddr_mode": {
        "passthrough": ["COMPUTE_ADDRESS_SPACE_PASSTHROUGH"],
        "emulate": ["COMPUTE_ADDRESS_SPACE_EMULATED"],
    },
}
_TPM_MODELS: Final = {"tpm-tis": "COMPUTE_SECURITY_TPM_TIS", "tpm-crb": "COMPUTE_SECURITY_TPM_CRB"}
_ENCRYPTION_MODELS: Final = {"amd-sev": "HW_CPU_X86_AMD_SEV", "amd-sev-es": "HW_CPU_X86_AMD_SEV_ES"}

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
        source: the end of the description: which flavor of nova it is; empty if that is not said.
        left_out: extra specs that a request cannot express, or that say nothing about resources.
    """

    name: str
    request: dict[str, Any]
    description: str
    source: str
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
    specs = _Specs(_specs_of(item), int(item["vcpus"]))
    request = specs.request(_amounts(item))
    source = f"nova's flavor {item['id']}" if "id" in item else ""
    own = str(item.get("description") or "")[: _DESCRIPTION_MAX - len(source) - 1]
    description = f"{own} {source}".strip()
    return NovaFlavor(_NOT_IN_A_NAME.sub("-", name), request, description, source, specs.left_out)


def _specs_of(item: Json) -> dict[str, str]:
    specs = item["properties"] if "properties" in item else item["extra_specs"]
    if isinstance(specs, str):
        return dict(_OF_TEXT.findall(specs))
    return {str(key): str(value) for key, value in specs.items()}


def _amounts(item: Json) -> dict[str, int]:
    ephemeral = item.get("ephemeral", item.get("os-flv-ext-data:ephemeral"))
    swap = -(-int(item.get("swap") or 0) // _MB_PER_GB)
    return {
        "MEMORY_MB": int(item["ram"]),
        "DISK_GB": int(item["disk"]) + int(ephemeral or 0) + swap,
    }


class _Specs:
    """Extra specs, sorted by what they become."""

    def __init__(self, specs: Mapping[str, str], cpus: int) -> None:
        self._specs = specs
        self._cpus = _cpus_of(specs, cpus)
        self._is_pinned = "PCPU" in self._cpus
        # nova refuses any other number of dedicated CPUs.
        self._has_pcpus = _pcpus_in(specs) == cpus
        self.left_out: list[str] = []
        self._resources: dict[str, dict[str, int]] = {"": {}}
        self._traits: dict[str, list[str]] = {"": []}
        self._isolates = specs.get("group_policy") == "isolate"
        for key, value in specs.items():
            if not self._takes(key, value):
                self.left_out.append(f"{key}={value}")

    def request(self, amounts: Mapping[str, int]) -> dict[str, Any]:
        """The request of a flavor. The specs replace its own amounts of the classes that they name
        in any group; 0 is none."""
        replaced = {name for wanted in self._resources.values() for name in wanted}
        own = {**self._cpus, **amounts}
        kept = {name: amount for name, amount in own.items() if name not in replaced}
        if "PCPU" in replaced:
            # nova takes no shared CPUs beside them.
            kept.pop("VCPU", None)
        resources = {**self._resources, "": {**kept, **self._resources[""]}}
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
        return self._takes_cpus(key, value) or self._takes_feature(key, value)

    def _takes_cpus(self, key: str, value: str) -> bool:
        """Whether a spec is about CPUs, and counts."""
        if key == "hw:cpu_policy":
            return value == "shared" or (value in ("dedicated", "mixed") and self._is_pinned)
        if key == "hw:cpu_thread_policy" and self._is_pinned and value in _THREADS:
            self._traits[""] += _THREADS[value]
            return True
        if key == "hw:emulator_threads_policy":
            return self._is_pinned and value in ("share", "isolate")
        is_mask = key in ("hw:cpu_dedicated_mask", "hw:cpu_realtime_mask")
        return is_mask and self._is_pinned and self._specs.get("hw:cpu_policy") == "mixed"

    def _takes_feature(self, key: str, value: str) -> bool:
        """Whether a spec asks for a feature of a host, and counts."""
        if (traits := _TRAITS_OF.get(key, {}).get(value)) is not None:
            self._traits[""] += traits
            if key == "hw:tpm_version":
                model = self._specs.get("hw:tpm_model", "tpm-tis")
                self._traits[""] += [_TPM_MODELS[model]] if model in _TPM_MODELS else []
            return True
        if key == "hw:tpm_model":
            version = self._specs.get("hw:tpm_version", "")
            return value in _TPM_MODELS and version in _TRAITS_OF["hw:tpm_version"]
        if key == "hw:pmem":
            labels = Counter(label.strip() for label in value.split(","))
            names = {f"CUSTOM_PMEM_NAMESPACE_{label}": n for label, n in labels.items() if label}
            self._resources[""].update(names)
            return bool(names)
        return self._takes_encryption(key, value)

    def _takes_encryption(self, key: str, value: str) -> bool:
        is_on = self._specs.get("hw:mem_encryption", "").strip().lower() in _TRUE
        model = self._specs.get("hw:mem_encryption_model", "amd-sev")
        if not is_on or model not in _ENCRYPTION_MODELS:
            return False
        if key == "hw:mem_encryption":
            self._resources[""]["MEM_ENCRYPTION_CONTEXT"] = 1
            self._traits[""].append(_ENCRYPTION_MODELS[model])
        return key in ("hw:mem_encryption", "hw:mem_encryption_model")

    def _takes_resource(self, group: str, name: str, value: str) -> bool:
        number = value.strip()
        # nova refuses a second way to say how many CPUs.
        is_second = name in ("VCPU", "PCPU") and self._is_pinned
        is_second = is_second or (name == "PCPU" and not self._has_pcpus)
        if not number.isdecimal() or (is_second and int(number)):
            return False
        if not is_second:
            self._resources.setdefault(group, {})[name] = int(number)
        return True

    def _takes_trait(self, group: str, name: str, value: str) -> bool:
        marks = {"required": "", "forbidden": "!"}
        if value in marks:
            self._traits.setdefault(group, []).append(f"{marks[value]}{name}")
        return value in marks


def _cpus_of(specs: Mapping[str, str], cpus: int) -> dict[str, int]:
    """How many shared and dedicated CPUs a flavor has."""
    policy = specs.get("hw:cpu_policy")
    overhead = int(specs.get("hw:emulator_threads_policy") == "isolate")
    if policy == "dedicated":
        return {"PCPU": cpus + overhead}
    mask = specs.get("hw:cpu_dedicated_mask") or specs.get("hw:cpu_realtime_mask") or ""
    dedicated = _cpus_in(mask, cpus) if policy == "mixed" else 0
    # nova refuses a mask that leaves no CPU of one kind.
    if not 0 < dedicated < cpus:
        return {"VCPU": cpus}
    return {"VCPU": cpus - dedicated, "PCPU": dedicated + overhead}


def _pcpus_in(specs: Mapping[str, str]) -> int:
    """How many dedicated CPUs the groups ask for."""
    keys = [key for key in specs if (match := _OF_GROUP.fullmatch(key)) and match[3] == "PCPU"]
    return sum(int(specs[key]) for key in keys if specs[key].strip().isdecimal())


def _cpus_in(mask: str, cpus: int) -> int:
    """How many CPUs are in a mask: `0-3,^1`, or `^0` for all others; 0 if it cannot be read."""
    parts = [_CPUS.fullmatch(part) for part in mask.split(",")]
    ranges = [
        (match[1], range(int(match[2]), min(int(match[3] or match[2]), cpus - 1) + 1))
        for match in parts
        if match is not None
    ]
    if not mask or len(ranges) < len(parts):
        return 0
    listed = {cpu for mark, each in ranges if not mark for cpu in each}
    excluded = {cpu for mark, each in ranges if mark for cpu in each}
    return len((listed or set(range(cpus))) - excluded)


def _without_resources(group: str, traits: list[str]) -> Iterator[str]:
    """The specs of a group that asks for nothing, whose traits a request cannot express."""
    for trait in traits:
        value = "forbidden" if trait.startswith("!") else "required"
        yield f"trait{group}:{trait.removeprefix('!')}={value}"


_WORDS: Final = {"+": "created", "~": "replaced", "=": "unchanged"}


def import_flavors(access: Access, *, file: TextIO, replace: bool, dry_run: bool) -> None:
    """Write the flavors of a file, with a line for each.

    Raises:
        UsageError: the file has something else.
        CommandFailed: some are not written (SERVICE), or would be (PENDING).
    """
    every = read_flavors(file)
    with access.client() as client:
        Import(client, may_replace=replace, is_dry_run=dry_run).run(every)


class Import:
    """One run of `berth flavor import`."""

    def __init__(self, client: Client, *, may_replace: bool, is_dry_run: bool) -> None:
        self._client = client
        self._may_replace = may_replace
        self._is_dry_run = is_dry_run
        self._stored: dict[str, Any] = {
            item["name"]: item for item in client.read(FLAVORS)["flavors"]
        }
        self._done: Counter[str] = Counter()
        self._seen: set[str] = set()

    def run(self, flavors: Iterable[NovaFlavor]) -> None:
        """Write some flavors, with a line for each.

        Raises:
            CommandFailed: some are not written (SERVICE), or would be (PENDING).
        """
        every = list(flavors)
        failed = sum(not self._is_written(flavor) for flavor in every)
        if not self._client.as_json:
            say(self._sums())
        if failed:
            raise CommandFailed(
                f"{failed} of {counted(len(every), 'flavor')}"
                f" {'is' if failed == 1 else 'are'} not imported",
                ExitCode.SERVICE,
            )
        if self._is_dry_run and (pending := self._done["+"] + self._done["~"]):
            raise CommandFailed(
                f"dry run: {counted(pending, 'flavor')} would change; nothing was written",
                ExitCode.PENDING,
            )

    def _is_written(self, flavor: NovaFlavor) -> bool:
        if flavor.name in self._seen:
            _warn(f"{flavor.name} is not imported again: two flavors would have this name")
            return False
        self._seen.add(flavor.name)
        if flavor.left_out:
            _warn(f"{flavor.name} is imported without {', '.join(flavor.left_out)}")
        try:
            self._write(flavor)
        except Refused as refused:
            _warn(f"{flavor.name} is not imported: {refused}")
            return False
        return True

    def _write(self, flavor: NovaFlavor) -> None:
        stored = self._stored.get(flavor.name)
        body = {"request": flavor.request, "description": flavor.description}
        if stored is not None:
            # nova does not know it.
            body["expose"] = stored["expose"]
        mark = "+" if stored is None else "=" if _is_same(body, stored) else "~"
        may_replace = self._may_replace or _is_of(flavor, stored)
        if mark == "~" and not may_replace:
            raise Conflict("another flavor has this name; --replace replaces it")
        if mark != "=" and not self._is_dry_run:
            path = f"{FLAVORS}{path_of(flavor.name)}"
            answer, _ = put_named(self._client, path, body, may_replace=may_replace)
            self._client.show(answer)
        self._done[mark] += 1
        if not self._client.as_json:
            say(f"{mark} {flavor.name}  {request_in_words(flavor.request)}")

    def _sums(self) -> str:
        counts = ", ".join(
            f"{number:,} {_WORDS[mark]}" for mark, number in self._done.items() if number
        )
        return f"{counted(self._done.total(), 'flavor')}" + (f": {counts}" if counts else "")


def _is_of(flavor: NovaFlavor, stored: Mapping[str, Any] | None) -> bool:
    """Whether an earlier import wrote what is stored, from the same flavor of nova; a person who
    replaces it replaces the description too."""
    return bool(flavor.source and stored and stored["description"].endswith(flavor.source))


def _is_same(body: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    """Also in the order of the groups, which counts."""
    return all(json.dumps(body[member]) == json.dumps(stored[member]) for member in body)


def _warn(sentence: str) -> None:
    say(f"berth: {sentence}", err=True)

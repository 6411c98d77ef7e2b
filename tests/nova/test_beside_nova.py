# SPDX-License-Identifier: Apache-2.0
"""`berth flavor import` and the agent read what nova reads. Source: nova itself, as released."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

import pytest
import yaml

from berth.cli.fleet.nova_flavors import NovaFlavor, read_flavors
from berth.hosts.drivers.provider_config import Addition, read_additions
from berth.hosts.errors import BadConfiguration
from tests.nova.oracle import FLAVORS, PROVIDER_FILES, answers

Groups = dict[str, dict[str, list[str]]]

#: One process installs nova, for a minute, and asks it, while the others go on.
pytestmark = [pytest.mark.xdist_group("nova"), pytest.mark.thorough]


#: What an image must have for encrypted memory. nova refuses the flavor with any other.
_SEV_IMAGE: Final = {"hw_firmware_type": "uefi", "hw_machine_type": "q35"}


def table(name: str) -> Any:
    """A table of this folder."""
    return yaml.safe_load(Path(__file__).with_name(name).read_text())


def flavors() -> list[dict[str, Any]]:
    """All of them, as `openstack flavor list --long -f json` and the scheduler have them."""
    rows = table("flavors.yaml")
    plain = {"name": "f", "vcpus": 4, "ram": 4096, "disk": 40, "ephemeral": 0, "swap": 0}
    alone = [{name: value} for name, values in rows["values"].items() for value in values]
    return [
        *(
            {
                **plain,
                "properties": specs,
                "image": _SEV_IMAGE if "hw:mem_encryption" in specs else {},
            }
            for specs in [*alone, *rows["specs"]]
        ),
        *({**plain, **sizes, "properties": {}, "image": {}} for sizes in rows["sizes"]),
    ]


def directories() -> list[list[str]]:
    """The texts of the files of each directory."""
    first = "meta: {schema_version: '1.0'}\nproviders:\n"
    node = "- identification: {uuid: $COMPUTE_NODE}\n"
    trait = "\n  traits: {additional: [CUSTOM_A]}\n"
    frames = {
        "record": (f"{first}{node}  inventories: {{additional: [{{CUSTOM_A: ", "}]}\n"),
        "inventories": (f"{first}{node}  inventories: {{additional: ", "}\n"),
        "traits": (f"{first}{node}  traits: {{additional: ", "}\n"),
        "identification": (f"{first}- identification: ", trait),
        "meta": ("meta: ", f"\nproviders:\n{node}{trait[1:]}"),
    }

    def whole(text: str) -> str:
        text = re.sub(r"<(\w*)(\w) (\d+)>", lambda long: long[1] + long[2] * int(long[3]), text)
        return re.sub(r"\bNODE", first + node, text.replace("META", first))

    every = []
    for name, texts in table("provider_files.yaml").items():
        before, after = frames.get(name, ("", ""))
        for text in texts:
            several = text if isinstance(text, list) else [text]
            if name in frames:
                every.append([f"{before}{whole(text)}{after}"])
            else:
                every.append([whole(each) for each in several])
    return every


def imported(flavor: Mapping[str, Any]) -> NovaFlavor:
    """As `berth flavor import` reads it."""
    (read,) = read_flavors(io.StringIO(json.dumps([flavor])))
    return read


def groups_of_nova(query: str) -> Groups:
    """The groups of a query that ask for something: placement refuses traits alone."""
    groups: Groups = {}
    for name, value in parse_qsl(query):
        for member in ("resources", "required"):
            if name.startswith(member):
                groups.setdefault(name.removeprefix(member), {})[member] = sorted(value.split(","))
    return {name: group for name, group in groups.items() if "resources" in group}


def groups_of_berth(request: Mapping[str, Any]) -> Groups:
    """The groups of a request in the same form."""
    return {
        name: {
            "resources": sorted(f"{each}:{amount}" for each, amount in group["resources"].items()),
            **({"required": sorted(group["required"])} if "required" in group else {}),
        }
        for name, group in request["groups"].items()
    }


def test_a_flavor_asks_for_what_nova_asks_for() -> None:
    """Amounts, groups, traits and isolation. Of a flavor that nova refuses, the import says what
    it leaves out."""
    asked = flavors()
    assert len(asked) >= 120
    for flavor, said in zip(asked, answers(FLAVORS, asked), strict=True):
        read = imported(flavor)
        if "error" in said:
            assert read.left_out, (flavor, said)
            continue
        assert groups_of_berth(read.request) == groups_of_nova(said["query"]), flavor
        named = [name for name in read.request["groups"] if name]
        isolates = "group_policy=isolate" in said["query"] and len(named) > 1
        assert ("apart" in read.request) == isolates, flavor


#: What nova loads although placement refuses it, or what adds nothing: words of berth's refusal.
REFUSED_BY_PLACEMENT = (
    *("expected a whole number >= ", "expected a whole number <= ", "expected a number > 0"),
    *("is more than total", "is more than max_unit", "got 'CUSTOM_'", "__source_file"),
)


def of_berth(directory: Path) -> dict[str, Any] | str:
    """What berth reads in a directory, or why not."""
    try:
        additions = read_additions(sorted(directory.glob("*.yaml")))
    except BadConfiguration as error:
        return str(error)
    return {addition.provider: parts(addition) for addition in additions}


def parts(addition: Addition) -> Any:
    """The records and the traits of an entry."""
    return {name: dict(each) for name, each in addition.inventories.items()}, set(addition.traits)


def of_nova(read: Mapping[str, Any]) -> dict[str, Any]:
    """What nova has read, without entries that add nothing."""
    providers = {}
    for provider, entry in read.items():
        records: dict[str, Any] = {}
        for each in entry.get("inventories", {}).get("additional", []):
            records.update(each)
        traits = set(entry.get("traits", {}).get("additional", []))
        if records or traits:
            providers[provider.lower() if "-" in provider else provider] = (records, traits)
    return providers


def test_the_agent_takes_the_provider_files_that_nova_takes(tmp_path: Path) -> None:
    """With the same classes, amounts and traits; what placement would refuse later, the agent
    refuses at once."""
    asked = directories()
    assert len(asked) >= 80
    for number, said in enumerate(answers(PROVIDER_FILES, asked)):
        texts, directory = asked[number], tmp_path / str(number)
        directory.mkdir()
        for place, text in enumerate(texts):
            (directory / f"{place}.yaml").write_text(text)
        read = of_berth(directory)
        # berth also takes `null` for what is not there.
        if "error" in said:
            assert isinstance(read, str) or "null" in str(texts) or "01.0" in str(texts), texts
        elif isinstance(read, str):
            assert any(words in read for words in REFUSED_BY_PLACEMENT), (texts, read)
        else:
            due = of_nova(said["read"])
            assert read.keys() == due.keys(), texts
            for provider, (records, traits) in due.items():
                assert read[provider][1] == traits, texts
                for name, record in records.items():
                    assert record.items() <= read[provider][0][name].items(), texts

# SPDX-License-Identifier: Apache-2.0
"""The first fault of a body is the one that jsonschema finds, with its message."""

from __future__ import annotations

import copy
import random
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema.exceptions import best_match

from berth.api.errors import Refused
from berth.api.placement import aggregates, allocations, inventories, providers, traits
from berth.api.schema import BODY, Schema
from berth.model.ids import parse_uuid_lax
from tests.effort import scaled
from tests.worlds import provider_uuid

NEWEST = 39

UUIDS = [provider_uuid(name) for name in ("a", "b", "c")]

INVENTORY = {"total": 8, "reserved": 0, "allocation_ratio": 1.5}

CONSUMER = {
    "allocations": {uuid: {"resources": {"VCPU": 1, "DISK_GB": 2}} for uuid in UUIDS[:2]},
    "mappings": {"": [UUIDS[0]], "_1": UUIDS[1:]},
    "project_id": "project",
    "user_id": "user",
    "consumer_generation": None,
    "consumer_type": "INSTANCE",
}

INVENTORIES = {
    "resource_provider_generation": 1,
    "inventories": {"VCPU": INVENTORY, "DISK_GB": INVENTORY},
}

#: Schemas, each with a value that passes.
GOOD: list[tuple[Schema, Any]] = [
    (allocations.MANAGE.at(NEWEST), dict.fromkeys(UUIDS, CONSUMER)),
    (allocations.REPLACE.at(NEWEST), CONSUMER),
    (
        allocations.REPLACE.at(0),
        {"allocations": [{"resource_provider": {"uuid": UUIDS[0]}, "resources": {"VCPU": 1}}] * 2},
    ),
    (
        allocations.RESHAPE.at(NEWEST),
        {"inventories": dict.fromkeys(UUIDS, INVENTORIES), "allocations": {UUIDS[0]: CONSUMER}},
    ),
    (inventories.REPLACE, INVENTORIES),
    (traits.REPLACE, {"resource_provider_generation": 1, "traits": ["CUSTOM_A", "CUSTOM_B"]}),
    (aggregates.REPLACE.at(NEWEST), {"resource_provider_generation": 1, "aggregates": UUIDS}),
    (aggregates.REPLACE.at(1), UUIDS),
    (providers.CREATE.at(NEWEST), {"name": "n", "uuid": UUIDS[0], "parent_provider_uuid": None}),
]

ODD: list[Any] = [
    *(None, True, 0, -1, 1.5, 2**40, "", "x", "x" * 300, UUIDS[0], [], [[]], {}, {"x": 1}),
    *(["x"], [UUIDS[0], UUIDS[0]], {"VCPU": 0}, {UUIDS[0]: {}}, "VCPU\n"),
]

KEYS = ["x", "VCPU", "", UUIDS[2], "allocations", "total", "!", "a\n"]


def spoil(value: Any, rng: random.Random) -> Any:
    """A copy with one part replaced."""
    value = copy.deepcopy(value)
    place = value
    while isinstance(place, list | dict) and place:
        key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
        if rng.random() < 0.4 or not isinstance(place[key], list | dict):
            break
        place = place[key]
    else:
        return rng.choice(ODD)
    change = rng.randrange(3)
    if change == 0:
        place[key] = copy.deepcopy(rng.choice(ODD))
    elif change == 1:
        del place[key]
    elif isinstance(place, dict):
        place[rng.choice(KEYS)] = copy.deepcopy(rng.choice(ODD))
    else:
        place.insert(key, copy.deepcopy(rng.choice(ODD)))
    return value


def in_the_words_of_jsonschema(schema: Schema, value: Any) -> str | None:
    """The first fault, found the slow way; None if there is none."""
    checker = jsonschema.FormatChecker(formats=())
    checker.checks("uuid")(lambda text: not isinstance(text, str) or bool(parse_uuid_lax(text)))
    validator = jsonschema.Draft7Validator(schema.definition, format_checker=checker)
    fault = best_match(validator.iter_errors(value))
    if fault is None:
        return None
    place = "".join(f"[{step!r}]" for step in fault.relative_path)
    rule = "".join(f"[{step!r}]" for step in list(fault.relative_schema_path)[:-1])
    said = f"{fault.message}\n\nFailed validating {fault.validator!r} in schema{rule}:\n"
    return f"{said}...On instance{place}:\n...".replace(r"\\Z", "$")


def without_dumps(said: str | None) -> str | None:
    """A message without the schema and the instance in it."""
    if said is None:
        return None
    said = re.sub(r"(?s)(in schema\S*:\n).*?(?=On instance)", r"\1...", said)
    return re.sub(r"(?s)(On instance\S*:\n).*", r"\1...", said)


def said_of(schema: Schema, value: Any) -> str | None:
    """The first fault as a client reads it; None if there is none."""
    try:
        schema.check(value)
    except Refused as refused:
        return refused.message.removeprefix(f"{BODY}: ")
    return None


@pytest.mark.parametrize(("schema", "value"), GOOD)
@settings(max_examples=scaled(100))
@given(rng=st.randoms(use_true_random=False), times=st.integers(0, 3))
def test_a_fault_is_told_as_jsonschema_tells_it(
    schema: Schema, value: Any, rng: random.Random, times: int
) -> None:
    """The same fault, path and message for any invalid body."""
    assert said_of(schema, value) is None
    for _ in range(times):
        value = spoil(value, rng)
    assert without_dumps(said_of(schema, value)) == in_the_words_of_jsonschema(schema, value)


@pytest.mark.parametrize(
    "value",
    [
        [[]] * 100_000,
        "x" * 10**6,
        {f"x{number}": 1 for number in range(100_000)},
        {UUIDS[0]: CONSUMER | {"mappings": {"a" * 10**6: "x" * 10**6}}},
        {UUIDS[0]: CONSUMER | {"x" * 10**6: 1}},
        {UUIDS[0]: CONSUMER | {"allocations": {UUIDS[0]: {"resources": ["x" * 9] * 10**5}}}},
    ],
)
def test_what_a_message_quotes_is_short(value: Any) -> None:
    """However long the value was."""
    message = said_of(allocations.MANAGE.at(NEWEST), value)
    assert message is not None
    assert "Failed validating" in message
    assert len(message) < 6000

# SPDX-License-Identifier: Apache-2.0
"""What the queries of `/berth/v1` may have, and how others are refused.

Source: spec/beyond.md 1.4.
"""

from __future__ import annotations

import pytest

from tests.api.answers import assert_refused
from tests.client import Client

_FLEET_PARTS = "inventories, usages, traits, aggregates, drains, allocations"
_TREE_PARTS = "generation, inventories, usages, traits, aggregates, drains"


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        (
            "fleet?include=traits,bogus",
            f"The query parameter include must be any of {_FLEET_PARTS}, separated by commas, not "
            "'traits,bogus'.",
        ),
        ("fleet?color=red", "The query parameter color is unknown; expected: include."),
        (
            "trees/cn1?include=bogus",
            f"The query parameter include must be any of {_TREE_PARTS}, separated by commas, not "
            "'bogus'.",
        ),
        (
            "changes?after=b1.AA&wait=soon",
            "The query parameter wait must be a whole number of seconds, 0 to 60, not 'soon'.",
        ),
        ("changes?after=", "The query parameter after must not be empty."),
        ("changes?since=x", "The query parameter since is unknown; expected: after, wait."),
        ("drains?host=", "The query parameter host must not be empty."),
        (
            "aggregates?label=zone%3Dz1&label=z1",
            "The query parameter label must be a label, key=value, such as zone=z1, not 'z1'.",
        ),
        (
            "aggregates?label=z1&label=zone%3Dz1",
            "The query parameter label must be a label, key=value, such as zone=z1, not 'z1'.",
        ),
        ("fleet?include=%FF", "The query must be percent-encoded UTF-8 without NUL characters."),
        ("fleet?include=%00", "The query must be percent-encoded UTF-8 without NUL characters."),
        ("consumers?colour=red", "The query parameter colour is unknown; expected: host, "),
    ],
)
def test_a_parameter_is_refused_in_a_sentence(api: Client, path: str, sentence: str) -> None:
    """Which names it and says what it must be; without a schema, a pattern, or a library's text."""
    refused = api.get(f"/berth/v1/{path}")
    assert_refused(refused, 400, sentence, code="berth.request.invalid")
    assert "validating" not in refused.text


@pytest.mark.parametrize("path", ["trees/cn1", "drains/d"])
def test_a_dry_run_is_true_or_false(api: Client, path: str) -> None:
    """Nothing is written if it is neither."""
    refused = api.put(f"/berth/v1/{path}?dry_run=perhaps", json={"providers": [{"name": "cn1"}]})
    sentence = "The query parameter dry_run must be one of true, false, not 'perhaps'."
    assert_refused(refused, 400, sentence, code="berth.request.invalid")

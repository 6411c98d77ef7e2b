# SPDX-License-Identifier: Apache-2.0
"""Names that were made to deceive whoever reads them on a terminal."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Fleet
from tests.cli.in_process import InProcess
from tests.cli.test_terminal import on_a_terminal

#: A colour, the bell, the title of the window, a mark of direction, a character without a width, a
#: line of its own, C1's own sequence, and rich's markup.
HOSTILE = "cn\x1b[31m\x07\x1b]0;root\x07\u202e\u200b\nFORGED 1 host fits\r\x9b2J[red]"
SHOWN = r"cn\x1b[31m\x07\x1b]0;root\x07\u202e\u200b\nFORGED 1 host fits\r\x9b2J[red]"
#: What a reason or a description may have of that.
TEXT = "moved\nFORGED 1 host fits\t[red]"
PROVIDER = "5f6f0f3e-8c3c-4b43-8f3a-111111111111"
CONSUMER = "5f6f0f3e-8c3c-4b43-8f3a-222222222222"
AGGREGATE = "5f6f0f3e-8c3c-4b43-8f3a-333333333333"

MADE_BY = [
    ("provider", "create", HOSTILE, "--uuid", PROVIDER),
    ("inventory", "set", PROVIDER, "VCPU=8"),
    ("aggregate", "set", PROVIDER, AGGREGATE),
    ("claim", CONSUMER, f"{PROVIDER}:VCPU=2", "--project", HOSTILE, "--user", HOSTILE),
    ("drain", "create", "d1", PROVIDER, "--reason", TEXT),
    ("flavor", "set", "f1", "VCPU=1", "--description", TEXT),
]

SHOWN_BY = [
    ("provider", "list"),
    ("provider", "show", PROVIDER),
    ("provider", "tree", PROVIDER),
    ("inventory", "list", PROVIDER),
    ("inventory", "show", PROVIDER),
    ("aggregate", "list"),
    ("aggregate", "list", "--provider", PROVIDER),
    ("usage", "provider", PROVIDER),
    ("usage", "project", HOSTILE),
    ("who", PROVIDER),
    ("who", "--project", HOSTILE),
    ("consumer", "show", CONSUMER),
    ("drain", "list"),
    ("drain", "show", "d1"),
    ("flavor", "list"),
    ("flavor", "show", "f1"),
    ("candidates", "VCPU=1"),
    ("capacity", "VCPU=1"),
    ("why", "VCPU=100"),
    ("why", "VCPU=1", "--in-tree", HOSTILE),
    ("provider", "show", HOSTILE + "?"),
    ("trait", "list", "--provider", HOSTILE + "?"),
    ("dump",),
]


def assert_harmless(printed: str) -> None:
    """Nothing but lines of visible text, none of which the name has made."""
    lines = printed.split("\n")
    assert all(line.isprintable() for line in lines), printed
    assert not any(line.startswith("FORGED") for line in lines), printed


def test_what_a_command_prints_is_what_it_says(
    fleet: Fleet, in_process: InProcess, tmp_path: Path
) -> None:
    """In tables, sentences and errors, as valid JSON, and on a terminal, as no markup."""
    fleet.begin()
    for arguments in MADE_BY:
        made = in_process(*arguments)
        assert made.returncode == 0, made
        assert_harmless(made.stdout + made.stderr)
    for arguments in SHOWN_BY:
        printed = in_process(*arguments)
        assert_harmless(printed.stdout + printed.stderr)
        # So that it can still be told from others.
        assert SHOWN in printed.stdout or arguments not in SHOWN_BY[:3:2]
        as_json = in_process(*arguments, "--json")
        assert_harmless(as_json.stdout + as_json.stderr)
        if as_json.returncode == 0:
            assert all(map(json.loads, as_json.stdout.splitlines()))
    tree = ("provider", "tree", PROVIDER, "--config-file", str(fleet.configuration))
    shown = on_a_terminal(tmp_path, *tree, NO_COLOR="1")
    assert_harmless(shown)
    assert SHOWN[:50] in shown


def test_an_audit_log_is_shown_as_one_line_for_each(in_process: InProcess, tmp_path: Path) -> None:
    """Also of a release that wrote names as they were."""
    line = {
        "time": "2026-11-24T03:12:00.000Z",
        "outcome": "done",
        "status": 201,
        "method": "POST",
        "path": f"/resource_providers/{HOSTILE}",
        "user_name": HOSTILE,
        "consumers": [{"uuid": CONSUMER, "name": HOSTILE, "project_id": HOSTILE}],
        "providers": [{"uuid": PROVIDER, "name": HOSTILE, "host": HOSTILE}],
    }
    file = tmp_path / "audit.jsonl"
    file.write_text(json.dumps(line, ensure_ascii=False) + "\n")
    for options in ((), ("--json",)):
        printed = in_process("audit-log", "show", str(file), *options)
        assert printed.returncode == 0
        assert_harmless(printed.stdout + printed.stderr)

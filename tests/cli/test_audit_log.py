# SPDX-License-Identifier: Apache-2.0
"""`berth audit-log show`: filters, rotated files, damaged and cut lines."""

from __future__ import annotations

import gzip
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from berth.cli.audit_log import parse_moment
from berth.cli.failure import ExitCode
from tests.cli.in_process import InProcess

JOB, VM = "9c2f41d0-57a7-4e0c-8f0f-2b1d2a7b6c11", "0c2f41d0-57a7-4e0c-8f0f-2b1d2a7b6c12"
GPU, HOST = "6a1c8c3e-8f0b-4d5e-9a57-0c2f3f3d9b43", "7a1c8c3e-8f0b-4d5e-9a57-0c2f3f3d9b43"


def line(number: int, **members: Any) -> dict[str, Any]:
    """A line of the audit log, at some minute after three."""
    return {
        "time": f"2026-11-24T03:{number:02}:00.500Z",
        "outcome": "done",
        "status": 204,
        "request_id": f"req-{number}",
        "user_id": "nova",
        "project_id": "service",
        "roles": ["service"],
        "method": "PUT",
        "route": "/allocations/{consumer_uuid}",
        "path": f"/allocations/{JOB}",
        "operation": "replace_allocations",
        "parameters": {"consumer_uuid": JOB},
        **members,
    }


def claim(number: int, before: int, after: int, **members: Any) -> dict[str, Any]:
    """A line of a write of GPUs of gpu043 for a job of project web."""
    change = {"consumer": JOB, "provider": GPU, "resource_class": "PGPU"}
    return line(
        number,
        consumers=[{"uuid": JOB, "name": "job-7", "project_id": "web", "user_id": "alice"}],
        allocations=[{**change, "before": before, "after": after}],
        providers=[{"uuid": GPU, "name": "gpu043_0", "host": "gpu043"}],
        **members,
    )


LINES = [
    line(1, user_id="alice", project_id="web", path="/traits/CUSTOM_A", parameters={}),
    claim(2, 0, 4),
    line(3, consumers=[{"uuid": VM, "project_id": "attic", "project_id_before": "web"}]),
    line(4, providers=[{"uuid": HOST, "name": "cn1", "host": "cn1"}]),
    line(5, parameters={"project": "web"}),
    claim(12, 4, 0, user_name="Mallory", global_request_id="req-global"),
]


def written(path: Path, *lines: dict[str, Any]) -> Path:
    """A file with these lines."""
    text = "".join(f"{json.dumps(each)}\n" for each in lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A file with all lines."""
    return written(tmp_path / "audit.jsonl", *LINES)


def shown(berth: InProcess, *arguments: str | Path) -> list[int]:
    """The minutes of the lines that a command shows."""
    done = berth("audit-log", "show", "--json", *map(str, arguments))
    assert (done.returncode, done.stderr) == (0, "")
    return [int(json.loads(text)["time"][14:16]) for text in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("filters", "minutes"),
    [
        ("", [1, 2, 3, 4, 5, 12]),
        ("--host gpu043", [2, 12]),
        ("--host gpu043_0", [2, 12]),
        (f"--host {HOST}", [4]),
        ("--host gpu04", []),
        (f"--consumer {JOB}", [2, 12]),
        ("--consumer job-7", [2, 12]),
        (f"--consumer {VM}", [3]),
        ("--project web", [1, 2, 3, 5, 12]),
        ("--project attic", [3]),
        ("--since 2026-11-24T03:04:00.500", [4, 5, 12]),
        ("--until 2026-11-24T03:04:00.500Z", [1, 2, 3]),
        ("--since 2026-11-24T04:03+01:00 --until 2026-11-24T04:06+01:00", [3, 4, 5]),
        ("--host gpu043 --project web --since 2026-11-24T03:12", [12]),
        ("--host cn1 --project web", []),
    ],
)
def test_filters(in_process: InProcess, log: Path, filters: str, minutes: list[int]) -> None:
    """Each alone, and together."""
    assert shown(in_process, log, *filters.split()) == minutes


def test_rotated_and_compressed_files_are_read_in_order(
    in_process: InProcess, tmp_path: Path
) -> None:
    """Whatever the order in which the shell gives them."""
    files = [
        written(tmp_path / "audit.jsonl", LINES[5]),
        written(tmp_path / "audit.jsonl.1", *LINES[3:5]),
        written(tmp_path / "audit.jsonl.2.gz", *LINES[:3]),
        written(tmp_path / "empty"),
    ]
    assert shown(in_process, *files) == [1, 2, 3, 4, 5, 12]


def test_for_people(in_process: InProcess, log: Path) -> None:
    """Who took these GPUs from project web at 03:12, and by what call?"""
    filters = ("--host", "gpu043", "--since", "2026-11-24T03:12")
    done = in_process("audit-log", "show", str(log), *filters)
    assert done.stdout.splitlines() == [
        f"2026-11-24T03:12:00.500Z  done (204)  Mallory of service  PUT /allocations/{JOB}",
        f"  consumer {JOB} job-7 of web",
        "    gpu043_0 on gpu043: PGPU 4 -> 0",
        "  req-12  req-global",
    ]


def test_refusals_inventories_and_unknown_outcomes_for_people(
    in_process: InProcess, tmp_path: Path
) -> None:
    """What was asked for, what has changed, and what is not known."""
    change = {"consumer": JOB, "provider": GPU, "resource_class": "PGPU"}
    stock = {"provider": GPU, "resource_class": "PGPU"}
    fields = {"total": 8, "reserved": 0}
    log = written(
        tmp_path / "audit.jsonl",
        line(1, outcome="refused", status=409, detail="No\nroom.", code="x",
             allocations=[change | {"asked": 9}]),
        line(2, outcome="unknown", status=503, allocations=[change | {"before": 1, "asked": 2}]),
        line(3, inventories=[
            stock | {"before": fields, "after": fields | {"reserved": 1}},
            stock | {"before": fields, "after": fields},
            stock | {"before": fields, "after": None},
            stock | {"before": None, "after": fields},
        ]),
        line(4, omitted={"consumers": 7}, providers=[{"uuid": GPU}]),
        LINES[2],
    )  # fmt: skip
    text = in_process("audit-log", "show", str(log)).stdout
    inventory = f"  {GPU}: inventory of PGPU: "
    for expected in (
        "  refused (409)  nova of service",
        "  No room.",
        f"    {GPU}: PGPU asked for 9",
        f"    {GPU}: PGPU 1 -> perhaps 2",
        f"{inventory}reserved=0 -> reserved=1",
        f"{inventory}unchanged",
        f"{inventory}total=8 reserved=0 -> none",
        f"{inventory}none -> total=8 reserved=0",
        f"  provider {GPU}",
        "  and 7 more consumers",
        f"  consumer {VM} of attic (before: of web)",
    ):
        assert any(expected in each for each in text.splitlines()), (expected, text)


EXPIRED = {
    "time": "2026-11-24T03:30:00.500Z",
    "outcome": "done",
    "operation": "lease_expired",
    "consumers": [{"uuid": JOB, "name": "job-7", "project_id": "web", "user_id": "alice"}],
    "allocations": [
        {"consumer": JOB, "provider": GPU, "resource_class": "PGPU", "before": 4, "after": 0}
    ],
    "providers": [{"uuid": GPU, "name": "gpu043_0", "host": "gpu043"}],
}


def test_what_berth_did_by_itself_is_shown(in_process: InProcess, tmp_path: Path) -> None:
    """It has no request, so it has no caller and no request id; a cut line is named by its time."""
    log = written(tmp_path / "audit.jsonl", LINES[1], EXPIRED)
    done = in_process(
        "audit-log", "show", str(log), "--consumer", "job-7", "--since", "2026-11-24T03:30"
    )
    assert done.stdout.splitlines() == [
        "2026-11-24T03:30:00.500Z  done  berth  lease expired",
        f"  consumer {JOB} job-7 of web",
        "    gpu043_0 on gpu043: PGPU 4 -> 0",
    ]
    cut = written(tmp_path / "cut.jsonl", EXPIRED | {"omitted": {"providers": 1}})
    done = in_process("audit-log", "show", str(cut), "--host", "cn1")
    assert done.stderr.endswith("may match: 2026-11-24T03:30:00.500Z\n")


def drain(number: int, before: Any, **members: Any) -> dict[str, Any]:
    """A line of a request for a drain of the host cn1."""
    providers = [{"uuid": HOST, "name": "cn1", "host": "cn1"}]
    return line(number, parameters={"name": "d"}, providers=providers, before=before, **members)


def test_other_state_for_people(in_process: InProcess, tmp_path: Path) -> None:
    """Drains, leases, and what a tree's edit or a rename has changed."""
    state = {"effect": "exclude", "reason": "fan", "named": [HOST]}
    changes = [
        {"change": "update", "name": "cn1", "before": {"traits": []}, "after": {"traits": ["A"]}},
        {"change": "create", "name": "gpu1", "before": None, "after": {"name": "gpu1"}},
    ]
    log = written(
        tmp_path / "audit.jsonl",
        drain(1, None, after=state),
        drain(2, state, after=state | {"effect": "none"}),
        drain(3, state, after=None),
        line(4, after={"seconds": 60}),
        line(5, asked={"seconds": 60}, outcome="refused"),
        line(6, after={"changes": changes}),
        line(7, providers=[{"name": "new"}], asked={"changes": []}),
    )
    shown = in_process("audit-log", "show", str(log)).stdout.splitlines()
    assert [text.strip() for text in shown if not re.match(r"2026|  req-", text)] == [
        "none -> effect=exclude reason=fan named=1",
        "provider cn1",
        "effect=exclude -> effect=none",
        "provider cn1",
        "effect=exclude reason=fan named=1 -> none",
        "provider cn1",
        "seconds=60",
        "asked for seconds=60",
        "update cn1: traits",
        "create gpu1",
        "asked for changes=0",
        "provider new",
    ]


@pytest.mark.parametrize(
    ("filters", "minutes"),
    [
        (f"--host {HOST.upper()}", [1, 2]),
        (f"--host {HOST.replace('-', '')}", [1, 2]),
        (f"--consumer {JOB.upper()}", [3]),
        ("--consumer job-9", [4]),
        ("--host cn9", [1]),
        ("--host gpu2", [2]),
        ("--host gpu1", [2]),
        ("--host A", []),
    ],
)
def test_filters_find_every_spelling_and_every_name(
    in_process: InProcess, tmp_path: Path, filters: str, minutes: list[int]
) -> None:
    """A UUID in any spelling, and names that a provider had before, or has since."""
    providers = [{"uuid": HOST, "name": "cn1", "host": "cn1"}]
    renamed = {"change": "update", "before": {"name": "gpu1"}, "after": {"name": "gpu2"}}
    created = {"change": "create", "before": None, "after": {"name": "cn3"}}
    log = written(
        tmp_path / "audit.jsonl",
        line(1, providers=providers, after={"name": "cn9"}),
        line(2, providers=providers, after={"changes": [renamed, created]}),
        line(3, consumers=[{"uuid": JOB}], after={"name": "A"}),
        line(4, outcome="refused", parameters={"project_id": "web", "name": "job-9"}),
    )
    assert shown(in_process, log, *filters.split()) == minutes


def test_a_damaged_line_does_not_hide_the_next(in_process: InProcess, tmp_path: Path) -> None:
    """A line cut short by a full disk, with the next one behind it; noise; a truncated and a
    spoilt gzip."""
    log = tmp_path / "audit.jsonl"
    first, second = (json.dumps(each).encode() for each in LINES[:2])
    log.write_bytes(first[:60] + second + b"\nnoise\n[1]\n\n")
    cut = tmp_path / "audit.jsonl.1.gz"
    packed = gzip.compress(first + b"\n" + second * 9)
    cut.write_bytes(packed[:-30])
    spoilt = tmp_path / "audit.jsonl.2.gz"
    # Its first bytes after the header, where the kind of the first block stands.
    spoilt.write_bytes(packed[:10] + b"\xff" * 9 + packed[19:])
    done = in_process("audit-log", "show", "--json", str(log), str(cut), str(spoilt))
    assert done.returncode == 0
    assert [json.loads(text)["request_id"] for text in done.stdout.splitlines()][-1] == "req-2"
    assert done.stderr == "berth: 5 damaged lines skipped\n"


def test_cut_lines_that_may_match_are_reported(in_process: InProcess, tmp_path: Path) -> None:
    """Their lists are incomplete; with another condition that fails they cannot match."""
    cut = claim(2, 0, 1, omitted={"consumers": 9, "allocations": 9})
    log = written(tmp_path / "audit.jsonl", cut)
    done = in_process("audit-log", "show", str(log), "--consumer", VM)
    assert done.stdout == ""
    assert done.stderr == (
        "berth: 1 more lines were too long to list everything, and may match: req-2\n"
    )
    assert shown(in_process, log, "--host", "cn1") == []
    assert shown(in_process, log, "--host", "cn1", "--consumer", VM) == []
    assert shown(in_process, log, "--consumer", VM, "--since", "2026-12-01") == []


def test_a_wrong_time_and_an_unreadable_file_are_explained(
    in_process: InProcess, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what would be right."""
    done = in_process("audit-log", "show", str(log), "--since", "yesterday")
    assert done.returncode == ExitCode.USAGE
    assert "yesterday is not a time: write 2026-11-24T03:12" in done.stderr

    def deny(path: Path, *_: Any) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", deny)
    done = in_process("audit-log", "show", str(log))
    assert done.returncode == ExitCode.CONFIGURATION
    assert done.stderr == f"berth: cannot read {log}: permission denied\n"


def test_times() -> None:
    """Relative, with an offset, and in UTC."""
    now = datetime(2026, 11, 24, 12, tzinfo=UTC)
    assert parse_moment("2h", now) == now - timedelta(hours=2)
    assert parse_moment("90s", now) == now - timedelta(seconds=90)
    assert parse_moment("2026-11-24", now) == datetime(2026, 11, 24, tzinfo=UTC)
    assert parse_moment("2026-11-24T13:00+01:00", now) == now

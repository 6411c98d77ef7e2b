# SPDX-License-Identifier: Apache-2.0
"""The shell completes names from the service: quickly, or silently without any."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth.cli.fleet import completing
from tests.cli.fleet.ways import BothWays
from tests.cli.in_process import InProcess
from tests.e2e.serving import PATIENCE

PROVIDER = "11111111-2222-4333-8444-555555555555"


@pytest.fixture(autouse=True)
def provider(berth: BothWays) -> Iterator[None]:
    """A provider with a trait of its own, both ways."""
    berth.ok("provider", "create", "shelf", "--uuid", PROVIDER)
    berth.ok("trait", "create", "CUSTOM_SHELF")
    berth.ok("flavor", "set", "shelved", "VCPU=1")
    yield
    berth.ok("flavor", "delete", "shelved")
    berth.ok("provider", "delete", "shelf")
    berth.ok("trait", "delete", "CUSTOM_SHELF")


def completed(in_process: InProcess, monkeypatch: pytest.MonkeyPatch, *words: str) -> list[str]:
    """The completions of the last word."""
    with monkeypatch.context() as asking:
        asking.setenv("_BERTH_COMPLETE", "bash_complete")
        asking.setenv("COMP_WORDS", " ".join(("berth", *words)))
        asking.setenv("COMP_CWORD", str(len(words)))
        done = in_process()
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("provider", "show", "sh"), ["shelf"]),
        (("provider", "create", "x", "--parent", "sh"), ["shelf"]),
        (("inventory", "set", "shelf", "CUSTOM_N"), []),
        (("inventory", "set", "shelf", "MEMORY_M"), ["MEMORY_MB="]),
        (("class", "show", "VCP"), ["VCPU"]),
        (("trait", "show", "CUSTOM_SH"), ["CUSTOM_SHELF"]),
        (("candidates", "--required", "!CUSTOM_SH"), ["!CUSTOM_SHELF"]),
        (("candidates", "--required", "in:CUSTOM_SH"), ["in:CUSTOM_SHELF"]),
        (("candidates", "--flavor", "she"), ["shelved"]),
        (("flavor", "delete", "x", "sh"), ["shelved"]),
        (
            ("candidates", "--required", "in:HW_NUMA_ROOT,CUSTOM_SH"),
            ["in:HW_NUMA_ROOT,CUSTOM_SHELF"],
        ),
    ],
    ids=lambda words: " ".join(words),
)
def test_names_come_from_the_service_or_the_database(
    in_process: InProcess,
    monkeypatch: pytest.MonkeyPatch,
    ways: tuple[str, Path],
    words: tuple[str, ...],
    names: list[str],
) -> None:
    """Which one, the options and the environment say, as they do for the command itself."""
    for limit in ("_SERVICE_S_MAX", "_DATABASE_S_MAX"):
        monkeypatch.setattr(completing, limit, PATIENCE)
    url, conf = ways
    command = 1 if words[0] == "candidates" else 2
    named = (*words[:command], "--config-file", str(conf), *words[command:])
    assert completed(in_process, monkeypatch, *named) == names
    monkeypatch.setenv("BERTH_URL", url)
    monkeypatch.setenv("OS_TOKEN", "admin")
    assert completed(in_process, monkeypatch, *words) == names


def test_a_service_that_does_not_answer_offers_nothing(
    in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a second; the shell shows nothing of it."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("BERTH_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("OS_TOKEN", "admin")
        began = time.monotonic()
        assert completed(in_process, monkeypatch, "provider", "show", "sh") == []
        assert time.monotonic() - began < 30


def test_a_service_that_refuses_offers_nothing(
    in_process: InProcess, monkeypatch: pytest.MonkeyPatch, ways: tuple[str, Path]
) -> None:
    """And so does one that nobody listens for."""
    monkeypatch.setenv("BERTH_URL", ways[0])
    assert completed(in_process, monkeypatch, "provider", "show", "sh") == []
    monkeypatch.setenv("BERTH_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("OS_TOKEN", "admin")
    assert completed(in_process, monkeypatch, "provider", "show", "sh") == []

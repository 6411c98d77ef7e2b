# SPDX-License-Identifier: Apache-2.0
"""The shell completes names from the service: quickly, or silently without any."""

from __future__ import annotations

import socket
import time

import pytest

from berth.cli import completing
from tests.cli.conftest import Fleet
from tests.cli.in_process import InProcess
from tests.e2e.serving import PATIENCE


def completed(in_process: InProcess, monkeypatch: pytest.MonkeyPatch, words: str) -> list[str]:
    """The completions of the last word."""
    with monkeypatch.context() as asking:
        asking.setenv("_BERTH_COMPLETE", "bash_complete")
        asking.setenv("COMP_WORDS", f"berth {words}")
        asking.setenv("COMP_CWORD", str(len(words.split())))
        done = in_process()
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize("way", ["service", "database"])
def test_names_come_from_the_service_or_the_database(
    fleet: Fleet, in_process: InProcess, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Which one, the options and the environment say, as they do for the command itself."""
    for limit in ("_SERVICE_S_MAX", "_DATABASE_S_MAX"):
        monkeypatch.setattr(completing, limit, PATIENCE)
    fleet.begin(way)
    for words in (
        *("provider create shelf", "trait create CUSTOM_SHELF", "flavor set shelved VCPU=1"),
    ):
        assert in_process(*words.split()).returncode == 0
    for words, names in (
        ("provider show sh", ["shelf"]),
        ("provider create x --parent sh", ["shelf"]),
        ("who sh", ["shelf"]),
        ("inventory set shelf CUSTOM_N", []),
        ("inventory set shelf MEMORY_M", ["MEMORY_MB="]),
        ("class show VCP", ["VCPU"]),
        ("trait show CUSTOM_SH", ["CUSTOM_SHELF"]),
        ("candidates --required !CUSTOM_SH", ["!CUSTOM_SHELF"]),
        ("candidates --required in:CUSTOM_SH", ["in:CUSTOM_SHELF"]),
        ("candidates --flavor she", ["shelved"]),
        ("flavor delete x sh", ["shelved"]),
        ("candidates --required in:HW_NUMA_ROOT,CUSTOM_SH", ["in:HW_NUMA_ROOT,CUSTOM_SHELF"]),
    ):
        assert completed(in_process, monkeypatch, words) == names, words
    if way == "database":
        conf = ("--config-file", str(fleet.configuration))
        monkeypatch.delenv("OS_PLACEMENT_DATABASE__CONNECTION")
        words = " ".join(("provider", "show", *conf, "sh"))
        assert completed(in_process, monkeypatch, words) == ["shelf"]


def test_a_service_that_does_not_answer_or_refuses_offers_nothing(
    fleet: Fleet, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a second; the shell shows nothing of it."""
    fleet.begin()
    monkeypatch.delenv("OS_TOKEN")
    assert completed(in_process, monkeypatch, "provider show sh") == []
    monkeypatch.setenv("OS_TOKEN", "admin")
    monkeypatch.setenv("BERTH_URL", "http://127.0.0.1:1")
    assert completed(in_process, monkeypatch, "provider show sh") == []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("BERTH_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        began = time.monotonic()
        assert completed(in_process, monkeypatch, "provider show sh") == []
        assert time.monotonic() - began < 30

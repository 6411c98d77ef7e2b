# SPDX-License-Identifier: Apache-2.0
"""`berth policy`: show and test who may do what."""

from __future__ import annotations

import json
from pathlib import Path

from berth.api.paths import match_of
from berth.cli.failure import ExitCode
from berth.cli.policy import auditor_file, members_file
from tests.cli.test_commands import on
from tests.e2e.serving import run_berth

LIST = "placement:traits:list"


def policed(folder: Path, text: str = "") -> str:
    """A configuration with a policy file of this text."""
    (folder / "policy.yaml").write_text(text)
    return on(folder, f"sqlite:///{folder}/berth.db")


def admitted(folder: Path, source: str, *arguments: str) -> dict[str, bool]:
    """The output of `berth policy check` for each rule."""
    done = run_berth(folder, "policy", "check", "--config-file", source, *arguments)
    assert done.stderr == ""
    words = [line.split() for line in done.stdout.splitlines()]
    return {name: said == "yes" for said, name, *_ in words}


def test_a_sample_has_every_rule_and_changes_nothing(tmp_path: Path) -> None:
    """Every line is commented out."""
    done = run_berth(tmp_path, "policy", "sample")
    assert done.returncode == ExitCode.OK
    assert f'#"{LIST}": "rule:admin_or_service_api or rule:agent_api"' in done.stdout
    assert all(line.startswith("#") or not line for line in done.stdout.splitlines())


def test_an_auditor_looks_and_changes_nothing(tmp_path: Path) -> None:
    """The output of `berth policy sample --auditor`, saved in policy.d."""
    source = policed(tmp_path)
    (tmp_path / "policy.d").mkdir()
    printed = run_berth(tmp_path, "policy", "sample", "--auditor").stdout
    assert printed == auditor_file()
    (tmp_path / "policy.d" / "auditor.yaml").write_text(printed)
    may = admitted(tmp_path, source, "--role", "auditor")
    rules = json.loads(
        run_berth(tmp_path, "policy", "list", "--json", "--config-file", source).stdout
    )
    for rule in rules:
        if rule["requests"]:
            methods_and_paths = (request.split(" ") for request in rule["requests"])
            looks = all(
                match_of({"REQUEST_METHOD": method, "PATH_INFO": path}).kind.is_read
                for method, path in methods_and_paths
            )
            assert may[rule["name"]] == looks, rule["name"]
    assert all(admitted(tmp_path, source, "--role", "service").values())


def test_a_member_acts_for_its_own_project(tmp_path: Path) -> None:
    """The output of `berth policy sample --members`, saved in policy.d beside the auditors'."""
    source = policed(tmp_path)
    (tmp_path / "policy.d").mkdir()
    printed = run_berth(tmp_path, "policy", "sample", "--members").stdout
    assert printed == members_file()
    for name, text in (("members", printed), ("auditor", auditor_file())):
        (tmp_path / "policy.d" / f"{name}.yaml").write_text(text)
    may = admitted(tmp_path, source, "--role", "member", "--project", "web")
    questions = {"berth:candidates", "berth:explain", "berth:capacity", "berth:permissions:show"}
    own = {"berth:place", "berth:leases:list", "berth:leases:update"}
    own |= {f"berth:consumers:{verb}" for verb in ("list", "show", "delete")}
    assert {name for name, yes in may.items() if yes} == questions | own
    of_another = ("--role", "member", "--project", "web", "--target-project", "db")
    may = admitted(tmp_path, source, *of_another)
    assert {name for name, yes in may.items() if yes} == questions
    assert all(admitted(tmp_path, source, "--role", "service").values())

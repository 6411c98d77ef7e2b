# SPDX-License-Identifier: Apache-2.0
"""`berth policy`: show and test who may do what."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from berth.api.paths import kind_of
from berth.cli.exit_codes import ExitCode
from berth.cli.policy_rules import auditor_file, members_file
from tests.cli.test_commands import assert_fails, on
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


def test_a_rule_that_does_not_exist_is_named(tmp_path: Path) -> None:
    """It has no effect; a rule that only other rules use may have any name."""
    source = policed(
        tmp_path,
        '"placement:trait:list": "role:nobody"\n"operators": "role:ops"\n'
        f'"{LIST}": "rule:operators"\n"default": "role:admin"\n',
    )
    done = run_berth(tmp_path, "policy", "check", "--config-file", source)
    assert done.returncode == ExitCode.CONFIGURATION
    assert done.stderr == (
        "berth: the policy files set unknown rules: placement:trait:list; `berth policy list` "
        "prints all rules\n"
    )


def test_the_rules_in_force(tmp_path: Path) -> None:
    """With overrides from files, and the requests that each rule guards."""
    source = policed(tmp_path, f'"{LIST}": "role:guest"\n')
    done = run_berth(tmp_path, "policy", "list", "--json", "--config-file", source)
    rules = {one["name"]: one for one in json.loads(done.stdout)}
    assert rules[LIST] == {
        "name": LIST,
        "check": "role:guest",
        "is_default": False,
        "requests": ["GET /traits"],
    }
    assert rules["placement:reshaper:reshape"]["is_default"]
    plain = run_berth(tmp_path, "policy", "list", "--config-file", source)
    assert f"{LIST}: role:guest  (overridden)\n    GET /traits\n" in plain.stdout


def test_what_roles_may_do(tmp_path: Path) -> None:
    """The defaults: who may reshape, and whose usages a reader may see."""
    source = policed(tmp_path)
    administrator = admitted(tmp_path, source, "--role", "admin")
    assert [name for name, yes in administrator.items() if not yes] == [
        "placement:reshaper:reshape"
    ]
    assert all(admitted(tmp_path, source, "--role", "service").values())
    reader = admitted(tmp_path, source, "--role", "reader", "--project", "p")
    assert [name for name, yes in reader.items() if yes] == [
        "placement:usages",
        "berth:permissions:show",
        "berth:consumers:list",
        "berth:consumers:show",
    ]
    of_another = ("--role", "reader", "--project", "p", "--target-project", "q")
    foreign = admitted(tmp_path, source, *of_another)
    assert [name for name, yes in foreign.items() if yes] == ["berth:permissions:show"]
    assert not any(admitted(tmp_path, source, "--role", "admin", "--system").values())


def test_scope_counts_as_it_does_in_service(tmp_path: Path) -> None:
    """With `enforce_scope` off, only roles matter."""
    source = policed(tmp_path)
    with Path(source).open("a") as file:
        file.write("[oslo_policy]\nenforce_scope = False\n")
    assert admitted(tmp_path, source, "--role", "admin", "--system")[LIST]


def test_a_script_can_ask(tmp_path: Path) -> None:
    """One rule or several; the exit code says whether all admit the caller."""
    source = policed(tmp_path)
    ask = ("policy", "check", "--config-file", source, "--role", "admin")
    reshape = "placement:reshaper:reshape"
    assert run_berth(tmp_path, *ask, LIST).returncode == ExitCode.OK
    for rules in ((LIST, reshape), (reshape, LIST)):
        assert run_berth(tmp_path, *ask, *rules).returncode == 1
    wrong = run_berth(tmp_path, *ask, LIST, "placement:traits:lost")
    assert_fails(wrong, ExitCode.USAGE, "no rule placement:traits:lost", "berth policy list")


@pytest.mark.parametrize("command", ["list", "check"])
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, command: str) -> None:
    """An unreadable policy file is an error."""
    source = policed(tmp_path, "- not a mapping\n")
    done = run_berth(tmp_path, "policy", command, "--config-file", source)
    assert_fails(done, ExitCode.CONFIGURATION, "policy files", "policy.yaml")


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
                kind_of({"REQUEST_METHOD": method, "PATH_INFO": path}).is_read
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
    both = run_berth(tmp_path, "policy", "sample", "--members", "--auditor")
    assert both.returncode == ExitCode.USAGE and "two files" in both.stderr

# SPDX-License-Identifier: Apache-2.0
"""`berth status`, `berth config show` and `berth completion`."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from uuid import UUID

import pytest
from oslo_upgradecheck.upgradecheck import Code

from berth.cli.failure import ExitCode
from berth.cli.status import service_check
from tests.cli.in_process import InProcess
from tests.cli.test_commands import assert_fails, configuration, on
from tests.client import Client
from tests.e2e.serving import run_berth, serving, wait_until
from tests.edge.auth.gate import hashed
from tests.servers.ports import free_port
from tests.servers.statements import run


def status(folder: Path, source: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run `berth status` with a configuration."""
    return run_berth(folder, "status", "--config-file", source, *options)


def served(folder: Path) -> tuple[str, str]:
    """A ready database: its URL and its configuration."""
    url = f"sqlite:///{folder}/berth.db"
    source = on(folder, url)
    assert run_berth(folder, "db", "upgrade", "--config-file", source).returncode == 0
    return url, source


def test_all_is_well(tmp_path: Path) -> None:
    """One line per check, and exit code 0."""
    _, source = served(tmp_path)
    done = status(tmp_path, source)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["ok"] * 7


def test_it_names_the_database_and_says_whether_a_service_answers(tmp_path: Path) -> None:
    """That no service answers is a failure only with --url."""
    url, source = served(tmp_path)
    nobody = f"http://127.0.0.1:{free_port()}"
    done = status(tmp_path, source, "--url", nobody)
    assert done.returncode == 2
    assert f"ok       Database: {url}\n" in done.stdout
    assert f"failure  Service: no service answers at {nobody} (connection refused)." in done.stdout
    with serving(tmp_path, "--config-file", source) as service:
        done = status(tmp_path, source, "--url", service.url)
        assert done.returncode == 0
        assert f"ok       Service: the service at {service.url} is ready.\n" in done.stdout
        (tmp_path / "berth.db").rename(tmp_path / "away.db")
        wait_until(lambda: Client.at(service.url).get("/readyz").status == 503, "it to see that")
        assert service_check(service.url, is_expected=True) == (
            "Service",
            Code.FAILURE,
            f"the service at {service.url} is not ready: the database's file was removed or "
            f"replaced.",
        )
    assert service_check(nobody, is_expected=False).code is Code.SUCCESS


@pytest.mark.parametrize(
    ("tls", "scheme"), [("", "http"), ("tls_cert = cert.pem\ntls_key = key.pem\n", "https")]
)
def test_without_a_url_it_asks_where_the_service_usually_is(
    tmp_path: Path, tls: str, scheme: str
) -> None:
    """As the configuration says: with TLS where `berth serve` has a certificate."""
    _, source = served(tmp_path)
    with Path(source).open("a") as file:
        file.write(f"[berth]\n{tls}")
    done = status(tmp_path, source)
    assert f" at {scheme}://127.0.0.1:8778 " in done.stdout


def test_a_service_is_asked_without_a_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The probe ignores the proxies of the environment."""
    _, source = served(tmp_path)
    with serving(tmp_path, "--config-file", source) as service:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
        monkeypatch.delenv("no_proxy", raising=False)
        assert service_check(service.url, is_expected=True).code is Code.SUCCESS


def test_what_answers_may_be_something_else(tmp_path: Path) -> None:
    """A 200 from another program does not mean that berth can serve."""
    _, source = served(tmp_path)
    with serving(tmp_path, "--config-file", source) as service:
        found = service_check(f"{service.url}/nothing", is_expected=True)
    assert found.code is Code.FAILURE
    assert "another program answers" in str(found.details)


def test_a_rule_that_does_not_exist_is_a_warning(tmp_path: Path) -> None:
    """The rule would have no effect."""
    _, source = served(tmp_path)
    (tmp_path / "policy.yaml").write_text('"placement:trait:list": "role:nobody"\n')
    done = status(tmp_path, source)
    assert done.returncode == 1
    assert (
        "warning  Policy Rules: the policy files set unknown rules: placement:trait:list"
        in done.stdout
    )


def test_a_warning_and_what_to_do_about_it(tmp_path: Path) -> None:
    """Exit code 1, and the named command resolves it."""
    url, source = served(tmp_path)
    run(
        url,
        f"INSERT INTO resource_providers VALUES (NULL, NULL, 1, '{UUID(int=1)}', 'n', 0, 1, NULL)",
        "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class_id, used) "
        f"VALUES (1, '{UUID(int=2)}', 0, 1)",
        "INSERT INTO inventories (resource_provider_id, resource_class_id, total, reserved, "
        "min_unit, max_unit, step_size, allocation_ratio) VALUES (1, 0, 8, 0, 1, 8, 1, 1)",
    )
    done = status(tmp_path, source, "--json")
    assert done.returncode == 1
    warned = [one for one in json.loads(done.stdout) if one["result"] == "warning"]
    assert [one["check"] for one in warned] == ["Incomplete Consumers", "Damaged Rows"]
    assert "berth db check --repair" in warned[0]["details"]
    run_berth(tmp_path, "db", "check", "--repair", "--config-file", source)
    assert status(tmp_path, source).returncode == 0


def test_a_schema_that_cannot_be_served_is_a_failure(tmp_path: Path) -> None:
    """Exit code 2, and the command to run; further checks are skipped."""
    url, source = served(tmp_path)
    run(url, "UPDATE berth_alembic_version SET version_num = '0001'")
    done = status(tmp_path, source)
    assert done.returncode == 2
    assert "\nfailure  Database Schema: " in done.stdout
    assert "run `berth db upgrade`" in done.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no database"),
        ("[api]\nauth_strategy = nonsense\n", "nonsense"),
        ("[oslo_policy]\npolicy_file = wrong.yaml\n", "policy files"),
    ],
)
def test_what_cannot_be_checked(tmp_path: Path, text: str, said: str) -> None:
    """Exit code 255, and one line."""
    (tmp_path / "wrong.yaml").write_text("- not\n- a mapping\n")
    url = f"[placement_database]\nconnection = sqlite:///{tmp_path}/none.db\n"
    done = status(tmp_path, configuration(tmp_path, text + url))
    assert (done.returncode, done.stdout) == (255, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_configuration_is_shown_without_its_secrets(tmp_path: Path) -> None:
    """Each value with its file or variable; options without effect are reported."""
    source = configuration(
        tmp_path,
        "[api]\nauth_strategy = keystone\nauth_stratgy = noauth2\n"
        "[placement_database]\nconnection = postgresql://berth:geheim@db/placement\n"
        "connection_parameters = sslpassword=geheim\n"
        "[keystone_authtoken]\nauth_type = password\npassword = geheim://1\nusername = placement\n",
    )
    done = run_berth(
        tmp_path,
        *("config", "show", "--set", "--json", "--config-file", source),
        variables={"OS_PLACEMENT__MAX_ALLOCATION_CANDIDATES": "7"},
    )
    assert done.returncode == 0
    assert "geheim" not in done.stdout + done.stderr
    shown = {(one["group"], one["name"]): one for one in json.loads(done.stdout)}
    assert {name: one["value"] for name, one in shown.items()} == {
        ("api", "auth_strategy"): "keystone",
        ("keystone_authtoken", "auth_type"): "password",
        ("keystone_authtoken", "password"): "***",
        ("keystone_authtoken", "username"): "placement",
        ("placement", "max_allocation_candidates"): "7",
        ("placement_database", "connection"): "postgresql://berth:***@db/placement",
        ("placement_database", "connection_parameters"): "***",
    }
    by_environment = shown.pop(("placement", "max_allocation_candidates"))
    assert by_environment["source"] == "OS_PLACEMENT__MAX_ALLOCATION_CANDIDATES"
    assert {one["source"] for one in shown.values()} == {source}
    assert done.stderr == (
        f"berth: unknown option [api]auth_stratgy in {source}; did you mean auth_strategy?\n"
    )


def test_an_option_without_effect_is_named_with_the_file_that_sets_it(
    tmp_path: Path, in_process: InProcess
) -> None:
    """Once, and not for the files that are read later."""
    first, second = tmp_path / "first.conf", tmp_path / "second.conf"
    first.write_text("[api]\nauth_stratgy = noauth2\n")
    second.write_text("[api]\nauth_strategy = noauth2\n")
    done = in_process("config", "show", "--config-file", str(first), "--config-file", str(second))
    assert done.stderr == (
        f"berth: unknown option [api]auth_stratgy in {first}; did you mean auth_strategy?\n"
    )


def test_keystones_options_without_keystone_are_named(
    tmp_path: Path, in_process: InProcess
) -> None:
    """Nothing reads them, and their libraries are not imported to show them."""
    source = tmp_path / "placement.conf"
    source.write_text("[api]\nauth_strategy = token\n[keystone_authtoken]\nauth_url = http://x\n")
    done = in_process("config", "show", "--config-file", str(source))
    assert "[keystone_authtoken]" not in done.stdout
    assert done.stderr == (
        f"berth: [keystone_authtoken] in {source} has no effect: [api]auth_strategy is not "
        f"keystone\n"
    )


def test_the_whole_configuration_reads_like_a_file(tmp_path: Path) -> None:
    """With defaults, group by group."""
    done = run_berth(tmp_path, "config", "show")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.partition("#")[0].rstrip() for line in done.stdout.splitlines()]
    assert lines[lines.index("[workarounds]") + 1] == "optimize_for_wide_provider_trees = False"
    assert "[cors]" in lines


@pytest.mark.parametrize(
    ("strategy", "file", "text", "mode", "result", "details"),
    [
        ("http_basic", "htpasswd", f"alice:{hashed('secret')}::admin\n", 0o600, "ok", None),
        ("http_basic", "htpasswd", "# none\n", 0o600, "warning", "no users yet.*`berth user add`"),
        ("http_basic", "htpasswd", f"alice:{hashed('x')}\n", 0o644, "warning", "chmod o= "),
        ("http_basic", "htpasswd", "alice\n", 0o600, "failure", "htpasswd, line 1: "),
        (
            "http_basic",
            "htpasswd",
            None,
            0,
            "failure",
            "no file .*: create it with `berth user add`",
        ),
        ("token", "tokens", "nonsense\n", 0o600, "failure", "tokens, line 1: not a token"),
        ("token", "tokens", "", 0o600, "warning", "no users yet: run `berth token create`"),
    ],
)
def test_the_file_of_users_or_tokens_is_looked_at(
    tmp_path: Path,
    in_process: InProcess,
    strategy: str,
    file: str,
    text: str | None,
    mode: int,
    result: str,
    details: str | None,
) -> None:
    """A file that would stop the service from starting, or that has no users, is reported."""
    source = configuration(
        tmp_path,
        f"[api]\nauth_strategy = {strategy}\n"
        f"[placement_database]\nconnection = sqlite:///{tmp_path}/berth.db\n",
    )
    assert in_process("db", "upgrade", "--config-file", source).returncode == 0
    if text is not None:
        (tmp_path / file).write_text(text)
        (tmp_path / file).chmod(mode)
    done = in_process("status", "--json", "--config-file", source)
    (found,) = (one for one in json.loads(done.stdout) if one["check"] == "Credentials File")
    assert found["result"] == result
    assert done.returncode == {"ok": 0, "warning": 1, "failure": 2}[result]
    assert re.search(details, found["details"]) if details else found["details"] is None


def test_a_service_does_not_start_without_its_file(tmp_path: Path) -> None:
    """One line names the command that creates it; berth creates no database."""
    source = configuration(
        tmp_path,
        "[api]\nauth_strategy = http_basic\n"
        f"[placement_database]\nconnection = sqlite:///{tmp_path}/berth.db\n",
    )
    done = run_berth(tmp_path, "serve", "--config-file", source)
    said = f"there is no file {tmp_path}/htpasswd yet: create it with `berth user add`"
    assert_fails(done, ExitCode.CONFIGURATION, said)
    assert not (tmp_path / "berth.db").exists()

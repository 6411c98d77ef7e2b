# SPDX-License-Identifier: Apache-2.0
"""A wrong configuration: one line that says what is wrong, an exit code, and no service."""

from __future__ import annotations

from pathlib import Path

import pytest

from berth import config, deploy
from berth.cli.failure import ExitCode
from berth.config import ConfigurationError
from tests.cli.test_commands import assert_fails
from tests.e2e.serving import run_berth

GOOD = "[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = sqlite:///berth.db\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[api]\nauth_strategy = kerberos\n", "keystone, noauth2, http_basic, token"),
        (
            "[placement]\nallocation_candidates_generation_strategy = sideways\n",
            "'sideways' is not one of depth-first, breadth-first",
        ),
        (
            "[placement]\nallocation_conflict_retry_count = many\n",
            "[placement]allocation_conflict_retry_count in {path}: 'many' is not an integer",
        ),
        ("[placement]\nrandomize_allocation_candidates = perhaps\n", "'perhaps'"),
        ("[berth]\nreads_running_max = 0\n", "reads_running_max in {path}: the minimum is 1"),
        ("[berth]\nsearches_running_max = 0\n", "searches_running_max"),
        ("[berth]\nbody_mib_max = 1025\n", "body_mib_max"),
        ("[berth]\nclient_seconds_max = nan\n", "client_seconds_max: nan is not a finite number"),
        ("[berth]\npin_workers = $all\n", "write $$ for a dollar sign"),
        ("[berth]\ncandidates_time_budget = inf\n", "candidates_time_budget"),
        ("[placement_database]\nconnection_debug = 101\n", "connection_debug"),
        ("[placement_database]\nmax_pool_size = all\n", "max_pool_size"),
        ("[cors]\nallowed_origin = http://any\nmax_age = long\n", "max_age"),
        ("[cors]\nallow_credentials = maybe\n", "allow_credentials"),
        ("[oslo_middleware]\nenable_proxy_headers_parsing = 7\n", "enable_proxy_headers_parsing"),
        ("[oslo_policy]\nenforce_new_defaults = somewhat\n", "enforce_new_defaults"),
        ("[DEFAULT]\nlog_rotation_type = sometimes\n", "log_rotation_type"),
        ("[DEFAULT]\nmax_logfile_count = few\n", "max_logfile_count"),
        ("[DEFAULT]\ndebug = loud\n", "loud"),
        ("[api\n", "Invalid section"),
        ("no assignment\n", "cannot parse {path}:5: No ':' or '=' found"),
        ("# \udcff\n", "{path} is not UTF-8 text"),
    ],
)
def test_a_wrong_value_is_reported_before_anything_starts(
    tmp_path: Path, text: str, says: str
) -> None:
    """Whichever library reads the option: on one line, with the name or the place."""
    path = tmp_path / "placement.conf"
    path.write_bytes((GOOD + text).encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigurationError) as refused:
        config.read_settings(config.load([str(path)]))
    assert says.format(path=path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_wrong_variable_of_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a file would be."""
    monkeypatch.setenv("OS_BERTH__READS_RUNNING_MAX", "many")
    with pytest.raises(ConfigurationError) as refused:
        config.read_settings(config.load(embedded=True))
    expected = "[berth]reads_running_max in OS_BERTH__READS_RUNNING_MAX: 'many' is not an integer"
    assert str(refused.value) == expected


def test_config_show_reports_a_wrong_value(tmp_path: Path) -> None:
    """It used to report a bug in berth."""
    path = tmp_path / "placement.conf"
    path.write_text(GOOD + "[berth]\nreads_running_max = many\n")
    done = run_berth(tmp_path, "config", "show", "--config-file", str(path))
    assert_fails(done, ExitCode.CONFIGURATION, "'many' is not an integer")


def test_a_directory_in_place_of_a_file_is_named(tmp_path: Path) -> None:
    """In one sentence, without an error number."""
    with pytest.raises(ConfigurationError, match=f"^cannot read {tmp_path}: is a directory$"):
        config.load([str(tmp_path)])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[cors]\nmax_age = long\n", "max_age"),
        ("[berth]\nclient_seconds_max = nan\n", "client_seconds_max"),
        ("[DEFAULT]\nuse_syslog = True\nsyslog_log_facility = LOG_NOWHERE\n", "LOG_LOCAL7"),
        ("# \udcff\n", "not UTF-8"),
    ],
)
def test_serve_exits_with_the_message(tmp_path: Path, text: str, says: str) -> None:
    """These used to reach a worker, or were reported as bugs in berth."""
    path = tmp_path / "placement.conf"
    path.write_bytes((GOOD + text).encode("utf-8", "surrogateescape"))
    done = run_berth(tmp_path, "serve", "--bind", "127.0.0.1:0", "--config-file", str(path))
    assert_fails(done, ExitCode.CONFIGURATION, says)
    assert not (tmp_path / "berth.db").exists()


@pytest.mark.parametrize("name", ["policy.yaml", "policy.d/rules.yaml"])
def test_an_unreadable_policy_file_is_not_ignored(tmp_path: Path, name: str) -> None:
    """oslo.policy would use the defaults, and so admit callers whom the file should refuse."""
    (tmp_path / "policy.d").mkdir()
    if name == "policy.yaml":
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).symlink_to("gone.yaml")
    path = tmp_path / "placement.conf"
    path.write_text(GOOD)
    with pytest.raises(ConfigurationError, match="policy") as refused:
        deploy.check_policy(config.load([str(path)]))
    assert name in str(refused.value)

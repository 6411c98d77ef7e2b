# SPDX-License-Identifier: Apache-2.0
"""A wrong configuration: one line that says what is wrong, a code, and nobody is served."""

from __future__ import annotations

from pathlib import Path

import pytest

from berth import config, deploy
from berth.cli.exit_codes import ExitCode
from berth.config import ConfigurationError
from tests.cli.test_commands import assert_fails
from tests.e2e.serving import run_berth

GOOD = "[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = sqlite:///berth.db\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[api]\nauth_strategy = kerberos\n", "auth_strategy"),
        (
            "[placement]\nallocation_candidates_generation_strategy = sideways\n",
            "[depth-first, breadth-first], but found 'sideways'",
        ),
        (
            "[placement]\nallocation_conflict_retry_count = many\n",
            "allocation_conflict_retry_count",
        ),
        ("[placement]\nrandomize_allocation_candidates = perhaps\n", "'perhaps'"),
        ("[berth]\nreads_running_max = 0\n", "reads_running_max"),
        ("[berth]\nsearches_running_max = 0\n", "searches_running_max"),
        ("[berth]\nbody_mib_max = 1025\n", "body_mib_max"),
        ("[berth]\nclient_seconds_max = nan\n", "client_seconds_max"),
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
        ("no assignment\n", "placement.conf"),
        ("# \udcff\n", "not UTF-8"),
    ],
)
def test_a_value_that_cannot_be_is_told_before_anything_begins(
    tmp_path: Path, text: str, says: str
) -> None:
    """Of whichever library it is the option: on one line, with the name or the place."""
    path = tmp_path / "placement.conf"
    path.write_bytes((GOOD + text).encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigurationError) as refused:
        config.read_settings(config.load([str(path)]))
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[cors]\nmax_age = long\n", "max_age"),
        ("[berth]\nclient_seconds_max = nan\n", "client_seconds_max"),
        ("[DEFAULT]\nuse_syslog = True\nsyslog_log_facility = LOG_NOWHERE\n", "LOG_LOCAL7"),
        ("# \udcff\n", "not UTF-8"),
    ],
)
def test_the_command_ends_with_it(tmp_path: Path, text: str, says: str) -> None:
    """These used to reach a worker, or were taken for mistakes of berth's own."""
    path = tmp_path / "placement.conf"
    path.write_bytes((GOOD + text).encode("utf-8", "surrogateescape"))
    done = run_berth(tmp_path, "serve", "--bind", "127.0.0.1:0", "--config-file", str(path))
    assert_fails(done, ExitCode.CONFIGURATION, says)
    assert not (tmp_path / "berth.db").exists()


@pytest.mark.parametrize("name", ["policy.yaml", "policy.d/rules.yaml"])
def test_a_policy_file_that_cannot_be_read_is_not_passed_over(tmp_path: Path, name: str) -> None:
    """oslo.policy goes on with the defaults, and so lets in whom the file was to keep out."""
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

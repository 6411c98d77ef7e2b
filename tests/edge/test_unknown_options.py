# SPDX-License-Identifier: Apache-2.0
"""Options and sections that are set and that nothing reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from berth import config, deploy
from berth.config import ConfigurationError
from berth.edge.unknown_options import unknown_options, without_keystone

BASE = "[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = sqlite:///berth.db\n"


def found(tmp_path: Path, text: str = "", **environment: str) -> list[str]:
    """What is said about a configuration, without the path of its file."""
    path = tmp_path / "placement.conf"
    path.write_text(BASE + text)
    conf = config.load([str(path)])
    return [said.replace(str(path), "FILE") for said in unknown_options(conf, environment)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[berth]\nwatcher_max = 3\n",
            "unknown option [berth]watcher_max in FILE; did you mean watchers_max?",
        ),
        (
            "[placement_databas]\nconnection = x\n",
            "unknown section [placement_databas] in FILE; did you mean [placement_database]?",
        ),
        (
            "[placement]\nwatchers-max = 3\n",
            "unknown option [placement]watchers-max in FILE; did you mean [berth]watchers_max?",
        ),
        ("[elsewhere]\nx = 1\n", "unknown section [elsewhere] in FILE"),
        ("[DEFAULT]\nqqqq = 1\n", "unknown option [DEFAULT]qqqq in FILE"),
    ],
)
def test_what_nothing_reads_is_said_with_the_nearest_name(
    tmp_path: Path, text: str, said: str
) -> None:
    """A misspelled option would silently keep its default."""
    assert found(tmp_path, text) == [said]


def test_files_in_directories_are_checked_too(tmp_path: Path) -> None:
    """Those of `--config-dir`."""
    (tmp_path / "placement.conf").write_text(BASE)
    more = tmp_path / "more"
    more.mkdir()
    (more / "a.conf").write_text("[berth]\nwatcher_max = 3\n")
    conf = config.load([str(tmp_path / "placement.conf")], [str(more)])
    (said,) = unknown_options(conf, {})
    assert said.startswith(f"unknown option [berth]watcher_max in {more}/a.conf;")


@pytest.mark.parametrize("name", ["~/more", "a,b"])
def test_a_directory_that_oslo_config_names_otherwise_is_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Its files are read all the same, and the service starts."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    Path("placement.conf").write_text(BASE)
    folder = Path(name).expanduser()
    folder.mkdir()
    (folder / "a.conf").write_text("[berth]\nwatchers_max = 3\n")
    conf = config.load(["placement.conf"], [name])
    assert conf.berth.watchers_max == 3
    assert [*unknown_options(conf, {}), *without_keystone(conf)] == []


def test_variables_are_checked_too(tmp_path: Path) -> None:
    """If they have the form that oslo.config reads, and look like sections of this file."""
    assert found(
        tmp_path,
        OS_BERTH__WATCHER_MAX="3",
        OS_PLACEMENT_DATABAS__CONNECTION="x",
        OS_DEFAULT__DEBUG="true",
        OS_BERTH__WATCHERS_MAX="3",
        OS_TOKEN="x",
        OS_OTHER__THING="x",
        HOME="/",
    ) == [
        "unknown option [berth]watcher_max in the variable OS_BERTH__WATCHER_MAX; did you mean "
        "watchers_max?",
        "unknown section [placement_databas] in the variable OS_PLACEMENT_DATABAS__CONNECTION; "
        "did you mean [placement_database]?",
    ]


def test_a_file_of_openstack_placement_has_nothing_unknown(tmp_path: Path) -> None:
    """With the options of its libraries, deprecated names, and sections that berth ignores."""
    assert (
        found(
            tmp_path,
            """
[DEFAULT]
auth_strategy = noauth2
debug = true
log-file = placement.log
state_path = /var/lib/placement
bindir = /usr/bin
[placement]
randomize_allocation_candidates = true
policy_file = placement-policy.yaml
[placement_database]
connection_debug = 3
idle_timeout = 30
max_retries = -1
[workarounds]
optimize_for_wide_provider_trees = true
[oslo_policy]
enforce_scope = true
policy_dirs = policy.d
[oslo_middleware]
enable_proxy_headers_parsing = true
max_request_body_size = 114688
[cors]
allowed_origin = https://horizon.example.org
[healthcheck]
detailed = false
[keystone_authtoken]
www_authenticate_uri = https://keystone.example.org
auth_type = password
auth_url = https://k
username = placement
project_name = service
user_domain_name = Default
password = x
memcached_servers = a:11211
[oslo_messaging_rabbit]
ssl = true
[oslo_concurrency]
lock_path = /tmp
[profiler]
enabled = false
""",
        )
        == []
    )


@pytest.mark.parametrize(
    ("option", "create"), [("policy_file", Path.touch), ("policy_dirs", Path.mkdir)]
)
def test_what_the_policy_options_name_must_exist(
    tmp_path: Path, option: str, create: Callable[[Path], None]
) -> None:
    """Its rules would not apply, and nobody would notice; the default names need not exist."""
    path = tmp_path / "placement.conf"
    path.write_text(BASE)
    deploy.check_policy(config.load([str(path)]))
    path.write_text(f"{BASE}[oslo_policy]\n{option} = other\n")
    with pytest.raises(ConfigurationError, match=rf"{option} names other, which does not exist"):
        deploy.check_policy(config.load([str(path)]))
    create(tmp_path / "other")
    deploy.check_policy(config.load([str(path)]))

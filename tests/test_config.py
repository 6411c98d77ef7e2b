# SPDX-License-Identifier: Apache-2.0
"""A placement.conf means what it always meant (spec/operations.md, section 3)."""

from __future__ import annotations

from pathlib import Path

import pytest
from oslo_config import cfg
from oslo_middleware import cors

import berth
from berth import config
from berth.config import ConfigurationError, options

#: Every option that berth itself reads, with its documented default.
DOCUMENTED = {
    ("DEFAULT", "tempdir"): None,
    ("DEFAULT", "log_options"): True,
    ("api", "auth_strategy"): "keystone",
    ("placement", "incomplete_consumer_project_id"): "00000000-0000-0000-0000-000000000000",
    ("placement", "incomplete_consumer_user_id"): "00000000-0000-0000-0000-000000000000",
    ("placement", "allocation_conflict_retry_count"): 10,
    ("placement", "randomize_allocation_candidates"): False,
    ("placement", "max_allocation_candidates"): -1,
    ("placement", "allocation_candidates_generation_strategy"): "depth-first",
    ("placement_database", "connection"): None,
    ("placement_database", "connection_parameters"): "",
    ("placement_database", "slave_connection"): None,
    ("placement_database", "sync_on_startup"): False,
    ("placement_database", "sqlite_synchronous"): True,
    ("placement_database", "mysql_sql_mode"): "TRADITIONAL",
    ("placement_database", "connection_recycle_time"): 3600,
    ("placement_database", "max_pool_size"): None,
    ("placement_database", "max_overflow"): None,
    ("placement_database", "pool_timeout"): None,
    ("placement_database", "max_retries"): 10,
    ("placement_database", "retry_interval"): 10,
    ("placement_database", "connection_debug"): 0,
    ("placement_database", "connection_trace"): False,
    ("workarounds", "optimize_for_wide_provider_trees"): False,
    ("berth", "pin_workers"): True,
    ("berth", "reads_running_max"): 16,
    ("berth", "writes_running_max"): 64,
    ("berth", "searches_running_max"): 2,
    ("berth", "requests_waiting_max"): 256,
    ("berth", "wait_seconds_max"): 5.0,
    ("berth", "body_mib_max"): 8,
    ("berth", "uri_kib_max"): 32,
    ("berth", "bodies_waiting_max"): 512,
    ("berth", "client_seconds_max"): 30.0,
    ("berth", "candidates_time_budget"): 5.0,
    ("berth", "candidates_answer_mib_max"): 256,
    ("berth", "explain_empty_answers"): True,
    ("oslo_policy", "policy_file"): "policy.yaml",
    ("oslo_policy", "policy_dirs"): ["policy.d"],
    ("oslo_policy", "policy_default_rule"): "default",
    ("oslo_policy", "enforce_new_defaults"): True,
    ("oslo_policy", "enforce_scope"): True,
    ("oslo_policy", "remote_timeout"): 60,
    ("oslo_middleware", "enable_proxy_headers_parsing"): False,
    ("cors", "allowed_origin"): None,
    ("cors", "allow_credentials"): True,
    ("cors", "expose_headers"): [
        "X-Auth-Token",
        "X-Openstack-Request-Id",
        "X-Subject-Token",
        "X-Service-Token",
        "OpenStack-API-Version",
    ],
    ("cors", "max_age"): 3600,
    ("cors", "allow_methods"): ["GET", "PUT", "POST", "DELETE", "PATCH"],
    ("cors", "allow_headers"): [
        "X-Auth-Token",
        "X-Openstack-Request-Id",
        "X-Identity-Status",
        "X-Roles",
        "X-Service-Catalog",
        "X-User-Id",
        "X-Tenant-Id",
        "OpenStack-API-Version",
    ],
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home directory, and an environment that configures nothing."""
    for name in ("SNAP", "SNAP_COMMON", "XDG_DATA_HOME", "OS_PLACEMENT_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def write(path: Path, text: str) -> str:
    """Write a file, its folders included; its path as text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def database(name: str) -> str:
    """A configuration that names a database."""
    return f"[placement_database]\nconnection = sqlite:////srv/{name}.db\n"


def test_the_options_have_their_documented_defaults(home: Path) -> None:
    """Groups, names and defaults are those of the specification."""
    conf = config.load()
    found = {
        (group, name): conf[name] if group == "DEFAULT" else conf[group][name]
        for group, name in DOCUMENTED
    }
    assert found == DOCUMENTED


def test_the_state_path_is_where_berth_is_installed(home: Path) -> None:
    """`state_path` follows `pybasedir`."""
    conf = config.load()
    assert conf.state_path == conf.pybasedir == str(Path(berth.__file__).parent.parent)


def test_routes_stay_quiet_in_the_log(home: Path) -> None:
    """The original's addition to default_log_levels is kept, beside those of oslo.log."""
    levels = config.load().default_log_levels
    assert "routes=INFO" in levels
    assert "sqlalchemy=WARN" in levels


def test_a_file_of_the_original_is_read_as_it_stands(home: Path) -> None:
    """Values are typed; unknown groups and options are ignored, old spellings understood."""
    path = write(
        home / "any.conf",
        """
        [DEFAULT]
        auth_strategy = noauth2
        debug = true
        long_gone = yes
        [placement]
        randomize_allocation_candidates = True
        max_allocation_candidates = 5000
        allocation_conflict_retry_count = 3
        allocation_candidates_generation_strategy = breadth-first
        incomplete_consumer_project_id = nobody
        [placement_database]
        connection = sqlite:////srv/placement.db
        connection_parameters = a=1&b=2
        sqlite_synchronous = false
        max_pool_size = 7
        [workarounds]
        optimize_for_wide_provider_trees = on
        [oslo_policy]
        enforce_scope = false
        enforce_new_defaults = false
        [oslo_middleware]
        enable_proxy_headers_parsing = 1
        [keystone_authtoken]
        auth_url = http://keystone:5000
        [made_up]
        x = y
        """.replace("        ", ""),
    )
    settings = config.read_settings(config.load([path]))
    assert settings.auth_strategy == "noauth2"
    assert settings.randomize_allocation_candidates is True
    assert settings.max_allocation_candidates == 5000
    assert settings.allocation_conflict_retry_count == 3
    assert settings.allocation_candidates_generation_strategy == "breadth-first"
    assert settings.incomplete_consumer_project_id == "nobody"
    assert settings.incomplete_consumer_user_id == options.NOBODY
    assert settings.database.url == "sqlite:////srv/placement.db?a=1&b=2"
    assert settings.database.sqlite_synchronous is False
    assert settings.database.max_pool_size == 7
    assert settings.enable_proxy_headers_parsing is True
    assert settings.conf.oslo_policy.enforce_new_defaults is False


def test_a_connection_with_parameters_may_have_more(home: Path) -> None:
    """`connection_parameters` come behind those of the URL itself."""
    connection = "connection = postgresql://db/x?application_name=a\n"
    parameters = "connection_parameters = sslmode=require\n"
    path = write(home / "any.conf", f"[placement_database]\n{connection}{parameters}")
    settings = config.read_settings(config.load([path]))
    assert settings.database.url == "postgresql://db/x?application_name=a&sslmode=require"


def test_later_files_and_directories_win(home: Path) -> None:
    """`--config-file` is repeatable, `--config-dir` is read after the files, in sorted order."""
    first = write(home / "1.conf", database("first") + "[api]\nauth_strategy = noauth2\n")
    second = write(home / "2.conf", database("second"))
    write(home / "conf.d" / "b.conf", "[placement]\nmax_allocation_candidates = 2\n")
    write(home / "conf.d" / "a.conf", "[placement]\nmax_allocation_candidates = 1\n")
    settings = config.read_settings(config.load([first, second], [str(home / "conf.d")]))
    assert settings.database.url == "sqlite:////srv/second.db"
    assert settings.auth_strategy == "noauth2"
    assert settings.max_allocation_candidates == 2


@pytest.mark.parametrize(
    "place", [".placement/placement.conf", "placement.conf", "snap/etc/placement/placement.conf"]
)
def test_a_file_in_the_usual_places_is_found(
    home: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """With no `--config-file`, the home directory is searched, and `$SNAP_COMMON`."""
    monkeypatch.setenv("SNAP_COMMON", str(home / "snap"))
    write(home / place, database("found"))
    assert config.read_settings(config.load()).database.url == "sqlite:////srv/found.db"


def test_the_topmost_place_wins(home: Path) -> None:
    """`~/.placement/` comes before `~/`, and only the first file found is read."""
    write(home / ".placement" / "placement.conf", database("inner"))
    write(home / "placement.conf", database("outer") + "[api]\nauth_strategy = noauth2\n")
    settings = config.read_settings(config.load())
    assert settings.database.url == "sqlite:////srv/inner.db"
    assert settings.auth_strategy == "keystone"


def test_a_directory_of_fragments_in_the_usual_places_overrides(home: Path) -> None:
    """`placement.conf.d/*.conf` is read after placement.conf."""
    write(home / ".placement" / "placement.conf", database("file"))
    write(home / ".placement" / "placement.conf.d" / "x.conf", database("fragment"))
    assert config.read_settings(config.load()).database.url == "sqlite:////srv/fragment.db"


def test_the_environment_beats_files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`OS_<GROUP>__<OPTION>` wins over every file."""
    path = write(home / "any.conf", database("file"))
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", "sqlite:////srv/environment.db")
    monkeypatch.setenv("OS_DEFAULT__DEBUG", "true")
    conf = config.load([path])
    assert config.read_settings(conf).database.url == "sqlite:////srv/environment.db"
    assert conf.debug is True


def test_the_environment_alone_is_a_configuration(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database from the environment brings the documented defaults, not the embedded ones."""
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", "sqlite:////srv/environment.db")
    settings = config.read_settings(config.load(embedded=True))
    assert settings.database.url == "sqlite:////srv/environment.db"
    assert settings.auth_strategy == "keystone"


def test_a_directory_alone_is_a_configuration(home: Path) -> None:
    """As a file is: what it lacks is a mistake, and no reason to let everybody in."""
    write(home / "own.conf.d" / "a.conf", "[placement]\nrandomize_allocation_candidates = true\n")
    conf = config.load(config_dirs=[str(home / "own.conf.d")], embedded=True)
    assert conf.api.auth_strategy == "keystone"
    with pytest.raises(ConfigurationError, match="no database is configured: set"):
        config.read_settings(conf)


def test_without_any_configuration_the_database_is_this_users_own(home: Path) -> None:
    """Nothing configured: an SQLite file under the XDG data directory, and noauth2."""
    settings = config.read_settings(config.load(embedded=True))
    assert settings.database.url == f"sqlite:///{home}/.local/share/berth/berth.db"
    assert settings.auth_strategy == "noauth2"


@pytest.mark.parametrize(
    ("xdg", "expected"),
    [
        ("/data", "/data/berth/berth.db"),
        ("", "{home}/.local/share/berth/berth.db"),
        ("relative", "{home}/.local/share/berth/berth.db"),
    ],
)
def test_the_embedded_database_follows_xdg(home: Path, xdg: str, expected: str) -> None:
    """XDG_DATA_HOME is honoured when absolute, as its specification wants."""
    path = config.embedded_database_path({"XDG_DATA_HOME": xdg})
    assert str(path) == expected.format(home=home)


def test_with_a_file_the_defaults_are_the_documented_ones(home: Path) -> None:
    """A file that says nothing of the database is a mistake, not a wish for the embedded one."""
    path = write(home / "any.conf", "[api]\nauth_strategy = noauth2\n")
    with pytest.raises(ConfigurationError, match="no database is configured: set"):
        config.read_settings(config.load([path], embedded=True))


def test_files_are_looked_for_beside_the_configuration(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of users, tokens and TLS; an absolute path stays what it is."""
    text = "[api]\ntoken_file = /srv/tokens\n[berth]\ntls_cert = tls/host.crt\n"
    write(home / "etc" / "any.conf", database("any") + text)
    monkeypatch.chdir(home)
    settings = config.read_settings(config.load(["etc/any.conf"]))
    assert settings.user_file == home / "etc" / "htpasswd"
    assert settings.token_file == Path("/srv/tokens")
    assert (settings.tls_cert, settings.tls_key) == (home / "etc" / "tls" / "host.crt", None)


def test_of_several_files_the_first_says_where_others_are(home: Path) -> None:
    """A later one that only changes something may stand anywhere."""
    first = write(home / "etc" / "placement.conf", database("any"))
    later = write(home / "elsewhere" / "more.conf", "[berth]\ntls_cert = host.crt\n")
    settings = config.read_settings(config.load([first, later]))
    assert settings.user_file == home / "etc" / "htpasswd"
    assert settings.tls_cert == home / "etc" / "host.crt"


def test_without_a_file_they_are_in_the_folder_of_the_service(home: Path) -> None:
    """Where the configuration comes from the environment."""
    settings = config.read_settings(config.load(embedded=True))
    assert settings.user_file == Path("/etc/placement/htpasswd")
    assert settings.token_file == Path("/etc/placement/tokens")


def test_the_wsgi_application_reads_its_directory(home: Path) -> None:
    """OS_PLACEMENT_CONFIG_DIR replaces the search, fragments included."""
    write(home / "placement.conf", database("usual"))
    write(home / "placement.conf.d" / "x.conf", "[api]\nauth_strategy = noauth2\n")
    write(home / "etc" / "placement.conf", database("directory"))
    conf = config.load_for_wsgi({"OS_PLACEMENT_CONFIG_DIR": str(home / "etc")})
    settings = config.read_settings(conf)
    assert settings.database.url == "sqlite:////srv/directory.db"
    assert settings.auth_strategy == "keystone"


@pytest.mark.parametrize("value", ["", "  "])
def test_a_blank_directory_is_none(home: Path, value: str) -> None:
    """A blank OS_PLACEMENT_CONFIG_DIR leaves the usual places."""
    write(home / "placement.conf", database("usual"))
    conf = config.load_for_wsgi({"OS_PLACEMENT_CONFIG_DIR": value})
    assert config.read_settings(conf).database.url == "sqlite:////srv/usual.db"


def test_the_wsgi_application_has_no_embedded_defaults(home: Path) -> None:
    """Under another server berth cannot see who may connect, so a database must be named."""
    with pytest.raises(ConfigurationError, match="no database is configured"):
        config.read_settings(config.load_for_wsgi({}))


def test_what_cannot_be_read_is_named(home: Path) -> None:
    """A missing file, a missing directory, a broken file, a wrong value: one line each."""
    broken = write(home / "broken.conf", "[placement_database\nconnection = x\n")
    wrong = write(
        home / "wrong.conf", database("x") + "[placement]\nmax_allocation_candidates = many\n"
    )
    strategy = write(home / "strategy.conf", database("x") + "[api]\nauth_strategy = trust\n")
    cases: list[tuple[list[str], list[str], str]] = [
        ([str(home / "none.conf")], [], f"configuration file not found: {home}/none.conf"),
        ([], [str(home / "none.d")], f"configuration directory not found: {home}/none.d"),
        ([broken], [], "broken.conf"),
        ([wrong], [], "max_allocation_candidates"),
        ([strategy], [], "auth_strategy"),
    ]
    for files, dirs, message in cases:
        with pytest.raises(ConfigurationError, match=message) as caught:
            config.read_settings(config.load(files, dirs))
        assert "\n" not in str(caught.value)
        assert "LocationInfo" not in str(caught.value)
    with pytest.raises(ConfigurationError, match=r"etc/placement\.conf"):
        config.load_for_wsgi({"OS_PLACEMENT_CONFIG_DIR": str(home / "etc")})


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("sqlite:////srv/berth.db", "sqlite:////srv/berth.db"),
        ("mysql+pymysql://u:secret@db/placement", "mysql+pymysql://u:***@db/placement"),
        ("postgresql://u:p@ss/w:ord@db:5432/x?a=b", "postgresql://u:***@db:5432/x?a=b"),
        ("postgresql://u:p?ss@db/x", "postgresql://u:***@db/x"),
        ("mysql+pymysql://u@server:secret@db/x", "mysql+pymysql://u@server:***@db/x"),
        ("postgresql://u@db/x", "postgresql://u@db/x"),
        ("postgresql://u@db:5432/x?password=a@b", "postgresql://u@db:5432/x?password=***"),
        ("postgresql://db/x?sslpassword=a&port=1", "postgresql://db/x?sslpassword=***&port=1"),
        ("mysql://db/x?ssl_key_password=a", "mysql://db/x?ssl_key_password=***"),
        ("mysql://db/x?user=u&password=secret&b=c", "mysql://db/x?user=u&password=***&b=c"),
        ("mysql:u:secret@db/x", "***"),
    ],
)
def test_passwords_are_masked(url: str, masked: str) -> None:
    """A URL for people shows no secret."""
    assert config.mask_url(url) == masked


def test_two_configurations_do_not_touch_each_other(home: Path) -> None:
    """Registering options changes no default of the libraries' own objects."""
    conf = cfg.ConfigOpts()
    options.register_opts(conf)
    options.register_opts(conf)
    other = cfg.ConfigOpts()
    other.register_opts(cors.OPTS, group="cors")
    other([], default_config_files=[], default_config_dirs=[])
    assert other.cors.allow_headers == []

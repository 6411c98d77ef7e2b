# SPDX-License-Identifier: Apache-2.0
"""`berth serve --bind`: valid addresses, and safe ones."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from berth import config
from berth.cli.address import Address, parse_bind, reserved, split_bind
from berth.cli.failure import CommandFailed, ExitCode
from berth.cli.serve import describe, refuse_strangers, warn_of_clear_text
from berth.config import Settings
from berth.config.options import AuthStrategy


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings with noauth2."""
    path = tmp_path / "any.conf"
    path.write_text(
        "[api]\nauth_strategy = noauth2\n"
        "[placement_database]\nconnection = sqlite:////srv/berth.db\n"
    )
    return config.read_settings(config.load([str(path)]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:8778", ("127.0.0.1", 8778)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
        ("localhost", ("localhost", 8778)),
        (":9000", ("127.0.0.1", 9000)),
        ("[::1]:9000", ("::1", 9000)),
        ("[::1]", ("::1", 8778)),
    ],
)
def test_an_address_has_a_host_and_a_port(text: str, expected: tuple[str, int]) -> None:
    """Host and port are both optional."""
    assert split_bind(text) == expected


@pytest.mark.parametrize(
    "text", ["a:b", "1:2:3", "h:65536", "h:-1", "h:", "[::1", "[::1]9", "[::1]99", "h:²"]
)
def test_anything_else_is_a_mistake(text: str) -> None:
    """The message shows the expected form."""
    with pytest.raises(CommandFailed, match="is not HOST:PORT") as caught:
        split_bind(text)
    assert caught.value.code == ExitCode.USAGE


def test_an_unknown_host_is_named() -> None:
    """berth resolves names before it starts anything."""
    with pytest.raises(CommandFailed, match=r"unknown host no-such-host\.invalid") as caught:
        parse_bind("no-such-host.invalid:1")
    assert caught.value.code == ExitCode.ADDRESS


@pytest.mark.parametrize(
    ("host", "family", "strategy", "accepted"),
    [
        ("127.0.0.1", socket.AF_INET, "noauth2", True),
        ("127.8.9.1", socket.AF_INET, "noauth2", True),
        ("::1", socket.AF_INET6, "noauth2", True),
        ("0.0.0.0", socket.AF_INET, "noauth2", False),
        ("192.0.2.1", socket.AF_INET, "noauth2", False),
        ("::", socket.AF_INET6, "noauth2", False),
        ("0.0.0.0", socket.AF_INET, "keystone", True),
    ],
)
def test_only_loopback_is_served_without_authentication(
    settings: Settings,
    host: str,
    family: socket.AddressFamily,
    strategy: AuthStrategy,
    accepted: bool,
) -> None:
    """--insecure-noauth allows every address."""
    address = Address(host, 8778, family)
    settings = replace(settings, auth_strategy=strategy)
    refuse_strangers(address, settings, insecure_noauth=True)
    if accepted:
        refuse_strangers(address, settings, insecure_noauth=False)
        return
    with pytest.raises(CommandFailed, match="--insecure-noauth") as caught:
        refuse_strangers(address, settings, insecure_noauth=False)
    assert caught.value.code == ExitCode.UNSAFE


@pytest.mark.parametrize(
    ("strategy", "host", "scheme", "warned"),
    [
        ("http_basic", "192.0.2.1", "http", "passwords to http://192.0.2.1:8778 unencrypted"),
        ("token", "192.0.2.1", "http", "tokens to http://192.0.2.1:8778 unencrypted"),
        ("token", "192.0.2.1", "https", None),
        ("http_basic", "127.0.0.1", "http", None),
        ("keystone", "192.0.2.1", "http", None),
    ],
)
def test_secrets_in_the_clear_are_warned_of(
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
    strategy: AuthStrategy,
    host: str,
    scheme: Literal["http", "https"],
    warned: str | None,
) -> None:
    """A warning in one line with the alternatives, if other machines connect without TLS."""
    settings = replace(settings, auth_strategy=strategy)
    warn_of_clear_text(Address(host, 8778, socket.AF_INET, scheme), settings)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == (warned is not None)
    assert all(str(warned) in line and "--tls-cert" in line for line in said)


@pytest.mark.parametrize(
    ("strategy", "who", "how"),
    [
        ("http_basic", "http_basic: the users of {folder}/htpasswd", "curl -u USER https://"),
        ("token", "token: the tokens of {folder}/tokens", 'Bearer $TOKEN" https://'),
    ],
)
def test_what_is_said_at_start_names_the_file_and_how_to_try(
    settings: Settings, tmp_path: Path, strategy: AuthStrategy, who: str, how: str
) -> None:
    """The URL has the scheme that is served."""
    address = Address("127.0.0.1", 8778, socket.AF_INET, "https")
    said = "\n".join(describe(address, replace(settings, auth_strategy=strategy), workers=2))
    assert "serves https://127.0.0.1:8778, 2 workers" in said
    assert who.format(folder=tmp_path) in said
    assert how in said


def test_what_is_said_at_start_names_the_page_if_it_is_served(settings: Settings) -> None:
    """The address to open in a browser."""
    address = Address("127.0.0.1", 8778, socket.AF_INET, "https")
    page = "  page            https://127.0.0.1:8778/berth/ui/"
    assert page in describe(address, settings, workers=1)
    without = describe(address, replace(settings, page=False), workers=1)
    assert not any("/berth/ui/" in line for line in without)


def test_a_reserved_address_is_for_this_process_and_those_that_share_it() -> None:
    """A second service cannot bind; workers, which share the port, can."""
    with reserved(parse_bind("127.0.0.1:0")) as held:
        assert held.port != 0
        with pytest.raises(CommandFailed) as caught, reserved(held):
            pass
        assert caught.value.code == ExitCode.ADDRESS
        with socket.socket() as worker:
            worker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            worker.bind((held.host, held.port))
            worker.listen()
            socket.create_connection((held.host, held.port)).close()


def test_an_address_that_is_not_this_machines_is_refused() -> None:
    """192.0.2.0/24 is reserved for documentation."""
    with (
        pytest.raises(CommandFailed, match="cannot listen on http://192"),
        reserved(Address("192.0.2.1", 8778, socket.AF_INET)),
    ):
        pass


def test_what_is_said_at_start_warns_of_strangers(settings: Settings) -> None:
    """The banner warns in capitals of a public address without authentication."""
    said = "\n".join(describe(Address("0.0.0.0", 8778, socket.AF_INET), settings, workers=1))
    assert "http://0.0.0.0:8778, 1 worker\n" in said
    assert "FROM ANYWHERE" in said

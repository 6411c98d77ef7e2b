# SPDX-License-Identifier: Apache-2.0
"""A Keystone that cannot validate tokens, and an unusable [keystone_authtoken].

With a real Keystone: tests/e2e/test_keystone.py.
"""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from keystoneauth1 import exceptions
from keystonemiddleware.auth_token import InvalidToken

from berth import config, deploy
from berth.config import ConfigurationError, options
from berth.edge.auth.identity import KeystoneUnavailable
from berth.edge.auth.keystone_server import PAUSE_S, IdentityServer
from tests.edge.auth.gate import Clock
from tests.servers.ports import free_port

GOOD = """\
auth_type = password
auth_url = http://127.0.0.1:5000
username = placement
password = geheim
user_domain_name = Default
project_name = service
project_domain_name = Default
"""


class FakeKeystone:
    """The middleware's interface to a Keystone that fails as the test says."""

    www_authenticate_uri = "http://keystone"

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.asked = 0
        self.forgotten = 0

    def verify_token(self, token: str, allow_expired: bool = False) -> str:
        """A token's data."""
        self.asked += 1
        if self.error is not None:
            raise self.error
        return f"data of {token}"

    def invalidate(self) -> bool:
        """Forget the service's own token."""
        self.forgotten += 1
        return True


@pytest.fixture
def clock() -> Clock:
    """The test's clock."""
    return Clock()


@pytest.fixture
def keystone() -> FakeKeystone:
    """A Keystone that works."""
    return FakeKeystone()


@pytest.fixture
def server(keystone: FakeKeystone, clock: Clock) -> IdentityServer:
    """The object under test."""
    return IdentityServer(keystone, timeout_s=10, clock=clock)


@pytest.mark.parametrize(
    "error", [exceptions.ConnectTimeout("slow"), exceptions.DiscoveryFailure("none")]
)
def test_one_caller_at_a_time_tries_a_keystone_that_gives_no_answer(
    server: IdentityServer, keystone: FakeKeystone, clock: Clock, error: Exception
) -> None:
    """The others fail at once; when Keystone answers, all requests use it again."""
    keystone.error = error
    for _ in range(5):
        with pytest.raises(KeystoneUnavailable):
            server.verify_token("t")
    assert keystone.asked == 1
    clock.now += PAUSE_S
    keystone.error = None
    assert server.verify_token("t") == "data of t"
    assert server.verify_token("u") == "data of u"
    assert keystone.asked == 3


def test_who_tries_keeps_the_others_from_trying_meanwhile(
    server: IdentityServer, keystone: FakeKeystone, clock: Clock
) -> None:
    """For as long as the attempt takes."""
    keystone.error = exceptions.ConnectFailure("[Errno 111] Connection refused')")
    with pytest.raises(KeystoneUnavailable, match=r"cannot be reached \(connection refused\)"):
        server.verify_token("t")
    clock.now += PAUSE_S

    class Slow(FakeKeystone):
        def verify_token(self, token: str, allow_expired: bool = False) -> str:
            with pytest.raises(KeystoneUnavailable):
                server.verify_token("another")
            return "data"

    server._server = Slow()
    assert server.verify_token("t") == "data"


@pytest.mark.parametrize(
    ("error", "said", "forgotten"),
    [
        # One token that Keystone cannot process must not block valid ones.
        (exceptions.InternalServerError("oops"), "it answers 500", 0),
        # The service's own token contains the catalogue with the old endpoint.
        (exceptions.EndpointNotFound("none"), "no identity endpoint", 1),
    ],
)
def test_an_endpoint_that_moved_is_looked_up_anew(
    server: IdentityServer, keystone: FakeKeystone, error: Exception, said: str, forgotten: int
) -> None:
    """And an answer to one token keeps nobody else waiting."""
    keystone.error = error
    with pytest.raises(KeystoneUnavailable, match=said):
        server.verify_token("t")
    assert keystone.forgotten == forgotten
    keystone.error = None
    if not forgotten:
        assert server.verify_token("t") == "data of t"


def test_an_outage_is_one_line_and_its_end_another(
    server: IdentityServer, keystone: FakeKeystone, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """For any number of callers; an invalid token is not an outage."""
    keystone.error = exceptions.ConnectTimeout("slow")
    for _ in range(3):
        with pytest.raises(KeystoneUnavailable):
            server.verify_token("t")
        clock.now += PAUSE_S
    keystone.error = InvalidToken("none")
    server.probe()
    server.probe()
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (
            logging.ERROR,
            "Keystone cannot validate tokens: it does not answer within 10 s. "
            "Until it can, callers get 503.",
        ),
        (logging.WARNING, "Keystone validates tokens again."),
    ]


def section(folder: Path, text: str) -> config.Settings:
    """The settings of a service with this [keystone_authtoken] section."""
    path = folder / "placement.conf"
    path.write_text(
        f"[placement_database]\nconnection = sqlite:///{folder}/berth.db\n"
        f"[keystone_authtoken]\n{text}"
    )
    return config.read_settings(config.load([str(path)]))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "lacks auth_type"),
        ("auth_type = password\n", "lacks auth_url, username, password, user_domain_name:"),
        (GOOD.replace("password = geheim\n", ""), "lacks password"),
        (GOOD.replace("= password", "= pasword"), "auth_type = pasword: there is no such plugin"),
        (GOOD.replace("user_domain_name = Default\n", ""), "lacks user_domain_name:"),
        (f"{GOOD}cafile = none.pem\n", "cafile = none.pem cannot be read"),
        (f"{GOOD}http_connect_timeout = soon\n", "http_connect_timeout"),
        (f"{GOOD}memcache_security_strategy = MAC\n", "memcache_secret_key"),
        ("auth_section = elsewhere\n[elsewhere]\nauth_type = password\n", "lacks auth_url"),
        ("auth_section = elsewhere\n", "[elsewhere] lacks auth_type"),
        ("auth_type = v3applicationcredential\nauth_url = http://k\n", "credential ID"),
    ],
)
def test_a_section_that_cannot_work(tmp_path: Path, text: str, said: str) -> None:
    """One line that says what is wrong, without secrets."""
    with pytest.raises(ConfigurationError) as raised:
        deploy.check_keystone(section(tmp_path, text))
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "geheim" not in str(raised.value)


def test_the_credentials_may_stand_in_a_section_of_their_own(tmp_path: Path) -> None:
    """With `auth_section`; whether Keystone accepts them is another question."""
    nowhere = GOOD.replace(":5000", f":{free_port()}")
    settings = section(tmp_path, f"auth_section = elsewhere\n[elsewhere]\n{nowhere}")
    with pytest.raises(KeystoneUnavailable, match="cannot be reached"):
        deploy.check_keystone(settings)


def test_nobody_waits_for_ever_unless_the_file_says_so(tmp_path: Path) -> None:
    """The libraries' defaults would."""
    conf = section(tmp_path, GOOD).conf
    options.register_keystone_opts(conf)
    assert conf.keystone_authtoken.http_connect_timeout == 10
    assert conf.keystone_authtoken.http_request_max_retries == 1
    longer = section(tmp_path, f"{GOOD}http_connect_timeout = 60\n").conf
    options.register_keystone_opts(longer)
    assert longer.keystone_authtoken.http_connect_timeout == 60

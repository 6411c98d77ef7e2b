# SPDX-License-Identifier: Apache-2.0
"""`berth serve` with a certificate: only HTTPS on its address."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import requests

from berth.cli.failure import ExitCode
from berth.hosts.agent_config import ServiceAccess
from berth.hosts.fields import FilePath
from berth.hosts.transports import of_service
from tests.certificates import Certificate, make_certificate
from tests.e2e.serving import PATIENCE, Service, run_berth, serving

ADMIN = {"X-Auth-Token": "admin"}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """A certificate for this machine."""
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="module")
def service(
    certificate: Certificate, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """One service for the module; its own check, without TLS, found it ready."""
    options = ("--tls-cert", str(certificate.cert), "--tls-key", str(certificate.key))
    with serving(tmp_path_factory.mktemp("home"), *options) as service:
        yield service


def is_served(service: Service, certificate: Certificate) -> bool:
    """Whether a client that trusts the certificate gets a response."""
    answer = requests.get(
        f"{service.url}/resource_providers",
        headers=ADMIN,
        verify=str(certificate.cert),
        timeout=PATIENCE,
    )
    return answer.status_code == 200


def version_spoken(service: Service, certificate: Certificate, most: ssl.TLSVersion) -> str | None:
    """The version of TLS with a client that supports none beyond `most`."""
    context = ssl.create_default_context(cafile=str(certificate.cert))
    # For a version as old as it takes, and the ciphers of its time.
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.maximum_version = most
    with (
        socket.create_connection((service.host, service.port), PATIENCE) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as spoken,
    ):
        return spoken.version()


def test_it_serves_https(service: Service, certificate: Certificate) -> None:
    """At the address that it prints at its start; links are HTTPS too."""
    assert service.url.startswith("https://127.0.0.1:")
    assert f"{service.url}/resource_providers" in service.banner
    assert is_served(service, certificate)
    made = requests.post(
        f"{service.url}/resource_providers",
        json={"name": "host"},
        headers=ADMIN,
        verify=str(certificate.cert),
        timeout=PATIENCE,
    )
    assert made.status_code == 201
    assert made.headers["Location"].startswith(f"{service.url}/resource_providers/")


def test_an_agent_trusts_the_certificate_of_its_configuration(
    service: Service, certificate: Certificate, tmp_path: Path
) -> None:
    """No other vouches for it."""
    (tmp_path / "token").write_text("admin\n")
    access = ServiceAccess(
        url=service.url,
        token_file=FilePath(tmp_path / "token"),
        cafile=str(certificate.cert),
    )
    assert of_service(access).get("/resource_providers").status_code == 200


def test_who_does_not_know_the_certificate_is_warned(service: Service) -> None:
    """By its own client, so that no one can intercept the connection."""
    with pytest.raises(requests.exceptions.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        requests.get(service.url, timeout=PATIENCE)


@pytest.mark.filterwarnings("ignore:ssl:DeprecationWarning")
def test_old_versions_of_tls_are_refused(service: Service, certificate: Certificate) -> None:
    """1.2 is the oldest."""
    assert version_spoken(service, certificate, ssl.TLSVersion.TLSv1_3) == "TLSv1.3"
    assert version_spoken(service, certificate, ssl.TLSVersion.TLSv1_2) == "TLSv1.2"
    with pytest.raises(ssl.SSLError, match="ALERT"):
        version_spoken(service, certificate, ssl.TLSVersion.TLSv1_1)


def test_http_gets_no_answer_and_holds_nobody_up(
    service: Service, certificate: Certificate
) -> None:
    """Its connection is closed, and a silent client delays no other."""
    request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    silent = [socket.create_connection((service.host, service.port)) for _ in range(50)]
    try:
        for _ in range(50):
            with socket.create_connection((service.host, service.port), PATIENCE) as plain:
                plain.sendall(request)
                said = b""
                with suppress(ConnectionResetError):
                    while part := plain.recv(4096):
                        said += part
            assert b"HTTP" not in said
        assert is_served(service, certificate)
    finally:
        for connection in silent:
            connection.close()


def test_what_cannot_be_used_ends_the_command(certificate: Certificate, tmp_path: Path) -> None:
    """In one line, before anything is served; also for files from the configuration, which count
    less than those of the command line."""
    other = make_certificate(tmp_path, "other")
    configuration = tmp_path / "placement.conf"
    configuration.write_text(
        "[api]\nauth_strategy = noauth2\n"
        f"[placement_database]\nconnection = sqlite:///{tmp_path}/berth.db\n"
        f"[berth]\ntls_cert = {certificate.cert}\ntls_key = {other.key}\n"
    )
    serve = ("serve", "--bind", "127.0.0.1:0", "--config-file", str(configuration))
    done = run_berth(tmp_path, *serve)
    assert (done.returncode, done.stdout) == (ExitCode.CONFIGURATION, "")
    assert done.stderr == (
        f"berth: the key {other.key} does not belong to the certificate {certificate.cert}\n"
    )
    done = run_berth(tmp_path, *serve, "--tls-cert", "gone")
    assert done.stderr == "berth: cannot read the certificate gone: no such file or directory\n"
    assert not (tmp_path / "berth.db").exists()

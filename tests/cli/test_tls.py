# SPDX-License-Identifier: Apache-2.0
"""`berth serve --tls-cert --tls-key`: mistakes are reported before berth serves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from berth.cli.failure import CommandFailed, ExitCode
from berth.cli.tls import EXPIRES_SOON, read_tls
from tests.certificates import Certificate, make_certificate

NOW = datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def good(tmp_path: Path) -> Certificate:
    """A valid certificate."""
    return make_certificate(tmp_path)


def refused(cert: Path | None, key: Path | None) -> tuple[str, ExitCode]:
    """The error message, and the exit code."""
    with pytest.raises(CommandFailed) as caught:
        read_tls(cert, key)
    return str(caught.value), caught.value.code


def test_a_certificate_and_its_key_are_taken(
    good: Certificate, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a message."""
    assert read_tls(good.cert, good.key) == (good.cert, good.key)
    assert not caplog.records


def test_neither_means_no_tls() -> None:
    """berth serves HTTP."""
    assert read_tls(None, None) is None


def test_one_needs_the_other(good: Certificate) -> None:
    """berth must not serve HTTP by mistake."""
    for cert, key in ((good.cert, None), (None, good.key)):
        said, code = refused(cert, key)
        assert "--tls-cert and --tls-key" in said and code == ExitCode.USAGE


def test_a_file_that_cannot_be_read_is_named(good: Certificate, tmp_path: Path) -> None:
    """With the system's reason."""
    gone = tmp_path / "gone"
    for cert, key, what in (
        (gone, good.key, f"cannot read the certificate {gone}: no such file"),
        (good.cert, gone, f"cannot read the key {gone}: no such file"),
        (tmp_path, good.key, f"cannot read the certificate {tmp_path}: is a directory"),
    ):
        said, code = refused(cert, key)
        assert what in said and code == ExitCode.CONFIGURATION


def test_a_file_that_is_something_else_is_named(good: Certificate, tmp_path: Path) -> None:
    """Swapped files, or files that are not PEM."""
    nonsense = tmp_path / "nonsense"
    nonsense.write_text("nonsense")
    said, _ = refused(nonsense, good.key)
    assert said == f"{nonsense} contains no PEM certificate"
    said, _ = refused(good.cert, nonsense)
    assert said.startswith(f"cannot use the certificate {good.cert} and the key {nonsense}: ")
    said, _ = refused(good.key, good.cert)
    assert said == f"{good.key} contains no PEM certificate"


def test_the_key_has_to_be_that_of_the_certificate(good: Certificate, tmp_path: Path) -> None:
    """For example last year's key."""
    other = make_certificate(tmp_path, "other")
    said, code = refused(good.cert, other.key)
    assert said == f"the key {other.key} does not belong to the certificate {good.cert}"
    assert code == ExitCode.CONFIGURATION


def test_a_key_with_a_passphrase_is_refused(tmp_path: Path) -> None:
    """A service cannot ask for it."""
    locked = make_certificate(tmp_path, passphrase=b"secret")
    said, code = refused(locked.cert, locked.key)
    assert (
        f"the key {locked.key} has a passphrase: write a key without one with `openssl pkey -in"
        in said
    )
    assert code == ExitCode.CONFIGURATION


def test_a_certificate_has_its_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Expired and future certificates are refused; an imminent expiry is a warning."""
    end = NOW - timedelta(minutes=1)
    old = make_certificate(tmp_path, "old", begin=end - timedelta(days=9), end=end)
    said, code = refused(old.cert, old.key)
    assert said == f"the certificate {old.cert} expired at {end:%Y-%m-%d %H:%M} UTC: renew it"
    assert code == ExitCode.CONFIGURATION
    early = make_certificate(tmp_path, "early", begin=NOW + timedelta(days=1))
    said, _ = refused(early.cert, early.key)
    assert "check this machine's clock" in said
    end = NOW + EXPIRES_SOON - timedelta(hours=1)
    short = make_certificate(tmp_path, "short", end=end)
    assert read_tls(short.cert, short.key) is not None
    (warned,) = caplog.records
    assert warned.getMessage() == (
        f"The certificate {short.cert} expires at {end:%Y-%m-%d %H:%M} UTC"
    )


def test_a_chain_is_judged_by_its_first(good: Certificate, tmp_path: Path) -> None:
    """The first certificate is the service's own; the others are intermediate ones."""
    end = NOW - timedelta(minutes=1)
    old = make_certificate(tmp_path, "old", begin=end - timedelta(days=9), end=end)
    chain = tmp_path / "chain"
    chain.write_bytes(good.cert.read_bytes() + old.cert.read_bytes())
    assert read_tls(chain, good.key) == (chain, good.key)
    chain.write_bytes(old.cert.read_bytes() + good.cert.read_bytes())
    assert "expired" in refused(chain, old.key)[0]

# SPDX-License-Identifier: Apache-2.0
"""The certificate of `berth serve`: looked at before anybody is served with it."""

from __future__ import annotations

import logging
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

LOG = logging.getLogger(__name__)

#: A certificate that expires sooner is warned of.
EXPIRES_SOON: Final = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class Tls:
    """A certificate and its key, which fit and count."""

    cert: Path
    key: Path


def read_tls(cert: Path | None, key: Path | None) -> Tls | None:
    """Look at a certificate and its key; None where there is to be no TLS.

    Raises:
        CommandFailed: one is there without the other (USAGE), cannot be read, does not fit the
            other, has a passphrase, or does not count at this time (CONFIGURATION).
    """
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        raise CommandFailed(
            "TLS needs a certificate and its key: give both --tls-cert and --tls-key, or set both "
            "tls_cert and tls_key in [berth]",
            ExitCode.USAGE,
        )
    # Imported here: it is slow to load, and few commands need it.
    from cryptography import x509

    pem = _read(cert, "certificate")
    _read(key, "key")
    try:
        # The first is the service's own; the others lead to its authority.
        certificate = x509.load_pem_x509_certificates(pem)[0]
    except ValueError:
        _fail(f"{cert} has no certificate in PEM")
    _check_fit(cert, key)
    _check_time(cert, certificate, datetime.now(UTC))
    return Tls(cert, key)


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        _fail(f"the {what} {path} cannot be read: {(error.strerror or str(error)).lower()}")


def _check_fit(cert: Path, key: Path) -> None:
    def refuse_passphrase() -> NoReturn:
        _fail(
            f"the key {key} has a passphrase: `openssl pkey -in {key} -out FILE` writes one "
            f"without, which nobody but the service should be able to read"
        )

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(cert, key, password=refuse_passphrase)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            _fail(f"the key {key} is not that of the certificate {cert}")
        why = (error.reason or "no private key").replace("_", " ").lower()
        _fail(f"the certificate {cert} and the key {key} cannot be used: {why}")


def _check_time(cert: Path, certificate: Certificate, now: datetime) -> None:
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if end <= now:
        _fail(f"the certificate {cert} expired at {end:%Y-%m-%d %H:%M} UTC: get a new one")
    if begin > now:
        _fail(
            f"the certificate {cert} counts from {begin:%Y-%m-%d %H:%M} UTC on; is the clock right?"
        )
    if end - now < EXPIRES_SOON:
        LOG.warning("The certificate %s expires at %s UTC", cert, f"{end:%Y-%m-%d %H:%M}")


def _fail(message: str) -> NoReturn:
    raise CommandFailed(message, ExitCode.CONFIGURATION)

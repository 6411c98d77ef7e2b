# SPDX-License-Identifier: Apache-2.0
"""The certificate of `berth serve`, checked before it is used."""

from __future__ import annotations

import logging
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from berth.cli.failure import CommandFailed, Misused

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

LOG = logging.getLogger(__name__)

#: berth warns of a certificate that expires within this time.
EXPIRES_SOON: Final = timedelta(days=14)


def read_tls(cert: Path | None, key: Path | None) -> tuple[Path, Path] | None:
    """A certificate and its key, which match and are valid; None without TLS.

    Raises:
        CommandFailed: one of them is missing (USAGE), unreadable, does not match the other, has a
            passphrase, or is not valid now (CONFIGURATION).
    """
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        raise Misused(
            "TLS needs a certificate and its key: give both --tls-cert and --tls-key, or set both "
            "tls_cert and tls_key in [berth]"
        )
    # Deferred: slow to import, and few commands need it.
    from cryptography import x509

    pem = _read(cert, "certificate")
    _read(key, "key")
    try:
        # The first is the service's own; the others are intermediate certificates.
        certificate = x509.load_pem_x509_certificates(pem)[0]
    except ValueError:
        _fail(f"{cert} contains no PEM certificate")
    _check_fit(cert, key)
    _check_time(cert, certificate, datetime.now(UTC))
    return cert, key


def _read(path: Path, kind: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        _fail(f"cannot read the {kind} {path}: {(error.strerror or str(error)).lower()}")


def _check_fit(cert: Path, key: Path) -> None:
    def refuse_passphrase() -> NoReturn:
        _fail(
            f"the key {key} has a passphrase: write a key without one with `openssl pkey -in {key} "
            f"-out FILE`, and make that file readable for the service only"
        )

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(cert, key, password=refuse_passphrase)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            _fail(f"the key {key} does not belong to the certificate {cert}")
        why = (error.reason or "no private key").replace("_", " ").lower()
        _fail(f"cannot use the certificate {cert} and the key {key}: {why}")


def _check_time(cert: Path, certificate: Certificate, now: datetime) -> None:
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if end <= now:
        _fail(f"the certificate {cert} expired at {end:%Y-%m-%d %H:%M} UTC: renew it")
    if begin > now:
        _fail(
            f"the certificate {cert} is not valid before {begin:%Y-%m-%d %H:%M} UTC: check this "
            f"machine's clock"
        )
    if end - now < EXPIRES_SOON:
        LOG.warning("The certificate %s expires at %s UTC", cert, f"{end:%Y-%m-%d %H:%M}")


def _fail(message: str) -> NoReturn:
    raise CommandFailed(message)

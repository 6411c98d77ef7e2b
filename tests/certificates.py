# SPDX-License-Identifier: Apache-2.0
"""Certificates of one's own, for tests: for `localhost` and 127.0.0.1, signed by themselves."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key, in files."""

    cert: Path
    key: Path


def make_certificate(
    folder: Path,
    name: str = "tls",
    *,
    begin: datetime | None = None,
    end: datetime | None = None,
    passphrase: bytes | None = None,
) -> Certificate:
    """Make a certificate that counts from yesterday on, for a year.

    Args:
        passphrase: of its key; None: none.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    names: list[x509.GeneralName] = [
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    ]
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin or now - timedelta(days=1))
        .not_valid_after(end or now + timedelta(days=365))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    encryption: KeySerializationEncryption = (
        BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    )
    made = Certificate(folder / f"{name}.crt", folder / f"{name}.key")
    made.cert.write_bytes(certificate.public_bytes(Encoding.PEM))
    made.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
    made.key.chmod(0o600)
    return made

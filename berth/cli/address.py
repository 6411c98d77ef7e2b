# SPDX-License-Identifier: Apache-2.0
"""The address that `berth serve` listens on: parsed, resolved, and reserved."""

import ipaddress
import shlex
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from berth.cli.failure import CommandFailed, ExitCode, Misused

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8778


@dataclass(frozen=True, slots=True)
class Address:
    """A resolved address to listen on: `host` is numeric."""

    host: str
    port: int
    family: socket.AddressFamily
    scheme: Literal["http", "https"] = "http"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        return ipaddress.ip_address(self.host).is_loopback

    @property
    def url(self) -> str:
        """The URL that clients of this address use."""
        host = f"[{self.host}]" if self.family == socket.AF_INET6 else self.host
        return f"{self.scheme}://{host}:{self.port}"


def parse_bind(text: str) -> Address:
    """Parse `HOST:PORT`, `HOST`, `:PORT` or `[IPV6]:PORT`, and resolve the host.

    Raises:
        CommandFailed: it is none of these (USAGE), or the host is unknown (ADDRESS).
    """
    host, port = split_bind(text)
    try:
        family, _, _, _, resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise CommandFailed(
            f"cannot listen on {text}: unknown host {host}", ExitCode.ADDRESS
        ) from error
    return Address(str(resolved[0]), port, family)


def split_bind(text: str) -> tuple[str, int]:
    """The host and port of a `--bind`, each with its default.

    Raises:
        CommandFailed: it is not HOST:PORT (USAGE).
    """
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        colon, port = rest[:1], rest[1:]
        well_formed = bool(bracket) and colon in ("", ":")
    else:
        host, colon, port = text.partition(":")
        well_formed = ":" not in port
    number = port if colon else str(DEFAULT_PORT)
    if not well_formed or not (number.isascii() and number.isdigit()) or int(number) > 65535:
        raise Misused(
            f"--bind {shlex.quote(text)} is not HOST:PORT, as in 127.0.0.1:8778 or [::1]:8778"
        )
    return host or DEFAULT_HOST, int(number)


@contextmanager
def reserved(address: Address) -> Iterator[Address]:
    """Reserve an address for this process and its workers, and choose a port if it is 0.

    The socket is bound but never listens. It is bound exclusively first and shared only then, so
    that a second service cannot join the address and take half of the connections.

    Raises:
        CommandFailed: the address is in use or not this machine's (ADDRESS).
    """
    with socket.socket(address.family, socket.SOCK_STREAM) as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            holder.bind((address.host, address.port))
        except OSError as error:
            raise CommandFailed(
                f"cannot listen on {address.url}: {(error.strerror or str(error)).lower()}; "
                f"choose another with --bind HOST:PORT (port 0 picks a free one)",
                ExitCode.ADDRESS,
            ) from error
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        yield replace(address, port=holder.getsockname()[1])

# SPDX-License-Identifier: Apache-2.0
"""The TCP connections of this process's clients, as the kernel knows them, and an end to some.

Granian gives an application no hold on the connection of a request. But its sockets are this
process's own, and Linux counts for each what has come, what has gone, and when: tcp_info, with all
that is read here since Linux 4.6.
"""

from __future__ import annotations

import errno
import os
import resource
import socket
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: (host, port) of a connection's other end, the host as the kernel spells it.
Peer = tuple[str, int]

_OPEN: Final = "/proc/self/fd"

#: Numbers of files that are tried one by one where they cannot be listed.
_FILES_MAX: Final = 65536

#: States of linux/tcp_states.h in which there is a client: ESTABLISHED, CLOSE_WAIT.
_CONNECTED: Final = (1, 8)

#: The system's TCP sockets, and the state of those that listen there.
_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENS: Final = "0A"

#: What is read of linux/tcp.h's struct tcp_info, of which new kernels only lengthen the end:
#: state; unacked, last_data_sent, last_data_recv; bytes_acked, bytes_received; notsent_bytes.
_TCP_INFO: Final = struct.Struct("=B23xI16xI4xI64xQQ8xI")


@dataclass(frozen=True, slots=True)
class Connection:
    """One client's connection, at one moment."""

    fd: int
    peer: Peer
    #: Seconds since something was last sent to the client; since it connected, if nothing was.
    sent_ago: float
    #: Seconds since something last came from the client; since it connected, if nothing did.
    came_ago: float
    #: How many bytes have come from the client.
    came: int
    #: Whether something is on its way to the client, or waits until the client takes it.
    is_owed: bool
    #: How many bytes the client has taken.
    taken: int


def connections_to(port: int) -> Iterator[Connection]:
    """The connections that this process has accepted at a port.

    Cost: some 20 microseconds for each of them.
    """
    for fd in _files():
        if not _target(f"{_OPEN}/{fd}").startswith("socket:"):
            continue
        try:
            with _borrowed(fd) as held:
                address = held.getsockname()
                if not isinstance(address, tuple) or address[1] != port:
                    continue  # of another family, or to somebody else
                state, unacked, sent, heard, taken, came, unsent = _TCP_INFO.unpack(
                    held.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
                )
                if state in _CONNECTED:
                    host, peer_port = held.getpeername()[:2]
                    yield Connection(
                        fd=fd,
                        peer=(host, peer_port),
                        sent_ago=sent / 1000,
                        came_ago=heard / 1000,
                        came=came,
                        is_owed=unacked + unsent > 0,
                        taken=taken,
                    )
        except OSError:
            continue  # it has gone meanwhile


def cut(connection: Connection, how: int) -> None:
    """Shut a connection down, unless it has gone and its number is another's by now.

    Args:
        how: socket.SHUT_RD, after which it reads as if the client had ended it and can still be
            answered; or socket.SHUT_RDWR.
    """
    try:
        with _borrowed(connection.fd) as held:
            if held.getpeername()[:2] == connection.peer:
                held.shutdown(how)
    except OSError:
        pass  # it has gone by itself


def listens(process: int, port: int) -> bool:
    """Whether a process has a socket that listens at a port; one that has ended has none."""
    listening = {
        f"socket:[{fields[9]}]"
        for table in _TABLES
        if table.exists()
        for fields in map(str.split, table.read_text().splitlines()[1:])
        if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port
    }
    files = f"/proc/{process}/fd"
    try:
        # Not with pathlib's glob, which raises for a process that ends between its two looks.
        names = os.listdir(files)
    except OSError:
        return False
    return any(_target(f"{files}/{name}") in listening for name in names)


def _files() -> Iterable[int]:
    """The numbers of this process's open files; more where no file is left to look with."""
    try:
        return map(int, os.listdir(_OPEN))
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        # All of them are taken, or nearly all.
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return range(_FILES_MAX if soft == resource.RLIM_INFINITY else min(soft, _FILES_MAX))


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


@contextmanager
def _borrowed(fd: int) -> Iterator[socket.socket]:
    """The server's own socket, which stays open.

    There is no second number for it, made with `dup` and closed afterwards: should the number be
    that of SQLite's file by then, closing it would let go of all locks that this process has on it.
    """
    held = socket.socket(fileno=fd)
    try:
        yield held
    finally:
        held.detach()

# SPDX-License-Identifier: Apache-2.0
"""A Galera cluster: three MariaDB servers, all of which accept writes.

It is created without state transfer: one node is started alone and stopped, its data is copied to
the others, and all three get the record of a common view (`gvwstate.dat`), from which they form a
cluster, as after a power failure.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self
from uuid import uuid1

import pymysql

from tests.e2e.serving import wait_until
from tests.servers.binaries import find_galera
from tests.servers.mariadb import MariaDB
from tests.servers.ports import HOST, free_port
from tests.servers.process import Command, run_tool
from tests.servers.server import Server, name_in, new_name

#: The provider's options: caches small, and a member that comes back let in at once.
_PROVIDER_OPTIONS = {
    "gcache.size": "16M",
    "gcache.page_size": "16M",
    "evs.keepalive_period": "PT0.5S",
    "evs.install_timeout": "PT6S",
    "evs.join_retrans_period": "PT0.3S",
    "gmcast.time_wait": "PT1S",
}

_RECOVERED = re.compile(r"Recovered position: (?P<cluster>[0-9a-f-]{36}):(?P<number>-?\d+)")

#: What `grastate.dat` says of a node that was not stopped cleanly, or never.
_UNKNOWN = re.compile(r"^seqno: +-1$", re.MULTILINE)


@dataclass(frozen=True)
class Ports:
    """The ports of a node for the other nodes: messages, and the two kinds of state transfer."""

    group: int
    increments: int
    snapshots: int


class GaleraNode(MariaDB):
    """A node. `start` returns when it is synced with a primary component."""

    engine = "galera"

    def __init__(
        self,
        number: int,
        *,
        durable: bool,
        suspected_after_s: int,
        settings: dict[str, str] | None = None,
    ) -> None:
        self.name = f"node{number}"
        self.ports = Ports(free_port(), free_port(), free_port())
        #: What the nodes know of one another, as `wsrep_cluster_address`.
        self.cluster_address = "gcomm://"
        self._suspected_after_s = suspected_after_s
        self._is_first = False
        super().__init__(durable=durable, settings=settings)

    def prepare(self) -> None:
        """Nothing: the cluster copies the data of the first node."""

    def engine_settings(self) -> dict[str, str]:
        """The settings of a node, besides its directories and ports."""
        return {
            **super().engine_settings(),
            "innodb_buffer_pool_size": "32M",
            "binlog_format": "ROW",
            "innodb_autoinc_lock_mode": "2",
            "wsrep_on": "ON",
            "wsrep_provider": str(find_galera()),
            "wsrep_cluster_name": "berth",
            "wsrep_cluster_address": self.cluster_address,
            "wsrep_node_name": self.name,
            "wsrep_node_address": self.group_address,
            "wsrep_sst_method": "rsync",
            "wsrep_sst_receive_address": f"{HOST}:{self.ports.snapshots}",
            "wsrep_provider_options": self._provider_options(),
        }

    def command(self) -> Command:
        """The server as a member or as the first of a new cluster, at the position of its data.

        After a fall that is read from the data, as a distribution's service does it: a node that
        does not know its position is given everything anew, and a cluster in which nobody does
        begins to count from nothing.
        """
        first = ["--wsrep-new-cluster"] if self._is_first else []
        if self._has_fallen():
            cluster, number = self.recovered_position()
            first.append(f"--wsrep-start-position={cluster}:{number}")
        return [*super().command(), *first]

    @property
    def group_address(self) -> str:
        """Its address for the other nodes."""
        return f"{HOST}:{self.ports.group}"

    def is_ready(self) -> bool:
        """Whether it is synced with a primary component, so that it answers queries."""
        return self.is_synced()

    def start_as_first(self) -> None:
        """Start it as the node from which the others get their state."""
        state = self.data / "grastate.dat"
        with suppress(FileNotFoundError):
            changed = re.sub(r"safe_to_bootstrap: \d", "safe_to_bootstrap: 1", state.read_text())
            state.write_text(changed)
        self._is_first = True
        try:
            self.start()
        finally:
            self._is_first = False

    def status(self, variable: str) -> str | None:
        """A status variable such as `wsrep_cluster_status`; None if the node does not answer."""
        with suppress(pymysql.Error):
            rows = self.administer(f"SHOW STATUS LIKE '{variable}'")
            return rows[0][1] if rows else None
        return None

    def is_primary(self) -> bool:
        """Whether it considers itself part of the majority; other nodes refuse every query."""
        return self.status("wsrep_cluster_status") == "Primary"

    def is_synced(self) -> bool:
        """Whether it is primary and up to date."""
        return self.is_primary() and self.status("wsrep_local_state_comment") == "Synced"

    def cluster_size(self) -> int:
        """The number of nodes that it sees, including itself; 0 if it does not answer."""
        return int(self.status("wsrep_cluster_size") or 0)

    def isolate(self) -> None:
        """Block traffic between it and the other nodes; clients still reach it.

        The nodes notice only after a timeout, and commits wait until then. Afterwards the others
        continue without it, and it refuses every query until `rejoin`.
        """
        self.administer("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=1'")

    def rejoin(self) -> None:
        """Allow traffic with the other nodes again."""
        self.administer("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=0'")

    def recovered_position(self) -> tuple[str, int]:
        """The cluster's id and the number of the last transaction in the data of a stopped node."""
        said = run_tool([*super().command(), "--wsrep-recover"], self.account, self.directory)
        match = _RECOVERED.search(said)
        assert match is not None, f"mariadbd --wsrep-recover names no position:\n{said}"
        return match["cluster"], int(match["number"])

    def _has_fallen(self) -> bool:
        state = self.data / "grastate.dat"
        return state.exists() and _UNKNOWN.search(state.read_text()) is not None

    def _provider_options(self) -> str:
        options = {
            **_PROVIDER_OPTIONS,
            "evs.suspect_timeout": f"PT{self._suspected_after_s}S",
            "evs.inactive_timeout": f"PT{4 * self._suspected_after_s}S",
            "gmcast.listen_addr": f"tcp://{self.group_address}",
            "ist.recv_addr": f"{HOST}:{self.ports.increments}",
        }
        return ";".join(f"{name}={text}" for name, text in options.items())


class Galera:
    """A cluster of three nodes, all of which accept writes.

    As a single server it is reached through its first node; `url_for` leads to any of them. As a
    context manager it is closed at the end.

    Args:
        suspected_after_s: seconds of silence after which the others go on without a node.
    """

    engine = "galera"
    host = HOST

    def __init__(
        self,
        *,
        durable: bool = False,
        suspected_after_s: int = 2,
        settings: dict[str, str] | None = None,
    ) -> None:
        self.nodes = [
            GaleraNode(n, durable=durable, suspected_after_s=suspected_after_s, settings=settings)
            for n in range(3)
        ]
        self.port = self.nodes[0].port
        address = ",".join(node.group_address for node in self.nodes)
        self._make_first_data()
        for node in self.nodes:
            node.cluster_address = f"gcomm://{address}"
        self._make_members()
        self.start()

    def start(self) -> None:
        """Start every node that is not running, and wait until all are synced and see one another.

        If all of them were killed, they form a cluster again by themselves, unless one is missing.
        """
        for node in self.nodes:
            if not node.is_running():
                node.launch()
        self.wait_until_whole()

    def wait_until_whole(self) -> None:
        """Wait until every node is synced and sees all the others."""
        for node in self.nodes:
            node.wait_until_ready()
        wait_until(self.is_whole, "the nodes to see one another")

    def is_whole(self) -> bool:
        """Whether every node is synced and sees all the others."""
        return all(
            node.is_synced() and node.cluster_size() == len(self.nodes) for node in self.nodes
        )

    def stop(self) -> None:
        """Stop the nodes one after another; the last one has all data."""
        self._each(Server.stop)

    def kill(self) -> None:
        """SIGKILL every process of every node."""
        self._each(Server.kill)

    def pause(self) -> None:
        """Freeze every node."""
        self._each(Server.pause)

    def resume(self) -> None:
        """Continue the frozen nodes."""
        self._each(Server.resume)

    def close(self) -> None:
        """Stop the nodes, and remove their data."""
        self._each(Server.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def create_database(self, name: str | None = None) -> str:
        """The URL, through the first node, of a new empty database that all nodes have."""
        name = name or new_name()
        return self.nodes[0].create_database(name)

    def url_for(self, name: str, node: GaleraNode) -> str:
        """The URL of a database of that name through one of the nodes."""
        return node.url_for(name)

    def urls(self, url: str) -> list[str]:
        """The URL of the same database through each node, in their order."""
        return [node.url_for(name_in(url)) for node in self.nodes]

    def drop_database(self, url: str) -> None:
        """Drop a database on all nodes, with its connections."""
        self.nodes[0].drop_database(url)

    def _make_first_data(self) -> None:
        """Create the initial data: that of a cluster of one node, stopped cleanly."""
        first = self.nodes[0]
        first.install()
        first.start_as_first()
        first.create_account()
        first.stop()
        (first.data / "galera.cache").unlink()

    def _make_members(self) -> None:
        """Copy the first node's data to all nodes, with the record of a common view."""
        members = [str(uuid1()) for _ in self.nodes]
        first = self.nodes[0]
        for node in self.nodes[1:]:
            command = ["cp", "-R", str(first.data), str(node.data)]
            run_tool(command, node.account, node.directory)
        for node, member in zip(self.nodes, members, strict=True):
            view = node.data / "gvwstate.dat"
            view.write_text(_view(member, members))
            os.chown(view, node.account.uid, node.account.gid)

    def _each(self, action: Callable[[Server], None]) -> None:
        for node in self.nodes:
            action(node)


def _view(member: str, members: Sequence[str]) -> str:
    """The file that a node writes when a primary component forms, and reads after a crash."""
    lines = [
        f"my_uuid: {member}",
        "#vwbeg",
        f"view_id: 3 {members[0]} 1",
        "bootstrap: 0",
        *(f"member: {other} 0" for other in members),
        "#vwend",
    ]
    return "\n".join(lines) + "\n"

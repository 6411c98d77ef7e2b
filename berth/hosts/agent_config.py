# SPDX-License-Identifier: Apache-2.0
"""The configuration of an agent: a YAML file; every fault is reported with its place.

    service:
      url: http://placement.example.org:8778
      token_file: /etc/berth/agent.token
    driver: linux
    options: {model: numa}
    node: {name: host-1}
    interval_s: 60
    state_dir: /var/lib/berth-agent
    provider_config: /etc/berth/provider_config

With Keystone, `service` has `auth_type` and, in `auth`, the options of that keystoneauth plugin, as
in a clouds.yaml; the URL is then that of the catalogue, unless it is set. An agent of several nodes
has a list `nodes` instead of `node`.
"""

from __future__ import annotations

import json
import re
import socket
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Annotated, Any, Final, Self

from msgspec import Meta, Struct, field, structs

from berth.hosts.drivers import KnowsOneHost, Named, TakesNotes, Used, load_driver
from berth.hosts.drivers.kept_settings import Drained
from berth.hosts.drivers.provider_config import ProviderConfig, WithProviderConfig
from berth.hosts.errors import BadConfiguration
from berth.hosts.fields import FilePath, ProviderName, Text, UUIDText
from berth.hosts.files import refusing, replace_file
from berth.hosts.state_dir import Machine, claim_machine, this_machine
from berth.hosts.tracker import Driver, Node
from berth.hosts.validation import convert, load_yaml

_STATE_DIR: Final = FilePath("/var/lib/berth-agent")
_PORT_MAX: Final = 65535
#: More than 30 years.
_INTERVAL_S_MAX: Final = 1e9

#: The address of an HTTP service.
URL = Annotated[
    str,
    Meta(
        pattern="^https?://[^/]",
        description="http:// or https:// and a host, as in http://placement.example.org:8778",
    ),
]

Interval = Annotated[float, Meta(ge=1, le=_INTERVAL_S_MAX, description="a number of seconds >= 1")]


class HostPort(tuple[str, int]):
    """A host and a port, written `127.0.0.1:9109` or `[::1]:9109`."""

    __slots__ = ()

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read them.

        Raises:
            ValueError: the format is wrong.
        """
        parts = re.fullmatch(
            r"(?:\[(?P<six>[^]]+)\]|(?P<host>[^:]+)):(?P<port>\d{1,5})", str(value)
        )
        if parts is None or int(parts["port"]) > _PORT_MAX:
            raise ValueError("expected HOST:PORT, as in 127.0.0.1:9109 or [::1]:9109")
        return cls((parts["six"] or parts["host"], int(parts["port"])))


class Patience(float):
    """Seconds from 0, or `forever`, which is infinite."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read them.

        Raises:
            ValueError: it is neither a number of seconds nor `forever`.
        """
        if value == "forever":
            return cls(inf)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < inf:
            return cls(value)
        raise ValueError("expected a number of seconds >= 0, or forever")


class ServiceAccess(Struct, frozen=True, forbid_unknown_fields=True):
    """The service to report to, and how to authenticate."""

    url: URL | None = None
    #: A file with one of berth's own tokens.
    token_file: FilePath | None = None
    #: A plugin of keystoneauth.
    auth_type: Text | None = None
    auth: dict[str, Any] = {}
    region: Text | None = None
    interface: Text = "internal"
    cafile: Text | None = None

    def __post_init__(self) -> None:
        """Require exactly one way to authenticate, and a URL.

        Raises:
            ValueError: it is not so.
        """
        if (self.token_file is None) == (self.auth_type is None):
            raise ValueError("needs either token_file, or auth_type and auth")
        if self.url is None and self.auth_type is None:
            raise ValueError("needs the url of the service")


class NodeOfHost(Struct, frozen=True, forbid_unknown_fields=True):
    """The node of an agent that has one; its name is the host's own by default."""

    name: ProviderName | None = None
    uuid: UUIDText | None = None


class NodeEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A node in the file."""

    name: ProviderName
    #: None: the UUID that is kept in the state directory, and generated at the first start.
    uuid: UUIDText | None = None


class MetricsEndpoint(Struct, frozen=True, forbid_unknown_fields=True):
    """The address at which the agent serves its metrics and its health."""

    bind: HostPort | None = None


class AgentFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The file as an operator writes it."""

    service: ServiceAccess | None = None
    driver: Text = "linux"
    options: dict[str, Any] | None = None
    node_of_host: NodeOfHost | None = field(default=None, name="node")
    node_list: Annotated[list[NodeEntry], Meta(min_length=1)] | None = field(
        default=None, name="nodes"
    )
    #: Between two passes.
    interval_s: Interval = 60.0
    #: Infinite: never give up.
    start_patience_s: Patience = Patience(300)
    state_dir: FilePath = _STATE_DIR
    #: A directory of provider.yaml files.
    provider_config: FilePath | None = None
    metrics: MetricsEndpoint | None = None
    #: Whether a node may take over the provider that has its name, if that has no allocations.
    adopt: bool = False

    def __post_init__(self) -> None:
        """Refuse nodes that contradict each other.

        Raises:
            ValueError: they do.
        """
        if self.node_of_host is not None and self.node_list is not None:
            raise ValueError("has both node and nodes; use one of them")
        for key in "name", "uuid":
            values = Counter(getattr(node, key) for node in self.node_list or ())
            for value, number in values.items():
                if value is not None and number > 1:
                    raise ValueError(f"{number} nodes have the {key} {value}")


class AgentConfig(AgentFile, frozen=True, kw_only=True):
    """What an agent should do."""

    path: Path
    options: dict[str, Any]
    #: At least one.
    node_entries: tuple[NodeEntry, ...]

    def replace(self, **changes: Any) -> AgentConfig:
        """A copy with other values of some fields."""
        return structs.replace(self, **changes)

    @property
    def has_list(self) -> bool:
        """Whether the file has `nodes`, and not `node`."""
        return self.node_list is not None

    @property
    def metrics_bind(self) -> tuple[str, int] | None:
        """The host and port at which metrics and health are served; None: nowhere."""
        return None if self.metrics is None else self.metrics.bind

    def access(self) -> ServiceAccess:
        """The service to report to.

        Raises:
            BadConfiguration: the file does not have one.
        """
        if self.service is None:
            raise BadConfiguration(
                f"{self.path}, service: is missing; it needs url and token_file, or auth_type"
            )
        return self.service

    def nodes(self, *, read_only: bool = False) -> tuple[Node, ...]:
        """The root providers of the hosts, in the order of the file.

        A UUID that is not in the file is generated once and kept: that of `node` under any name, so
        that the name may change; those of `nodes` by name.

        Args:
            read_only: do not keep a UUID that has to be generated.

        Raises:
            BadConfiguration: the files that keep them cannot be read or written.
            OtherMachine: the state is that of another machine, as in a cloned image.
        """
        if self.has_list:
            missing = [node.name for node in self.node_entries if node.uuid is None]
            kept = _kept_uuids(self._kept_many, missing, read_only) if missing else {}
            return tuple(
                Node(node.uuid or kept[node.name], node.name) for node in self.node_entries
            )
        claim_machine(self.state_dir, self.machine, read_only=read_only)
        (node,) = self.node_entries
        return (Node(node.uuid or _kept_uuid(self._kept_one, read_only), node.name),)

    def keep(self, node: Node) -> None:
        """Keep another UUID for a node of this name.

        Raises:
            BadConfiguration: the UUID is set in the file, or cannot be kept.
        """
        place = next(at for at, entry in enumerate(self.node_entries) if entry.name == node.name)
        if self.node_entries[place].uuid is not None:
            at = f"nodes[{place}].uuid" if self.has_list else "node.uuid"
            raise BadConfiguration(
                f"{self.path}, {at}: must be {node.uuid}, or left out, to take that provider over"
            )
        path = self._kept_many if self.has_list else self._kept_one
        with _keeping_uuids(path):
            text = f"{node.uuid}\n"
            if self.has_list:
                uuids = json.loads(path.read_text()) if path.exists() else {}
                text = json.dumps({**uuids, node.name: node.uuid}, indent=1, sort_keys=True)
            replace_file(path, text)

    def make_driver(
        self, used: Used, drained: Drained | None = None, *, read_only: bool = False
    ) -> Driver:
        """Create the driver, with the operator's additions to what it reports.

        Args:
            used: reads the usage of a provider.
            drained: tells the drains in a tree.
            read_only: the driver's trees are not sent.

        Raises:
            BadConfiguration: there is no such driver, or it refuses its options.
        """
        driver = load_driver(self.driver, self.options, used=used, drained=drained)
        if self.has_list and isinstance(driver, KnowsOneHost):
            raise BadConfiguration(
                f"{self.path}, nodes: the driver {self.driver} reports one host, "
                f"{driver.one_host}: use node, or a driver for several nodes, such as static"
            )
        if isinstance(driver, TakesNotes):
            driver.note_in(self.state_dir)
            if read_only:
                driver.write_no_notes()
        named = Named(self.driver, driver)
        if self.provider_config is None:
            return named
        additions = ProviderConfig(self.provider_config, self.state_dir / "provider-config.json")
        if read_only:
            additions.write_no_notes()
        return WithProviderConfig(named, additions)

    @property
    def machine(self) -> Machine:
        """The machine that it runs on, which reports the only node."""
        (node,) = self.node_entries
        return this_machine(Path(str(self.options.get("root", "/"))), node.name)

    @property
    def _kept_one(self) -> Path:
        return self.state_dir / "node-uuid"

    @property
    def _kept_many(self) -> Path:
        return self.state_dir / "node-uuids.json"


def read_agent_config(path: Path, *, may_be_missing: bool = False) -> AgentConfig:
    """Read the file.

    Args:
        may_be_missing: use the defaults if there is no such file.

    Raises:
        BadConfiguration: with every fault, or if the file cannot be read.
    """
    with refusing(f"cannot read {path}"):
        exists = path.exists()
    if not exists and not may_be_missing:
        raise BadConfiguration(
            f"there is no file {path}; `berth agent sample` prints one to start from"
        )
    body = load_yaml(path) if exists else None
    file = convert({} if body is None else body, AgentFile, path)
    node = file.node_of_host or NodeOfHost()
    nodes = file.node_list or [NodeEntry(node.name or socket.gethostname(), node.uuid)]
    fields = {**structs.asdict(file), "options": file.options or {}}
    return AgentConfig(path=path, node_entries=tuple(nodes), **fields)


def _kept_uuid(path: Path, read_only: bool) -> str:
    """The UUID in a file, which is created if needed."""
    with _keeping_uuids(path):
        if path.exists():
            return str(uuid.UUID(path.read_text().strip()))
        made = str(uuid.uuid4())
        if not read_only:
            replace_file(path, f"{made}\n")
        return made


def _kept_uuids(path: Path, names: Sequence[str], read_only: bool) -> dict[str, str]:
    """The UUIDs in a file by name; missing ones are generated."""
    with _keeping_uuids(path):
        uuids: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        made = {name: str(uuid.UUID(uuids.get(name, str(uuid.uuid4())))) for name in names}
        if not made.items() <= uuids.items() and not read_only:
            replace_file(path, json.dumps({**uuids, **made}, indent=1, sort_keys=True))
        return made


@contextmanager
def _keeping_uuids(path: Path) -> Iterator[None]:
    """Say of a file that it cannot keep UUIDs, whatever is wrong with it."""
    try:
        yield
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise BadConfiguration(
            f"{path} does not contain a node's UUID, and cannot be written: {error}"
        ) from error

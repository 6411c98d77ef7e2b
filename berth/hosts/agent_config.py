# SPDX-License-Identifier: Apache-2.0
"""The configuration of an agent: a YAML file, read strictly; every fault is told with its place.

    service:
      url: http://placement.example.org:8778
      token_file: /etc/berth/agent.token
    driver: linux
    options: {model: numa}
    node: {name: host-1}
    interval_s: 60
    state_dir: /var/lib/berth-agent
    provider_config: /etc/berth/provider_config

With Keystone, `service` has `auth_type` and, below `auth`, what that plugin of keystoneauth takes,
as in a clouds.yaml; the URL is then that of the catalogue, unless it is given. An agent of several
nodes has a list `nodes` in the place of `node`.
"""

from __future__ import annotations

import json
import re
import socket
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, Final, TypeVar

from berth.hosts.drivers import KnowsOneHost, Named, TakesNotes, Used, load_driver
from berth.hosts.drivers.provider_config import ProviderConfig, WithProviderConfig
from berth.hosts.drivers.yaml_files import Document
from berth.hosts.errors import BadConfiguration
from berth.hosts.tracker import Driver, Node
from berth.hosts.whole_files import replace_file

Kept = TypeVar("Kept")

#: What may stand in the file, and in some of its mappings.
KEYS: Final = (
    *("service", "driver", "options", "node", "nodes", "interval_s", "start_patience_s"),
    *("state_dir", "provider_config", "metrics", "adopt"),
)
NODE_KEYS: Final = ("name", "uuid")
SERVICE_KEYS: Final = ("url", "token_file", "auth_type", "auth", "region", "interface", "cafile")
METRICS_KEYS: Final = ("bind",)

_STATE_DIR: Final = "/var/lib/berth-agent"
_INTERVAL_S: Final = 60.0
_INTERVAL_S_MIN: Final = 1.0
_START_PATIENCE_S: Final = 300.0
_FOR_EVER: Final = "forever"
_PORT_MAX: Final = 65535


@dataclass(frozen=True, slots=True)
class ServiceAccess:
    """Which service, and as whom."""

    url: str | None
    #: With a token of berth's own, which stands in this file.
    token_file: Path | None
    #: With a plugin of keystoneauth.
    auth_type: str | None
    auth: Mapping[str, Any]
    region: str | None
    interface: str
    cafile: str | None


@dataclass(frozen=True, slots=True)
class NodeSaid:
    """A node as the file has it."""

    name: str
    #: None: the one in the state directory, made once.
    uuid: str | None


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """What an agent is to do."""

    path: Path
    #: None where the file says nothing of it, which does for what asks no service.
    service: ServiceAccess | None
    driver: str
    options: Mapping[str, object]
    #: At least one.
    nodes_said: tuple[NodeSaid, ...]
    #: Whether the file has `nodes`, and not `node`.
    has_list: bool
    interval_s: float
    #: Infinite for one that never gives up.
    start_patience_s: float
    state_dir: Path
    #: A directory of provider.yaml files.
    provider_config: Path | None
    #: Where metrics and health are told, host and port; None: nowhere.
    metrics_bind: tuple[str, int] | None
    #: Whether a node may go on as the provider that has its name, where nobody holds any of it.
    adopt: bool

    def access(self) -> ServiceAccess:
        """Which service, and as whom.

        Raises:
            BadConfiguration: the file does not say.
        """
        if self.service is None:
            raise BadConfiguration(
                [f"{self.path}, service: is missing; it must have url and token_file, or auth_type"]
            )
        return self.service

    def nodes(self, *, to_look_only: bool = False) -> tuple[Node, ...]:
        """The root providers of the hosts, in the order of the file.

        A uuid that the file does not give is made once and kept: that of `node` whatever its name
        is, so that the name may change; those of `nodes` by their names.

        Args:
            to_look_only: one that was never kept is made, and not kept now either.

        Raises:
            BadConfiguration: the files that keep them cannot be read or made.
        """
        if self.has_list:
            missing = [node.name for node in self.nodes_said if node.uuid is None]
            kept = _kept_uuids(self._kept_many, missing, to_look_only) if missing else {}
            return tuple(Node(node.uuid or kept[node.name], node.name) for node in self.nodes_said)
        (node,) = self.nodes_said
        return (Node(node.uuid or _kept_uuid(self._kept_one, to_look_only), node.name),)

    def keep(self, node: Node) -> None:
        """Keep another uuid for a node of this name.

        Raises:
            BadConfiguration: the file gives it one, or it cannot be kept.
        """
        place = next(at for at, said in enumerate(self.nodes_said) if said.name == node.name)
        if self.nodes_said[place].uuid is not None:
            at = f"nodes[{place}].uuid" if self.has_list else "node.uuid"
            raise BadConfiguration(
                [f"{self.path}, {at}: must be {node.uuid}, or be left out, to go on as that"]
            )
        if self.has_list:
            _keep_uuids(self._kept_many, {node.name: node.uuid})
        else:
            _kept(self._kept_one, lambda: replace_file(self._kept_one, f"{node.uuid}\n"))

    def make_driver(self, used: Used, *, to_look_only: bool = False) -> Driver:
        """The driver, with what the operator adds to what it reports.

        Args:
            used: tells what is used of a provider.
            to_look_only: it is only asked what it would make of a tree.

        Raises:
            BadConfiguration: there is no such driver, or it refuses its options.
        """
        driver = load_driver(self.driver, self.options, used=used)
        if self.has_list and isinstance(driver, KnowsOneHost):
            raise BadConfiguration(
                [
                    f"{self.path}, nodes: the driver {self.driver} knows one host, "
                    f"{driver.one_host}: say node, or take a driver for several, such as static"
                ]
            )
        if isinstance(driver, TakesNotes):
            driver.note_in(self.state_dir)
            if to_look_only:
                driver.write_no_notes()
        named = Named(self.driver, driver)
        if self.provider_config is None:
            return named
        additions = ProviderConfig(self.provider_config, self.state_dir / "provider-config.json")
        if to_look_only:
            additions.write_no_notes()
        return WithProviderConfig(named, additions)

    @property
    def _kept_one(self) -> Path:
        return self.state_dir / "node-uuid"

    @property
    def _kept_many(self) -> Path:
        return self.state_dir / "node-uuids.json"


def read_agent_config(path: Path, *, may_be_missing: bool = False) -> AgentConfig:
    """Read the file.

    Args:
        may_be_missing: then it says nothing, and everything is as it is by default.

    Raises:
        BadConfiguration: it cannot be read, or not be meant; with every fault.
    """
    document = Document(path)
    try:
        is_there = path.exists()
    except OSError as error:
        raise BadConfiguration([f"{path} cannot be read: {error.strerror}"]) from error
    if not is_there and not may_be_missing:
        raise BadConfiguration(
            [f"{path} cannot be read: there is none; `berth agent sample` prints one to begin with"]
        )
    top = document.mapping(document.load() if is_there else {}, "", keys=KEYS)
    driver = _text(document, top, "driver", "driver", default="linux")
    config = AgentConfig(
        path=path,
        service=_service(document, top["service"]) if "service" in top else None,
        driver=driver or "",
        options=document.mapping(top.get("options"), "options"),
        nodes_said=tuple(_nodes(document, top)),
        has_list="nodes" in top,
        interval_s=_interval(document, top.get("interval_s", _INTERVAL_S)),
        start_patience_s=_patience(document, top.get("start_patience_s", _START_PATIENCE_S)),
        state_dir=Path(_text(document, top, "state_dir", "state_dir", default=_STATE_DIR) or ""),
        provider_config=_path(document, top, "provider_config", "provider_config"),
        metrics_bind=_metrics_bind(document, top.get("metrics")),
        adopt=_flag(document, top, "adopt"),
    )
    document.refuse_faults()
    return config


def _interval(document: Document, value: Any) -> float:
    if not (_is_number(value) and _INTERVAL_S_MIN <= value < inf):
        document.fault("interval_s", f"must be a number of seconds, from {_INTERVAL_S_MIN:g}")
        return _INTERVAL_S
    return float(value)


def _patience(document: Document, value: Any) -> float:
    if value == _FOR_EVER:
        return inf
    if not (_is_number(value) and 0 <= value < inf):
        document.fault("start_patience_s", f"must be a number of seconds, from 0, or {_FOR_EVER}")
        return _START_PATIENCE_S
    return float(value)


def _metrics_bind(document: Document, value: object) -> tuple[str, int] | None:
    found = document.mapping(value, "metrics", keys=METRICS_KEYS)
    bind = found.get("bind")
    if bind is None:
        return None
    parts = re.fullmatch(r"(?:\[(?P<six>[^]]+)\]|(?P<host>[^:]+)):(?P<port>\d{1,5})", str(bind))
    if parts is None or int(parts["port"]) > _PORT_MAX:
        document.fault(
            "metrics.bind",
            f"is {bind!r}, and must be HOST:PORT, as in 127.0.0.1:9109 or [::1]:9109",
        )
        return None
    return parts["six"] or parts["host"], int(parts["port"])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _nodes(document: Document, top: Mapping[str, Any]) -> Iterator[NodeSaid]:
    if "nodes" not in top:
        node = document.mapping(top.get("node"), "node", keys=NODE_KEYS)
        yield _node(document, {"name": socket.gethostname(), **node}, "node")
        return
    if "node" in top:
        document.fault("nodes", "stands beside node; say one of them")
    found = [
        _node(document, document.mapping(item, at, keys=NODE_KEYS), at)
        for at, item in document.items(top["nodes"], "nodes")
    ]
    if not found:
        document.fault("nodes", "must list at least one node")
    for what in "name", "uuid":
        values = [value for node in found if (value := getattr(node, what))]
        for value in sorted({value for value in values if values.count(value) > 1}):
            document.fault("nodes", f"several have the {what} {value}")
    yield from found


def _node(document: Document, said: Mapping[str, Any], at: str) -> NodeSaid:
    return NodeSaid(
        name=document.provider_name(said.get("name"), f"{at}.name") or "",
        uuid=document.uuid(said["uuid"], f"{at}.uuid") if "uuid" in said else None,
    )


def _service(document: Document, value: object) -> ServiceAccess:
    found = document.mapping(value, "service", keys=SERVICE_KEYS)

    def text(key: str, default: str | None = None) -> str | None:
        return _text(document, found, key, f"service.{key}", default=default)

    access = ServiceAccess(
        url=text("url"),
        token_file=_path(document, found, "token_file", "service.token_file"),
        auth_type=text("auth_type"),
        auth=document.mapping(found.get("auth"), "service.auth"),
        region=text("region"),
        interface=text("interface", "internal") or "",
        cafile=text("cafile"),
    )
    if (access.token_file is None) == (access.auth_type is None):
        document.fault("service", "must say either token_file, or auth_type and auth")
    if access.url is None and access.auth_type is None:
        document.fault("service", "must have the url of the service")
    if access.url is not None and not re.match("https?://[^/]", access.url):
        document.fault(
            "service.url",
            f"is {access.url!r}, and must begin with http:// or https://, as in "
            "http://placement.example.org:8778",
        )
    return access


def _text(
    document: Document, found: Mapping[str, Any], key: str, at: str, *, default: str | None
) -> str | None:
    value = found.get(key, default)
    if value is not None and not (isinstance(value, str) and value):
        document.fault(at, f"is {value!r}, and must be text")
        return default
    return value


def _path(document: Document, found: Mapping[str, Any], key: str, at: str) -> Path | None:
    value = _text(document, found, key, at, default=None)
    return Path(value) if value else None


def _flag(document: Document, found: Mapping[str, Any], key: str) -> bool:
    value = found.get(key, False)
    if not isinstance(value, bool):
        document.fault(key, f"is {value!r}, and must be true or false")
    return value is True


def _kept_uuid(path: Path, to_look_only: bool) -> str:
    """The uuid in a file, which is made where there is none."""

    def kept() -> str:
        if path.exists():
            return str(uuid.UUID(path.read_text().strip()))
        made = str(uuid.uuid4())
        if not to_look_only:
            replace_file(path, f"{made}\n")
        return made

    return _kept(path, kept)


def _kept_uuids(path: Path, names: Sequence[str], to_look_only: bool) -> dict[str, str]:
    """The uuids that a file has by name; those that it has not are made."""

    def kept() -> dict[str, str]:
        found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        made = {name: str(uuid.UUID(found.get(name, str(uuid.uuid4())))) for name in names}
        if not made.items() <= found.items() and not to_look_only:
            replace_file(path, json.dumps({**found, **made}, indent=1, sort_keys=True))
        return made

    return _kept(path, kept)


def _keep_uuids(path: Path, uuids: Mapping[str, str]) -> None:
    def kept() -> None:
        found = json.loads(path.read_text()) if path.exists() else {}
        replace_file(path, json.dumps({**found, **uuids}, indent=1, sort_keys=True))

    _kept(path, kept)


def _kept(path: Path, kept: Callable[[], Kept]) -> Kept:
    try:
        return kept()
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise BadConfiguration(
            [f"{path} has not the uuid of a node, and none can be put there: {error}"]
        ) from error

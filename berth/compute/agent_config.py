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
as in a clouds.yaml; the URL is then that of the catalogue, unless it is given.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from berth.compute.drivers.yaml_files import Document
from berth.compute.errors import BadConfiguration
from berth.compute.tracker import Node

DEFAULT_PATH: Final = Path("/etc/berth/agent.yaml")

_STATE_DIR: Final = "/var/lib/berth-agent"
_INTERVAL_S: Final = 60.0
_INTERVAL_S_MIN: Final = 1.0

_KEYS: Final = (
    *("service", "driver", "options", "node", "interval_s", "state_dir", "provider_config"),
)
_SERVICE_KEYS: Final = ("url", "token_file", "auth_type", "auth", "region", "interface", "cafile")


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
class AgentConfig:
    """What an agent is to do."""

    service: ServiceAccess
    driver: str
    options: Mapping[str, object]
    node_name: str
    #: None: the one in the state directory, made once.
    node_uuid: str | None
    interval_s: float
    state_dir: Path
    #: A directory of provider.yaml files.
    provider_config: Path | None

    def node(self) -> Node:
        """The host's root provider: its uuid is kept in a file, so that the name may change.

        Raises:
            BadConfiguration: the file cannot be read or made.
        """
        return Node(self.node_uuid or _kept_uuid(self.state_dir / "node-uuid"), self.node_name)


def read_agent_config(path: Path) -> AgentConfig:
    """Read the file.

    Raises:
        BadConfiguration: it cannot be read, or not be meant; with every fault.
    """
    document = Document(path)
    top = document.mapping(document.load(), "", keys=_KEYS)
    node = document.mapping(top.get("node"), "node", keys=("name", "uuid"))
    interval = top.get("interval_s", _INTERVAL_S)
    is_number = isinstance(interval, int | float) and not isinstance(interval, bool)
    if not (is_number and _INTERVAL_S_MIN <= interval < float("inf")):
        document.fault("interval_s", f"must be a number of seconds, from {_INTERVAL_S_MIN:g}")
    driver = _text(document, top, "driver", "driver", default="linux")
    config = AgentConfig(
        service=_service(document, top.get("service")),
        driver=driver or "",
        options=document.mapping(top.get("options"), "options"),
        node_name=(
            document.provider_name(node.get("name", socket.gethostname()), "node.name") or ""
        ),
        node_uuid=document.uuid(node["uuid"], "node.uuid") if "uuid" in node else None,
        interval_s=interval,
        state_dir=Path(_text(document, top, "state_dir", "state_dir", default=_STATE_DIR) or ""),
        provider_config=_path(document, top, "provider_config", "provider_config"),
    )
    document.refuse_faults()
    return config


def _service(document: Document, value: object) -> ServiceAccess:
    found = document.mapping(value, "service", keys=_SERVICE_KEYS)

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


def _kept_uuid(path: Path) -> str:
    """The uuid in a file, which is made where there is none."""
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            written = path.with_suffix(".new")
            with written.open("w") as file:
                file.write(f"{uuid.uuid4()}\n")
                file.flush()
                os.fsync(file.fileno())
            written.rename(path)
        return str(uuid.UUID(path.read_text().strip()))
    except (OSError, ValueError) as error:
        raise BadConfiguration(
            [f"{path} has no uuid, and none can be put there: {error}"]
        ) from error

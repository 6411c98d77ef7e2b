# SPDX-License-Identifier: Apache-2.0
"""`client.yaml`: the service that commands use if neither options nor variables name one.

    url: https://berth.example.org:8778
    token_file: token

It has the members of `service` in an agent's configuration. A relative path starts at the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from berth.hosts.agent_config import ServiceAccess

#: The file of every user of a machine.
_OF_MACHINE: Final = Path("/etc/berth/client.yaml")


def find_client_file(variables: Mapping[str, str]) -> Path | None:
    """The user's file, or else the machine's; None if there is neither.

    Args:
        variables: the environment.
    """
    folder = Path(variables.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    of_user = folder / "berth" / "client.yaml"
    return next((path for path in (of_user, _OF_MACHINE) if path.is_file()), None)


def read_client_file(path: Path) -> ServiceAccess:
    """Read a file.

    Raises:
        BadConfiguration: with every fault.
    """
    # Deferred: most commands have no such file.
    from berth.hosts.agent_config import ServiceAccess
    from berth.hosts.validation import convert, load_yaml

    body = load_yaml(path) or {}
    if isinstance(body, dict):
        # People, unlike agents, use the public endpoint of a catalogue.
        body = {"interface": "public", **body}
        if isinstance(token_file := body.get("token_file"), str) and token_file:
            body["token_file"] = str(path.parent / Path(token_file).expanduser())
    return convert(body, ServiceAccess, path)

# SPDX-License-Identifier: Apache-2.0
"""Which machine the state of an agent belongs to: that of a cloned image is another machine's.

Source: docs/spec/hosts (the identity of a host). A state directory holds the UUID of its host's
provider. A machine that is made from the image of another one would report as that one, and both
would write one tree. So the directory also says whose it is, and any other machine is refused.
"""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path
from typing import Final, NamedTuple

from berth.hosts.errors import BadConfiguration, OtherMachine
from berth.hosts.whole_files import replace_file

LOG = logging.getLogger(__name__)

#: Of the folder with a host's files.
_MACHINE_ID: Final = Path("etc/machine-id")
#: Of the state directory.
_FILE: Final = "machine.json"
#: An image that is to be cloned has this instead of an id, or nothing.
_UNSET: Final = "uninitialized"


class Machine(NamedTuple):
    """What tells machines apart.

    Attributes:
        identity: a hash of /etc/machine-id, which is confidential; None without one.
        name: of the node that it reports.
    """

    identity: str | None
    name: str


def this_machine(root: Path, name: str) -> Machine:
    """The machine with the files below a folder."""
    try:
        machine_id = (root / _MACHINE_ID).read_text(errors="replace").strip()
    except OSError:
        machine_id = ""
    if machine_id in ("", _UNSET):
        return Machine(None, name)
    # As `machine-id(5)` asks: what leaves the machine must not show its id.
    hashed = hashlib.sha256(f"berth agent {machine_id}".encode()).hexdigest()
    return Machine(hashed, name)


def claim_machine(state_dir: Path, machine: Machine, *, read_only: bool) -> None:
    """Refuse the state of another machine; else note that it belongs to this one, if anything can
    be noted there.

    It is another one if its id or its name is: clones of one image often share the id, and a
    machine that was renamed says so on purpose, with `berth agent adopt --take-over`.

    Args:
        read_only: note nothing.

    Raises:
        OtherMachine: it is.
        BadConfiguration: nobody can say whose it is.
    """
    owner = _owner_of(state_dir)
    if owner is not None:
        ids = {owner.identity, machine.identity} - {None}
        if len(ids) > 1 or owner.name != machine.name:
            raise OtherMachine(state_dir, owner.name)
    if owner != machine and not read_only:
        try:
            take_over_state(state_dir, machine)
        except BadConfiguration as error:
            LOG.warning("A copy of this host's image would report as this host: %s", error)


def take_over_state(state_dir: Path, machine: Machine) -> None:
    """Give the state of another machine to this one.

    Raises:
        BadConfiguration: it cannot be written.
    """
    try:
        replace_file(state_dir / _FILE, json.dumps(machine._asdict()))
    except OSError as error:
        fault = f"cannot write {state_dir / _FILE}: {error.strerror or error}"
        raise BadConfiguration([fault]) from error


def _owner_of(state_dir: Path) -> Machine | None:
    path = state_dir / _FILE
    try:
        body = json.loads(path.read_text())
        return Machine(body["identity"], str(body["name"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        fault = (
            f"{path} does not say which machine the state belongs to ({error}): "
            "`berth agent adopt --take-over` gives it to this one"
        )
        raise BadConfiguration([fault]) from error

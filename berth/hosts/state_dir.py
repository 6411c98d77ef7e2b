# SPDX-License-Identifier: Apache-2.0
"""The state directory of an agent: one process writes it at a time, and one machine owns it.

Two processes would mistake each other's notes for their own. The kernel releases a lock when its
process ends, in whatever way. The file stays, because deleting it could delete the next holder's.

The directory holds the UUID of its host's provider. A machine that is made from the image of
another one would report as that one, and both would write one tree. So the directory also says
whose it is, and any other machine is refused.
Source: docs/spec/hosts (the identity of a host).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
from pathlib import Path
from typing import Final, NamedTuple

from berth.hosts.errors import BadConfiguration, OtherMachine, StateDirInUse
from berth.hosts.files import hand_over, refusing, replace_file

LOG = logging.getLogger(__name__)


class StateLock:
    """Locks state directories until `close`."""

    def __init__(self) -> None:
        #: The descriptors of the locked files, by directory.
        self._descriptors: dict[Path, int] = {}

    def hold(self, state_dir: Path) -> None:
        """Lock a directory, creating it if needed; locking it again does nothing.

        A directory in which nothing can be written is not locked, and the log says so: writing
        state to it fails anyway.

        Raises:
            StateDirInUse: another process has the lock.
        """
        if state_dir in self._descriptors:
            return
        try:
            self._descriptors[state_dir] = _locked(state_dir)
        except OSError as error:
            LOG.warning(
                "Cannot lock the state directory %s against a second agent: %s",
                state_dir,
                error.strerror or error,
            )

    def close(self) -> None:
        """Release all locks."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()


def _locked(state_dir: Path) -> int:
    state_dir.mkdir(parents=True, exist_ok=True)
    path = state_dir / "lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        hand_over(path)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except BlockingIOError as error:
        holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
        os.close(descriptor)
        raise StateDirInUse(state_dir, holder) from error
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


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
    with refusing(f"cannot write {state_dir / _FILE}"):
        replace_file(state_dir / _FILE, json.dumps(machine._asdict()))


def _owner_of(state_dir: Path) -> Machine | None:
    path = state_dir / _FILE
    try:
        body = json.loads(path.read_text())
        return Machine(body["identity"], str(body["name"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadConfiguration(
            f"{path} does not say which machine the state belongs to ({error}): "
            "`berth agent adopt --take-over` gives it to this one"
        ) from error

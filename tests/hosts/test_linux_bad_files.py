# SPDX-License-Identifier: Apache-2.0
"""A host with missing or invalid files: they are reported or ignored, and never cause a traceback.

Kernels differ, devices disappear while they are read, and a container may see only some files.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from shutil import rmtree
from typing import Any

import pytest

from berth.hosts import BadProviderTree
from berth.hosts.drivers.hosts.options import SHARED_CLASSES
from berth.hosts.errors import BadConfiguration, HostUnreadable
from berth.hosts.plan import make_plan
from tests.hosts import linux_hosts as hosts
from tests.hosts.linux_hosts import empty_tree, report
from tests.hosts.machines import FOUR_NODES, GPU_HOST, SRIOV_HOST
from tests.hosts.machines.machine import Machine

OPTIONS: dict[str, Any] = {
    "model": "numa",
    "huge_pages": "providers",
    "mdev": [{"type": "nvidia-222"}],
    "pci": [{"device": "8086:154c", "resource_class": "SRIOV_NET_VF"}, {"device": "15b3:1017"}],
}


def empty(path: Path) -> None:
    """An empty file."""
    path.write_bytes(b"")


def junk(path: Path) -> None:
    """A file with other content."""
    path.write_bytes(b"\xff\xfe\x00-,-7x\n:" * 3)


def huge(path: Path) -> None:
    """A list longer than any host has."""
    path.write_text("0-99999999999999\n")


def large(path: Path) -> None:
    """A number larger than any host has."""
    path.write_text("MemTotal: 99999999999999999999 kB\n" if "mem" in path.name else "9" * 20)


def directory(path: Path) -> None:
    """A directory in place of the file."""
    path.unlink()
    path.mkdir()


SPOILERS: tuple[Callable[[Path], None], ...] = (empty, junk, huge, large, directory, os.unlink)


@pytest.mark.parametrize("machine", [GPU_HOST, SRIOV_HOST, FOUR_NODES], ids=["GPU", "SR-IOV", "4"])
def test_one_file_that_is_spoilt_is_no_traceback(tmp_path: Path, machine: Machine) -> None:
    """Each file in turn, in each way; the reported tree is still valid."""
    root = machine.write(tmp_path)
    host = hosts.driver(machine, root, **OPTIONS)
    files = [path for path in sorted(root.rglob("*")) if path.is_file() or path.is_symlink()]
    for path in files:
        for spoil in SPOILERS:
            is_link = path.is_symlink()
            target, content = (path.readlink(), b"") if is_link else (None, path.read_bytes())
            if is_link:
                path.unlink()
            else:
                spoil(path)
            tree = empty_tree()
            try:
                report(host, tree)
                plan = make_plan(empty_tree(), tree, tree.roots[0].uuid)
            except (HostUnreadable, BadConfiguration, BadProviderTree) as error:
                assert str(error), "it is told what is wrong"
            else:
                assert plan.inventories
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            path.unlink(missing_ok=True)
            if target is not None:
                path.symlink_to(target)
                break
            path.write_bytes(content)


def test_directories_that_are_not_there_are_done_without(tmp_path: Path) -> None:
    """A container may see half of /sys: the rest is reported, or there is an error."""
    rng = Random(6)
    for number in range(20):
        root = GPU_HOST.write(tmp_path / str(number))
        host = hosts.driver(GPU_HOST, root, **OPTIONS)
        folders = sorted(path for path in root.rglob("*") if path.is_dir())
        for path in rng.sample(folders, 3):
            rmtree(path, ignore_errors=True)
        tree = empty_tree()
        try:
            report(host, tree)
        except HostUnreadable as error:
            assert str(root) in str(error)
        else:
            classes = {
                name for uuid in tree.get_provider_uuids() for name in tree.data(uuid).inventory
            }
            assert classes <= {*SHARED_CLASSES, "VGPU"}

# SPDX-License-Identifier: Apache-2.0
"""The policy files: where they may be, whether they have changed, whether they can be read."""

from __future__ import annotations

import os

from oslo_config import cfg

#: The stamp of each watched path, which changes with its content; None: it does not exist.
State = tuple[tuple[int, int, int] | None, ...]


def policy_paths(conf: cfg.ConfigOpts) -> tuple[str, ...]:
    """The paths of the present policy files and of their directories."""
    options = conf.oslo_policy
    names = (options.policy_file, *options.policy_dirs)
    paths = [path for name in names if (path := conf.find_file(name))]
    inside = [path for folder in paths for path in _paths_in(folder)]
    return tuple(dict.fromkeys((*paths, *inside)))


def _paths_in(folder: str) -> list[str]:
    """The paths in a directory; none if it is missing, not a directory, or unreadable."""
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries]
    except OSError:
        return []


def state_of(paths: tuple[str, ...]) -> State:
    """The stamps of the paths, which change with their content."""
    return tuple(map(_stamp_of, paths))


def _stamp_of(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def check_readable(conf: cfg.ConfigOpts) -> None:
    """Raise OSError for a policy file or directory that the configuration names and that does not
    exist, or that exists and cannot be read.

    oslo.policy only logs it and continues with the defaults, and so would admit callers whom the
    file excludes.
    """
    for option, names in (
        ("policy_file", [conf.oslo_policy.policy_file]),
        ("policy_dirs", conf.oslo_policy.policy_dirs),
    ):
        location = conf.get_location(option, "oslo_policy")
        is_named = location is not None and location.location.is_user_controlled
        for name in names:
            if is_named and conf.find_file(name) is None:
                raise FileNotFoundError(f"[oslo_policy]{option} names {name}, which does not exist")
    for name in (conf.oslo_policy.policy_file, *conf.oslo_policy.policy_dirs):
        path = conf.find_file(name)
        if path is None:
            continue
        inside = os.path.isdir(path) and name != conf.oslo_policy.policy_file
        for file in _files_in(path) if inside else [path]:
            with open(file, "rb"):
                pass


def _files_in(folder: str) -> list[str]:
    """The policy files of a directory; raises OSError if it cannot be listed."""
    with os.scandir(folder) as entries:
        return [
            entry.path for entry in entries if not (entry.name.startswith(".") or entry.is_dir())
        ]

# SPDX-License-Identifier: Apache-2.0
"""`berth files`: the directory of the files that come with berth for operators to copy."""

from pathlib import Path
from typing import Final

import click

import berth
from berth.cli.failure import CommandFailed
from berth.cli.output import say

#: The distribution that has the files, and their directory in its list of files.
_DISTRIBUTION: Final = "berthd"
_FOLDER: Final = "share/berth"


@click.command()
def files() -> None:
    """Print the directory of the files that come with berth.

    The directory has systemd units, configurations for WSGI servers, alerts and dashboards for
    Prometheus and Grafana, and the Containerfile of the image.
    """
    directory = _installed() or _in_source_tree()
    if directory is None:
        raise CommandFailed(
            "this berth was installed without its files: install the wheel of berthd, or use "
            "contrib/ of the source"
        )
    say(str(directory))


def _installed() -> Path | None:
    """Where pip put the files, which depends on how it was called."""
    # Deferred: `--help` does not need it.
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        installed = distribution(_DISTRIBUTION).files or ()
    except PackageNotFoundError:
        return None
    for file in installed:
        if _FOLDER in str(file):
            # Two below: share/berth/systemd/berth.service.
            return Path(str(file.locate())).resolve().parents[1]
    return None


def _in_source_tree() -> Path | None:
    """The directory in the source tree, if berth runs from there."""
    contrib = Path(berth.__file__).parents[1] / "contrib"
    return contrib if (contrib / "systemd").is_dir() else None

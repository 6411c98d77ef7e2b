# SPDX-License-Identifier: Apache-2.0
"""`berth files`: where the files are that come with berth and that operators copy."""

from pathlib import Path
from typing import Final

import click

import berth
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed

#: The distribution that the files belong to, and their folder in its list of files.
_DISTRIBUTION: Final = "berthd"
_FOLDER: Final = "share/berth"


@click.command()
def files() -> None:
    """Print the directory of the files that come with berth.

    It has units for systemd, configurations for WSGI servers, alerts and dashboards for Prometheus
    and Grafana, and the file of the container image.
    """
    found = _installed() or _of_source_tree()
    if found is None:
        raise CommandFailed(
            "this berth was installed without its files: install the wheel of berthd, or take "
            "them from contrib/ of the source",
            ExitCode.CONFIGURATION,
        )
    click.echo(found)


def _installed() -> Path | None:
    """Where pip has put the files, which depends on how it was called."""
    # Here, so that `--help` need not wait for it.
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


def _of_source_tree() -> Path | None:
    """The folder of the sources, where berth runs from there."""
    contrib = Path(berth.__file__).parents[1] / "contrib"
    return contrib if (contrib / "systemd").is_dir() else None

# SPDX-License-Identifier: Apache-2.0
"""The options that several commands have."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from berth.cli.address import DEFAULT_HOST, DEFAULT_PORT

if TYPE_CHECKING:
    from oslo_config import cfg

OPTIONS = (
    click.option(
        "--config-file",
        multiple=True,
        metavar="FILE",
        type=click.Path(),
        help="Read this file instead of searching for placement.conf. May be repeated; later files "
        "override earlier ones.",
    ),
    click.option(
        "--config-dir",
        multiple=True,
        metavar="DIR",
        type=click.Path(file_okay=False),
        help="Also read the *.conf files in this directory, after those files.",
    ),
)

bind_option = click.option(
    "--bind",
    default=f"{DEFAULT_HOST}:{DEFAULT_PORT}",
    show_default=True,
    metavar="HOST:PORT",
    help="Address to listen on. Port 0 picks a free port and prints it.",
)


@dataclass(frozen=True, slots=True)
class ConfigurationSource:
    """Where a command reads its configuration; picklable, so that workers can get it."""

    files: tuple[str, ...]
    dirs: tuple[str, ...]
    debug: bool

    @property
    def is_given(self) -> bool:
        """Whether the command line names a configuration."""
        return bool(self.files or self.dirs)

    def load(self) -> cfg.ConfigOpts:
        """Read the configuration; without any, use the embedded defaults.

        Raises:
            ConfigurationError: a file is missing or cannot be read.
        """
        # Deferred: `--help` and completion do not need it.
        from berth import config

        return config.load(self.files, self.dirs, embedded=True, debug=self.debug)


def configured(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--config-file` and `--config-dir`; the command gets a `ConfigurationSource`."""

    def with_source(
        debug: bool, config_file: tuple[str, ...], config_dir: tuple[str, ...], **options: object
    ) -> None:
        command(ConfigurationSource(config_file, config_dir, debug), **options)

    functools.update_wrapper(with_source, command)
    decorated: Callable[..., None] = click.pass_obj(with_source)
    for option in reversed(OPTIONS):
        decorated = option(decorated)
    return decorated

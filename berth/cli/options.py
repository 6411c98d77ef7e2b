# SPDX-License-Identifier: Apache-2.0
"""Options that every command takes: which configuration to read."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from oslo_config import cfg

OPTIONS = (
    click.option(
        "--config-file",
        multiple=True,
        metavar="FILE",
        type=click.Path(),
        help="Read this placement.conf instead of the usual places; may be repeated, later wins.",
    ),
    click.option(
        "--config-dir",
        multiple=True,
        metavar="DIR",
        type=click.Path(file_okay=False),
        help="Read the *.conf files of this directory too, after the files.",
    ),
)


@dataclass(frozen=True, slots=True)
class ConfigurationSource:
    """Where a command's configuration comes from; picklable, to be handed to workers."""

    files: tuple[str, ...]
    dirs: tuple[str, ...]
    debug: bool

    def load(self) -> cfg.ConfigOpts:
        """Read it; with no configuration at all, the embedded defaults.

        Raises:
            ConfigurationError: a file is missing or cannot be read.
        """
        # Here, so that `--help` and the completion of options need not wait for it.
        from berth import config

        return config.load(self.files, self.dirs, embedded=True, debug=self.debug)


def configured(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--config-file` and `--config-dir`, given to the command as a `ConfigurationSource`."""

    def with_source(
        debug: bool, config_file: tuple[str, ...], config_dir: tuple[str, ...], **options: object
    ) -> None:
        command(ConfigurationSource(config_file, config_dir, debug), **options)

    functools.update_wrapper(with_source, command)
    decorated: Callable[..., None] = click.pass_obj(with_source)
    for option in reversed(OPTIONS):
        decorated = option(decorated)
    return decorated

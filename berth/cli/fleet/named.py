# SPDX-License-Identifier: Apache-2.0
"""Creates and deletes what its name is enough for: traits, resource classes and flavors."""

from __future__ import annotations

from collections.abc import Sequence

import click

from berth.cli.fleet.access import Access


def send_each(access: Access, method: str, collection: str, names: Sequence[str]) -> None:
    """Create (PUT) or delete (DELETE) things of a collection, one after another.

    Args:
        collection: its path.

    Raises:
        ServiceRefused: one was refused; those before it are done.
    """
    # Deferred: `--help` does not need it.
    from berth.cli.fleet.client import path_of

    done = {"PUT": "created", "DELETE": "deleted"}[method]
    with access.client() as client:
        for name in names:
            client.send(method, path_of(*collection.split("/"), name))
            if not access.as_json:
                click.echo(f"{done} {name}")

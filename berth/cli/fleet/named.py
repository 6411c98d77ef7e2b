# SPDX-License-Identifier: Apache-2.0
"""Creates and deletes things by their names: traits, resource classes, flavors and drains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import click

from berth.cli.fleet.access import Access
from berth.cli.output import say

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.hosts.service import Answer

replacing: Callable[[Callable[..., None]], Callable[..., None]] = click.option(
    "--replace", is_flag=True, help="Replace the one that has this name."
)


def put_named(
    client: Client, path: str, body: Mapping[str, Any], *, may_replace: bool
) -> tuple[Answer, bool]:
    """Create a flavor or a drain; returns the answer, and whether it is new.

    Args:
        may_replace: replace the one that has this name.

    Raises:
        InConflict: there is one already.
    """
    # Deferred: `--help` does not need it.
    from berth.cli.fleet.refusals import InConflict, ServiceRefused

    headers = {} if may_replace else {"If-None-Match": "*"}
    try:
        answer = client.send("PUT", path, body, headers=headers)
    except ServiceRefused as error:
        if error.error_code != "berth.precondition.failed":
            raise
        raise InConflict(f"{error}: --replace replaces it", error.error_code) from error
    return answer, answer.status_code == HTTPStatus.CREATED


def send_each(access: Access, method: str, collection: str, names: Sequence[str]) -> None:
    """Create (PUT) or delete (DELETE) things of a collection, one after another.

    Args:
        collection: its path.

    Raises:
        ServiceRefused: one was refused; those before it are done.
    """
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import path_of
    from berth.cli.fleet.suggestions import suggesting

    with access.client() as client:
        for name in names:
            with suggesting(client, f"/{collection}", name):
                answer = client.send(method, path_of(*collection.split("/"), name))
            if access.as_json:
                continue
            if method == "DELETE":
                say(f"deleted {name}")
            elif answer.status_code == HTTPStatus.CREATED:
                say(f"created {name}")
            else:
                say(f"{name} exists already")

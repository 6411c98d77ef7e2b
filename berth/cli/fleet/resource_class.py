# SPDX-License-Identifier: Apache-2.0
"""`berth class`: resource classes."""

from __future__ import annotations

from collections.abc import Sequence

import click

from berth.cli.columns import counted
from berth.cli.fleet.access import Access, accessing
from berth.cli.fleet.completing import class_names
from berth.cli.fleet.named import send_each
from berth.cli.output import say

class_arguments = click.argument(
    "names", metavar="CLASS...", nargs=-1, required=True, shell_complete=class_names
)


@click.group(name="class")
def class_() -> None:
    """List, show, create and delete resource classes."""


@class_.command(name="list")
@accessing
def list_classes(access: Access) -> None:
    """List the resource classes."""
    # Deferred: `--help` does not need it.
    from berth.cli.fleet.client import print_answer

    with access.client() as client:
        answer = client.get("/resource_classes")
        if access.as_json:
            print_answer(answer)
            return
        names = sorted(item["name"] for item in answer.json()["resource_classes"])
        for name in names:
            say(name)
        say(counted(len(names), "resource class", "resource classes"))


@class_.command()
@click.argument("name", metavar="CLASS", shell_complete=class_names)
@accessing
def show(access: Access, name: str) -> None:
    """Show whether a resource class exists."""
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import path_of, print_answer
    from berth.cli.fleet.suggestions import suggesting

    with access.client() as client:
        with suggesting(client, "/resource_classes", name):
            answer = client.get(path_of("resource_classes", name))
        if access.as_json:
            print_answer(answer)
        else:
            say(answer.json()["name"])


@class_.command()
@class_arguments
@accessing
def create(access: Access, names: Sequence[str]) -> None:
    """Create resource classes; their names start with CUSTOM_. One that exists stays as it is."""
    send_each(access, "PUT", "resource_classes", names)


@class_.command()
@class_arguments
@accessing
def delete(access: Access, names: Sequence[str]) -> None:
    """Delete resource classes that no provider has inventory of."""
    send_each(access, "DELETE", "resource_classes", names)

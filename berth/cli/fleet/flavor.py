# SPDX-License-Identifier: Apache-2.0
"""`berth flavor`: requests with a name. Source: spec/beyond.md 4.5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TextIO

import click

from berth.cli.columns import counted, print_columns
from berth.cli.fleet.access import Access, accessing
from berth.cli.fleet.completing import flavor_names
from berth.cli.fleet.named import put_named, replacing, send_each
from berth.cli.fleet.requests_in_words import in_words
from berth.cli.fleet.wanted import WantedRequest, wanting_request
from berth.cli.output import say, say_json

name_argument = click.argument("name", metavar="FLAVOR", shell_complete=flavor_names)

#: The members of a flavor that `PUT` takes.
_MEMBERS: Final = ("request", "expose", "description")


@click.group()
def flavor() -> None:
    """List, set, import and delete flavors: requests with a name.

    `berth candidates --flavor NAME` and `berth why --flavor NAME` ask for what a flavor asks for.
    """


@flavor.command(name="list")
@accessing
def list_flavors(access: Access) -> None:
    """List flavors with what they ask for."""
    # Deferred: `--help` does not need it.
    from berth.cli.fleet.client import FLAVORS, print_answer

    with access.client() as client:
        answer = client.get(FLAVORS)
        if access.as_json:
            print_answer(answer)
            return
        every = answer.json()["flavors"]
        rows = [
            [item["name"], in_words(item["request"]), item["description"] or "-"] for item in every
        ]
        if rows:
            print_columns(("FLAVOR", "ASKS FOR", "DESCRIPTION"), rows)
        say(counted(len(rows), "flavor"))


@flavor.command()
@name_argument
@accessing
def show(access: Access, name: str) -> None:
    """Show a flavor with its whole request."""
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import FLAVORS, print_answer
    from berth.cli.fleet.suggestions import suggesting

    with access.client() as client:
        with suggesting(client, FLAVORS, name):
            answer = client.get(_path(name))
        if access.as_json:
            print_answer(answer)
            return
        shown = answer.json()
        hidden = [] if shown["expose"] else ["not in metrics"]
        say(": ".join(filter(None, (name, ", ".join([shown["description"], *hidden])))))
        say_json(shown["request"])


@flavor.command(name="set")
@name_argument
@wanting_request
@click.option("--description", metavar="TEXT", help="A description for people.")
@click.option("--expose/--hide", default=None, help="Whether metrics may show its capacity.")
@replacing
@accessing
def set_flavor(
    access: Access,
    name: str,
    wanted: WantedRequest,
    description: str | None,
    expose: bool | None,
    replace: bool,
) -> None:
    """Create a flavor, or replace all of one with --replace.

    \b
      berth flavor set m1.large VCPU=4 MEMORY_MB=8192 DISK_GB=80
      berth flavor set gpu.a100 VCPU=8 --group '_GPU VGPU=1 required=CUSTOM_A100' \\
        --together ,_GPU@HW_NUMA_ROOT
      berth flavor show m1.large --json | berth flavor set m1.copy --request -

    It takes the options of `berth candidates`. A file may have the request, or a whole flavor.
    """
    # Deferred: `--help` does not need it.
    from berth.cli.fleet.client import print_answer

    options = {"description": description, "expose": expose}
    body = wanted.body() | {key: value for key, value in options.items() if value is not None}
    with access.client() as client:
        sent: dict[str, Any] = {key: body[key] for key in _MEMBERS if key in body}
        answer, is_new = put_named(client, _path(name), sent, may_replace=replace)
        if access.as_json:
            print_answer(answer)
        else:
            done = "created" if is_new else "replaced"
            say(f"{done} {name}: {in_words(answer.json()['request'])}")


@flavor.command()
@click.argument("names", metavar="FLAVOR...", nargs=-1, required=True, shell_complete=flavor_names)
@accessing
def delete(access: Access, names: Sequence[str]) -> None:
    """Delete flavors."""
    send_each(access, "DELETE", "berth/v1/flavors", names)


@flavor.command(name="import")
@click.argument("file", metavar="[FILE]", type=click.File(), default="-")
@click.option("--replace", is_flag=True, help="Replace flavors that are not as nova has them.")
@click.option("--dry-run", is_flag=True, help="Print what would change, and write nothing.")
@accessing
def import_flavors(access: Access, file: TextIO, replace: bool, dry_run: bool) -> None:
    """Create flavors as nova has them, and replace those that differ with --replace.

    \b
      openstack flavor list --all --long -f json | berth flavor import

    FILE, or standard input, has the output of this command, or nova's answer to
    GET /flavors/detail at microversion 2.61 or later.

    A flavor asks for VCPU, MEMORY_MB and DISK_GB (with ephemeral disk and swap), and for what its
    extra specs say: resources:, trait:, group_policy, hw:cpu_policy and hw:cpu_thread_policy. All
    others are named in a warning. Flavors that nova does not have stay as they are.

    Exit codes: 0 every flavor is as nova has it; 11 some are not; 13 changes pending (--dry-run).
    """
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.flavor_import import Import
    from berth.cli.fleet.nova_flavors import read_flavors

    every = read_flavors(file)
    with access.client() as client:
        Import(client, may_replace=replace, is_dry_run=dry_run).run(every)


def _path(name: str) -> str:
    # Deferred: `--help` does not need it.
    from berth.cli.fleet.client import FLAVORS, path_of

    return f"{FLAVORS}{path_of(name)}"

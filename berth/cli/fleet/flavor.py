# SPDX-License-Identifier: Apache-2.0
"""`berth flavor`: requests with a name. Source: spec/beyond.md 4.5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from berth.cli.columns import request_in_words
from berth.cli.deferred import work_in
from berth.cli.fleet.access import Access
from berth.cli.fleet.nouns import Noun, add_delete, add_list, add_show, put_named, replacing
from berth.cli.fleet.request_options import RequestOptions, takes_request, without_none
from berth.cli.options import accessing, argument, flag, option
from berth.cli.output import say, say_json
from berth.model.paths import FLAVORS

if TYPE_CHECKING:
    from berth.cli.fleet.references import Json

_FLAVORS = Noun(
    FLAVORS,
    "FLAVOR",
    "flavor",
    columns={
        "FLAVOR": lambda item: str(item["name"]),
        "ASKS FOR": lambda item: request_in_words(item["request"]),
        "DESCRIPTION": lambda item: item["description"] or "-",
    },
)

#: The members of a flavor that `PUT` takes.
_MEMBERS: Final = ("request", "expose", "description")


def _print_flavor(shown: Json) -> None:
    hidden = [] if shown["expose"] else ["not in metrics"]
    description = ", ".join([shown["description"], *hidden])
    say(": ".join(filter(None, (shown["name"], description))))
    say_json(shown["request"])


@click.group()
def flavor() -> None:
    """List, set, import and delete flavors: requests with a name.

    `berth candidates --flavor NAME` and `berth why --flavor NAME` ask for what a flavor asks for.
    """


add_list(flavor, _FLAVORS, "List flavors with what they ask for.")
add_show(flavor, _FLAVORS, "Show a flavor with its whole request.", _print_flavor)


@flavor.command(name="set")
@_FLAVORS.argument()
@takes_request
@option("--description TEXT", "A description for people.")
@click.option("--expose/--hide", default=None, help="Whether metrics may show its capacity.")
@replacing
@accessing
def set_flavor(
    access: Access,
    name: str,
    request: RequestOptions,
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
    body = request.body() | without_none(description=description, expose=expose)
    with access.client() as client:
        sent: dict[str, Any] = {key: body[key] for key in _MEMBERS if key in body}
        answer, is_new = put_named(client, _FLAVORS.path_to(name), sent, may_replace=replace)
        done = "created" if is_new else "replaced"
        client.show(
            answer, lambda shown: say(f"{done} {name}: {request_in_words(shown['request'])}")
        )


add_delete(flavor, _FLAVORS, "Delete flavors.")


@flavor.command(name="import")
@argument("file", "[FILE]", type=click.File(), default="-")
@flag("--replace", "Replace flavors that are not as nova has them.")
@flag("--dry-run", "Print what would change, and write nothing.")
@accessing
@work_in("fleet.nova_flavors")
def import_flavors() -> None:
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

# SPDX-License-Identifier: Apache-2.0
"""`berth demo`: a fleet to try things on."""

from __future__ import annotations

import click

from berth.cli.deferred import work_in
from berth.cli.fleet.access import Access
from berth.cli.fleet.demo_fleet import HOSTS, demo_fleet
from berth.cli.options import accessing, bind_option, flag, option
from berth.cli.output import say

_HOSTS_MAX = 100_000


@click.group()
def demo() -> None:
    """Load or remove a demo fleet, or serve one."""


@demo.command()
@flag("--remove", "Delete the demo fleet.")
@option(
    "--hosts N",
    "How many hosts; with --remove, of the fleet to delete.",
    default=HOSTS,
    show_default=True,
    type=click.IntRange(8, _HOSTS_MAX),
)
@accessing
def load(access: Access, remove: bool, hosts: int) -> None:
    """Make a fleet of 200 hosts, the same one every time.

    It has three zones and 25 racks, two NUMA nodes in each host, GPUs in every fifth, local disks
    in two zones and a shared pool in the third, and virtual machines on about two thirds of it.
    """
    # Deferred: `--help` does not need it.
    from berth.cli.fleet import demo_loading

    fleet = demo_fleet(hosts)
    with access.client(creates=not remove) as client:
        if remove:
            sentence = demo_loading.remove(client, fleet)
        else:
            sentence = demo_loading.load(client, fleet)
        if not access.as_json:
            say(sentence)


@demo.command("serve")
@option(
    "--hosts N",
    "How many hosts.",
    default=2_000,
    show_default=True,
    # With two racks, and GPUs of both models.
    type=click.IntRange(16, _HOSTS_MAX),
)
@option(
    "--changes N",
    "How many changes a second; 0 for a fleet in which nothing happens.",
    default=10.0,
    show_default=True,
    type=click.FloatRange(0, 100),
)
@bind_option
@work_in("fleet.demo_service")
def serve_demo() -> None:
    """Serve a fleet in which something goes on, to look at its page.

    The service has a database of its own and no authentication. Virtual machines are placed and
    released, some with a lease; racks are drained; flavors are stored. Ctrl-C ends it, and nothing
    is left.
    """

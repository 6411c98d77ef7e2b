# SPDX-License-Identifier: Apache-2.0
"""`berth demo`: a fleet to try things on."""

from __future__ import annotations

import click

from berth.cli.fleet.access import Access, accessing


@click.group()
def demo() -> None:
    """Make a fleet to try things on, and take it away."""


@demo.command()
@click.option("--remove", is_flag=True, help="Take the fleet away again.")
@accessing
def load(access: Access, remove: bool) -> None:
    """Make a fleet of 200 hosts, the same one every time.

    It has three zones and 25 racks, two NUMA nodes in each host, GPUs in every fifth, local disks
    in two zones and a shared pool in the third, and virtual machines on about two thirds of it.
    """
    # Deferred: `--help` does not need them.
    from berth.cli.fleet import demo_loading
    from berth.cli.fleet.demo_fleet import demo_fleet

    with access.client() as client:
        if remove:
            sentence = demo_loading.remove(client, demo_fleet())
        else:
            sentence = demo_loading.load(client, demo_fleet())
        if not access.as_json:
            click.echo(sentence)

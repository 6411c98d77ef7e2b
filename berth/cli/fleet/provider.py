# SPDX-License-Identifier: Apache-2.0
"""`berth provider`: providers and their trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

import click

from berth.cli.columns import amount, counted, print_columns, print_fields
from berth.cli.fleet.access import Access, accessing
from berth.cli.fleet.completing import amounts, provider_names, trait_names
from berth.cli.output import say, say_json

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.cli.fleet.references import Json

provider_argument = click.argument("reference", metavar="PROVIDER", shell_complete=provider_names)


@click.group()
def provider() -> None:
    """List, show, create, change and delete providers."""


@provider.command(name="list")
@click.option("--name", metavar="NAME", help="Only the provider with this name.")
@click.option(
    "--in-tree",
    metavar="PROVIDER",
    shell_complete=provider_names,
    help="Only the tree that contains this provider.",
)
@click.option(
    "--resource",
    "resources",
    multiple=True,
    metavar="CLASS=AMOUNT",
    shell_complete=amounts,
    help="Only providers that could give this much now; may be repeated.",
)
@click.option(
    "--required",
    multiple=True,
    metavar="TRAITS",
    shell_complete=trait_names,
    help="Only providers with these traits: A,B has both, !A has it not, in:A,B has one of them; "
    "may be repeated.",
)
@click.option(
    "--member-of",
    multiple=True,
    metavar="AGGREGATES",
    help="Only providers in an aggregate, named by UUID, name or label: A, !A, in:A,B or !in:A,B; "
    "may be repeated.",
)
@accessing
def list_providers(
    access: Access,
    name: str | None,
    in_tree: str | None,
    resources: Sequence[str],
    required: Sequence[str],
    member_of: Sequence[str],
) -> None:
    """List providers: all, or those that satisfy every option."""
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import print_answer
    from berth.cli.fleet.filters import provider_query
    from berth.cli.fleet.suggestions import did_you_mean
    from berth.cli.fleet.warned import warn

    with access.client() as client:
        query = provider_query(client, name, in_tree, resources, required, member_of)
        answer = client.get("/resource_providers", query)
        if name is not None and not answer.json()["resource_providers"]:
            warn(f"no provider is named {name}{did_you_mean(client, '/resource_providers', name)}")
        if access.as_json:
            print_answer(answer)
        else:
            _print_list(answer.json()["resource_providers"])


def _print_list(providers: Sequence[Json]) -> None:
    names = {item["uuid"]: item["name"] for item in providers}
    rows = []
    for item in sorted(providers, key=lambda item: str(item["name"])):
        parent = item["parent_provider_uuid"]
        rows.append([item["name"], item["uuid"], names.get(parent, parent) or "-"])
    if rows:
        print_columns(("NAME", "UUID", "PARENT"), rows)
    trees = len({item["root_provider_uuid"] for item in providers})
    say(f"{counted(len(providers), 'provider')} in {counted(trees, 'tree')}")


@provider.command()
@accessing
def kept(access: Access) -> None:
    """List providers whose devices are away, and until when what was set on them is kept.

    The agent of the host removes them the day after. `berth provider delete` removes one now.
    """
    # Deferred: `--help` does not need it.
    from berth.hosts.drivers.kept import KEPT_UNTIL, last_day

    with access.client() as client:
        traits = client.get("/traits", [("name", f"startswith:{KEPT_UNTIL}")]).json()["traits"]
        rows = [
            (item["name"], item["uuid"], str(day))
            for trait in sorted(traits)
            if (day := last_day([trait]))
            for item in client.get("/resource_providers", [("required", trait)]).json()[
                "resource_providers"
            ]
        ]
    if access.as_json:
        keys = ("name", "uuid", "until")
        say_json({"providers": [dict(zip(keys, row, strict=True)) for row in rows]})
    else:
        print_columns(("NAME", "UUID", "UNTIL"), rows)
        say(counted(len(rows), "provider"))


@provider.command()
@provider_argument
@accessing
def show(access: Access, reference: str) -> None:
    """Show a provider: its place in its tree, inventory, traits and aggregates."""
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import print_answer
    from berth.cli.fleet.references import uuid_of

    with access.client() as client:
        answer = client.get(f"/resource_providers/{uuid_of(client, reference)}")
        if access.as_json:
            print_answer(answer)
        else:
            _print_provider(client, answer.json())


def _print_provider(client: Client, item: Json) -> None:
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.contents import contents_of, print_inventories
    from berth.cli.fleet.references import Labels, described, names_of

    contents = contents_of(client, item)
    above = [uuid for uuid in (item["parent_provider_uuid"], item["root_provider_uuid"]) if uuid]
    names = names_of(client, set(above))
    print_fields(
        [
            ("name", item["name"]),
            ("uuid", item["uuid"]),
            ("parent", names.get(item["parent_provider_uuid"], "-")),
            ("root", names[item["root_provider_uuid"]]),
            ("generation", amount(item["generation"])),
            ("traits", " ".join(contents.traits) or "-"),
            ("aggregates", described(Labels(client), contents.aggregates) or "-"),
            ("consumers", amount(len(contents.consumers))),
        ]
    )
    if contents.inventories:
        say()
        print_inventories(contents.inventories, contents.usages)


@provider.command()
@provider_argument
@accessing
def tree(access: Access, reference: str) -> None:
    """Show the tree that contains a provider, with what is used and what each provider has.

    With --json, it prints the list of the tree's providers.
    """
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import print_answer
    from berth.cli.fleet.provider_trees import print_tree
    from berth.cli.fleet.references import uuid_of

    with access.client() as client:
        uuid = uuid_of(client, reference)
        if access.as_json:
            print_answer(client.get("/resource_providers", [("in_tree", uuid)]))
        else:
            print_tree(client, uuid)


@provider.command()
@click.argument("file", metavar="FILE", type=click.File())
@click.option(
    "--remove-missing",
    is_flag=True,
    help="Also remove the providers of the tree that are not in the file.",
)
@click.option(
    "--create-names",
    is_flag=True,
    help="Create the custom traits and resource classes that do not exist.",
)
@click.option("--dry-run", is_flag=True, help="Only print what would change.")
@accessing
def apply(
    access: Access, file: TextIO, remove_missing: bool, create_names: bool, dry_run: bool
) -> None:
    """Change a tree of providers to match FILE, completely or not at all.

    \b
      providers:
      - name: cn1
        inventories: {DISK_GB: {total: 2000, reserved: 140}}
      - name: cn1_numa0
        parent: cn1
        inventories: {VCPU: {total: 32}}
        traits: [HW_NUMA_ROOT]

    FILE is YAML or JSON, or - for standard input. The provider without a parent is the root; a tree
    that does not exist is created. For each provider, the inventories, traits and aggregates in the
    file replace the present ones; what the file leaves out stays.

    Exit codes: 0 done; 13 the dry run found changes.
    """
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.provider_files import read_wanted_tree
    from berth.cli.fleet.tree_edits import send_tree

    reference, body = read_wanted_tree(file)
    body |= {"remove_missing": remove_missing, "create_names": create_names}
    with access.client() as client:
        send_tree(client, reference, body, dry_run=dry_run)


@provider.command()
@click.argument("name", metavar="NAME")
@click.option("--uuid", metavar="UUID", help="Its UUID.  [default: the service chooses one]")
@click.option(
    "--parent",
    metavar="PROVIDER",
    shell_complete=provider_names,
    help="Create it below this provider.",
)
@accessing
def create(access: Access, name: str, uuid: str | None, parent: str | None) -> None:
    """Create a provider, without inventory."""
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import print_answer
    from berth.cli.fleet.references import uuid_of

    with access.client() as client:
        body = {"name": name}
        if uuid is not None:
            body["uuid"] = uuid
        if parent is not None:
            body["parent_provider_uuid"] = uuid_of(client, parent)
        answer = client.send("POST", "/resource_providers", body)
        if access.as_json:
            print_answer(answer)
        else:
            say(f"created {name} ({answer.json()['uuid']})")


@provider.command(name="set")
@provider_argument
@click.option("--name", metavar="NAME", help="Rename it.")
@click.option(
    "--parent",
    metavar="PROVIDER",
    shell_complete=provider_names,
    help="Move it, with everything below it, below this provider.",
)
@click.option("--no-parent", is_flag=True, help="Make it the root of a tree of its own.")
@accessing
def set_provider(
    access: Access, reference: str, name: str | None, parent: str | None, no_parent: bool
) -> None:
    """Rename a provider, or move it in the tree."""
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import print_answer
    from berth.cli.fleet.references import find_provider, uuid_of

    if parent is not None and no_parent:
        raise click.UsageError("--parent and --no-parent exclude each other")
    if name is None and parent is None and not no_parent:
        raise click.UsageError("nothing to change: give --name, --parent or --no-parent")
    with access.client() as client:
        item = find_provider(client, reference)
        body = {
            "name": name or item["name"],
            "parent_provider_uuid": None if no_parent else item["parent_provider_uuid"],
        }
        if parent is not None:
            body["parent_provider_uuid"] = uuid_of(client, parent)
        answer = client.send("PUT", f"/resource_providers/{item['uuid']}", body)
        if access.as_json:
            print_answer(answer)
        else:
            say(f"changed {body['name']}")


@provider.command()
@provider_argument
@click.option("--tree", "with_tree", is_flag=True, help="Also delete every provider below it.")
@accessing
def delete(access: Access, reference: str, with_tree: bool) -> None:
    """Delete a provider, with its inventory, traits and memberships.

    A provider that has allocations, or providers below it, cannot be deleted. The command then says
    which.
    """
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.provider_deletion import delete_providers
    from berth.cli.fleet.references import find_provider

    with access.client() as client:
        deleted = delete_providers(client, find_provider(client, reference), with_tree=with_tree)
        if not access.as_json:
            say(f"deleted {', '.join(deleted)}")

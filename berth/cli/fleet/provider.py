# SPDX-License-Identifier: Apache-2.0
"""`berth provider`: providers and their trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from berth.cli.columns import amount, counted, print_columns, print_fields, print_line
from berth.cli.failure import CommandFailed, ExitCode, Misused
from berth.cli.fleet.access import Access
from berth.cli.fleet.labels import described, memberships
from berth.cli.fleet.nouns import provider_argument
from berth.cli.fleet.provider_trees import (
    contents_of,
    differences,
    in_order,
    print_inventories,
    print_tree,
)
from berth.cli.fleet.references import find_provider, names_of, path_to_provider, uuid_of
from berth.cli.fleet.refusals import did_you_mean, warn
from berth.cli.fleet.request_options import without_none
from berth.cli.options import accessing, amounts_of, argument, asking, flag, option
from berth.cli.output import say, say_json
from berth.model.paths import tree_path
from berth.model.refusals import Conflict

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.cli.fleet.references import Json


@click.group()
def provider() -> None:
    """List, show, create, change and delete providers."""


@provider.command(name="list")
@option("--name NAME", "Only the provider with this name.")
@option("--in-tree PROVIDER", "Only the tree that contains this provider.")
@option(
    "--resource CLASS=AMOUNT...",
    "Only providers that could give this much now; may be repeated.",
    parameter="resources",
)
@option(
    "--required TRAITS...",
    "Only providers with these traits: A,B means both, !A means not A, in:A,B means one of "
    "them; may be repeated.",
)
@option(
    "--member-of AGGREGATES...",
    "Only providers in an aggregate, named by UUID, name or label: A, !A, in:A,B or !in:A,B; "
    "may be repeated.",
)
@asking
def list_providers(
    client: Client,
    name: str | None,
    in_tree: str | None,
    resources: Sequence[str],
    required: Sequence[str],
    member_of: Sequence[str],
) -> None:
    """List providers: all, or those that satisfy every option."""
    query = [] if name is None else [("name", name)]
    if in_tree is not None:
        query.append(("in_tree", str(find_provider(client, in_tree)["uuid"])))
    if resources:
        pairs = (f"{name}:{number}" for name, number in amounts_of(resources).items())
        query.append(("resources", ",".join(pairs)))
    query += [("required", traits) for traits in required]
    query += [("member_of", text) for text in memberships(client.labels, member_of)]
    answer = client.get("/resource_providers", query)
    if name is not None and not answer.json()["resource_providers"]:
        warn(f"no provider is named {name}{did_you_mean(client, '/resource_providers', name)}")
    client.show(answer, lambda body: _print_list(body["resource_providers"]))


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
@asking
def kept(client: Client) -> None:
    """List providers whose devices are away, and until when what was set on them is kept.

    The agent of the host removes them the day after. `berth provider delete` removes one now.
    """
    # Deferred: `--help` does not need it.
    from berth.hosts.drivers.kept_settings import KEPT_UNTIL, last_day

    traits = client.read("/traits", ("name", f"startswith:{KEPT_UNTIL}"))["traits"]
    rows = [
        (item["name"], item["uuid"], str(day))
        for trait in sorted(traits)
        if (day := last_day([trait]))
        for item in client.read("/resource_providers", ("required", trait))["resource_providers"]
    ]
    if client.as_json:
        keys = ("name", "uuid", "until")
        say_json({"providers": [dict(zip(keys, row, strict=True)) for row in rows]})
    else:
        print_columns(("NAME", "UUID", "UNTIL"), rows)
        say(counted(len(rows), "provider"))


@provider.command()
@provider_argument
@asking
def show(client: Client, reference: str) -> None:
    """Show a provider: its place in its tree, inventory, traits and aggregates."""
    answer = client.get(path_to_provider(client, reference))
    client.show(answer, lambda item: _print_provider(client, item))


def _print_provider(client: Client, item: Json) -> None:
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
            ("aggregates", described(client.labels, contents.aggregates) or "-"),
            ("consumers", amount(len(contents.consumers))),
        ]
    )
    if contents.inventories:
        say()
        print_inventories(contents.inventories, contents.usages)


@provider.command()
@provider_argument
@asking
def tree(client: Client, reference: str) -> None:
    """Show the tree that contains a provider, with what is used and what each provider has.

    With --json, it prints the list of the tree's providers.
    """
    uuid = uuid_of(client, reference)
    if client.as_json:
        client.show(client.get("/resource_providers", [("in_tree", uuid)]))
    else:
        print_tree(client, uuid)


@provider.command()
@argument("file", "FILE", type=click.File())
@flag("--remove-missing", "Also remove the providers of the tree that are not in the file.")
@flag("--create-names", "Create the custom traits and resource classes that do not exist.")
@flag("--dry-run", "Only print what would change.")
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
    reference, body = read_wanted_tree(file)
    body |= {"remove_missing": remove_missing, "create_names": create_names}
    with access.client() as client:
        send_tree(client, reference, body, dry_run=dry_run)


@provider.command()
@argument("name", "NAME")
@option("--uuid UUID", "Its UUID.  [default: the service chooses one]")
@option("--parent PROVIDER", "Create it below this provider.")
@asking
def create(client: Client, name: str, uuid: str | None, parent: str | None) -> None:
    """Create a provider, without inventory."""
    above = None if parent is None else uuid_of(client, parent)
    body = without_none(name=name, uuid=uuid, parent_provider_uuid=above)
    answer = client.send("POST", "/resource_providers", body)
    client.show(answer, lambda item: say(f"created {name} ({item['uuid']})"))


@provider.command(name="set")
@provider_argument
@option("--name NAME", "Rename it.")
@option("--parent PROVIDER", "Move it, with everything below it, below this provider.")
@flag("--no-parent", "Make it the root of a tree of its own.")
@accessing
def set_provider(
    access: Access, reference: str, name: str | None, parent: str | None, no_parent: bool
) -> None:
    """Rename a provider, or move it in the tree."""
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
        client.show(answer, lambda item: say(f"changed {item['name']}"))


@provider.command()
@provider_argument
@flag("--tree", "Also delete every provider below it.", parameter="with_tree")
@asking
def delete(client: Client, reference: str, with_tree: bool) -> None:
    """Delete a provider, with its inventory, traits and memberships.

    A provider that has allocations, or providers below it, cannot be deleted. The command then says
    which.
    """
    deleted = delete_providers(client, find_provider(client, reference), with_tree=with_tree)
    if not client.as_json:
        say(f"deleted {', '.join(deleted)}")


def read_wanted_tree(file: TextIO) -> tuple[str, dict[str, Any]]:
    """A provider of the tree in a file, and the body that makes the tree.

    The root is preferred, because a tree that exists has it already.

    Raises:
        CommandFailed: the file has no providers, or is neither YAML nor JSON.
    """
    # Deferred: `--help` does not need them.
    from berth.hosts.errors import BadConfiguration
    from berth.hosts.validation import parse_yaml

    try:
        read = parse_yaml(file.read(), file.name)
    except (BadConfiguration, UnicodeDecodeError) as error:
        words = " ".join(str(error).split())
        raise _unusable(file, f"is neither YAML nor JSON: {words}") from error
    providers = read.get("providers") if isinstance(read, dict) else read
    if not isinstance(providers, list) or not providers:
        raise _unusable(file, "has no list of providers")
    roots = [each for each in providers if isinstance(each, dict) and not each.get("parent")]
    named = (each.get("uuid") or each.get("name") for each in [*roots[:1], *providers[:1]] if each)
    reference = next((str(each) for each in named if each), None)
    if reference is None:
        raise _unusable(file, "has a provider without a uuid and a name")
    return reference, {"providers": providers}


def _unusable(file: TextIO, fault: str) -> CommandFailed:
    return Misused(f"{file.name} {fault}")


_MARKS: Final[Mapping[str, str]] = {"create": "+", "update": "~", "remove": "-"}


def send_tree(client: Client, reference: str, body: Mapping[str, Any], *, dry_run: bool) -> None:
    """Make a tree like a body, and print what changed; for a dry run only print.

    Raises:
        CommandFailed: the dry run found changes (PENDING).
        Conflict: what would be removed is in use, or a provider of another tree has a name.
    """
    path = f"{tree_path(reference)}{'?dry_run=true' if dry_run else ''}"
    answer = client.send("PUT", path, body)
    client.show(answer, _print_edit)
    if dry_run and answer.json()["changes"]:
        raise CommandFailed("nothing was written", ExitCode.PENDING)


def _print_edit(edit: Json) -> None:
    for line in _lines(edit):
        print_line(line)


def _lines(edit: Json) -> Iterator[str]:
    """What an edit changes, a line for each provider, and the sum."""
    for kind, member in (
        ("resource class", "created_resource_classes"),
        ("trait", "created_traits"),
    ):
        for name in edit[member]:
            yield f"+ {kind} {name}"
    for change in edit["changes"]:
        yield "  ".join([f"{_MARKS[change['change']]} {_name(change)}", *_words(change)])
    yield f"{counted(len(edit['changes']), 'provider')} changed"


def _name(change: Json) -> str:
    before, after = change["before"] or {}, change["after"] or {}
    was = before.get("name", change["name"])
    return f"{was} -> {change['name']}" if after and was != change["name"] else str(was)


def _words(change: Json) -> Iterator[str]:
    """The members of a provider that become others; nothing of one that goes."""
    if change["after"] is not None:
        yield from differences(change["before"] or {}, change["after"])


#: So many consumers or providers are named in a message.
_NAMED_MAX: Final = 3


def delete_providers(client: Client, provider: Json, *, with_tree: bool) -> list[str]:
    """Delete a provider, or it and everything below it; return the names in that order.

    Raises:
        Conflict: something has allocations, or is below; the message says what.
    """
    doomed = _with_all_below(client, provider) if with_tree else [provider]
    for item in doomed:
        try:
            client.send("DELETE", f"/resource_providers/{item['uuid']}")
        except Conflict as error:
            blocks = "; ".join(_what_blocks(client, item))
            raise error.saying(f"{item['name']} was not deleted: {blocks or error}") from error
    return [str(item["name"]) for item in doomed]


def _with_all_below(client: Client, provider: Json) -> Sequence[Json]:
    """A provider after everything below it."""
    tree = client.read("/resource_providers", ("in_tree", provider["uuid"]))["resource_providers"]
    above = {provider["uuid"]}
    doomed = []
    for item, _ in in_order(tree):
        if item["uuid"] in above or item["parent_provider_uuid"] in above:
            above.add(item["uuid"])
            doomed.append(item)
    return doomed[::-1]


def _what_blocks(client: Client, provider: Json) -> Iterator[str]:
    uuid = provider["uuid"]
    tree = client.read("/resource_providers", ("in_tree", uuid))["resource_providers"]
    children = sorted(item["name"] for item in tree if item["parent_provider_uuid"] == uuid)
    if children:
        yield (
            f"{counted(len(children), 'provider is', 'providers are')} below it "
            f"({_named(children)}): add --tree"
        )
    consumers = client.read(f"/resource_providers/{uuid}/allocations")["allocations"]
    if consumers:
        yield (
            f"{counted(len(consumers), 'consumer has', 'consumers have')} allocations "
            f"({_named(sorted(consumers))}): `berth release` them first"
        )


def _named(names: Sequence[str]) -> str:
    more = [] if len(names) <= _NAMED_MAX else [f"{len(names) - _NAMED_MAX:,} more"]
    return ", ".join([*names[:_NAMED_MAX], *more])

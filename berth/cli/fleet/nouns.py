# SPDX-License-Identifier: Apache-2.0
"""What the nouns of the command line have alike: where the API has them, how people see them, and
the verbs that follow from that.

A noun is a value (`Noun`), and each function of this module adds a verb to the noun's group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import click

from berth.cli.columns import counted, print_list
from berth.cli.fleet.references import path_to_provider
from berth.cli.fleet.refusals import suggesting, warn
from berth.cli.options import Decorator, argument, asking, flag, option
from berth.cli.output import say
from berth.model.paths import path_of
from berth.model.refusals import Refused

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.cli.fleet.references import Json
    from berth.hosts.service import Answer

provider_argument = argument("reference", "PROVIDER")

generation_option = option(
    "--generation N",
    "Change nothing unless the provider is still at this generation.  "
    "[default: its generation now]",
    type=click.IntRange(min=0),
)

replacing = flag("--replace", "Replace the one that has this name.")


@dataclass(frozen=True, slots=True)
class Noun:
    """Things that the API lists at a path, and that people name.

    Attributes:
        path: of the list of all; its last segment is the member of the answer that has them.
        form: of a name, as help shows it.
        word, words: one of them, and several, in a sentence.
        columns: the cells of a table by their headings; without any, a list is of names.
        right: the headings of the columns of numbers.
    """

    path: str
    form: str
    word: str
    words: str | None = None
    columns: Mapping[str, Callable[[Json], str]] = field(default_factory=dict)
    right: Collection[str] = ()

    @property
    def member(self) -> str:
        """The member of an answer that has the things."""
        return self.path.rpartition("/")[2]

    def argument(self) -> Decorator:
        """The argument that names one; the command gets it as `name`."""
        return argument("name", self.form)

    def arguments(self, *, may_be_none: bool = False) -> Decorator:
        """The arguments that name several; the command gets them as `names`."""
        form = f"[{self.form}]..." if may_be_none else f"{self.form}..."
        return argument("names", form, required=not may_be_none)

    def path_to(self, name: str) -> str:
        """The path of one."""
        return f"{self.path}{path_of(name)}"

    def cells(self, item: Json) -> list[str]:
        """The row of one in a table."""
        return [cell(item) for cell in self.columns.values()]

    def print_table(self, items: Iterable[Json]) -> None:
        """Print a row for each, and their number."""
        rows = [*map(self.cells, items)]
        print_list(list(self.columns), rows, self.word, self.words, right=self.right)

    def print_names(self, names: Iterable[str]) -> None:
        """Print a line for each, in alphabetical order, and their number."""
        every = sorted(names)
        say(*every, counted(len(every), self.word, self.words))


# --- Verbs ----------------------------------------------------------------------------------------


def add_list(group: click.Group, noun: Noun, text: str) -> None:
    """Add `list`.

    Args:
        text: the help.
    """

    @group.command(name="list", help=text)
    @asking
    def list_all(client: Client) -> None:
        client.show(client.get(noun.path), show)

    def show(body: Json) -> None:
        items = body[noun.member]
        if noun.columns:
            noun.print_table(items)
        else:
            noun.print_names(item["name"] for item in items)


def add_show(group: click.Group, noun: Noun, text: str, printed: Callable[[Json], None]) -> None:
    """Add `show`.

    Args:
        text: the help.
        printed: prints one for people.
    """

    @group.command(help=text)
    @noun.argument()
    @asking
    def show(client: Client, name: str) -> None:
        with suggesting(client, noun.path, name):
            answer = client.get(noun.path_to(name))
        client.show(answer, printed)


def add_create(group: click.Group, noun: Noun, text: str) -> None:
    """Add `create` for things that are no more than names.

    Args:
        text: the help.
    """
    _add_for_each(group, noun, "create", "PUT", text)


def add_delete(group: click.Group, noun: Noun, text: str) -> None:
    """Add `delete`.

    Args:
        text: the help.
    """
    _add_for_each(group, noun, "delete", "DELETE", text)


def _add_for_each(group: click.Group, noun: Noun, verb: str, method: str, text: str) -> None:
    """Add a verb that sends a request for each name; a refusal does not undo those before it."""

    @group.command(name=verb, help=text)
    @noun.arguments()
    @asking
    def for_each(client: Client, names: Sequence[str]) -> None:
        for name in names:
            with suggesting(client, noun.path, name):
                answer = client.send(method, noun.path_to(name))
            if client.as_json:
                continue
            is_done = method == "DELETE" or answer.status_code == HTTPStatus.CREATED
            say(f"{verb}d {name}" if is_done else f"{name} exists already")


def add_part_of_provider(
    group: click.Group, name: str, part: str, text: str, printed: Callable[[Json], None]
) -> None:
    """Add a verb that shows what one provider has.

    Args:
        part: the last segment of its path.
        text: the help.
        printed: prints it for people.
    """

    @group.command(name=name, help=text)
    @provider_argument
    @asking
    def show(client: Client, reference: str) -> None:
        client.show(client.get(path_to_provider(client, reference, part)), printed)


def put_named(
    client: Client, path: str, body: Mapping[str, Any], *, may_replace: bool
) -> tuple[Answer, bool]:
    """Create a flavor or a drain; returns the answer, and whether it is new.

    Args:
        may_replace: replace the one that has this name.

    Raises:
        Refused: there is one already.
    """
    headers = {} if may_replace else {"If-None-Match": "*"}
    try:
        answer = client.send("PUT", path, body, headers=headers)
    except Refused as refused:
        if refused.code != "berth.precondition.failed":
            raise
        raise refused.saying(f"{refused}: --replace replaces it") from refused
    return answer, answer.status_code == HTTPStatus.CREATED


# --- What a provider has a set of -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetOfProvider:
    """The set of things of one noun that a provider has: its traits, or its aggregates.

    Attributes:
        resolved: what the API calls the things that a user names.
        lacks: a warning about those of them that the provider does not have.
        printed: prints the set after a change, of a provider as the user named it.
        next_step: by the beginning of a refusal, what to do about it.
    """

    noun: Noun
    resolved: Callable[[Client, Sequence[str]], set[str]]
    lacks: Callable[[Client, str, set[str]], str]
    printed: Callable[[Client, str, Sequence[str]], None]
    next_step: tuple[str, str] | None = None

    def add_verbs(self, group: click.Group, *, to_set: str, to_add: str, to_remove: str) -> None:
        """Add `set`, `add` and `remove`, with their help."""
        self._add_verb(group, "set", to_set, lambda present, named: named)
        self._add_verb(group, "add", to_add, lambda present, named: present | named)
        self._add_verb(group, "remove", to_remove, lambda present, named: present - named)

    def _add_verb(
        self,
        group: click.Group,
        verb: str,
        text: str,
        changed: Callable[[set[str], set[str]], set[str]],
    ) -> None:
        @group.command(name=verb, help=text)
        @provider_argument
        @self.noun.arguments(may_be_none=verb == "set")
        @generation_option
        @asking
        def change(
            client: Client, reference: str, names: Sequence[str], generation: int | None
        ) -> None:
            named = self.resolved(client, names)
            path = path_to_provider(client, reference, self.noun.member)
            body = client.read(path)
            present = set(body[self.noun.member])
            if verb == "remove" and (missing := named - present):
                warn(self.lacks(client, reference, missing))
            body[self.noun.member] = sorted(changed(present, named))
            if generation is not None:
                body["resource_provider_generation"] = generation
            answer = self._put(client, path, body)
            client.show(
                answer, lambda sent: self.printed(client, reference, sent[self.noun.member])
            )

    def _put(self, client: Client, path: str, body: Mapping[str, Any]) -> Answer:
        try:
            return client.send("PUT", path, body)
        except Refused as refused:
            if self.next_step is None or not str(refused).startswith(self.next_step[0]):
                raise
            raise refused.saying(f"{refused}; {self.next_step[1]}") from refused

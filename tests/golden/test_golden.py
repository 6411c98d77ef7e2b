# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI documents, the policy sample, the help of every command, and all SQL are as before.

These files guard moves and rewrites that are to change nothing for users.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import io
import json
import pkgutil
from collections.abc import Iterator, Mapping
from typing import Final

import click
import pytest
from sqlalchemy import Dialect as SqlDialect
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.selectable import SelectBase

import berth.store
import berth.upkeep
from berth.api.namespaces import BERTH
from berth.api.openapi.document import describe
from berth.api.policy import print_sample
from berth.cli.deferred import loaded
from berth.cli.main import cli
from tests.golden.files import FOLDER, Compare

#: Columns of the terminal in which help is shown.
WIDTH: Final = 80

DIALECTS: Final[Mapping[str, SqlDialect]] = {
    "mysql": mysql.dialect(),
    "postgresql": postgresql.dialect(),  # type: ignore[no-untyped-call]
    "sqlite": sqlite.dialect(),
}


def test_the_openapi_documents(golden: Compare) -> None:
    """That of 1.0 as it is, and of each microversion what differs from the one before."""
    documents = [
        json.dumps(describe(minor, auth_strategy="keystone"), indent=1, sort_keys=True) + "\n"
        for minor in range(40)
    ]
    texts = {"1.00.json": documents[0]}
    for minor in range(1, 40):
        changes = difflib.unified_diff(
            documents[minor - 1].splitlines(keepends=True),
            documents[minor].splitlines(keepends=True),
            f"1.{minor - 1}",
            f"1.{minor}",
            n=2,
        )
        texts[f"1.{minor:02}.diff"] = "".join(changes)
    golden(FOLDER / "openapi", texts)


def test_the_openapi_document_of_berths_own_api(golden: Compare) -> None:
    """Within a version it only gains members."""
    document = describe(39, auth_strategy="keystone", namespace=BERTH)
    text = json.dumps(document, indent=1, sort_keys=True) + "\n"
    golden(FOLDER / "openapi-berth", {"v1.json": text})


def test_the_policy_sample(golden: Compare) -> None:
    """What `berth policy sample` prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        print_sample()
    golden(FOLDER / "policy", {"sample.yaml": printed.getvalue()})


def test_the_help_of_every_command(golden: Compare) -> None:
    """One file for each command and group right below `berth`."""
    top = context_of("berth", cli, None)
    assert isinstance(top.command, click.Group)
    texts = {"berth.txt": help_of(top)}
    for name, command in top.command.commands.items():
        below = contexts_below(context_of(name, command, top))
        texts[f"{name}.txt"] = "\n\n".join(map(help_of, below))
    golden(FOLDER / "help", texts)


def context_of(name: str, command: click.Command, parent: click.Context | None) -> click.Context:
    """A command as it is called: what the one above it sets holds for it too."""
    command = loaded(command)
    return click.Context(command, parent, name, terminal_width=WIDTH, **command.context_settings)


def contexts_below(context: click.Context) -> Iterator[click.Context]:
    """A command's, and those of all below it."""
    yield context
    if isinstance(context.command, click.Group):
        for name, child in context.command.commands.items():
            yield from contexts_below(context_of(name, child, context))


def help_of(context: click.Context) -> str:
    """What `--help` prints."""
    return f"$ {context.command_path} --help\n{context.get_help()}\n"


@pytest.mark.parametrize("name", DIALECTS)
def test_the_sql_of_every_statement(golden: Compare, name: str) -> None:
    """Each statement that a module has made once, by the module and its name."""
    lines = []
    for place, statement in sorted(statements().items()):
        sql = str(statement.compile(dialect=DIALECTS[name]))
        lines.append(f"-- {place}\n" + "".join(f"{line.rstrip()}\n" for line in sql.splitlines()))
    golden(FOLDER / "sql" / name, {"statements.sql": "\n".join(lines)})


def statements() -> dict[str, SelectBase | UpdateBase]:
    """The statements of `berth.store` and `berth.upkeep`, by module and name."""
    found = {}
    modules = [
        module.name
        for package in (berth.store, berth.upkeep)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    for module in modules:
        if ".migrations" in module:
            continue
        of_module = importlib.import_module(module)
        for name, value in vars(of_module).items():
            several = value if isinstance(value, tuple) else (value,)
            for number, each in enumerate(several):
                if isinstance(each, SelectBase | UpdateBase):
                    place = f"{module.removeprefix('berth.')}.{name}"
                    found[f"{place}[{number}]" if each is not value else place] = each
    return found

# SPDX-License-Identifier: Apache-2.0
"""The `berth` command: its output and exit codes."""

from __future__ import annotations

import ast
import inspect
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import click
import pytest

import berth
from berth.cli.deferred import Deferred, loaded
from berth.cli.failure import EXIT_CODES, ExitCode, failure_for
from berth.cli.main import cli
from tests.e2e.serving import BERTH, PATIENCE, environment, run_anew, run_berth


def configuration(folder: Path, text: str) -> str:
    """Write a configuration file, and return its path."""
    path = folder / "any.conf"
    path.write_text(text)
    return str(path)


def on(folder: Path, url: str) -> str:
    """A configuration file for a database, without authentication."""
    return configuration(
        folder, f"[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = {url}\n"
    )


def assert_fails(done: subprocess.CompletedProcess[str], code: ExitCode, *said: str) -> None:
    """A failure is one line on stderr that says all of `said`, nothing else, and its code."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("berth: ")
    assert done.stderr.count("\n") == 1
    for words in said:
        assert words in done.stderr


def test_it_tells_its_version(tmp_path: Path) -> None:
    """`berth --version`."""
    done = run_anew(tmp_path, "--version")
    assert (done.returncode, done.stdout) == (ExitCode.OK, f"berth {berth.__version__}\n")


def test_what_stands_for_a_command_says_what_the_command_says() -> None:
    """The summary in the list of commands is the first line of the command's own help."""
    deferred = [one for one in cli.commands.values() if isinstance(one, Deferred)]
    assert deferred
    for one in deferred:
        own = " ".join(str(loaded(one).help).partition("\n\n")[0].split())
        assert one.help == own


def commands_with_works() -> Iterator[tuple[click.Command, ModuleType, str]]:
    """The commands whose work a function in another module does: that module, and its name."""
    folder = Path(berth.__file__).parent
    for path in sorted((folder / "cli").rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            for decorator in getattr(node, "decorator_list", ()):
                if isinstance(node, ast.FunctionDef) and "work_in(" in ast.unparse(decorator):
                    own = ".".join(path.relative_to(folder.parent).with_suffix("").parts)
                    command = getattr(import_module(own), node.name)
                    module = import_module(f"berth.cli.{ast.literal_eval(decorator.args[0])}")
                    yield command, module, node.name


def test_the_work_of_a_command_takes_exactly_what_its_options_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing else compares the options with the function in another module that gets them."""
    works = list(commands_with_works())
    assert len({command.callback.__module__ for command, _, _ in works}) > 3
    for command, module, name in works:
        work = inspect.signature(getattr(module, name))
        monkeypatch.setattr(module, name, work.bind)
        with click.Context(command, obj=False) as context:
            context.invoke(command, **{option.name: None for option in command.params})


@pytest.mark.parametrize(
    "option", ["log_file = no/such/folder/berth.log", "log_config_append = no-such-file"]
)
def test_a_log_that_cannot_be_written_is_the_configurations_mistake(
    tmp_path: Path, option: str
) -> None:
    """It is not reported as a bug in berth."""
    source = configuration(
        tmp_path,
        f"[DEFAULT]\n{option}\n[api]\nauth_strategy = noauth2\n"
        f"[placement_database]\nconnection = sqlite:///{tmp_path}/berth.db\n",
    )
    done = run_berth(tmp_path, "serve", "--config-file", source)
    assert_fails(done, ExitCode.CONFIGURATION, option.partition(" = ")[2])


@pytest.mark.parametrize("name", EXIT_CODES)
def test_the_errors_with_codes_are_called_so(name: str) -> None:
    """The table has names; a class that is renamed or moved would lose its code."""
    module, _, kind = name.rpartition(".")
    found = getattr(import_module(module), kind)
    assert f"{found.__module__}.{found.__qualname__}" == name
    assert failure_for(found.__new__(found)).code == EXIT_CODES[name]


def test_a_mistake_of_ours_is_said_in_one_line() -> None:
    """The message about an unexpected error asks for a report."""
    failure = failure_for(ZeroDivisionError("division by zero"))
    assert failure.code == ExitCode.INTERNAL
    assert "ZeroDivisionError: division by zero" in str(failure)


def test_a_reader_who_has_seen_enough_ends_it_without_a_word(tmp_path: Path) -> None:
    """As `berth policy sample | head` does."""
    with subprocess.Popen(
        [*BERTH, "policy", "sample"],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as command:
        assert command.stdout is not None and command.stderr is not None
        command.stdout.close()
        assert command.stderr.read() == b""
        assert command.wait(PATIENCE) == ExitCode.OUTPUT_CLOSED

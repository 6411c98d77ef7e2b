# SPDX-License-Identifier: Apache-2.0
"""What each command imports: no more than its work takes, so that all others answer at once.

Python starts in 20 ms and click in 60; NumPy, SQLAlchemy and what comes after them take a second.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.serving import environment

#: Runs each of the commands that stand on its standard input in a fork of a process that has
#: imported the command line alone, and prints which packages of others each has imported besides.
RUN_EACH: Final = """
import contextlib, io, json, os, sys
from berth.cli.main import main

ours = {"berth", "__main__", "__mp_main__"}

def imported(words):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main(words)
    top = {name.partition(".")[0] for name in sys.modules}
    return sorted(top - before - sys.stdlib_module_names - ours)

before = {name.partition(".")[0] for name in sys.modules} - {"click"}
found = {}
for words in json.load(sys.stdin):
    reading, writing = os.pipe()
    if not os.fork():
        with open(writing, "w") as file:
            json.dump(imported(words), file)
        os._exit(0)
    os.close(writing)
    with open(reading) as file:
        found[" ".join(words)] = json.load(file)
    os.wait()
json.dump(found, sys.stdout)
"""

#: Walks over all commands, in a process of its own, for it imports them.
WALK: Final = """
import json, click
from berth.cli.deferred import loaded
from berth.cli.main import cli

def walk(words, command):
    command = loaded(command)
    yield words
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from walk([*words, name], child)

print(json.dumps(list(walk([], cli))))
"""


#: What serves requests, searches, or speaks to a database.
HEAVY: Final = {
    *("alembic", "cryptography", "granian", "jsonschema", "keystonemiddleware"),
    *("numpy", "prometheus_client", "rich", "sqlalchemy"),
}


def run_python(home: Path, code: str, text: str = "", **variables: str) -> str:
    """Run a Python program in a separate process, and return its output."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(home, **variables),
        cwd=home,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def imports_of(home: Path, *commands: list[str]) -> dict[str, set[str]]:
    """The third-party packages that each command imports."""
    found = json.loads(run_python(home, RUN_EACH, json.dumps(commands)))
    return {words: set(packages) for words, packages in found.items()}


def test_help_imports_the_command_line_alone(tmp_path: Path) -> None:
    """The help of `berth` and of every command and group below it."""
    commands = [[*words, "--help"] for words in json.loads(run_python(tmp_path, WALK))]
    assert ["agent", "run", "--help"] in commands and ["token", "list", "--help"] in commands
    found = imports_of(tmp_path, *commands)
    assert len(found) == len(commands) > 30
    # `berth audit` has the way to a service with it, which is a fifth of a second.
    of_http = found.pop("audit --help")
    assert HEAVY.isdisjoint(of_http)
    assert {words: packages for words, packages in found.items() if packages != {"click"}} == {}


def test_what_only_prints_imports_the_command_line_alone(tmp_path: Path) -> None:
    """They have no work to do."""
    commands = (
        *("--version", "agent sample", "files", "db check --wrong"),
        *(f"completion {shell}" for shell in ("bash", "zsh", "fish")),
    )
    found = imports_of(tmp_path, *map(str.split, commands))
    assert found == {words: {"click"} for words in commands}


def test_what_reads_a_file_does_without_the_service(tmp_path: Path) -> None:
    """It has to know the configuration or the policy, and neither searches nor databases; also
    where it fails."""
    (tmp_path / "tokens").touch()
    (tmp_path / "users").touch()
    commands = (
        *("policy check", "policy list", "policy sample", "token list --file tokens"),
        *("token list --file there-is-none", "token revoke 12345678 --file tokens"),
        "user list --file users",
    )
    for words, packages in imports_of(tmp_path, *map(str.split, commands)).items():
        assert HEAVY.isdisjoint(packages), words
        assert "oslo_config" in packages, words


def test_config_show_imports_keystone_only_if_it_authenticates(tmp_path: Path) -> None:
    """Its middleware declares its options; no other part of the service is needed."""
    ((_, packages),) = imports_of(tmp_path, ["config", "show"]).items()
    assert HEAVY.isdisjoint(packages)
    source = tmp_path / "placement.conf"
    source.write_text("[api]\nauth_strategy = keystone\n")
    words = ["config", "show", "--config-file", str(source)]
    ((_, packages),) = imports_of(tmp_path, words).items()
    assert (HEAVY - {"cryptography", "keystonemiddleware"}).isdisjoint(packages)
    assert "keystonemiddleware" in packages


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("berth ", {"agent", "db", "serve", "token"}),
        ("berth agent ", {"plan", "run", "sample", "show"}),
        ("berth db check --", {"--config-file", "--repair"}),
        ("berth agent show --driver ", {"libvirt", "linux", "static"}),
        ("berth agent run --driver li", {"libvirt", "linux"}),
        ("berth policy check placement:res", {"placement:reshaper:reshape"}),
        ("berth completion z", {"zsh"}),
    ],
)
def test_the_shell_is_offered_what_may_follow(
    tmp_path: Path, typed: str, offered: set[str]
) -> None:
    """Commands, options, drivers and rules that start with the typed prefix."""
    completions, packages = complete(tmp_path, typed)
    names = {name for kind, name in completions if kind == "plain"}
    assert names >= offered
    assert all(name.startswith(typed.split(" ")[-1]) for name in names)
    assert (HEAVY | {"oslo_policy"}).isdisjoint(packages)


@pytest.mark.parametrize(
    ("typed", "kind"),
    [
        ("berth serve --config-file ", "file"),
        ("berth serve --config-dir ", "dir"),
        *(
            pytest.param(f"berth {words} ", "file", marks=pytest.mark.thorough)
            for words in (
                *("agent show --config", "token list --file"),
                "migrate-inventory --undo",
            )
        ),
    ],
)
def test_the_shell_completes_files_itself(tmp_path: Path, typed: str, kind: str) -> None:
    """berth tells the shell that a file or a directory follows."""
    completions, _ = complete(tmp_path, typed)
    assert [one for one, _ in completions] == [kind]


def complete(home: Path, typed: str) -> tuple[list[tuple[str, str]], set[str]]:
    """The completions for a line, as kind and text, and the imported packages."""
    words = typed.split(" ")
    code = (
        "import sys\nfrom berth.cli.main import main\n"
        "try:\n    main([])\nfinally:\n    print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(
            home, _BERTH_COMPLETE="bash_complete", COMP_WORDS=typed, COMP_CWORD=str(len(words) - 1)
        ),
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line.partition(",") for line in done.stdout.splitlines()]
    modules = {name.partition(".")[0] for name in done.stderr.split()}
    return [(kind, name) for kind, _, name in lines], modules

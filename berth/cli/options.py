# SPDX-License-Identifier: Apache-2.0
"""The options that several commands have."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from berth.cli.address import DEFAULT_HOST, DEFAULT_PORT
from berth.cli.columns import amount
from berth.cli.completing import BY_FORM, driver_names
from berth.cli.fleet.access import Access, access_of
from berth.cli.sources import AGENT_FILE, AgentSource, ConfigurationSource
from berth.model.bounds import LEASE_SECONDS_MAX

Decorator = Callable[[Callable[..., None]], Callable[..., None]]


def gathering(
    argument: str,
    make: Callable[..., object],
    options: Sequence[Decorator],
    parameters: Sequence[str] = (),
) -> Decorator:
    """A decorator that adds options to a command, which gets what they say as one argument.

    Args:
        make: makes it of the options' values, which it gets by their parameters' names.
        parameters: these names, unless `make` has them.
    """
    names = parameters or tuple(inspect.signature(make).parameters)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def gathered(*arguments: object, **typed: Any) -> None:
            made = make(**{name: typed.pop(name) for name in names})
            command(*arguments, **{argument: made}, **typed)

        return with_options(gathered, options)

    return decorate


def with_options(command: Callable[..., None], options: Sequence[Decorator]) -> Callable[..., None]:
    """A command with some options, whose help shows them in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def option(usage: str, text: str, *, parameter: str = "", **attributes: Any) -> Decorator:
    """An option with a value.

    Args:
        usage: its name and the form of its value, as in `--limit N`, with `...` if it may be
            repeated; a shell completes a value by its form.
        text: the help.
        parameter: the name of the command's parameter, unless the option's does.
        attributes: others of click's option.
    """
    name, form = usage.split()
    value = form.removesuffix("...")
    usual = {"metavar": value, "multiple": value != form, "shell_complete": BY_FORM.get(value)}
    return click.option(name, *filter(None, [parameter]), help=text, **{**usual, **attributes})


def flag(name: str, text: str, *, parameter: str = "", **attributes: Any) -> Decorator:
    """An option without a value; the arguments are those of `option`."""
    return click.option(name, *filter(None, [parameter]), is_flag=True, help=text, **attributes)


def argument(name: str, form: str, **attributes: Any) -> Decorator:
    """An argument.

    Args:
        name: of the command's parameter.
        form: of the value, as for `option`; in brackets if it may be left out.
        attributes: others of click's argument.
    """
    once = form.removesuffix("...")
    value = once.removeprefix("[").removesuffix("]")
    usual: dict[str, Any] = {"metavar": form, "shell_complete": BY_FORM.get(value)}
    if once != form:
        usual["nargs"] = -1
    elif value != once:
        usual["required"] = False
    return click.argument(name, **{**usual, **attributes})


OPTIONS: Final[tuple[Decorator, ...]] = (
    option(
        "--config-file FILE...",
        "Read this file instead of searching for placement.conf. May be repeated; later files "
        "override earlier ones.",
        type=click.Path(),
    ),
    option(
        "--config-dir DIR...",
        "Also read the *.conf files in this directory, after those files.",
        type=click.Path(file_okay=False),
    ),
)

bind_option = option(
    "--bind HOST:PORT",
    "Address to listen on. Port 0 picks a free port and prints it.",
    default=f"{DEFAULT_HOST}:{DEFAULT_PORT}",
    show_default=True,
)


def _source(config_file: tuple[str, ...], config_dir: tuple[str, ...]) -> ConfigurationSource:
    # The object of a context is whether to debug.
    return ConfigurationSource(config_file, config_dir, click.get_current_context().obj)


#: Adds `--config-file` and `--config-dir`; the command gets a `ConfigurationSource` as `source`.
configured: Final = gathering("source", _source, OPTIONS)

_URL = option(
    "--url URL",
    "The service.  [env var: BERTH_URL; default: that of client.yaml, or else the database, "
    "without a service]",
)

_OF_SERVICE = (
    _URL,
    option("--token TOKEN", "Authenticate with it.  [env var: OS_TOKEN]"),
    option("--os-cloud NAME", "Use this entry of clouds.yaml.  [env var: OS_CLOUD]"),
)


def accessing_with_json(text: str) -> Decorator:
    """Add the options of `Access`, and `--json`; the command gets an `Access` as `access`.

    Args:
        text: the help of `--json`.
    """
    options = (flag("--json", text, parameter="as_json"), *_OF_SERVICE, *OPTIONS)
    return gathering("access", _access, options)


def _access(
    url: str | None,
    token: str | None,
    os_cloud: str | None,
    config_file: tuple[str, ...],
    config_dir: tuple[str, ...],
    as_json: bool,
) -> Access:
    source = _source(config_file, config_dir)
    return access_of(os.environ, url, token, os_cloud, source, as_json=as_json)


#: For a command whose `--json` prints what the service has answered.
accessing = accessing_with_json("Print the API's answer.")


def asking(command: Callable[..., None]) -> Callable[..., None]:
    """Add the same options; the command gets a client that is open while it runs, as `client`."""

    @functools.wraps(command)
    def with_client(access: Access, **options: object) -> None:
        with access.client() as client:
            command(client, **options)

    return accessing(with_client)


class Granted(NamedTuple):
    """The values of `--project`, `--role` and `--host`."""

    project: str | None
    roles: Sequence[str]
    host: str | None


#: Adds `--project`, `--role` and `--host`; the command gets their values as `granted`.
identity_options: Final = gathering(
    "granted",
    Granted,
    (
        option("--project PROJECT", "The project.  [default: the user's name]"),
        option("--role ROLE...", "A role; may be repeated.", parameter="roles"),
        option(
            "--host HOST",
            "Confine the role agent to the tree of one host: the name or UUID of its root "
            "provider, which need not exist yet.",
        ),
    ),
)


# --- Values as people type them -------------------------------------------------------------------

_AMOUNT: Final = re.compile(r"(?P<name>[A-Z0-9_]+)[=:](?P<amount>[0-9]+)")
_DURATION: Final = re.compile(r"(?P<number>[0-9]{1,9})(?P<unit>[smhd]?)")
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


def match_of(pattern: re.Pattern[str], text: str, sentence: str) -> re.Match[str]:
    """What a pattern finds in the whole of a text.

    Args:
        sentence: what to say if the text does not have the form; `{}` stands for the text.

    Raises:
        UsageError: it does not.
    """
    match = pattern.fullmatch(text)
    if match is None:
        raise click.UsageError(sentence.format(text))
    return match


def lease_seconds(text: str) -> int:
    """The seconds of a time such as `90`, `90s`, `10m`, `2h` or `1d`, as long as a lease may be.

    Raises:
        BadParameter: it is no such time.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise click.BadParameter(f"{text} is not a time such as 90s, 10m or 2h")
    seconds = int(match["number"]) * _SECONDS[match["unit"]]
    if not 1 <= seconds <= LEASE_SECONDS_MAX:
        raise click.BadParameter(f"{text} is not from 1 to {amount(LEASE_SECONDS_MAX)} seconds")
    return seconds


def amounts_of(texts: Iterable[str]) -> dict[str, int]:
    """Amounts by resource class.

    Raises:
        UsageError: a text is not `CLASS=AMOUNT`, or a class is named twice.
    """
    amounts: dict[str, int] = {}
    for text in texts:
        match = match_of(_AMOUNT, text, "{} is not CLASS=AMOUNT, as in VCPU=4")
        if match["name"] in amounts:
            raise click.UsageError(f"{match['name']} is named twice")
        amounts[match["name"]] = int(match["amount"])
    return amounts


# --- Agents ---------------------------------------------------------------------------------------

driver_option = option(
    "--driver NAME", "Use this driver instead of the configured one.", shell_complete=driver_names
)


#: Adds the options to a command, which gets them as `agent_source`.
of_agent: Final = gathering(
    "agent_source",
    AgentSource,
    (
        option(
            "--config FILE",
            "The agent's configuration: the nodes of this host, and their driver.",
            parameter="path",
            default=str(AGENT_FILE),
            show_default=True,
            type=click.Path(path_type=Path),
        ),
        driver_option,
    ),
)

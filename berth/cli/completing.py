# SPDX-License-Identifier: Apache-2.0
"""Completion of what an argument or an option takes, by the form that its help shows.

Names come from the service: quickly, or silently none.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

import click

from berth.model.paths import DRAINS, FLAVORS

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client

#: Seconds for an answer; opening the database imports the whole service.
_SERVICE_S_MAX: Final = 1.0
_DATABASE_S_MAX: Final = 3.0

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def _names_at(path: str) -> Complete:
    """Completes the names of the things that the API lists at a path."""
    member = path.rpartition("/")[2]

    def complete(context: click.Context, parameter: click.Parameter, prefix: str) -> list[str]:
        def ask(client: Client) -> list[str]:
            names = (str(item["name"]) for item in client.read(path)[member])
            return sorted(name for name in names if name.startswith(prefix))

        return _answered(context, ask)

    return complete


provider_names: Final = _names_at("/resource_providers")
class_names: Final = _names_at("/resource_classes")
flavor_names: Final = _names_at(FLAVORS)


def trait_names(context: click.Context, parameter: click.Parameter, prefix: str) -> list[str]:
    """The traits that start with a prefix, which may follow other text such as `!`."""
    end = max(prefix.rfind(mark) for mark in "!,:") + 1
    before, start = prefix[:end], prefix[end:]

    def ask(client: Client) -> list[str]:
        listed = client.read("/traits", ("name", f"startswith:{start}"))["traits"]
        return [f"{before}{name}" for name in listed]

    return _answered(context, ask)


def amounts(context: click.Context, parameter: click.Parameter, prefix: str) -> list[str]:
    """The resource classes that start with a prefix, for `CLASS=AMOUNT`."""
    return [f"{name}=" for name in class_names(context, parameter, prefix)]


def _flavors_and_amounts(
    context: click.Context, parameter: click.Parameter, prefix: str
) -> list[str]:
    return [*flavor_names(context, parameter, prefix), *amounts(context, parameter, prefix)]


def driver_names(context: click.Context, parameter: click.Parameter, prefix: str) -> list[str]:
    """The installed drivers whose names have a prefix."""
    # Deferred: no other completion needs it.
    from berth.hosts.drivers import driver_names as installed_names

    return [name for name in installed_names() if name.startswith(prefix)]


def rule_names(context: click.Context, parameter: click.Parameter, prefix: str) -> list[str]:
    """The policy rules of routes whose names have a prefix."""
    # Deferred: no other completion needs it.
    from berth.api.namespaces import guarding_rules

    names = [guarding.rule.name for guarding in guarding_rules()]
    return [name for name in names if name.startswith(prefix)]


#: What completes a value of each form.
BY_FORM: Final[Mapping[str, Complete]] = {
    "PROVIDER": provider_names,
    "PROVIDER[*N]": provider_names,
    "GROUP=PROVIDER": provider_names,
    "HOST|PROJECT": provider_names,
    "CLASS": class_names,
    "CLASS[:parts=N,min=M,step=S]": class_names,
    "CLASS=AMOUNT": amounts,
    "CLASS=TOTAL": amounts,
    "CLASS=RATIO[@AGGREGATES]": amounts,
    "FLAVOR|CLASS=AMOUNT": _flavors_and_amounts,
    "FLAVOR": flavor_names,
    "FLAVOR[=WEIGHT]": flavor_names,
    "DRAIN": _names_at(DRAINS),
    "TRAIT": trait_names,
    "TRAITS": trait_names,
    "TRAITS[=WEIGHT]": trait_names,
    "RULE": rule_names,
}


def _answered(context: click.Context, ask: Callable[[Client], list[str]]) -> list[str]:
    """What the service answers in time, with the options that were typed so far."""
    try:
        with _reading(context) as client:
            # A shell would write what cannot be seen into the line that is being typed.
            return [name for name in ask(client) if name.isprintable()]
    except Exception:  # noqa: BLE001 - a message would end up in the reader's command line
        return []


@contextmanager
def _reading(context: click.Context) -> Iterator[Client]:
    # Deferred: other completions do not need it.
    from berth.cli.fleet.access import access_of, connect
    from berth.cli.fleet.client import of_transport
    from berth.cli.sources import ConfigurationSource

    typed = context.params
    source = ConfigurationSource(
        tuple(typed.get("config_file") or ()), tuple(typed.get("config_dir") or ()), False
    )
    access = access_of(
        os.environ, typed.get("url"), typed.get("token"), typed.get("os_cloud"), source
    )
    seconds = _SERVICE_S_MAX if access.is_of_service(os.environ) else _DATABASE_S_MAX
    with _ended_after(seconds), ExitStack() as stack:
        yield of_transport(connect(access, os.environ, stack, read_only=True, is_quiet=True))


@contextmanager
def _ended_after(seconds: float) -> Iterator[None]:
    """Raise TimeoutError if the block takes longer; what it waits for is not waited for."""

    def give_up(number: int, frame: object) -> None:
        raise TimeoutError

    former = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)

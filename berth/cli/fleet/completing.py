# SPDX-License-Identifier: Apache-2.0
"""Completion of names from the service: quick, or silently without any."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

import click

from berth.cli.options import ConfigurationSource

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client

#: Seconds for an answer; opening the database imports the whole service.
_SERVICE_S_MAX: Final = 1.0
_DATABASE_S_MAX: Final = 3.0

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def provider_names(context: click.Context, parameter: click.Parameter, prefix: str) -> list[str]:
    """The names of providers that start with a prefix."""
    return _named(context, prefix, "/resource_providers", "resource_providers")


def class_names(context: click.Context, parameter: click.Parameter, prefix: str) -> list[str]:
    """The resource classes that start with a prefix."""
    return _named(context, prefix, "/resource_classes", "resource_classes")


def flavor_names(context: click.Context, parameter: click.Parameter, prefix: str) -> list[str]:
    """The flavors that start with a prefix."""
    # Deferred: other completions do not need it.
    from berth.client.client import FLAVORS

    return _named(context, prefix, FLAVORS, "flavors")


def drain_names(context: click.Context, parameter: click.Parameter, prefix: str) -> list[str]:
    """The drains that start with a prefix."""
    # Deferred: other completions do not need it.
    from berth.client.client import DRAINS

    return _named(context, prefix, DRAINS, "drains")


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


def _named(context: click.Context, prefix: str, path: str, member: str) -> list[str]:
    def ask(client: Client) -> list[str]:
        names = (str(item["name"]) for item in client.read(path)[member])
        return sorted(name for name in names if name.startswith(prefix))

    return _answered(context, ask)


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

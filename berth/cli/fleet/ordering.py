# SPDX-License-Identifier: Apache-2.0
"""Which candidate comes first: the options of `berth candidates`, `place` and `move`.

Source: spec/beyond.md 2.7.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import click

from berth.cli.fleet.completing import flavor_names, trait_names
from berth.cli.fleet.wanted import items_of

#: A flavor to leave room for, and its weight.
_PRESERVED: Final = re.compile(r"(?P<flavor>[^=]+)(?:=(?P<weight>[0-9]+(\.[0-9]+)?))?")
#: Traits, and the weight of a preference.
_PREFERRED: Final = re.compile(r"(?P<traits>[^=]+)(?:=(?P<weight>-?[0-9]+))?")


def ordering(text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options; the command gets the order of a body as `order`, None if none is given.

    Args:
        text: the help of `--order`.
    """
    options = (
        click.option(
            "--order", "by", type=click.Choice(["any", "random", "pack", "spread"]), help=text
        ),
        click.option(
            "--preserve",
            multiple=True,
            metavar="FLAVOR[=WEIGHT]",
            shell_complete=flavor_names,
            help="Instead of --order: first where this flavor loses least room; may be repeated, "
            "with weights, 1 unless given.",
        ),
        click.option(
            "--prefer",
            multiple=True,
            metavar="TRAITS[=WEIGHT]",
            shell_complete=trait_names,
            help="Prefer hosts with these traits, in the form of --required: they add WEIGHT to "
            "the score, 1 unless given; may be repeated.",
        ),
        click.option(
            "--among",
            metavar="N",
            type=click.IntRange(min=1),
            help="Compare only N of the hosts that fit, which is faster.",
        ),
    )

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def with_order(
            *,
            by: str | None,
            preserve: Sequence[str],
            prefer: Sequence[str],
            among: int | None,
            **typed: Any,
        ) -> None:
            command(order=_order(by, preserve, prefer, among), **typed)

        functools.update_wrapper(with_order, command)
        decorated: Callable[..., None] = with_order
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


def _order(
    by: str | None, preserve: Sequence[str], prefer: Sequence[str], among: int | None
) -> dict[str, Any] | None:
    """The order of a body.

    Raises:
        UsageError: a preference does not have its form, or there are two orders.
    """
    if by and preserve:
        raise click.UsageError("--order and --preserve exclude each other")
    order = {
        **({"by": by} if by else {}),
        **({"by": "preserve", "preserve": dict(map(_preserved, preserve))} if preserve else {}),
        **({"prefer": list(map(_preference, prefer))} if prefer else {}),
        **({"among": among} if among is not None else {}),
    }
    return order or None


def _preserved(text: str) -> tuple[str, float]:
    match = _PRESERVED.fullmatch(text)
    if match is None:
        raise click.UsageError(
            f"--preserve {text} is not FLAVOR or FLAVOR=WEIGHT, as in gpu.a100=5"
        )
    return match["flavor"], float(match["weight"] or 1)


def _preference(text: str) -> dict[str, Any]:
    match = _PREFERRED.fullmatch(text)
    if match is None:
        raise click.UsageError(
            f"--prefer {text} is not TRAITS or TRAITS=WEIGHT, as in STORAGE_DISK_SSD=5"
        )
    return {"weight": int(match["weight"] or 1), **items_of("required", [match["traits"]])}

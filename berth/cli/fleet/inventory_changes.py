# SPDX-License-Identifier: Apache-2.0
"""Changes of inventories as a person types them: `VCPU=64`, `VCPU:allocation_ratio=4`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from berth.cli.fleet.contents import FIELDS

if TYPE_CHECKING:
    from berth.cli.fleet.references import Json

_CHANGE: Final = re.compile(
    r"(?P<name>[A-Z0-9_]+)(:(?P<field>[a-z_]+))?=(?P<value>[0-9]+(\.[0-9]+)?)"
)

_TOTAL: Final = "total"
#: The only field that is not an integer.
_RATIO: Final = "allocation_ratio"


@dataclass(frozen=True, slots=True)
class Change:
    """The new value of one field of an inventory."""

    resource_class: str
    field: str
    value: float


def parse_change(text: str) -> Change:
    """The change that `CLASS=TOTAL` or `CLASS:FIELD=VALUE` asks for.

    Raises:
        UsageError: it is neither, or there is no such field.
    """
    match = _CHANGE.fullmatch(text)
    if match is None:
        raise click.UsageError(
            f"{text} is neither CLASS=TOTAL nor CLASS:FIELD=VALUE, as in VCPU=64 or VCPU:reserved=2"
        )
    field = match["field"] or _TOTAL
    if field not in (_TOTAL, *FIELDS):
        raise click.UsageError(
            f"{text}: an inventory has the fields {', '.join((_TOTAL, *FIELDS))}"
        )
    if field != _RATIO and "." in match["value"]:
        raise click.UsageError(f"{text}: {field} is an integer")
    return Change(
        match["name"], field, float(match["value"]) if field == _RATIO else int(match["value"])
    )


def changed(records: Mapping[str, Json], changes: Iterable[Change]) -> dict[str, dict[str, Any]]:
    """Inventories after changes; the service completes the fields of a new one.

    Raises:
        UsageError: a new inventory has no total.
    """
    after = {name: dict(record) for name, record in records.items()}
    for change in changes:
        after.setdefault(change.resource_class, {})[change.field] = change.value
    for name, record in after.items():
        if _TOTAL not in record:
            raise click.UsageError(f"the provider has no inventory of {name}: give {name}=TOTAL")
    return after

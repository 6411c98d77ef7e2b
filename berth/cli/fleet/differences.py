# SPDX-License-Identifier: Apache-2.0
"""What becomes different of a provider, in words: `VCPU=64 -> 128`, `+HW_NUMA_ROOT`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from berth.cli.columns import amount
from berth.cli.fleet.contents import FIELDS

if TYPE_CHECKING:
    from berth.cli.fleet.references import Json

#: The values of the fields of an inventory that say nothing.
_DEFAULTS: Final = {
    "reserved": 0,
    "allocation_ratio": 1.0,
    "min_unit": 1,
    "max_unit": 2**31 - 1,
    "step_size": 1,
}


def differences(before: Json, after: Json) -> Iterator[str]:
    """The differences between two states of a provider, each a word or two.

    Args:
        before, after: `parent` (the name of one), `inventories`, `traits` and `aggregates`; what
            both lack is the same.
    """
    if (parent := after.get("parent")) != before.get("parent"):
        yield f"below {parent}" if parent else "below nothing"
    stock, had = after.get("inventories", {}), before.get("inventories", {})
    for name in sorted({*stock, *had}):
        if name not in stock:
            yield f"-{name}"
        elif name not in had:
            yield f"{name}={_record(stock[name])}"
        elif stock[name] != had[name]:
            yield f"{name}={_record(had[name])} -> {_record(stock[name])}"
    for part, prefix in (("traits", ""), ("aggregates", "@")):
        new, old = set(after.get(part, ())), set(before.get(part, ()))
        yield from (f"+{prefix}{name}" for name in sorted(new - old))
        yield from (f"-{prefix}{name}" for name in sorted(old - new))


def _record(record: Json) -> str:
    """An inventory's total, and the fields that are not as usual."""
    fields = [
        f"{name}:{amount(record[name])}" for name in FIELDS if record[name] != _DEFAULTS[name]
    ]
    return amount(record["total"]) + (f"({','.join(fields)})" if fields else "")

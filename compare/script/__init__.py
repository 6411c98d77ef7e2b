# SPDX-License-Identifier: Apache-2.0
"""The script of requests that `compare` sends to both servers.

One module per thing of the API; each has a function `steps() -> Iterator[Step]` that stands alone:
it makes what it needs under names of its own, so that a difference in one cannot spread to others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from compare.script import (
    aggregates,
    allocations,
    candidates,
    errors,
    inventories,
    providers,
    reshaper,
    resource_classes,
    traits,
    transport,
    usages,
    uuid_spelling,
)
from compare.script.step import Step

#: Section name to the steps of the section, in the order in which they are sent.
SECTIONS: dict[str, Callable[[], Iterator[Step]]] = {
    "transport": transport.steps,
    "providers": providers.steps,
    "inventories": inventories.steps,
    "aggregates": aggregates.steps,
    "traits": traits.steps,
    "resource_classes": resource_classes.steps,
    "allocations": allocations.steps,
    "usages": usages.steps,
    "reshaper": reshaper.steps,
    "candidates": candidates.steps,
    "candidates_random": candidates.random_steps,
    "errors": errors.steps,
    "uuid_spelling": uuid_spelling.steps,
}

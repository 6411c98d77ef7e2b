# SPDX-License-Identifier: Apache-2.0
"""The errors about what only berth stores: labels, flavors, and names of consumers."""

from berth.model.bounds import FLAVORS_MAX
from berth.model.errors import Conflict, Invalid
from berth.model.ids import AggregateUUID, ConsumerUUID


class LabelTaken(Conflict):
    """Another aggregate has this name."""

    def __init__(self, name: str, aggregate: AggregateUUID) -> None:
        super().__init__(f"Aggregate {aggregate} has the name {name} already.")
        self.name = name
        self.aggregate = aggregate


class ConsumerNameTaken(Conflict):
    """Another consumer of the project has this name."""

    def __init__(self, project: str, name: str, consumer: ConsumerUUID) -> None:
        super().__init__(
            f"Project {project} has a consumer named {name} already, {consumer}.",
            "Choose another name, or release that consumer first.",
        )


class TooManyFlavors(Invalid):
    """The database has as many flavors as it may have."""

    def __init__(self) -> None:
        at_most = f"There are {FLAVORS_MAX:,} flavors already, the bound max_flavors."
        super().__init__(at_most, "Delete one first.")

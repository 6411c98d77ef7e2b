# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, as one small tree: each class is one sentence about the world.

An error holds its facts as attributes and makes its own message, which tells what was asked, what
is so and, where it can, what to do next. Only `api/errors.py` knows what each is over HTTP. Some
fragments of the messages are matched by clients and must stay: spec/rest-api.md 17 and
spec/allocation-candidates.md 3.
"""

from collections.abc import Sequence

from berth.model.ids import ConsumerUUID, Generation, ProviderUUID


class BerthError(Exception):
    """The ancestor of everything that berth itself refuses."""


# --- What was named does not exist ---------------------------------------------------------------


class NotFound(BerthError):
    """The thing that the request is about does not exist."""


class ProviderNotFound(NotFound):
    """No provider has this uuid."""

    def __init__(self, provider: ProviderUUID, *, to_delete: bool = False) -> None:
        suffix = " for delete" if to_delete else ""
        super().__init__(f"No resource provider with uuid {provider} found{suffix}")
        self.provider = provider


class InventoryNotFound(NotFound):
    """The provider has no inventory of this resource class."""

    def __init__(
        self,
        provider: ProviderUUID,
        resource_class: str,
        *,
        to_delete: bool = False,
        class_exists: bool = True,
    ) -> None:
        rest = "found for delete" if to_delete else f"for {provider}"
        why = "" if class_exists else f": No such resource class {resource_class}"
        super().__init__(f"No inventory of class {resource_class} {rest}{why}")
        self.provider = provider
        self.resource_class = resource_class


class ResourceClassNotFound(NotFound):
    """No resource class has this name."""

    def __init__(self, resource_class: str) -> None:
        super().__init__(f"No such resource class {resource_class}")
        self.resource_class = resource_class


class TraitNotFound(NotFound):
    """No trait has this name."""

    def __init__(self, trait: str) -> None:
        super().__init__(f"No such trait {trait}")
        self.trait = trait


class AllocationsNotFound(NotFound):
    """The consumer holds nothing."""

    def __init__(self, consumer: str) -> None:
        super().__init__(f"No allocations for consumer '{consumer}'")
        self.consumer = consumer


# --- What was asked can never be -----------------------------------------------------------------


class Invalid(BerthError):
    """The request makes no sense, whatever the state of the fleet's stock."""


class InvalidInput(Invalid):
    """A value that no other error of this kind describes better."""


class UnstorableValue(Invalid):
    """The database's columns or its character set cannot hold a value."""

    def __init__(self, said: str) -> None:
        super().__init__(f"The database cannot store a value of this request: {said}")


class UnknownResourceClass(Invalid):
    """A query asks for a resource class that does not exist."""

    def __init__(self, resource_class: str) -> None:
        super().__init__(
            f"Invalid resource class in resources parameter: No such resource class "
            f"{resource_class}"
        )
        self.resource_class = resource_class


class UnknownClassInInventory(Invalid):
    """An inventory is of a resource class that does not exist."""

    def __init__(
        self, provider: ProviderUUID, resource_class: str, *, creating: bool = False
    ) -> None:
        failed = "Unable to create" if creating else "Unknown resource class in"
        super().__init__(
            f"{failed} inventory for resource provider {provider}: "
            f"No such resource class {resource_class}"
        )
        self.provider = provider
        self.resource_class = resource_class


class UnknownClassInAllocation(Invalid):
    """An allocation is of a resource class that does not exist."""

    def __init__(self, consumer: ConsumerUUID, resource_class: str) -> None:
        super().__init__(
            f"Unable to allocate inventory for consumer {consumer}: "
            f"No such resource class {resource_class}"
        )
        self.consumer = consumer
        self.resource_class = resource_class


class UnknownTraits(Invalid):
    """Traits are named that do not exist."""

    def __init__(self, traits: Sequence[str]) -> None:
        super().__init__(f"No such trait(s): {', '.join(traits)}.")
        self.traits = tuple(traits)


class UnknownProviderInAllocation(Invalid):
    """An allocation is against a provider that does not exist."""

    def __init__(self, provider: ProviderUUID) -> None:
        super().__init__(f"Allocation for resource provider '{provider}' that does not exist")
        self.provider = provider


class ReshapedProviderNotFound(Invalid):
    """A reshape replaces the inventories of a provider that does not exist."""

    def __init__(self, provider: ProviderUUID) -> None:
        super().__init__(f"Unable to reshape: No resource provider with uuid {provider} found")
        self.provider = provider


class ParentInvalid(Invalid):
    """A provider cannot have the parent that was asked for."""

    #: What is wrong with the parent; the fragment that clients match.
    reason: str

    def __init__(
        self, provider: ProviderUUID, parent: ProviderUUID | None, *, new_name: str | None = None
    ) -> None:
        doing = (
            f"Unable to save resource provider {provider}"
            if new_name is None
            else f'Unable to create resource provider "{new_name}", {provider}'
        )
        given = "" if parent is None else f" (parent given: {parent})"
        super().__init__(f"{doing}: {self.reason}{given}")
        self.provider = provider
        self.parent = parent


class ParentIsSelf(ParentInvalid):
    """A new provider names itself as its parent."""

    reason = "parent provider UUID cannot be same as UUID"


class ParentNotFound(ParentInvalid):
    """The parent does not exist."""

    reason = "parent provider UUID does not exist"


class ReparentNotAllowed(ParentInvalid):
    """A child may get another parent from microversion 1.37 on only."""

    reason = "re-parenting a provider is not currently allowed; it is from microversion 1.37 on"


class UnparentNotAllowed(ParentInvalid):
    """A child may become a root from microversion 1.37 on only."""

    reason = "un-parenting a provider is not currently allowed; it is from microversion 1.37 on"


class TreeLoop(ParentInvalid):
    """The new parent is the provider itself or below it."""

    reason = "creating loop in the provider tree is not allowed."


class InventoryCapacityInvalid(Invalid):
    """An inventory reserves more than it has."""

    def __init__(
        self,
        provider: ProviderUUID,
        resource_class: str,
        *,
        creating: bool,
        reserved_may_equal_total: bool,
    ) -> None:
        doing = "create" if creating else "update"
        excess = "greater than" if reserved_may_equal_total else "greater than or equal to"
        super().__init__(
            f"Unable to {doing} inventory for resource provider {provider}: "
            f"the reserved amount of {resource_class} is {excess} total, "
            f"or its capacity, (total - reserved) x allocation_ratio, is too small"
        )
        self.provider = provider
        self.resource_class = resource_class


class InventoryNotOnProvider(Invalid):
    """An inventory is to be updated that the provider does not have."""

    def __init__(self, provider: ProviderUUID, resource_class: str) -> None:
        super().__init__(
            f"No inventory record with resource class for resource provider {provider}: "
            f"No inventory of class {resource_class} found: create it first"
        )
        self.provider = provider
        self.resource_class = resource_class


class CannotChangeStandard(Invalid):
    """What exists everywhere can be neither renamed nor deleted."""


class CannotRenameStandardClass(CannotChangeStandard):
    """A standard resource class keeps its name."""

    def __init__(self, resource_class: str) -> None:
        super().__init__(f"Cannot update standard resource class {resource_class}")
        self.resource_class = resource_class


class CannotDeleteStandardClass(CannotChangeStandard):
    """A standard resource class stays."""

    def __init__(self, resource_class: str) -> None:
        super().__init__(
            f"Error in delete resource class: "
            f"Cannot delete standard resource class {resource_class}"
        )
        self.resource_class = resource_class


class CannotDeleteStandardTrait(CannotChangeStandard):
    """A standard trait stays."""

    def __init__(self, trait: str) -> None:
        super().__init__(f"Cannot delete standard trait {trait}")
        self.trait = trait


# --- What was asked cannot be now ----------------------------------------------------------------


class Conflict(BerthError):
    """The request makes sense, but not with the present state."""


class ConcurrentUpdate(Conflict):
    """Somebody else was faster: read again, decide again."""


class ProviderGenerationConflict(ConcurrentUpdate):
    """The provider has moved on since the client read it."""

    def __init__(self, provider: ProviderUUID, *, seen: int, actual: Generation) -> None:
        super().__init__(
            f"resource provider generation conflict for {provider}: "
            f"actual: {actual}, given: {seen}. Please update the generation and try again."
        )
        self.provider = provider
        self.seen = seen
        self.actual = actual


class ConsumerGenerationConflict(ConcurrentUpdate):
    """The consumer is not what the client has seen; None stands for "does not exist"."""

    def __init__(
        self, consumer: ConsumerUUID, *, seen: int | None, actual: Generation | None
    ) -> None:
        expected = "null" if actual is None else actual
        # COMPAT: clients know the original's words, "expected null" and "got None".
        super().__init__(
            f"consumer generation conflict - expected {expected} but got {seen} "
            f"for consumer {consumer}"
        )
        self.consumer = consumer
        self.seen = seen
        self.actual = actual


class LostRace(ConcurrentUpdate):
    """Another request changed a row between our reading and our writing it."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"Update conflict: {what} was changed by another request at the same time; "
            f"read it again and retry"
        )
        self.what = what


class ConsumerRace(ConcurrentUpdate):
    """Another request changed a consumer between our reading and our writing it.

    Unlike `LostRace` it is never retried here: the client's view of the consumer is out of date.
    """

    def __init__(self, consumers: Sequence[ConsumerUUID]) -> None:
        super().__init__(
            f"Update conflict: the allocations of consumer {', '.join(consumers)} were changed by "
            f"another request at the same time; read them again and retry"
        )
        self.consumers = tuple(consumers)


class InventoryExists(ConcurrentUpdate):
    """The provider has inventory of this class already."""

    def __init__(self, provider: ProviderUUID, resource_class: str) -> None:
        super().__init__(
            f"Update conflict: resource provider {provider} has inventory of {resource_class} "
            f"already; update it instead"
        )
        self.provider = provider
        self.resource_class = resource_class


class InventoryInUseOnDelete(ConcurrentUpdate):
    """One inventory is to be deleted and has allocations (with the code that clients know)."""

    def __init__(self, provider: ProviderUUID, resource_class: str) -> None:
        super().__init__(_in_use(provider, [resource_class]))
        self.provider = provider
        self.resource_class = resource_class


class InventoryInUse(Conflict):
    """Inventories would go away while they have allocations."""

    def __init__(self, provider: ProviderUUID, resource_classes: Sequence[str]) -> None:
        super().__init__(_in_use(provider, resource_classes))
        self.provider = provider
        self.resource_classes = tuple(resource_classes)


class DuplicateProviderName(Conflict):
    """Another provider has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Conflicting resource provider name: {name} already exists.")
        self.name = name


class DuplicateProviderUUID(Conflict):
    """Another provider has this uuid."""

    def __init__(self, provider: ProviderUUID) -> None:
        super().__init__(f"Conflicting resource provider uuid: {provider} already exists.")
        self.provider = provider


class ProviderInUse(Conflict):
    """A provider with allocations cannot go away."""

    def __init__(self, provider: ProviderUUID) -> None:
        super().__init__(
            f"Unable to delete resource provider {provider}: Resource provider has allocations."
        )
        self.provider = provider


class ProviderHasChildren(Conflict):
    """A provider with others below it cannot go away."""

    def __init__(self, provider: ProviderUUID) -> None:
        super().__init__(
            f"Unable to delete resource provider {provider}: It has child resource providers."
        )
        self.provider = provider


class ResourceClassExists(Conflict):
    """A resource class has this name already."""

    def __init__(self, resource_class: str) -> None:
        super().__init__(
            f"Conflicting resource class already exists: {resource_class}. "
            f"Resource class already exists"
        )
        self.resource_class = resource_class


class ResourceClassInUse(Conflict):
    """A resource class with inventory somewhere cannot go away."""

    def __init__(self, resource_class: str) -> None:
        super().__init__(
            f"Error in delete resource class {resource_class}: Class is in use in inventory"
        )
        self.resource_class = resource_class


class TraitInUse(Conflict):
    """A trait that a provider has cannot go away."""

    def __init__(self, trait: str) -> None:
        super().__init__(f"The trait {trait} is in use by a resource provider.")
        self.trait = trait


class NoInventory(Conflict):
    """A claim is on something that the provider does not have."""

    def __init__(self, provider: ProviderUUID, resource_classes: Sequence[str]) -> None:
        listed = ", ".join(f"'{name}'" for name in resource_classes)
        super().__init__(
            f"Unable to allocate inventory: Inventory for {listed} on resource provider "
            f"'{provider}' does not exist"
        )
        self.provider = provider
        self.resource_classes = tuple(resource_classes)


class UnitViolation(Conflict):
    """A claim asks for an amount that the inventory does not give in one piece."""

    def __init__(
        self,
        provider: ProviderUUID,
        resource_class: str,
        *,
        asked: int,
        min_unit: int,
        max_unit: int,
        step_size: int,
    ) -> None:
        super().__init__(
            f"Unable to allocate inventory: Inventory for '{resource_class}' on resource provider "
            f"'{provider}' is given out in amounts from {min_unit} to {max_unit} in steps of "
            f"{step_size}: {asked} asked"
        )
        self.provider = provider
        self.resource_class = resource_class
        self.asked = asked


class CapacityExceeded(Conflict):
    """The claim would take more than is free."""

    def __init__(
        self, provider: ProviderUUID, resource_class: str, *, asked: int, free: int
    ) -> None:
        super().__init__(
            f"Unable to allocate inventory: Inventory for '{resource_class}' on resource provider "
            f"'{provider}': {asked} asked, {free} free. "
            f"The requested amount would exceed the capacity."
        )
        self.provider = provider
        self.resource_class = resource_class
        self.asked = asked
        self.free = free


# --- Nothing can be said at the moment -----------------------------------------------------------


class Unavailable(BerthError):
    """The service cannot answer now; the same request may well succeed later."""


class DatabaseUnavailable(Unavailable):
    """The database cannot be reached, is busy for too long, or is broken.

    Args:
        message: may quote the driver, and name the server.
        public: what whoever asks over HTTP may know; they need not know which database there is.
    """

    def __init__(
        self, message: str, *, public: str = "The database cannot be used at the moment; try again"
    ) -> None:
        super().__init__(message)
        self.public = public


class DatabaseMoved(DatabaseUnavailable):
    """The file of the database was removed or replaced while it was open."""

    def __init__(self) -> None:
        message = (
            "The database's file was removed or replaced while it is served: nothing is read or "
            "written until it is back in its place, or the service is started again"
        )
        super().__init__(message, public=message)


class IndexUnavailable(Unavailable):
    """The index cannot be brought up to date, and nothing is answered from a stale one."""

    def __init__(self) -> None:
        super().__init__("The fleet's present state cannot be read at the moment; try again")


class SearchGaveUp(BerthError):
    """A search for candidates used up its time before it found any."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"The search for candidates ended after {seconds:g} s without an answer. This does not "
            "mean that nothing fits. Fewer request groups, required traits, or in_tree make a "
            "search shorter; [berth]candidates_time_budget gives it more time"
        )
        self.seconds = seconds


# --- The database is not fit to be served from ---------------------------------------------------


class UnsupportedDatabase(BerthError):
    """This release cannot stand on the database that the URL names."""


class SchemaError(BerthError):
    """The database's tables are not what berth can work with or upgrade."""


def _in_use(provider: ProviderUUID, resource_classes: Sequence[str]) -> str:
    listed = ", ".join(resource_classes)
    return (
        f"Inventory for '{listed}' on resource provider '{provider}' in use. "
        f"Remove or move its allocations first."
    )

# SPDX-License-Identifier: Apache-2.0
"""berth's errors: a small class tree, in which each class states one fact.

An error makes its own message from its arguments. If OpenStack Placement has a message for the same
mistake, `str(error)` is that message, letter for letter, because clients match it; the `hint` has
what berth adds, such as amounts and what to do next. Only `api/errors.py` knows the HTTP status of
each error, and the places in which OpenStack Placement words a message differently.
"""

from collections.abc import Sequence
from typing import Final

from berth.model.ids import ConsumerUUID, Generation, ProviderUUID


class BerthError(Exception):
    """The base class of everything that berth itself refuses."""

    def __init__(self, message: str = "", hint: str = "") -> None:
        super().__init__(message)
        #: berth's addition to the message: complete sentences.
        self.hint = hint


# --- What was named does not exist ---------------------------------------------------------------


class NotFound(BerthError):
    """The subject of the request does not exist."""


class ProviderNotFound(NotFound):
    """No provider has this UUID."""

    def __init__(self, provider: ProviderUUID, *, to_delete: bool = False, hint: str = "") -> None:
        suffix = " for delete" if to_delete else ""
        super().__init__(f"No resource provider with uuid {provider} found{suffix}", hint)
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
        hint: str = "",
    ) -> None:
        message = f"No inventory of class {resource_class}"
        if to_delete:
            message = f"{message} found for delete"
            missing = f"No such resource class {resource_class}."
            message = f"{message}: {message if class_exists else missing}"
        else:
            message = f"{message} for {provider}"
        super().__init__(message, hint)


class ResourceClassNotFound(NotFound):
    """No resource class has this name."""

    def __init__(self, resource_class: str) -> None:
        super().__init__(f"No such resource class {resource_class}.")


class TraitNotFound(NotFound):
    """No trait has this name."""

    def __init__(self, trait: str) -> None:
        super().__init__(f"No such trait(s): {trait}.")


class AllocationsNotFound(NotFound):
    """The consumer has no allocations."""

    def __init__(self, consumer: str) -> None:
        super().__init__(f"No allocations for consumer '{consumer}'")


class RevisionGone(BerthError):
    """The database does not know what has changed since a revision."""

    def __init__(self, revision: str) -> None:
        super().__init__(
            f"The database was never at revision {revision[:100]}, or has forgotten it.",
            "Read everything again, and continue from the revision of that answer.",
        )


# --- What was asked can never be -----------------------------------------------------------------


class Invalid(BerthError):
    """The request is invalid, whatever the state of the fleet."""


class InvalidInput(Invalid):
    """An invalid value for which there is no better error."""


class RevisionForeign(Invalid):
    """This is no revision of this database."""

    def __init__(self, revision: str) -> None:
        super().__init__(
            f"{revision[:100]} is not a revision of this database.",
            "It may come from another database, or from before `berth db new-identity`.",
        )


class UnstorableValue(Invalid):
    """The database's columns or its character set cannot store a value."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(f"The database cannot store a value of this request: {reason}", hint)


class UnknownClass(Invalid):
    """A query or a body names a resource class that does not exist."""

    def __init__(self, before: str, resource_class: str) -> None:
        super().__init__(f"{before} No such resource class {resource_class}.")
        self.resource_class = resource_class


class UnknownResourceClass(UnknownClass):
    """A query asks for a resource class that does not exist."""

    def __init__(self, resource_class: str) -> None:
        super().__init__("Invalid resource class in resources parameter:", resource_class)


class UnknownClassInInventory(UnknownClass):
    """An inventory names a resource class that does not exist."""

    def __init__(
        self, provider: ProviderUUID, resource_class: str, *, creating: bool = False
    ) -> None:
        failed = "Unable to create" if creating else "Unknown resource class in"
        super().__init__(f"{failed} inventory for resource provider {provider}:", resource_class)


class UnknownClassInAllocation(UnknownClass):
    """An allocation names a resource class that does not exist."""

    def __init__(self, consumer: ConsumerUUID, resource_class: str) -> None:
        super().__init__(f"Unable to allocate inventory for consumer {consumer}:", resource_class)


class UnknownTraits(Invalid):
    """A query or a body names traits that do not exist."""

    def __init__(self, traits: Sequence[str]) -> None:
        # COMPAT: only the first one is named.
        super().__init__(f"No such trait(s): {traits[0]}.")
        self.traits = tuple(traits)
        self.all_traits = ", ".join(traits)


class UnknownProviderInAllocation(Invalid):
    """An allocation names a provider that does not exist."""

    def __init__(self, provider: ProviderUUID) -> None:
        super().__init__(f"Allocation for resource provider '{provider}' that does not exist.")


class ReshapedProviderNotFound(Invalid):
    """A reshape replaces the inventories of a provider that does not exist."""

    def __init__(self, provider: ProviderUUID) -> None:
        super().__init__(
            f"Resource provider {provider} in inventories not found: "
            f"No resource provider with uuid {provider} found"
        )


class ProviderNameMissing(Invalid):
    """The name of a new provider is empty."""

    def __init__(self, provider: ProviderUUID) -> None:
        super().__init__(
            f'Unable to create resource provider "", {provider}: '
            "Object action create failed because: name is required"
        )


class ParentInvalid(Invalid):
    """A provider cannot have the requested parent."""

    #: What is wrong with the parent, and during which operation.
    reason: str
    action = "update"
    advice = ""

    def __init__(
        self, provider: ProviderUUID, parent: ProviderUUID | None, *, new_name: str | None = None
    ) -> None:
        doing = (
            f"Unable to save resource provider {provider}"
            if new_name is None
            else f'Unable to create resource provider "{new_name}", {provider}'
        )
        super().__init__(
            f"{doing}: Object action {self.action} failed because: {self.reason}",
            " ".join(filter(None, (self.advice, parent and f"The parent given is {parent}."))),
        )


class ParentIsSelf(ParentInvalid):
    """A new provider names itself as its parent."""

    action = "create"
    reason = (
        "parent provider UUID cannot be same as UUID. "
        "Please set parent provider UUID to None if there is no parent."
    )


class ParentNotFound(ParentInvalid):
    """The parent does not exist."""

    #: COMPAT: the same message when a provider is updated.
    action = "create"
    reason = "parent provider UUID does not exist."


class ReparentNotAllowed(ParentInvalid):
    """Before microversion 1.37, a child cannot get another parent."""

    reason = "re-parenting a provider is not currently allowed."
    advice = "Microversion 1.37 and later allow it."


class UnparentNotAllowed(ParentInvalid):
    """Before microversion 1.37, a child cannot become a root."""

    reason = "un-parenting a provider is not currently allowed."
    advice = "Microversion 1.37 and later allow it."


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
        least = 0 if reserved_may_equal_total else 1
        super().__init__(
            f"Unable to {doing} inventory for resource provider {provider}: "
            f"Invalid inventory for '{resource_class}' on resource provider '{provider}'. "
            f"The reserved value is {excess} total.",
            f"Its capacity, (total - reserved) * allocation_ratio, must be at least {least}.",
        )


class InventoryNotOnProvider(Invalid):
    """The request updates an inventory that the provider does not have."""

    def __init__(self, provider: ProviderUUID, resource_class: str) -> None:
        super().__init__(
            f"No inventory record with resource class for resource provider {provider}: "
            f"No inventory of class {resource_class} found.",
            "Create it with POST first.",
        )


class CannotChangeStandard(Invalid):
    """Standard names can be neither renamed nor deleted."""


class CannotRenameStandardClass(CannotChangeStandard):
    """A standard resource class cannot be renamed."""

    def __init__(self, resource_class: str) -> None:
        super().__init__(f"Cannot update standard resource class {resource_class}")


class CannotDeleteStandardClass(CannotChangeStandard):
    """A standard resource class cannot be deleted."""

    def __init__(self, resource_class: str) -> None:
        super().__init__(
            f"Error in delete resource class: "
            f"Cannot delete standard resource class {resource_class}."
        )


class CannotDeleteStandardTrait(CannotChangeStandard):
    """A standard trait cannot be deleted."""

    def __init__(self, trait: str) -> None:
        super().__init__(f"Cannot delete standard trait {trait}.")


# --- What was asked cannot be now ----------------------------------------------------------------


class Conflict(BerthError):
    """The request is valid, but conflicts with the present state."""


class ConcurrentUpdate(Conflict):
    """Another client was faster: read again, then decide again."""


class ProviderGenerationConflict(ConcurrentUpdate):
    """The provider has changed since the client read it."""

    def __init__(self, provider: ProviderUUID, *, seen: int, actual: Generation) -> None:
        super().__init__(
            "resource provider generation conflict",
            f"Resource provider {provider} is at generation {actual}, not {seen}. "
            "Read it again and retry.",
        )
        self.provider = provider
        self.seen = seen
        self.actual = actual


class ConsumerGenerationConflict(ConcurrentUpdate):
    """The consumer has changed since the client read it; None stands for "does not exist"."""

    def __init__(
        self, consumer: ConsumerUUID, *, seen: int | None, actual: Generation | None
    ) -> None:
        expected = "null" if actual is None else actual
        super().__init__(
            f"consumer generation conflict - expected {expected} but got {seen}",
            f"Read the allocations of consumer {consumer} again and retry.",
        )


class LostRace(ConcurrentUpdate):
    """Another request changed a row after it was read here."""

    def __init__(self, subject: str) -> None:
        super().__init__(
            f"Update conflict: {subject} was changed by another request at the same time; "
            f"read it again and retry"
        )


class ConsumerRace(ConcurrentUpdate):
    """Another request changed a consumer after it was read here.

    Unlike `LostRace`, this is never retried: the client's view of the consumer is out of date.
    """

    def __init__(self, consumers: Sequence[ConsumerUUID]) -> None:
        super().__init__(
            f"Update conflict: the allocations of consumer {', '.join(consumers)} were changed by "
            f"another request at the same time; read them again and retry"
        )


class InventoryExists(ConcurrentUpdate):
    """The provider already has inventory of this class."""

    def __init__(self, provider: ProviderUUID, resource_class: str) -> None:
        super().__init__(
            f"Update conflict: resource provider {provider} has inventory of {resource_class} "
            "already. Update it with PUT instead."
        )


class InventoryInUseOnDelete(ConcurrentUpdate):
    """The request deletes one inventory with allocations; clients know its error code."""

    def __init__(self, provider: ProviderUUID, resource_class: str) -> None:
        super().__init__(
            f"Unable to delete inventory of class {resource_class}: "
            f"{_in_use(provider, [resource_class])}",
            _FREE_IT,
        )


class InventoryInUse(Conflict):
    """The request removes inventories with allocations."""

    def __init__(self, provider: ProviderUUID, resource_classes: Sequence[str]) -> None:
        super().__init__(_in_use(provider, resource_classes), _FREE_IT)


class DuplicateProviderName(Conflict):
    """Another provider has this name."""

    def __init__(self, name: str, *, creating: bool = True) -> None:
        # COMPAT: nova looks for "name:" when it creates a provider.
        kind = " name:" if creating else ""
        super().__init__(f"Conflicting resource provider{kind} {name} already exists.")
        self.taken = name


class DuplicateProviderUUID(Conflict):
    """Another provider has this UUID."""

    def __init__(self, provider: ProviderUUID) -> None:
        super().__init__(f"Conflicting resource provider uuid: {provider} already exists.")
        self.taken: str = provider


class ProviderInUse(Conflict):
    """A provider with allocations cannot be deleted."""

    def __init__(self, provider: ProviderUUID) -> None:
        super().__init__(
            f"Unable to delete resource provider {provider}: Resource provider has allocations.",
            "Remove or move them first.",
        )


class ProviderHasChildren(Conflict):
    """A provider with children cannot be deleted."""

    def __init__(self, provider: ProviderUUID) -> None:
        super().__init__(
            f"Unable to delete parent resource provider {provider}: "
            "It has child resource providers.",
            "Delete them first.",
        )


class ResourceClassExists(Conflict):
    """A resource class already has this name."""

    def __init__(self, resource_class: str, *, creating: bool = True) -> None:
        subject = "Conflicting resource class" if creating else "Resource class"
        super().__init__(f"{subject} already exists: {resource_class}")


class ResourceClassInUse(Conflict):
    """A resource class with inventory cannot be deleted."""

    def __init__(self, resource_class: str) -> None:
        super().__init__(
            f"Error in delete resource class: Cannot delete resource class {resource_class}. "
            "Class is in use in inventory."
        )


class TraitInUse(Conflict):
    """A trait that a provider has cannot be deleted."""

    def __init__(self, trait: str) -> None:
        super().__init__(f"The trait {trait} is in use by a resource provider.")


class NoInventory(Conflict):
    """A claim names a resource class of which the providers have no inventory."""

    def __init__(self, providers: Sequence[ProviderUUID], resource_classes: Sequence[str]) -> None:
        has = "These providers have" if len(providers) > 1 else "The provider has"
        super().__init__(
            f"Unable to allocate inventory: Inventory for '{', '.join(resource_classes)}' on "
            f"resource provider '{', '.join(providers)}' invalid.",
            f"{has} no such inventory.",
        )


class UnitViolation(Conflict):
    """A claim's amount violates min_unit, max_unit or step_size."""

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
            f"{_no_allocation(provider, resource_class)} "
            "The requested amount would violate inventory constraints.",
            f"Asked for {asked}; min_unit is {min_unit}, max_unit {max_unit}, "
            f"step_size {step_size}.",
        )


class CapacityExceeded(Conflict):
    """The claim would take more than is free."""

    def __init__(
        self, provider: ProviderUUID, resource_class: str, *, asked: int, free: int
    ) -> None:
        super().__init__(
            f"{_no_allocation(provider, resource_class)} "
            "The requested amount would exceed the capacity.",
            f"{asked} asked, {free} free.",
        )


# --- Nothing can be said at the moment -----------------------------------------------------------


class Unavailable(BerthError):
    """The service cannot answer now; the same request may succeed later."""


class DatabaseUnavailable(Unavailable):
    """The database cannot be reached, is busy for too long, or is broken.

    Args:
        message: may quote the driver, and name the server.
        public: the message for HTTP clients, which does not name the database.
    """

    def __init__(
        self, message: str, *, public: str = "The database cannot be used at the moment; try again"
    ) -> None:
        super().__init__(message)
        self.public = public


class OutcomeUnknown(DatabaseUnavailable):
    """It is not known whether a commit took place, or will be found later."""

    def __init__(
        self,
        message: str = "The database failed while it committed, and cannot be asked whether it "
        "did: read what is there before you repeat the write",
    ) -> None:
        super().__init__(message, public=message)


class DatabaseMoved(DatabaseUnavailable):
    """The database file was removed or replaced while it was open."""

    def __init__(self) -> None:
        message = (
            "The database's file was removed or replaced while it is served: nothing is read or "
            "written until it is back in its place, or the service is started again"
        )
        super().__init__(message, public=message)


class IndexUnavailable(Unavailable):
    """The index cannot be brought up to date; berth never answers from a stale one."""

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


# --- The database is not fit to be served from ---------------------------------------------------


class UnsupportedDatabase(BerthError):
    """This release does not support the database that the URL names."""


class SchemaError(BerthError):
    """berth can neither use nor upgrade the database's tables."""


_FREE_IT: Final = "Remove or move its allocations first."


def _in_use(provider: ProviderUUID, resource_classes: Sequence[str]) -> str:
    listed = ", ".join(resource_classes)
    return f"Inventory for '{listed}' on resource provider '{provider}' in use."


def _no_allocation(provider: ProviderUUID, resource_class: str) -> str:
    return (
        f"Unable to allocate inventory: Unable to create allocation for '{resource_class}' on "
        f"resource provider '{provider}'."
    )

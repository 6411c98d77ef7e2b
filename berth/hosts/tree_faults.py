# SPDX-License-Identifier: Apache-2.0
"""Checks a tree that a driver has edited, before anything is sent.

Pure: each function yields sentences that name the provider, what is wrong, and what would be right.
Only differences from the service's tree are checked: what others have created there is theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from berth.hosts.provider_tree import ProviderData, ProviderTree, Record
from berth.model import inventory as model
from berth.model import names
from berth.model.ids import parse_uuid_dashed
from berth.model.inventory import ALLOCATION_RATIO_MAX, MAX_INT

_FIELDS: Final = frozenset(model.Inventory.__struct_fields__)

#: A tree as the service has it, or as it should be, by UUID.
Tree = Mapping[str, ProviderData]


def faults_of_tree(
    old: ProviderTree, new: ProviderTree, root: str, before: Tree, after: Tree
) -> Iterator[str]:
    """Everything that is wrong with a tree.

    Args:
        old, new: the forests that contain the trees `before` and `after` of `root`.
    """
    if root not in after:
        yield (
            f"the tree has lost its root {name_of(root, before)}; to delete a root, use "
            f"delete_resource_provider"
        )
        return
    yield from _faults_of_scope(old, new, root, before, after)
    yield from _faults_of_names(before, after)
    for uuid, data in after.items():
        yield from _faults_of_provider(before.get(uuid), data)


def _faults_of_scope(
    old: ProviderTree, new: ProviderTree, root: str, before: Tree, after: Tree
) -> Iterator[str]:
    """Providers that leave the tree, come from another tree, or are changed outside of it."""
    top = after[root]
    if top.parent_uuid is not None:
        yield f"the root {top.name} cannot be put under another provider ({top.parent_uuid})"
    for uuid in after.keys() - before.keys():
        if old.exists(uuid):
            yield f"{after[uuid].name} is in another tree, and cannot be moved into that of {root}"
    for uuid in new.get_provider_uuids():
        if uuid in after:
            continue
        data = new.data(uuid)
        if uuid in before:
            yield f"{data.name} has left the tree of {top.name}; move it back, or remove it"
        elif not old.exists(uuid) or _contents(data) != _contents(old.data(uuid)):
            yield (
                f"{data.name} is not in the tree of {top.name}, so its changes would not be "
                f"sent; leave it as it is"
            )


def _contents(data: ProviderData) -> ProviderData:
    """The fields of a provider that are sent."""
    return data._replace(generation=None, resources={})


def _faults_of_names(before: Tree, after: Tree) -> Iterator[str]:
    """Names that another provider still has when they are assigned, since each is written
    separately.

    Renames are written before new providers, so these may reuse a former name.
    """
    holders = {data.name: uuid for uuid, data in before.items()}
    for uuid, data in after.items():
        holder = holders.get(data.name, uuid)
        is_free = _is_only_renamed(holder, before, after)
        if holder != uuid and (not is_free or _is_only_renamed(uuid, before, after)):
            yield (
                f"{data.name} is the name of provider {holder} in the service, and {uuid} can "
                f"have it in a later report at the earliest; to keep the provider, rename or "
                f"move it"
            )


def _is_only_renamed(uuid: str, before: Tree, after: Tree) -> bool:
    if uuid not in before or uuid not in after:
        return False
    was, becomes = before[uuid], after[uuid]
    return was.name != becomes.name and was.parent_uuid == becomes.parent_uuid


def _faults_of_provider(was: ProviderData | None, data: ProviderData) -> Iterator[str]:
    if was is None:
        if not _is_uuid(data.uuid):
            yield f"{data.name} has uuid {data.uuid!r}, which is not one; {_RIGHT_UUID}"
    elif data.generation is not None and type(data.generation) is not int:
        yield f"{data.name} has generation {data.generation!r}; it must be a whole number or None"
    if was is None or data.name != was.name:
        yield from _faults_of_name(data)
    if was is None or data.inventory != was.inventory:
        yield from _faults_of_inventory(data)
    for trait in _new(data.traits, was.traits if was else ()):
        if not _is_name(trait):
            yield f"{data.name} has {trait!r}, which is not a trait; {_RIGHT_NAME}"
    for aggregate in _new(data.aggregates, was.aggregates if was else ()):
        if not _is_uuid(aggregate):
            yield f"{data.name} is in {aggregate!r}, which is not an aggregate; {_RIGHT_UUID}"


def _new(now: Collection[object], then: Collection[object]) -> list[object]:
    """The items that were added; a driver may add something that is not text."""
    return sorted((item for item in now if item not in then), key=repr)


def _faults_of_name(data: ProviderData) -> Iterator[str]:
    name: object = data.name
    if not isinstance(name, str):
        yield f"the name of provider {data.uuid} is {name!r}, and must be text"
    elif not 1 <= len(name) <= names.PROVIDER_NAME_LENGTH_MAX:
        yield (
            f"the name of provider {data.uuid} has {len(name)} characters; 1 to "
            f"{names.PROVIDER_NAME_LENGTH_MAX} are allowed"
        )
    elif not name.isprintable():
        yield f"the name {name!r} has unprintable characters"


def _faults_of_inventory(data: ProviderData) -> Iterator[str]:
    for resource_class, record in data.inventory.items():
        if not _is_name(resource_class):
            yield (
                f"{data.name} has inventory of {resource_class!r}, which is not a resource class; "
                f"{_RIGHT_NAME}"
            )
        yield from (
            f"{data.name}, {resource_class}: {fault}" for fault in _faults_of_record(record)
        )


def _faults_of_record(record: Record) -> Iterator[str]:
    if unknown := sorted(map(repr, record.keys() - _FIELDS)):
        yield f"unknown field {', '.join(unknown)}"
    if "total" not in record:
        yield "total is missing"
    whole = {}
    for name, value in record.items():
        least = 0 if name == "reserved" else 1
        if name == "allocation_ratio":
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not (is_number and 0 < value <= ALLOCATION_RATIO_MAX):
                yield (
                    f"allocation_ratio is {value!r}, and must be a number above 0 and at most "
                    f"{ALLOCATION_RATIO_MAX:g}"
                )
        elif name in _FIELDS and (type(value) is not int or not least <= value <= MAX_INT):
            yield f"{name} is {value!r}, and must be a whole number from {least} to {MAX_INT}"
        else:
            whole[name] = value
    if (reserved := whole.get("reserved", 0)) > (total := whole.get("total", MAX_INT)):
        yield f"reserved is {reserved}, and must be at most the total of {total}"
    if (least := whole.get("min_unit", 1)) > (most := whole.get("max_unit", MAX_INT)):
        yield f"min_unit is {least}, and must be at most max_unit, which is {most}"


_RIGHT_NAME: Final = (
    f"names have capital letters, digits and _, at most {names.NAME_LENGTH_MAX}, and something "
    f"after {names.CUSTOM_PREFIX}"
)
_RIGHT_UUID: Final = "a uuid looks like 0f5c4f0e-7a0e-4b64-9c36-6c9f1f5b7a11"


def _is_name(name: object) -> bool:
    return (
        isinstance(name, str)
        and len(name) <= names.NAME_LENGTH_MAX
        and names.is_class_name(name)
        and name != names.CUSTOM_PREFIX
    )


def _is_uuid(text: object) -> bool:
    """Whether a value is a UUID as the service writes it; two spellings would be two UUIDs."""
    return isinstance(text, str) and parse_uuid_dashed(text) == text


def name_of(uuid: str, tree: Tree) -> str:
    """A provider's name, or its UUID if it is in another tree."""
    return tree[uuid].name if uuid in tree else uuid

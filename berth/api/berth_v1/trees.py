# SPDX-License-Identifier: Apache-2.0
"""Whole trees of providers. Source: spec/beyond.md 6.3."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from berth.api import examples
from berth.api.answers import SENT, Sent, holds_if_match, holds_if_none_match
from berth.api.berth_v1 import fleet
from berth.api.berth_v1.codes import NAME_UNKNOWN, PRECONDITION_FAILED
from berth.api.berth_v1.fleet import PROVIDER_LINE, PROVIDER_LINE_EXAMPLE, USAGES, ProviderLines
from berth.api.berth_v1.inputs import include_parameter, included
from berth.api.berth_v1.refusals import not_found, pointer_of, refused, suggesting, unknown_name
from berth.api.berth_v1.revisions import after_write, answer_put, is_tag_known, set_tag
from berth.api.berth_v1.tree_body import BODY, EXAMPLE, Wanted, read_tree
from berth.api.contract import (
    DRY_RUN,
    Answer,
    Body,
    Contract,
    Parameter,
    Query,
    always,
    component,
    puts,
    ref,
)
from berth.api.errors import Refused
from berth.api.paths import is_dry_run
from berth.api.placement.inventories import render
from berth.api.request import Call
from berth.api.schema import JSONSchema
from berth.api.shapes import (
    CLASS_NAME_PATTERN,
    TEXT,
    UUID_OR_NULL,
    described,
    list_of,
    object_by,
    open_object,
)
from berth.api.struct_schema import REVISION, REVISION_EXAMPLE
from berth.candidates.references import References, UnknownName, UnknownReference
from berth.index.block import Block
from berth.index.draining import drains_of_set
from berth.index.names import Names
from berth.index.providers import IndexedProvider
from berth.index.sets import NO_DRAINS
from berth.index.shape import NO_PARENT, NodeType
from berth.index.snapshot import Location, Snapshot
from berth.model.ids import AggregateUUID, ClassId, ProviderUUID, parse_uuid_lax
from berth.model.inventory import Inventory
from berth.model.names import similar
from berth.model.own_errors import TreeChanged, TreeInvalid, UnknownNames
from berth.model.provider_trees import Edit, ProviderChange, Tree, TreeProvider
from berth.store.provider_trees import edit_tree

#: What a line may show, and what it shows unless the client says.
INCLUDABLE: Final = ("generation", "inventories", "usages", "traits", "aggregates", "drains")
INCLUDED: Final = ("inventories", "traits", "aggregates", "drains")

_INCLUDE: Final = include_parameter(
    INCLUDABLE,
    "inventories,usages",
    "The default is all but `generation` and `usages`, which claims change. With `usages`, there "
    "are also `totals`.",
)
SHOWING: Final = Query(_INCLUDE)
EDITING: Final = Query(
    _INCLUDE,
    Parameter(
        name=DRY_RUN,
        means="With `true`, nothing is written, and `changes` says what would be.",
        example="false",
        schema={"type": "string", "enum": ["true", "false"]},
    ),
)

_LINE_EXAMPLE: Final[dict[str, Any]] = {
    name: value
    for name, value in PROVIDER_LINE_EXAMPLE.items()
    if name not in ("generation", "usages")
}
_COUNT: JSONSchema = {"type": "integer", "minimum": 0}
_TOTALS: JSONSchema = described(
    object_by(
        CLASS_NAME_PATTERN,
        open_object(
            {
                "capacity": {"type": "integer"},
                "used": _COUNT,
                "free": described(_COUNT, "What is not used, in total."),
                "largest_free": described(_COUNT, "Of one provider."),
            }
        ),
    ),
    "The sums of the whole tree, by resource class.",
)
_LINES: JSONSchema = described(
    list_of(ref("ProviderLine")), "The providers of the tree, parents first."
)
_ETAG: JSONSchema = described(
    TEXT,
    "The `ETag` of the tree without `include`, which `If-Match` of `PUT` takes: "
    "claims do not change it.",
)
_ETAG_EXAMPLE: Final = '"9f86d081884c7d659a2feaa0c55ad015"'
_TREE: Final = component(
    "Tree",
    open_object(
        {"revision": REVISION, "etag": _ETAG, "providers": _LINES},
        optional={"totals": _TOTALS},
    ),
    example={
        "revision": REVISION_EXAMPLE,
        "etag": _ETAG_EXAMPLE,
        "providers": [_LINE_EXAMPLE],
    },
    parts=(PROVIDER_LINE,),
)

_SIDE: JSONSchema = {
    "type": ["object", "null"],
    "description": "The members that become others; null if the provider does not exist then. "
    "`parent` is a name.",
}
_CHANGE: Final = component(
    "ProviderChange",
    open_object(
        {
            "change": {
                "type": "string",
                "enum": ["create", "update", "remove"],
                "description": "What happens to the provider.",
            },
            "uuid": described(UUID_OR_NULL, "Null if berth is yet to make one."),
            "name": described(TEXT, "Its name, as it is afterwards."),
            "before": _SIDE,
            "after": _SIDE,
        }
    ),
    example={
        "change": "create",
        "uuid": "0b7d5a34-5a1d-4c4e-9a0f-2f6a6f0c7d11",
        "name": "cn1_numa0",
        "before": None,
        "after": {
            "name": "cn1_numa0",
            "parent": "cn1",
            "inventories": {"VCPU": examples.RECORD},
            "traits": ["HW_NUMA_ROOT"],
            "aggregates": [],
        },
    },
)
_CREATED: Final = "The custom names that were created."
_EDITED: Final = component(
    "EditedTree",
    open_object(
        {
            "revision": REVISION,
            "changes": described(
                list_of(ref("ProviderChange")),
                "What differed: parents first, and last what is removed.",
            ),
            "created_resource_classes": described(list_of(TEXT), _CREATED),
            "created_traits": described(list_of(TEXT), _CREATED),
        },
        optional={
            "etag": described(_ETAG, f"{_ETAG['description']} Not without `providers`."),
            "providers": described(
                _LINES,
                "The tree afterwards; not in a dry run, nor if another client has changed it "
                "since.",
            ),
            "totals": _TOTALS,
        },
    ),
    example={
        "revision": REVISION_EXAMPLE,
        "changes": [_CHANGE.example.at(0) if _CHANGE.example else None],
        "created_resource_classes": [],
        "created_traits": [],
        "etag": _ETAG_EXAMPLE,
        "providers": [_LINE_EXAMPLE],
    },
    parts=(_CHANGE, PROVIDER_LINE),
)


_DEFAULT: Final = frozenset(INCLUDED)
_canonical: Final = msgspec.json.Encoder(order="deterministic").encode


@Contract(
    summary="Show a tree of providers",
    details="The `ETag` stands for exactly what is shown: by default, claims do not change it.",
    query=SHOWING,
    answers=(
        Answer(200, _TREE, means="The tree.", tagged=True),
        Answer(304, means="Nothing of what would be shown has changed since.", tagged=True),
    ),
)
def show_tree(call: Call, reference: str) -> Sent | dict[str, Any]:
    """Show the tree that contains a provider."""
    parts = included(call.query, INCLUDED)
    snapshot = call.services.index.snapshot()
    references = References(snapshot)
    root = references.root(reference)
    if root is None:
        meant = references.similar(UnknownReference("", "provider", reference))
        raise not_found(f"There is no provider {reference}.", meant)
    view = TreeView(snapshot, root, parts)
    if is_tag_known(call, view.tag):
        return SENT
    return {"revision": snapshot.revision, **view.members()}


@Contract(
    summary="Create a tree of providers, or change it to match the body",
    details="All or nothing, in one transaction. A tree that does not exist is created. "
    "Allocations do not move.",
    query=EDITING,
    body=Body(always(BODY), always(EXAMPLE)),
    answers=puts(_EDITED, means="Changed; or it was the same already; or a dry run."),
    conflict="What would be removed has allocations, or a provider of another tree has a UUID "
    "or a name that is to be given.",
    precondition="`If-Match` has another `ETag` than `GET` without `include` shows, or "
    "`If-None-Match: *` is sent and the tree exists.",
)
def put_tree(call: Call, reference: str) -> dict[str, Any]:
    """Make the tree that contains a provider as the body has it, or create it."""
    is_dry = is_dry_run(call.env)
    snapshot = call.services.index.snapshot()
    wanted = read_tree(call, reference, snapshot)
    expected = _expected(call, snapshot, reference)
    with _refusing(wanted, snapshot):
        edit = edit_tree(call.services.database, wanted.tree, expected=expected, dry_run=is_dry)
    after = after_write(call.services, snapshot)
    answer_put(call, f"/berth/v1/trees/{edit.root}", is_new=edit.is_new and not is_dry)
    return {
        "revision": after.revision,
        "changes": shown_changes(edit, wanted.uuids if is_dry else None),
        "created_resource_classes": edit.classes,
        "created_traits": edit.traits,
        **({} if is_dry else _shown_after(call, after, edit)),
    }


@contextmanager
def _refusing(wanted: Wanted, snapshot: Snapshot) -> Iterator[None]:
    """Refuse an edit with a pointer into the body that asks for it."""
    try:
        yield
    except TreeChanged as error:
        raise _precondition_failed(str(error), error.hint) from error
    except TreeInvalid as error:
        at, names = pointer_of(error.steps), error.did_you_mean
        if names is None:
            raise refused(at, str(error)) from error
        raise suggesting(refused(at, str(error), code=NAME_UNKNOWN), names) from error
    except UnknownNames as error:
        raise _unknown_names(error, wanted, snapshot) from error


def _shown_after(call: Call, snapshot: Snapshot, edit: Edit) -> dict[str, Any]:
    """The tree after an edit; nothing if another client has changed it since, or if the database
    has gone away."""
    root = References(snapshot).root(edit.root)
    if root is None or tree_of(snapshot, root) != edit.after:
        return {}
    view = TreeView(snapshot, root, included(call.query, INCLUDED))
    set_tag(call, view.tag)
    return view.members()


# --- Showing --------------------------------------------------------------------------------------


class TreeView:
    """A tree as it is shown, without its revision, and the tag of exactly that."""

    def __init__(self, snapshot: Snapshot, root: Location, parts: Collection[str]) -> None:
        self._at = snapshot, root
        self._parts = frozenset(parts)
        self.tag: Final = _tag(snapshot, root, self._parts)

    def members(self) -> dict[str, Any]:
        """What the body shows: also the tag that `If-Match` of an edit takes."""
        snapshot, root = self._at
        block, lines = snapshot.block(root.block_id), ProviderLines(snapshot, self._parts)
        shown: dict[str, Any] = {
            "etag": self.tag if self._parts == _DEFAULT else _tag(snapshot, root, _DEFAULT),
            "providers": [lines.line(block, node, root.row) for node in range(block.shape.size)],
        }
        if USAGES in self._parts:
            shown["totals"] = _totals(snapshot, root)
        return shown


def _totals(snapshot: Snapshot, root: Location) -> dict[str, dict[str, int]]:
    """The sums of a tree by resource class."""
    block, totals = snapshot.block(root.block_id), {}
    for class_id, columns in sorted(block.columns.items()):
        capacity, used = (
            [*map(int, numbers[:, root.row].tolist())]
            for numbers in (columns.capacity, columns.used)
        )
        free = [max(most - taken, 0) for most, taken in zip(capacity, used, strict=True)]
        sums = {"capacity": sum(capacity), "used": sum(used), "free": sum(free)}
        totals[snapshot.names.class_names[class_id]] = {**sums, "largest_free": max(free)}
    return totals


def _tag(snapshot: Snapshot, root: Location, parts: frozenset[str]) -> str:
    """The entity tag of a tree as it is shown, whatever the order of what has none: of its JSON
    with all members sorted by name, lines by uuid, and lists by value.

    PERF bench, hosts: each poll of an agent computes one, so it is made without the lines.
    """
    block, key = snapshot.block(root.block_id), (snapshot.names, parts)
    forms: Sequence[_Form] | None = snapshot.memory.get_for(block.shape, key)
    if forms is None:
        forms = [_form(node_type, snapshot.names, parts) for node_type in block.shape.node_types]
        snapshot.memory.keep_for(block.shape, key, forms, sum(len(form.text) for form in forms))
    uuids: list[bytes] = block.uuid_texts[:, root.row].tolist()
    lines = [
        (uuids[node], form.text % (*_values(snapshot, block, (node, root.row), form, uuids),))
        for node, form in enumerate(forms)
    ]
    text = b'{"providers":[%b]' % b",".join([line for _, line in sorted(lines)])
    if USAGES in parts:
        text += b',"totals":' + _canonical(_totals(snapshot, root))
    return f'"{sha256(text + b"}").hexdigest()[:32]}"'


class _Form(NamedTuple):
    """How the line of a node is written: what it shows, the classes that the node has, in the order
    of their names, and the text, with gaps for values."""

    parts: frozenset[str]
    classes: Sequence[ClassId]
    text: bytes


#: What stands in a form for a value in quotes, for one in bytes, and for a number.
_QUOTED, _TEXT, _NUMBER = "\0q", "\0t", "\0d"
_GAPS: Final = {b"%": b"%%", b'"\\u0000q"': b'"%b"', b'"\\u0000t"': b"%b", b'"\\u0000d"': b"%d"}
_RECORD: Final = dict.fromkeys(render(Inventory(0)), _NUMBER) | {"allocation_ratio": _TEXT}
_NONE: Final = b"[]"


def _form(node_type: NodeType, names: Names, parts: frozenset[str]) -> _Form:
    class_ids = [each for each in node_type.classes if each in names.class_names]
    classes = {names.class_names[each]: each for each in class_ids}
    shown: dict[str, object] = {
        fleet.GENERATION: _NUMBER,
        fleet.INVENTORIES: dict.fromkeys(classes, _RECORD),
        USAGES: dict.fromkeys(classes, _NUMBER),
        fleet.TRAITS: sorted(filter(None, map(names.trait_names.get, node_type.traits))),
    }
    line = {"uuid": _QUOTED, "name": _TEXT, "parent": _TEXT, "root": _QUOTED}
    text = _canonical(line | {part: shown.get(part, _TEXT) for part in parts})
    for gap, written in _GAPS.items():
        text = text.replace(gap, written)
    return _Form(parts, [classes[name] for name in sorted(classes)], text)


def _values(
    snapshot: Snapshot, block: Block, at: tuple[int, int], form: _Form, uuids: Sequence[bytes]
) -> list[object]:
    """What fills the gaps of a provider's line, in the order of the members' names."""
    (node, row), parent = at, block.shape.parents[at[0]]
    within = [(block.columns[each], block.shape.row_of_node[each][node]) for each in form.classes]
    values: list[object] = []
    if fleet.AGGREGATES in form.parts:
        number = block.aggregate_sets.item(at)
        values.append(
            _canonical(sorted(fleet.aggregates_of_set(snapshot, number))) if number else _NONE
        )
    if fleet.DRAINS in form.parts:
        number = NO_DRAINS if block.drain_sets is None else block.drain_sets.item(at)
        values.append(
            _canonical(drains_of_set(snapshot, number, in_effect=True)) if number else _NONE
        )
    if fleet.GENERATION in form.parts:
        values.append(block.generations.item(at))
    if fleet.INVENTORIES in form.parts:
        for columns, line in within:
            values += (
                _canonical(columns.allocation_ratio.item(line, row)),
                columns.max_unit.item(line, row),
                columns.min_unit.item(line, row),
                columns.reserved.item(line, row),
                columns.step_size.item(line, row),
                columns.total.item(line, row),
            )
    values.append(block.names.item(node, row))
    values += b"null" if parent == NO_PARENT else b'"%b"' % uuids[parent], uuids[0]
    if USAGES in form.parts:
        values += [int(columns.used.item(line, row)) for columns, line in within]
    return [*values, uuids[node]]


# --- Editing --------------------------------------------------------------------------------------


def _expected(call: Call, snapshot: Snapshot, reference: str) -> Tree | None:
    """The tree that a client says it has seen; None if it does not say.

    Raises:
        Refused: 412 if that is not the present one.
    """
    root = References(snapshot).root(reference)
    tag = None if root is None else _tag(snapshot, root, _DEFAULT)
    if not holds_if_none_match(call, tag):
        raise _precondition_failed(
            f"The tree of {reference} exists, and the request insists on a new one, or on another.",
            "",
        )
    if not holds_if_match(call, tag):
        raise _precondition_failed(str(changed := TreeChanged(reference)), changed.hint)
    if "HTTP_IF_MATCH" in call.env or "HTTP_IF_NONE_MATCH" in call.env:
        return {} if root is None else tree_of(snapshot, root)
    return None


def _precondition_failed(message: str, hint: str) -> Refused:
    return Refused(412, message, hint=hint, code=PRECONDITION_FAILED)


def _unknown_names(error: UnknownNames, wanted: Wanted, snapshot: Snapshot) -> Refused:
    """The refusal of names that do not exist: it points to the first."""
    names = snapshot.names
    name, at = wanted.pointer_to_first(error.part, error.names)
    if error.part == "traits":
        unknown = UnknownName(at, "trait", name, similar(name, names.trait_ids))
    else:
        unknown = UnknownName(at, "resource_class", name, similar(name, names.class_ids))
    return unknown_name(unknown)


# --- Trees of a snapshot as clients edit them, and the changes of an edit -------------------------


_NAMES: Final = ("name", "parent", "inventories", "traits", "aggregates")


def tree_of(snapshot: Snapshot, root: Location) -> dict[ProviderUUID, TreeProvider]:
    """The tree of a root in a snapshot."""
    block = snapshot.block(root.block_id)
    tree = {}
    for node, parent in enumerate(block.shape.parents):
        provider = IndexedProvider(snapshot, block, node, root.row)
        uuid = ProviderUUID(block.uuid(node, root.row))
        tree[uuid] = TreeProvider(
            uuid,
            msgspec.json.decode(block.names.item(node, root.row)),
            None if parent == NO_PARENT else ProviderUUID(block.uuid(parent, root.row)),
            provider.inventories(),
            frozenset(msgspec.json.decode(provider.traits().names, type=list[str])),
            frozenset(
                AggregateUUID(parse_uuid_lax(each) or each) for each in provider.aggregates()
            ),
        )
    return tree


def shown_changes(edit: Edit, given: Collection[ProviderUUID] | None) -> list[dict[str, Any]]:
    """The changes of an edit.

    Args:
        given: the uuids that new providers certainly get; None: all of them.
    """
    names = edit.names
    return [
        {
            "change": _kind(change),
            "uuid": None
            if change.before is None and given is not None and change.provider.uuid not in given
            else change.provider.uuid,
            "name": change.provider.name,
            **_sides(change, names),
        }
        for change in edit.changes
    ]


def _kind(change: ProviderChange) -> str:
    if change.before is None:
        return "create"
    return "remove" if change.after is None else "update"


def _sides(change: ProviderChange, names: Mapping[ProviderUUID, str]) -> dict[str, Any]:
    """The members before and after: all of a provider that is new or gone, else those that become
    others."""
    before, after = change.before, change.after
    if before is None or after is None:
        differing: Iterable[str] = _NAMES
    else:
        differing = [name for name in _NAMES if getattr(before, name) != getattr(after, name)]
    return {
        "before": None if before is None else _members(before, differing, names),
        "after": None if after is None else _members(after, differing, names),
    }


def _members(
    provider: TreeProvider, members: Iterable[str], names: Mapping[ProviderUUID, str]
) -> dict[str, Any]:
    shown = {
        "name": provider.name,
        "parent": None if provider.parent is None else names[provider.parent],
        "inventories": {name: render(each) for name, each in sorted(provider.inventories.items())},
        "traits": sorted(provider.traits),
        "aggregates": sorted(provider.aggregates),
    }
    return {name: shown[name] for name in members}

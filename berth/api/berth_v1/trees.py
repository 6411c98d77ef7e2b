# SPDX-License-Identifier: Apache-2.0
"""Whole trees of providers. Source: spec/beyond.md 6.3."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, Final

import msgspec

from berth.api import audit
from berth.api.berth_v1.pointed import pointer_of, refused, suggesting
from berth.api.berth_v1.provider_lines import PARTS, USAGES, Line, ProviderLines
from berth.api.berth_v1.query import included
from berth.api.berth_v1.refusals import not_found, unknown_name
from berth.api.berth_v1.revisions import after_write
from berth.api.berth_v1.tree_body import Wanted, read_tree
from berth.api.berth_v1.tree_changes import shown_changes, tree_of
from berth.api.entity_tags import holds_if_match, holds_if_none_match
from berth.api.errors import Refused
from berth.api.operations.berth_v1.codes import NAME_UNKNOWN, PRECONDITION_FAILED
from berth.api.operations.berth_v1.trees import INCLUDED
from berth.api.paths import is_dry_run
from berth.api.rendering import STATUS_LINES, answer
from berth.api.request import Request, Response, Services
from berth.candidates.references import References, UnknownName, UnknownReference
from berth.index.snapshot import Location, Snapshot
from berth.model.own_errors import TreeChanged, TreeInvalid, UnknownNames
from berth.model.provider_trees import Tree
from berth.model.similar_names import similar
from berth.store.provider_trees import Edit, edit_tree

_digest_of: Final = msgspec.json.Encoder(order="deterministic").encode


def show_tree(services: Services, request: Request, response: Response, reference: str) -> None:
    """Show the tree that contains a provider."""
    parts = included(request.query, INCLUDED)
    snapshot = services.index.snapshot()
    references = References(snapshot)
    root = references.root(reference)
    if root is None:
        meant = references.similar(UnknownReference("", "provider", reference))
        raise not_found(f"There is no provider {reference}.", meant)
    view = _View(snapshot, root, parts)
    _tagged(response, view.tag)
    if not holds_if_none_match(request, view.tag):
        response.status = STATUS_LINES[304]
        return
    answer(response, {"revision": snapshot.revision, **view.members()})


def put_tree(services: Services, request: Request, response: Response, reference: str) -> None:
    """Make the tree that contains a provider as the body has it, or create it."""
    is_dry = is_dry_run(request.env)
    snapshot = services.index.snapshot()
    wanted = read_tree(request, reference, snapshot)
    expected = _expected(request, snapshot, reference)
    with _refusing(wanted, snapshot):
        edit = edit_tree(services.database, wanted.tree, expected=expected, dry_run=is_dry)
    changes = shown_changes(edit, wanted.uuids if is_dry else None)
    audit.note_tree(request, edit, changes)
    _answer_edit(request, response, after_write(services, snapshot), edit, changes, is_dry=is_dry)


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


def _answer_edit(
    request: Request,
    response: Response,
    snapshot: Snapshot,
    edit: Edit,
    changes: list[dict[str, Any]],
    *,
    is_dry: bool,
) -> None:
    body: dict[str, Any] = {
        "revision": snapshot.revision,
        "changes": changes,
        "created_resource_classes": edit.classes,
        "created_traits": edit.traits,
    }
    if not is_dry:
        body |= _shown_after(request, response, snapshot, edit)
    is_created = edit.is_new and not is_dry
    if is_created:
        path = f"/berth/v1/trees/{edit.root}"
        response.set_header("location", request.location(path))
    answer(response, body, status=201 if is_created else 200)


def _shown_after(
    request: Request, response: Response, snapshot: Snapshot, edit: Edit
) -> dict[str, Any]:
    """The tree after an edit; nothing if another client has changed it since, or if the database
    has gone away."""
    root = References(snapshot).root(edit.root)
    if root is None or tree_of(snapshot, root) != edit.after:
        return {}
    view = _View(snapshot, root, included(request.query, INCLUDED))
    _tagged(response, view.tag)
    return view.members()


# --- Showing --------------------------------------------------------------------------------------


class _View:
    """A tree as it is shown, without its revision, and the tag of exactly that."""

    def __init__(self, snapshot: Snapshot, root: Location, parts: Collection[str]) -> None:
        self._parts = frozenset(parts)
        self._lines = _lines(snapshot, root, self._parts.union(INCLUDED))
        self._shown: dict[str, Any] = {"providers": _only(self._lines, self._parts)}
        if USAGES in self._parts:
            self._shown["totals"] = _totals(snapshot, root)
        self.tag: Final = _tag(self._shown)

    def members(self) -> dict[str, Any]:
        """What the body shows: also the tag that `If-Match` of an edit takes."""
        is_default = self._parts == frozenset(INCLUDED)
        return {"etag": self.tag if is_default else _default_tag(self._lines), **self._shown}


def _lines(snapshot: Snapshot, root: Location, parts: Collection[str]) -> list[Line]:
    """The providers of a tree."""
    block = snapshot.block(root.block_id)
    lines = ProviderLines(snapshot, parts)
    return [lines.line(block, node, root.row) for node in range(block.shape.size)]


def _only(lines: Iterable[Line], parts: Collection[str]) -> list[Line]:
    """Lines with no more than some parts."""
    left_out = frozenset(PARTS).difference(parts)
    return [{name: line[name] for name in line if name not in left_out} for line in lines]


def _default_tag(lines: Iterable[Line]) -> str:
    """The tag of a tree as it is shown without `include`."""
    return _tag({"providers": _only(lines, INCLUDED)})


def _totals(snapshot: Snapshot, root: Location) -> dict[str, dict[str, int]]:
    """The sums of a tree by resource class."""
    block, totals = snapshot.block(root.block_id), {}
    for class_id in sorted(block.columns):
        columns = block.columns[class_id]
        free = [
            max(int(capacity) - int(used), 0)
            for capacity, used in zip(
                columns.capacity[:, root.row].tolist(),
                columns.used[:, root.row].tolist(),
                strict=True,
            )
        ]
        totals[snapshot.names.class_names[class_id]] = {
            "capacity": sum(map(int, columns.capacity[:, root.row].tolist())),
            "used": sum(map(int, columns.used[:, root.row].tolist())),
            "free": sum(free),
            "largest_free": max(free),
        }
    return totals


def _tag(shown: Mapping[str, Any]) -> str:
    """The entity tag of a tree as it is shown, whatever the order of what has none."""
    lines = sorted((_ordered(line) for line in shown["providers"]), key=lambda line: line["uuid"])
    digest = sha256(_digest_of({**shown, "providers": lines})).hexdigest()
    return f'"{digest[:32]}"'


def _ordered(line: Line) -> Line:
    return {
        name: sorted(value) if isinstance(value, list) else value for name, value in line.items()
    }


def _tagged(response: Response, tag: str) -> None:
    response.set_header("etag", tag)
    response.set_header("cache-control", "no-cache")


# --- Editing --------------------------------------------------------------------------------------


def _expected(request: Request, snapshot: Snapshot, reference: str) -> Tree | None:
    """The tree that a client says it has seen; None if it does not say.

    Raises:
        Refused: 412 if that is not the present one.
    """
    root = References(snapshot).root(reference)
    tag = None if root is None else _default_tag(_lines(snapshot, root, INCLUDED))
    if not holds_if_none_match(request, tag):
        raise _precondition_failed(
            f"The tree of {reference} exists, and the request insists on a new one, or on another.",
            "",
        )
    if not holds_if_match(request, tag):
        raise _precondition_failed(str(changed := TreeChanged(reference)), changed.hint)
    if "HTTP_IF_MATCH" in request.env or "HTTP_IF_NONE_MATCH" in request.env:
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

# SPDX-License-Identifier: Apache-2.0
"""Reads and writes a whole tree in one request, where the service is berth.

OpenStack Placement has no such routes: it answers 404, and so does a berth whose operator lets
hosts use the old routes only, with 403. Either is asked again after an hour, since a service may be
replaced while its hosts run.

Source: spec/beyond.md 6.3.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Any, Final

from berth.hosts.errors import ComputeError, NotThere, Refused, Unreachable
from berth.hosts.plan import Plan
from berth.hosts.provider_tree import ProviderData, ProviderTree
from berth.hosts.service import Answer, Listed, Service, decoded, named_path

LOG = logging.getLogger(__name__)

_TREES: Final = "/berth/v1/trees"
_DRAINS: Final = "/berth/v1/drains"

#: What is read of each provider. Claims change generations, so the poll after one carries the tree.
_READ: Final = "include=generation,inventories,traits,aggregates,drains"

#: Seconds before a service that has no such routes is asked for them again.
_ASK_AGAIN_S: Final = 3600.0

#: Codes that begin so are berth's own.
_OWN_CODES: Final = "berth."

_NOT_MODIFIED: Final = 304
_FORBIDDEN: Final = 403

#: A provider as berth shows it in a tree.
Line = Mapping[str, Any]


class Absent(Enum):
    """Why a tree was not read."""

    #: There is no such provider.
    PROVIDER = "provider"
    #: The service has no such routes, or not for this caller.
    ROUTES = "routes"


@dataclass(frozen=True, slots=True)
class WholeTree:
    """A tree as it was last read or written.

    Attributes:
        lines: its providers, parents first.
        tag: stands for everything that is read.
        edit_tag: stands for what drivers change: not for generations.
    """

    lines: Sequence[Line]
    tag: str
    edit_tag: str

    @property
    def root(self) -> str:
        """The UUID of its root."""
        return str(self.lines[0]["root"])


class WholeTrees:
    """The routes for whole trees, and the trees that were read through them."""

    def __init__(self, service: Service, clock: Callable[[], float]) -> None:
        self._service = service
        self._clock = clock
        #: By root.
        self._trees: dict[str, WholeTree] = {}
        self._ask_at = -inf

    def forget(self, root: str | None = None) -> None:
        """Forget the tree of a root, or all: it was written through other routes."""
        if root is None:
            self._trees.clear()
        else:
            self._trees.pop(root, None)

    def read(self, uuid: str, root_of: Callable[[str], str | None]) -> WholeTree | Absent:
        """Read the tree that contains a provider; one request, answered 304 if it is unchanged.

        Args:
            root_of: finds the root of the tree that contained it when it was last read; None: that
                tree cannot be relied on.

        Raises:
            Refused, Unreachable: the request failed.
        """
        if self._are_missing():
            return Absent.ROUTES
        tree_before = self._trees.get(root_of(uuid) or "")
        headers = {} if tree_before is None else {"If-None-Match": tree_before.tag}
        try:
            answer = self._service.send("GET", f"{_path(uuid)}?{_READ}", headers=headers)
        except NotThere as error:
            if error.code.startswith(_OWN_CODES):
                return Absent.PROVIDER
            return self._without_routes("The service has no routes for whole trees")
        except Refused as error:
            if error.status != _FORBIDDEN:
                raise
            return self._without_routes("The service does not let this host read whole trees")
        if tree_before is not None and answer.status_code == _NOT_MODIFIED:
            return tree_before
        return self._keep(f"GET {_path(uuid)}", answer)

    def create_root(self, uuid: str, name: str) -> WholeTree | None:
        """Create a root without anything, unless a provider has its UUID or its name.

        Returns:
            None if it was not created.

        Raises:
            Unreachable: it may have been created.
        """
        if self._are_missing():
            return None
        body = {"providers": [{"uuid": uuid, "name": name, "parent": None}]}
        return self._put(uuid, body, {"If-None-Match": "*"})

    def write(self, plan: Plan, tree: ProviderTree, root: str) -> WholeTree | None:
        """Carry out a plan that moves no allocations, completely or not at all.

        Args:
            tree: as it was read, from which the plan was made.

        Returns:
            The tree afterwards; None if the service refuses it, perhaps because another client has
            changed the tree since it was read: the single steps say why, or succeed.

        Raises:
            Unreachable: it may have been carried out.
        """
        tree_before = self._trees.get(root)
        if tree_before is None or self._are_missing():
            return None
        return self._put(root, _body(plan, tree, root), {"If-Match": tree_before.edit_tag})

    def drains_of(self, root: str) -> Mapping[str, Sequence[str]]:
        """The drains in effect in a tree: for each the names of the providers that it drains, the
        root first; empty if the tree was not read as a whole."""
        tree_before = self._trees.get(root)
        drained: dict[str, list[str]] = {}
        for line in () if tree_before is None else tree_before.lines:
            for drain in line["drains"]:
                drained.setdefault(drain, []).append(line["name"])
        return drained

    def reason_of(self, drain: str) -> str:
        """Why a drain was created, and by whom, as far as the service says."""
        try:
            shown = self._service.get(named_path(_DRAINS, drain))
        except ComputeError as error:
            LOG.debug("Cannot read the drain %s: %s", drain, error)
            return ""
        by = f"by {shown['created_by']}" if shown["created_by"] else ""
        return ", ".join(filter(None, (shown["reason"], by)))

    # --- Inside -----------------------------------------------------------------------------------

    def _are_missing(self) -> bool:
        """Whether the service has no such routes, as far as is known."""
        return self._clock() < self._ask_at

    def _put(
        self, root: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> WholeTree | None:
        request = f"PUT {_path(root)}"
        try:
            answer = self._service.send("PUT", f"{_path(root)}?{_READ}", body, headers=headers)
            if "etag" not in answer.headers:
                # Another client has changed the tree since.
                tree = self.read(root, lambda _: None)
                return tree if isinstance(tree, WholeTree) else None
        except Refused as error:
            LOG.debug("%s", error)
            self.forget(root)
            return None
        except Unreachable:
            self.forget(root)
            raise
        return self._keep(request, answer)

    def _keep(self, request: str, answer: Answer) -> WholeTree:
        body = decoded(request, answer)
        tree = WholeTree(body["providers"], answer.headers["etag"], body["etag"])
        self._trees[tree.root] = tree
        return tree

    def _without_routes(self, why: str) -> Absent:
        self._ask_at = self._clock() + _ASK_AGAIN_S
        self._trees.clear()
        LOG.debug("%s; each provider is read and written by itself", why)
        return Absent.ROUTES


def _path(uuid: str) -> str:
    return named_path(_TREES, uuid)


def _body(plan: Plan, tree: ProviderTree, root: str) -> dict[str, Any]:
    """The body of the PUT that carries out a plan: only what differs."""
    gone = {data.uuid for data in plan.deleted}
    # Whoever is not listed would be removed.
    kept = [uuid for uuid in tree.get_provider_uuids(root) if uuid not in gone] if gone else []
    entries: dict[str, dict[str, Any]] = {uuid: {} for uuid in kept}

    def entry(uuid: str) -> dict[str, Any]:
        return entries.setdefault(uuid, {})

    for data in (*plan.created, *plan.renamed):
        entry(data.uuid).update(name=data.name, parent=data.parent_uuid)
    for data in plan.aggregates:
        entry(data.uuid)["aggregates"] = sorted(data.aggregates)
    for data in plan.traits:
        entry(data.uuid)["traits"] = sorted(data.traits)
    for uuid, inventory in plan.inventories.items():
        if uuid not in gone:
            entry(uuid)["inventories"] = inventory
    return {
        "providers": [{"uuid": uuid, **members} for uuid, members in entries.items()],
        "remove_missing": bool(gone),
        "create_names": True,
    }


def data_of(line: Line) -> ProviderData:
    """A provider of a tree as the report client keeps it."""
    return ProviderData(
        uuid=line["uuid"],
        name=line["name"],
        generation=line["generation"],
        parent_uuid=line["parent"],
        inventory=line["inventories"],
        traits=set(line["traits"]),
        aggregates=set(line["aggregates"]),
        resources={},
    )


def listed_of(line: Line) -> Listed:
    """A provider of a tree as the service lists it."""
    return {
        "uuid": line["uuid"],
        "name": line["name"],
        "generation": line["generation"],
        "parent_provider_uuid": line["parent"],
    }

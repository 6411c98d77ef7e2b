# SPDX-License-Identifier: Apache-2.0
"""The hosts that fit if every amount could come from any number of providers. Source:
spec/beyond.md 3.3."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from berth.candidates.explain.asking import Asking
from berth.candidates.question import Split
from berth.candidates.request import CandidatesRequest, Relation, RequestGroup
from berth.index.aggregate_sets import Mask
from berth.index.block import Block

#: No tree has more providers.
_PARTS_MAX = 1 << 16


def fitting_if_split(asking: Asking, kept: int) -> Mask | None:
    """The hosts that fit some atoms, if none does unsplit; None if several groups ask for the same
    class, of which only one may split it."""
    request = asking.reduction.request(kept, {})
    classes = [name for group in request.groups for name, _ in group.resources]
    if len(classes) > len(set(classes)):
        return None
    among = _promising(asking, request)
    if not among.any():
        return among
    return asking.fit_request(_split(request), kept, among)


def _promising(asking: Asking, request: CandidatesRequest) -> Mask:
    """The hosts of which several providers have enough together: of one class, or each of another
    class of a group."""
    fleet, class_ids = asking.fleet, asking.present.names.class_ids
    amounts = {
        class_ids[name]: amount for group in request.groups for name, amount in group.resources
    }
    has_parts = any(group.suffix and len(group.resources) > 1 for group in request.groups)
    hosts = fleet.none()
    for span in fleet.spans:
        block: Block = span.block
        if not has_parts and not any(
            len(block.shape.nodes_of_class.get(each, ())) > 1 for each in amounts
        ):
            continue
        rows: Mask = np.ones(block.rows, dtype=np.bool_)
        for class_id, amount in amounts.items():
            # Another tree may share what a tree has none of.
            if class_id in block.columns and class_id not in asking.present.sharing.classes:
                room = asking.at_once(block.columns[class_id])
                rows &= room.sum(axis=0, dtype=np.float64) >= amount
        hosts[span.hosts] = rows
    # One provider serves these, split or not.
    return hosts & ~asking.fleet.settled


def _split(request: CandidatesRequest) -> CandidatesRequest:
    """The request with every amount split. A named group of several classes becomes one group for
    each: a group that splits an amount has no other."""
    parts_of: dict[str, tuple[RequestGroup, ...]] = {
        group.suffix: tuple(_parts(group)) for group in request.groups
    }
    return replace(
        request,
        groups=tuple(part for parts in parts_of.values() for part in parts),
        relations=tuple(
            each
            for relation in request.relations
            for each in _related(
                relation,
                [[part.suffix for part in parts_of[name]] for name in relation.suffixes],
            )
        ),
    )


def _parts(group: RequestGroup) -> Iterator[RequestGroup]:
    if not group.suffix or len(group.resources) < 2:
        yield _with_splits(group, group.suffix)
        return
    for name, amount in group.resources:
        part = replace(group, resources=((name, amount),))
        yield _with_splits(part, f"{group.suffix}/{name}")


def _with_splits(group: RequestGroup, suffix: str) -> RequestGroup:
    split = tuple((name, Split(parts=_PARTS_MAX)) for name, _ in group.resources)
    return replace(group, suffix=suffix, split=split)


def _related(relation: Relation, groups: list[list[str]]) -> Iterator[Relation]:
    """A relation between groups, as relations between their parts."""
    if relation.is_together:
        yield relation._replace(suffixes=tuple(part for parts in groups for part in parts))
        return
    for number, parts in enumerate(groups):
        for others in groups[:number]:
            for pair in product(others, parts):
                yield relation._replace(suffixes=pair)

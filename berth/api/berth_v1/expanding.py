# SPDX-License-Identifier: Apache-2.0
"""Requests that name flavors: from the name to the question. Source: spec/beyond.md 2.2 and 4.5.

A question takes its groups and relations from the flavor, and the conditions on the host from both.
Whatever is wrong with the flavor's part has the pointer to its name, because nothing else of it
stands in the body.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, TypeVar

from berth.api.berth_v1.grammar import FLAVOR_REQUEST
from berth.api.berth_v1.pointed import PointedSchema, pointer_of, refused
from berth.api.berth_v1.reading import (
    Asked,
    AskedByFlavor,
    Part,
    Requested,
    Tolerated,
    conflicts,
    read_question,
)
from berth.api.berth_v1.refusals import unknown_name
from berth.api.body import decode
from berth.api.errors import Refused
from berth.candidates.question import Question, QuestionHost
from berth.candidates.references import UnknownName, unknown_names
from berth.index.snapshot import Snapshot
from berth.model.flavor import Flavor, FlavorName
from berth.model.similar_names import similar

T = TypeVar("T")

#: A release may know less than the one that stored the flavor.
_STORED: Final = PointedSchema(FLAVOR_REQUEST)
#: What a decoded flavor takes, for each byte of its text.
_BYTES_FOR_BYTE: Final = 16


def expanded(requested: Iterable[Requested], snapshot: Snapshot) -> tuple[Asked, ...]:
    """The questions of some requests, with the flavors of a snapshot.

    Raises:
        Refused: 400 for a flavor that does not exist, that this release cannot read, or that
            contradicts the rest of the request.
    """
    return tuple(
        each if isinstance(each, Asked) else _expanded(each, snapshot) for each in requested
    )


def narrowed(asked: Asked, conditions: Part) -> Asked:
    """A question with further conditions, whose list `host.in` takes the place of its own.

    Raises:
        Refused: 400 if one requires what the other forbids.
    """
    own = conditions.question
    if own == Question(()):
        return asked
    parts = asked.parts
    question = asked.question
    if own.host.within:
        parts = tuple(part._replace(question=_anywhere(part.question)) for part in parts)
        question = _anywhere(question)
    question = replace(
        question,
        host=_both(question.host, own.host),
        tolerate=_either(question.tolerate, own.tolerate),
    )
    _check_no_conflict(question.host, conditions.at, "the request")
    return Asked(question, (conditions, *parts))


def _anywhere(question: Question) -> Question:
    return replace(question, host=replace(question.host, within=()))


def stored_question(name: str, flavor: Flavor, snapshot: Snapshot, at: str) -> Part:
    """The question of a flavor, decoded once for all requests.

    Args:
        at: the pointer to the request that names it.

    Raises:
        Refused: 400 if this release cannot read it.
    """
    key = stored_question, flavor.request
    part: Part | None = snapshot.memory.get(key)
    if part is None:
        try:
            (part,) = _read(flavor).parts
        except Refused as refusal:
            raise refused(
                f"{at}/flavor",
                f"names the flavor {name}, which this release cannot read; set it again."
                f" {refusal.message}".removesuffix("."),
            ) from None
        snapshot.memory.keep(key, part, _BYTES_FOR_BYTE * len(flavor.request))
    return part._replace(at=at, flavor=name)


def flavor_to_count(snapshot: Snapshot, name: FlavorName) -> Asked | dict[str, object]:
    """The question of a stored flavor, or as JSON why its capacity cannot be counted.

    Pointers into the question begin with `/flavors/` and the name.
    """
    try:
        part = stored_question(name, snapshot.names.flavors[name], snapshot, "")
    except Refused:
        return {"invalid": f"This release cannot read flavor {name}; set it again."}
    # Where several are counted, pointers into a flavor begin with its name.
    part = part._replace(at=pointer_of(("flavors", name)), flavor="")
    asked = Asked(part.question, (part,))
    if not takes_anything(asked):
        return {"invalid": f"Flavor {name} asks for no resources, so it fits any number of times."}
    unknown = [
        each._replace(at=part.pointer(each.at))._asdict()
        for each in unknown_names(part.question, snapshot)
    ]
    return {"unknown": unknown} if unknown else asked


def takes_anything(asked: Asked) -> bool:
    """Whether a question asks for any resources."""
    return any(group.resources for _, group in asked.question.groups)


def _read(flavor: Flavor) -> Asked:
    sent = decode(flavor.request.encode())
    _STORED.check(sent)
    assert isinstance(sent, dict), "the schema admits objects only"
    return read_question(sent, "")


def _expanded(asked: AskedByFlavor, snapshot: Snapshot) -> Asked:
    flavors = snapshot.names.flavors
    flavor = flavors.get(FlavorName(asked.flavor))
    if flavor is None:
        unknown = UnknownName("/flavor", "flavor", asked.flavor, similar(asked.flavor, flavors))
        raise unknown_name(unknown, within=asked.at)
    stored = stored_question(asked.flavor, flavor, snapshot, asked.at)
    question = replace(
        stored.question,
        host=_both(stored.question.host, asked.own.host),
        tolerate=_either(stored.question.tolerate, asked.own.tolerate),
    )
    _check_no_conflict(question.host, asked.at, f"flavor {asked.flavor}")
    return Asked(question, (Part(asked.own, asked.at), stored))


def _both(stored: QuestionHost, own: QuestionHost) -> QuestionHost:
    """The conditions of both; one that both have stands there once."""
    return QuestionHost(
        required=_joined(stored.required, own.required),
        anywhere=_joined(stored.anywhere, own.anywhere),
        member_of=_joined(stored.member_of, own.member_of),
        within=_joined(stored.within, own.within),
        not_in=_joined(stored.not_in, own.not_in),
    )


def _joined(stored: tuple[T, ...], own: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(dict.fromkeys((*stored, *own)))


def _either(stored: Tolerated, own: Tolerated) -> Tolerated:
    return "*" if stored == "*" or own == "*" else _joined(stored, own)


def _check_no_conflict(host: QuestionHost, at: str, other: str) -> None:
    """Refuse conditions that each can hold, but not together."""
    for member, items in (("required", host.required), ("anywhere", host.anywhere)):
        for _, names in conflicts(items):
            raise refused(
                f"{at}/host/{member}",
                f"contradicts {other}: {names} would be required and forbidden",
            )

# SPDX-License-Identifier: Apache-2.0
"""The refusals of `/berth/v1`: each says in one sentence what is wrong, with a JSON pointer to it.

Source: spec/beyond.md 1.4 and 11; RFC 6901.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from berth.api.berth_v1 import codes
from berth.api.errors import Refused
from berth.candidates.references import References, UnknownName, UnknownReference
from berth.model.names import is_path_name, similar

Name = TypeVar("Name", bound=str)
Record = TypeVar("Record")


def refused(pointer: str, message: str, *, code: str = codes.INVALID) -> Refused:
    """400: what is wrong at a place of the request."""
    return Refused(400, f"{pointer or '/'} {message}.", code=code, facts={"pointer": pointer})


def suggesting(refusal: Refused, names: Sequence[str]) -> Refused:
    """The same refusal of an unknown name, with those that the client may have meant."""
    refusal.hint = f"Did you mean {' or '.join(names)}?" if names else ""
    refusal.facts = {**refusal.facts, "did_you_mean": [*names]}
    return refusal


def pointer_of(steps: Iterable[str | int]) -> str:
    """The JSON pointer of some steps."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)


def too_large(bound: str, most: int) -> Refused:
    """400: the request as a whole passes a bound, named as in `GET /berth/v1`."""
    return Refused(400, f"The request passes the bound {bound}, {most}.", code=codes.TOO_LARGE)


def unknown_name(unknown: UnknownName, *, within: str = "", flavor: str = "") -> Refused:
    """400: a resource class, trait or flavor does not exist.

    Args:
        within: the JSON pointer to the request in the body.
        flavor: which names it; "" for the body itself.
    """
    noun = unknown.kind.replace("_", " ")
    message = f"There is no {noun} {unknown.name}"
    by = f", which flavor {flavor} names" if flavor else ""
    facts = {"pointer": within + unknown.at}
    refusal = Refused(400, f"{message}{by}.", code=codes.NAME_UNKNOWN, facts=facts)
    return suggesting(refusal, unknown.did_you_mean)


def unknown_provider(reference: str, at: str, references: References) -> Refused:
    """400: a provider of a body does not exist; `at` is the pointer to its reference."""
    return unknown_reference(UnknownReference(at, "provider", reference), references)


def unknown_reference(unknown: UnknownReference, references: References) -> Refused:
    """400: what a reference of a body stands for does not exist."""
    return unknown_name(UnknownName(*unknown, references.similar(unknown)))


def not_found(message: str, did_you_mean: Sequence[str] | None = None) -> Refused:
    """404: what the path names does not exist; other names that the client may have meant."""
    refusal = Refused(404, message, code=codes.NOT_FOUND)
    return refusal if did_you_mean is None else suggesting(refusal, did_you_mean)


def no_record(noun: str, name: str, records: Iterable[str]) -> Refused:
    """404: of some named records, none has the name."""
    return not_found(f"There is no {noun} {name}.", similar(name, records))


def named_record(noun: str, name: Name, records: Mapping[Name, Record]) -> Record:
    """The record that a path names.

    Raises:
        Refused: 404, there is none.
    """
    record = records.get(name)
    if record is None:
        raise no_record(noun, name, records)
    return record


def check_name(noun: str, name: str) -> None:
    """Refuse a name that no named record may have.

    Raises:
        Refused: 400.
    """
    if not is_path_name(name):
        admitted = '1 to 255 letters, digits, ".", "_" and "-", other than "." and ".."'
        raise Refused(400, f"A {noun} has a name of {admitted}.", hint=f"Got: {name}")

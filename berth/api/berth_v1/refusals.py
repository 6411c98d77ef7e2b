# SPDX-License-Identifier: Apache-2.0
"""The refusals of `/berth/v1` that several routes share.

What breaks a rule of the grammar is refused by `berth.api.berth_v1.pointed`.
"""

from __future__ import annotations

from collections.abc import Sequence

from berth.api.berth_v1.pointed import suggesting
from berth.api.errors import Refused
from berth.api.operations.berth_v1 import codes
from berth.candidates.references import References, UnknownName, UnknownReference
from berth.model.names import is_path_name


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


def check_name(noun: str, name: str) -> None:
    """Refuse a name that no flavor or drain may have.

    Raises:
        Refused: 400.
    """
    if not is_path_name(name):
        admitted = '1 to 255 letters, digits, ".", "_" and "-", other than "." and ".."'
        raise Refused(400, f"A {noun} has a name of {admitted}.", hint=f"Got: {name}")

# SPDX-License-Identifier: Apache-2.0
"""The refusals of `/berth/v1` that several routes share.

What breaks a rule of the grammar is refused by `berth.api.berth_v1.pointed`.
"""

from __future__ import annotations

from berth.api.errors import Refused
from berth.api.operations.berth_v1 import codes
from berth.candidates.references import UnknownName, UnknownReference


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
    hint = f"Did you mean {' or '.join(unknown.did_you_mean)}?" if unknown.did_you_mean else ""
    return Refused(
        400,
        f"There is no {noun} {unknown.name}{f', which flavor {flavor} names' if flavor else ''}.",
        hint=hint,
        code=codes.NAME_UNKNOWN,
        facts={"pointer": within + unknown.at, "did_you_mean": [*unknown.did_you_mean]},
    )


def unknown_provider(reference: str, at: str) -> Refused:
    """400: a provider of a body does not exist; `at` is the pointer to its reference."""
    return unknown_reference(UnknownReference(at, "provider", reference))


def unknown_reference(unknown: UnknownReference) -> Refused:
    """400: what a reference of a body stands for does not exist."""
    return Refused(
        400,
        f"There is no {unknown.kind} {unknown.reference}.",
        code=codes.NAME_UNKNOWN,
        facts={"pointer": unknown.at, "did_you_mean": []},
    )


def not_found(message: str) -> Refused:
    """404: what the path names does not exist."""
    return Refused(404, message, code=codes.NOT_FOUND)

# SPDX-License-Identifier: Apache-2.0
"""What a handler declares beside its code: what it takes and answers, in words and as schemas.

The OpenAPI documents are generated from these contracts, and the checks that run before a handler
follow them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import Any, Final, TypeVar

from msgspec import Struct, field

from berth.api.media_types import JSON
from berth.api.microversion import MINOR_MAX, ByMicroversion
from berth.api.schema import QUERY, JSONSchema, Schema

#: Takes the call and the path parameters in order, and returns the body.
Handler = Callable[..., object]
#: Returns what the policy compares the caller with, if that is not the caller's own project and
#: user. Takes the call and the path parameters in order.
Target = Callable[..., Mapping[str, str | None]]

H = TypeVar("H", bound=Handler)

#: The query parameter that asks an operation what it would do.
DRY_RUN: Final = "dry_run"

_TEXT: JSONSchema = {"type": "string"}
#: The attribute in which a handler keeps its contract.
_CONTRACT: Final = "contract"


def always(value: Any) -> ByMicroversion[Any]:
    """The same value at every microversion."""
    return ByMicroversion({0: value})


class Parameter(Struct, frozen=True, kw_only=True):
    """A query parameter."""

    name: str
    #: A description; or sentences, each by the first microversion in which it is true.
    means: str | Mapping[int, str]
    example: str
    since: int = 0
    #: Validates the value.
    schema: JSONSchema = field(default_factory=lambda: _TEXT)
    #: What the value must be, in words, if the message that the schema gives says too little.
    expected: str = ""
    #: The format that the parsers check.
    pattern: ByMicroversion[str] | None = None
    #: The first microversion that reads every value of a repeated parameter, not only the last.
    repeats_since: int = MINOR_MAX + 1
    is_required: bool = False

    @property
    def sentences(self) -> Mapping[int, str]:
        """What it means, by the first microversion in which each sentence is true."""
        return {0: self.means} if isinstance(self.means, str) else self.means


class Query:
    """The parameters of a query, and the schema that validates them.

    Args:
        schema: replaces the one built from the parameters.
    """

    def __init__(
        self, *parameters: Parameter, schema: ByMicroversion[Schema] | None = None
    ) -> None:
        self.parameters = {parameter.name: parameter for parameter in parameters}
        self.schema = schema or ByMicroversion(
            {
                since: self._schema_at(since)
                for since in {parameter.since for parameter in parameters} or {0}
            }
        )

    def _schema_at(self, microversion: int) -> Schema:
        available = [
            parameter for parameter in self.parameters.values() if parameter.since <= microversion
        ]
        definition: dict[str, Any] = {
            "type": "object",
            "properties": {parameter.name: parameter.schema for parameter in available},
        }
        if required := [parameter.name for parameter in available if parameter.is_required]:
            definition["required"] = required
        definition["additionalProperties"] = False
        return Schema(definition, subject=QUERY)


class Body(Struct, frozen=True):
    """The JSON body of a request, with an example of the newest form."""

    schema: ByMicroversion[Schema]
    example: ByMicroversion[Any]


class Component(Struct, frozen=True, eq=False):
    """A named response schema, for each microversion from its first one on."""

    name: str
    schema: ByMicroversion[JSONSchema]
    example: ByMicroversion[Any] | None = None
    #: The components that it refers to.
    parts: tuple[Component, ...] = ()


def component(
    name: str,
    *versions: JSONSchema | tuple[int, JSONSchema],
    example: object = None,
    parts: tuple[Component, ...] = (),
) -> Component:
    """A component whose form changes at some microversions.

    Args:
        versions: one form for all microversions, or several, each with its first microversion.
        example: of the newest form, or one for each form, as a `ByMicroversion`.
    """
    if example is not None and not isinstance(example, ByMicroversion):
        example = always(example)
    forms = dict(each if isinstance(each, tuple) else (0, each) for each in versions)
    return Component(name, ByMicroversion(forms), example, parts)


def ref(name: str) -> JSONSchema:
    """A reference to a component."""
    return {"$ref": f"#/components/schemas/{name}"}


class Dated(Enum):
    """Whether a response from 1.15 on has `Cache-Control` and `Last-Modified`."""

    NO = 0
    #: It has no `Last-Modified` if the time is unknown.
    WHERE_KNOWN = 1
    ALWAYS = 2


@dataclass(frozen=True, slots=True)
class Answer:
    """A successful response; without a component it has no body."""

    status: int = 200
    component: Component | None = None
    _: KW_ONLY
    means: str = "Success."
    dated: Dated = Dated.NO
    #: Whether it has a `Location` header.
    located: bool = False
    #: Whether it has an `ETag`, for requests with `If-None-Match`.
    tagged: bool = False
    #: If it is JSON lines, the component describes a line.
    media_type: str = JSON
    #: A second media type that a client may ask for; empty if there is none.
    other_media_type: str = ""


def shows(
    component: Component, dated: Dated = Dated.ALWAYS, *, means: str = "Success."
) -> tuple[Answer, ...]:
    """200 with a body."""
    return (Answer(200, component, dated=dated, means=means),)


def puts(component: Component, *, means: str) -> tuple[Answer, ...]:
    """201 if the request has created what its path names, otherwise 200; both with a body."""
    return (
        Answer(201, component, located=True, means="Created."),
        Answer(200, component, means=means),
    )


DONE = (Answer(204),)
CREATED_OR_THERE = (
    Answer(201, located=True, means="Created."),
    Answer(204, located=True, means="It already exists."),
)


class Contract(Struct, frozen=True, kw_only=True, eq=False):
    """What a handler takes and answers; it decorates the handler."""

    summary: str
    details: str = ""
    query: Query | None = None
    #: If set, any type other than JSON gets 415.
    body: Body | None = None
    answers: tuple[Answer, ...] | ByMicroversion[tuple[Answer, ...]]
    #: When it responds 409; empty means never.
    conflict: str = ""
    #: What `If-Match` and `If-None-Match` do. A header that is not named here is ignored.
    precondition: str = ""
    #: When it responds 410; empty means never.
    gone: str = ""
    #: Called for the policy's check, before the handler.
    target: Target | None = None

    def __call__(self, handler: H) -> H:
        """The handler, which has this contract."""
        setattr(handler, _CONTRACT, self)
        return handler

    @property
    def has_content(self) -> bool:
        """Whether an answer has a body."""
        return any(answer.component for answer in self.answers_at(0))

    @property
    def media_types(self) -> tuple[str, ...]:
        """The media types of its bodies, of which the client may choose one."""
        types = dict.fromkeys(
            media_type
            for answer in self.answers_at(0)
            for media_type in (answer.media_type, answer.other_media_type)
            if media_type
        )
        return tuple(types) or (JSON,)

    def answers_at(self, microversion: int) -> tuple[Answer, ...]:
        """Its successful responses; below its first microversion, those of the first."""
        if isinstance(self.answers, ByMicroversion):
            return self.answers.at(max(microversion, self.answers.first))
        return self.answers


def contract_of(handler: Handler) -> Contract:
    """The contract of a handler, which must have one."""
    contract: Contract = getattr(handler, _CONTRACT)
    return contract

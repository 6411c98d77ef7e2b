# SPDX-License-Identifier: Apache-2.0
"""What an operation of the API declares, and the namespace that it belongs to.

Each operation is declared once, in `berth.api.operations`. The routes, the policy rules and their
sample, the OpenAPI documents and the tables in the documentation are generated from there. Nothing
here or there imports the code that serves requests, because commands that list rules must start
fast: a handler is given by name, and imported when the router is built.
"""

from __future__ import annotations

import math
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from typing import Any, Final, cast

from berth.api.errors import PLACEMENT_CODES, ErrorCodes
from berth.api.media_types import JSON
from berth.api.microversion import MINOR_MAX, ByMicroversion
from berth.api.schema import QUERY, JSONSchema, Schema

#: Takes the services, the request, the response, and the path parameters in order.
Handler = Callable[..., None]
#: What the policy checks the caller against, if not the caller's own project and user. Takes the
#: services, the request, and the path parameters in order.
Target = Callable[..., Mapping[str, str | None]]
#: Checks the query of a request, which it takes, and returns its parameters.
QueryReader = Callable[..., Mapping[str, str]]

#: The query parameter of operations that can be asked what they would do.
DRY_RUN: Final = "dry_run"

_HANDLERS = "berth.api"
_TEXT: JSONSchema = {"type": "string"}


def always(value: Any) -> ByMicroversion[Any]:
    """The same value at every microversion."""
    return ByMicroversion({0: value})


@dataclass(frozen=True, slots=True)
class Rule:
    """A policy rule: who may call an operation."""

    name: str
    default: str
    description: str


def for_services(name: str, description: str) -> Rule:
    """A rule that admits administrators and services."""
    return Rule(name, "rule:admin_or_service_api", description)


def for_agents(name: str, description: str) -> Rule:
    """A rule that also admits agents, each for its own host (`berth.api.host_rights`)."""
    return Rule(name, "rule:admin_or_service_api or rule:agent_api", description)


@dataclass(frozen=True, slots=True)
class Segment:
    """A path parameter: a name in braces."""

    means: str
    schema: JSONSchema
    example: str
    #: Whether it is the rest of the path: what it names may have slashes in its name, which
    #: servers decode before they pass the path on.
    is_rest: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A query parameter."""

    name: str
    #: Sentences, by the first microversion in which each is true.
    means: Mapping[int, str]
    example: str
    since: int = 0
    #: Validates the value.
    schema: JSONSchema = field(default_factory=lambda: _TEXT)
    #: What the value must be, in words, where the words for the schema's rule say too little.
    expected: str = ""
    #: The format that the parsers check.
    pattern: ByMicroversion[str] | None = None
    #: First microversion in which every repeated value counts.
    repeats_since: int = MINOR_MAX + 1
    is_required: bool = False


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


@dataclass(frozen=True, slots=True)
class Body:
    """The JSON body of a request, with an example of the newest form."""

    schema: ByMicroversion[Schema]
    example: ByMicroversion[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Component:
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
        versions: one form for all microversions, or each with its first microversion.
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
    #: Omits `Last-Modified` if the time is unknown.
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
    #: Another one, which a client may ask for; empty if there is none.
    other_media_type: str = ""


def shows(
    component: Component, dated: Dated = Dated.ALWAYS, *, means: str = "Success."
) -> tuple[Answer, ...]:
    """200 with a body."""
    return (Answer(200, component, dated=dated, means=means),)


DONE = (Answer(204),)
CREATED_OR_THERE = (
    Answer(201, located=True, means="Created."),
    Answer(204, located=True, means="It already exists."),
)


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One method of a path, within a range of microversions."""

    method: str
    #: Below its namespace's prefix; `{name}` stands for one segment.
    path: str
    _: KW_ONLY
    #: A function, or `module:function` in `berth.api`, found when the router is built.
    handler: Handler | str
    #: None if everyone may call it, even without authentication.
    rule: Rule | None
    #: Its heading in the OpenAPI document.
    tag: str
    summary: str
    details: str = ""
    since: int = 0
    until: int = MINOR_MAX
    #: By the names in braces in the path.
    segments: Mapping[str, Segment] = field(default_factory=dict)
    query: Query | None = None
    #: If set, any type other than JSON gets 415.
    body: Body | None = None
    answers: tuple[Answer, ...] | ByMicroversion[tuple[Answer, ...]]
    #: When it responds 409; empty means never.
    conflict: str = ""
    #: Check the media types before the microversion, not after it.
    media_first: bool = False
    #: Below `since`, it gets 405 (without `Allow`); other operations get 404.
    absent_is_405: bool = False
    #: What `If-Match` and `If-None-Match` do; one that is not named, it ignores.
    precondition: str = ""
    #: When it responds 410; empty means never.
    gone: str = ""
    #: As `handler`; the policy asks it before the handler is called.
    target: Target | str | None = None
    #: Whether it searches the fleet: it may use the CPU for seconds, and changes nothing, whatever
    #: its method.
    is_search: bool = False
    #: For which it searches, if the operator's budget is not less.
    search_seconds: float = math.inf
    #: Whether it waits for changes: then it gives up its place among the reads for that time.
    is_watch: bool = False
    #: Whether it may still change within a version of its namespace.
    is_experimental: bool = False

    @property
    def is_read(self) -> bool:
        """Whether it changes nothing."""
        return self.is_search or self.method == "GET"

    @property
    def name(self) -> str:
        """Its identifier in the OpenAPI document: the handler's name."""
        if isinstance(self.handler, str):
            return self.handler.partition(":")[2]
        return self.handler.__name__

    @property
    def has_content(self) -> bool:
        """Whether an answer has a body."""
        return any(answer.component for answer in self.answers_at(self.since))

    @property
    def media_types(self) -> tuple[str, ...]:
        """The media types of its bodies, of which the client may choose one."""
        types = dict.fromkeys(
            media_type
            for answer in self.answers_at(self.since)
            for media_type in (answer.media_type, answer.other_media_type)
            if media_type
        )
        return tuple(types) or (JSON,)

    def answers_at(self, microversion: int) -> tuple[Answer, ...]:
        """Its successful responses."""
        if isinstance(self.answers, ByMicroversion):
            return self.answers.at(microversion)
        return self.answers

    def find_handler(self) -> Handler:
        """The handler function."""
        if isinstance(self.handler, str):
            return cast(Handler, pkgutil.resolve_name(f"{_HANDLERS}.{self.handler}"))
        return self.handler

    def find_target(self) -> Target | None:
        """The function that says what the policy checks the caller against."""
        if isinstance(self.target, str):
            return cast(Target, pkgutil.resolve_name(f"{_HANDLERS}.{self.target}"))
        return self.target


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Namespace:
    """A separate API: everything below one path prefix.

    It has its own document and error codes. Every namespace negotiates the microversion.
    """

    #: "" for the OpenStack Placement API.
    prefix: str
    title: str
    summary: str
    #: The document's headings, with their descriptions.
    tags: Mapping[str, str]
    operations: tuple[Operation, ...]
    codes: ErrorCodes = PLACEMENT_CODES
    #: The version, if the microversion does not distinguish operations and responses.
    version: str | None = None
    #: Headers of all responses.
    headers: Mapping[str, str] = field(default_factory=dict)
    #: A class, as a handler is given, that makes of a `Query` what reads the query of each request
    #: into `Request.query`; "" if the handlers read it.
    query_reader: str = ""

    def path_of(self, operation: Operation) -> str:
        """An operation's complete path template."""
        return self.prefix + operation.path

    def checks_accept(self, operation: Operation) -> bool:
        """Whether an operation responds 406 if `Accept` excludes what it answers.

        COMPAT: of Placement's, only GETs with a rule do.
        """
        is_checked = bool(self.prefix) or (operation.method == "GET" and operation.rule is not None)
        return is_checked and operation.has_content

    def reader_of(self, operation: Operation) -> QueryReader | None:
        """What reads the query of an operation's requests before its handler is called."""
        kind = self.query_reader and pkgutil.resolve_name(f"{_HANDLERS}.{self.query_reader}")
        return kind(operation.query or Query()) if kind else None

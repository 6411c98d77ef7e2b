# SPDX-License-Identifier: Apache-2.0
"""An operation of the API: a method of a path, who may call it, and the handler that it names.

All operations are listed in two tables, `berth.api.placement.routes` and
`berth.api.berth_v1.routes`. These contain what is needed to route requests and to list the policy
rules. They import no code that serves requests, because commands that list rules must start fast:
an operation names its handler, which is imported with its contract when the application is built.
"""

from __future__ import annotations

import math
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, cast

from msgspec import Struct

from berth.api.contract import Contract, Handler, Query, contract_of
from berth.api.errors import PLACEMENT_CODES, ErrorCodes
from berth.api.microversion import MINOR_MAX
from berth.api.schema import JSONSchema

#: Takes a request, checks its query, and returns the query's parameters.
QueryReader = Callable[..., Mapping[str, str]]

_HANDLERS: Final = "berth.api"


def is_parameter(segment: str) -> bool:
    """Whether a template's segment stands for any text."""
    return segment.startswith("{")


class Rule(Struct, frozen=True):
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


class Segment(Struct, frozen=True):
    """A path parameter: a name in braces."""

    means: str
    schema: JSONSchema
    example: str
    #: Whether it is the whole rest of the path: names may contain slashes, which servers decode
    #: before they pass the path on.
    is_rest: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One method of a path, within a range of microversions."""

    method: str
    #: `module:function` in `berth.api`.
    handler: str
    #: None if everyone may call it, even without authentication.
    rule: Rule | None
    _: KW_ONLY
    #: Below its namespace's prefix; `{name}` stands for one segment.
    path: str
    #: By the names in braces in the path.
    segments: Mapping[str, Segment] = field(default_factory=dict)
    #: Its heading in the OpenAPI document.
    tag: str
    since: int = 0
    until: int = MINOR_MAX
    #: Check the media types before the microversion, not after it.
    media_first: bool = False
    #: Whether a request below `since` gets 405 (without `Allow`) instead of 404.
    absent_is_405: bool = False
    #: Whether it searches the fleet: it may use the CPU for seconds, and changes nothing, whatever
    #: its method.
    is_search: bool = False
    #: The most seconds for a search; the operator's budget may be less.
    search_seconds: float = math.inf
    #: Whether it waits for changes. While it waits, it does not take up a place among the reads.
    is_watch: bool = False
    #: Whether it has the query parameter `dry_run`, and changes nothing if that is `true`.
    may_be_dry: bool = False
    #: Whether it may still change within a version of its namespace.
    is_experimental: bool = False

    @property
    def is_read(self) -> bool:
        """Whether it changes nothing."""
        return self.is_search or self.method == "GET"

    @property
    def name(self) -> str:
        """Its identifier in the OpenAPI document: the handler's name."""
        return self.handler.partition(":")[2]

    def find_handler(self) -> Handler:
        """The handler function."""
        return cast(Handler, pkgutil.resolve_name(f"{_HANDLERS}.{self.handler}"))

    @property
    def contract(self) -> Contract:
        """What its handler takes and answers; imports the handler."""
        return contract_of(self.find_handler())


class Namespace(Struct, frozen=True, kw_only=True, eq=False):
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
    headers: Mapping[str, str] = {}
    #: `module:class` in `berth.api`. An object of it is made from a `Query`, and reads the query of
    #: each request into `Call.query`; "" if the handlers read queries themselves.
    query_reader: str = ""

    def path_of(self, operation: Operation) -> str:
        """An operation's complete path template."""
        return self.prefix + operation.path

    def checks_accept(self, operation: Operation) -> bool:
        """Whether an operation responds 406 if `Accept` excludes what it answers.

        COMPAT: of Placement's operations, only GETs with a policy rule do.
        """
        is_checked = bool(self.prefix) or (operation.method == "GET" and operation.rule is not None)
        return is_checked and operation.contract.has_content

    def reader_of(self, operation: Operation) -> QueryReader | None:
        """What reads the query of an operation's requests before its handler is called."""
        kind = self.query_reader and pkgutil.resolve_name(f"{_HANDLERS}.{self.query_reader}")
        return kind(operation.contract.query or Query()) if kind else None

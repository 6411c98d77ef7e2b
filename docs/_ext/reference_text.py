# SPDX-License-Identifier: Apache-2.0
"""Renders reference text from the program itself as Markdown, so that it is never outdated.

Each renderer serves one directive of `reference_directives`; `expand` inserts their text into a
page as the site shows it, for the tests that look for every option, command and rule.
"""

import inspect
import os
import re
from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

import click
from openapi_text import render_openapi, render_own_openapi
from oslo_config import cfg

if TYPE_CHECKING:
    from berth.api.contract import Query

#: The entry points of everything that defines options of placement.conf.
OPTION_SOURCES = (
    "placement.conf",
    "oslo.policy",
    "oslo.middleware.cors",
    "oslo.middleware.http_proxy_to_wsgi",
    "oslo.middleware.healthcheck",
    "oslo.log",
)

DIRECTIVE = re.compile(r"^```\{(?P<name>[a-z-]+)\}\n```$", re.MULTILINE)


def render_options() -> str:
    """Render a section per configuration group, with a table of its options."""
    from berth.config.options import CORS_DEFAULTS

    parts = []
    for group, opts in _options_by_group().items():
        changed = CORS_DEFAULTS if group == "cors" else {}
        rows = [
            (f"`{name}`", _type_of(opt), _default_of(opt, changed.get(name)), _sentence(opt.help))
            for name, opt in opts.items()
        ]
        parts += [
            f"## `[{group}]`",
            _table(("option", "type", "default", "meaning"), rows),
        ]
    return "\n\n".join(parts)


def render_commands() -> str:
    """Render a section per command, with its help as the terminal shows it."""
    from berth.cli.main import cli

    parts = []
    for words, command in _walk("berth", cli):
        context = click.Context(
            command, info_name=words, max_content_width=88, **cli.context_settings
        )
        parts += [f"## `{words}`", f"```text\n{command.get_help(context)}\n```"]
    return "\n\n".join(parts)


def render_policy() -> str:
    """Render a table of the policy rules: name, default, and routes."""
    from berth.api import policy

    rows = []
    for rule in policy.list_rules():
        operations = ", ".join(
            f"`{method} {operation['path']}`"
            for operation in getattr(rule, "operations", ())
            for method in [operation["method"]]
        )
        rows.append(
            (f"`{rule.name}`", f"`{rule.check_str}`", operations or "(used by other rules)")
        )
    return _table(("rule", "default", "route"), rows)


def render_routes() -> str:
    """A table of the routes: path, methods, and the microversion that each began with."""
    from berth.api.namespaces import PLACEMENT
    from berth.api.paths import routes_of

    rows = []
    for route in routes_of([PLACEMENT]):
        since = {method: operations[0].since for method, operations in route.methods.items()}
        first = min(since.values())
        later = [f"{method} 1.{minor}" for method, minor in since.items() if minor > first]
        rows.append((f"`{route.path}`", ", ".join(since), "; ".join([f"1.{first}", *later])))
    return _table(("route", "methods", "from microversion"), rows)


def render_own_routes() -> str:
    """A table of the operations of berth's own API: method, path, and what each does."""
    from berth.api.namespaces import BERTH

    rows = [
        (f"`{operation.method} {BERTH.path_of(operation)}`", operation.contract.summary)
        for operation in BERTH.operations
    ]
    return _table(("operation", "what it does"), rows)


def render_bounds() -> str:
    """A table of the bounds of a request of berth's own API."""
    from berth.model.bounds import BOUNDS

    return _table(("bound", "value"), [(f"`{name}`", f"{most:,}") for name, most in BOUNDS.items()])


def render_provider_filters() -> str:
    """A table of the parameters of `GET /resource_providers`."""
    from berth.api.placement.providers import FILTERS

    return _parameters(FILTERS)


def render_candidate_parameters() -> str:
    """A table of the parameters of `GET /allocation_candidates`."""
    from berth.api.placement.candidates_query import KEYS

    return _parameters(KEYS)


def _parameters(query: "Query") -> str:
    rows = [
        (
            f"`{parameter.name}`",
            f"1.{parameter.since}",
            " ".join(
                text if since <= parameter.since else f"From 1.{since} on: {text}"
                for since, text in sorted(parameter.sentences.items())
            ),
        )
        for parameter in query.parameters.values()
    ]
    return _table(("parameter", "from", "meaning"), rows)


def render_exit_codes() -> str:
    """Render a table of the exit codes, with the comments beside them."""
    from berth.cli import failure

    source = inspect.getsource(failure.ExitCode)
    meanings = re.findall(r"((?: +#: .*\n)+) +(\w+) = (\d+)", source)
    rows = [
        (code, f"`{name}`", _sentence(comment.replace("#:", "")))
        for comment, name, code in meanings
    ]
    return _table(("code", "name", "meaning"), rows)


#: The renderer of each directive.
RENDERERS: dict[str, Callable[[], str]] = {
    "berth-options": render_options,
    "berth-commands": render_commands,
    "berth-exit-codes": render_exit_codes,
    "berth-policy": render_policy,
    "berth-routes": render_routes,
    "berth-provider-filters": render_provider_filters,
    "berth-candidate-parameters": render_candidate_parameters,
    "berth-openapi": render_openapi,
    "berth-own-routes": render_own_routes,
    "berth-own-openapi": render_own_openapi,
    "berth-bounds": render_bounds,
}


def expand(page: str) -> str:
    """Return a page's Markdown with the directives replaced by their text."""

    def shown(directive: re.Match[str]) -> str:
        renderer = RENDERERS.get(directive["name"])
        return renderer() if renderer else directive[0]

    return DIRECTIVE.sub(shown, page)


def _options_by_group() -> dict[str, dict[str, cfg.Opt]]:
    """Return every option of berth and its libraries, by group and name; berth's groups first."""
    found = {entry.name: entry for entry in entry_points(group="oslo.config.opts")}
    groups: dict[str, dict[str, cfg.Opt]] = {}
    for source in OPTION_SOURCES:
        for group, opts in found[source].load()():
            groups.setdefault(str(group or "DEFAULT"), {}).update({opt.dest: opt for opt in opts})
    return groups


def _walk(words: str, command: click.Command) -> Iterable[tuple[str, click.Command]]:
    from berth.cli.deferred import loaded

    command = loaded(command)
    yield words, command
    if isinstance(command, click.Group):
        for name, child in sorted(command.commands.items()):
            yield from _walk(f"{words} {name}", child)


def _type_of(opt: cfg.Opt) -> str:
    choices = getattr(opt.type, "choices", None)
    if choices:
        return " or ".join(f"`{choice}`" for choice in choices)
    kind = type(opt).__name__.removesuffix("Opt").lower()
    return {"str": "string", "bool": "boolean", "int": "integer", "multistr": "repeatable"}.get(
        kind, kind
    )


def _default_of(opt: cfg.Opt, changed: object = None) -> str:
    default = next(
        (one for one in (changed, opt.sample_default, opt.default) if one is not None), None
    )
    if default is None:
        return ""
    text = ", ".join(map(str, default)) if isinstance(default, list) else str(default)
    # Paths of the machine that builds the page mean nothing to readers.
    text = text.replace(os.getcwd(), "<where berth is installed>")
    return f"`{text}`" if text else "empty"


def _sentence(text: str | None) -> str:
    escaped = re.sub(r"([*<\[])", r"\\\1", text or "")
    return " ".join(escaped.split())


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )

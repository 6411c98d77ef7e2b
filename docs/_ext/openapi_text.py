# SPDX-License-Identifier: Apache-2.0
"""Renders the reference of API operations as Markdown, from the OpenAPI document."""

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from berth.api.operation import Namespace

JSON = "application/json"
JSON_LINES = "application/jsonl"


def render_openapi() -> str:
    """Render the newest document of OpenStack Placement's API."""
    from berth.api.namespaces import PLACEMENT

    return _render(PLACEMENT)


def render_own_openapi() -> str:
    """Render the document of berth's own API."""
    from berth.api.namespaces import BERTH

    return _render(BERTH)


def _render(namespace: "Namespace") -> str:
    """Render a section per tag of a document, with a section per operation."""
    from berth.api.microversion import MINOR_MAX
    from berth.api.openapi.document import describe

    document = describe(MINOR_MAX, auth_strategy="keystone", namespace=namespace)
    parts: list[str] = []
    for tag in document["tags"]:
        parts += [f"### {tag['name']}", tag["description"]]
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if tag["name"] in operation["tags"]:
                    parts += _operation(f"{method.upper()} {path}", operation, document)
    return "\n\n".join(parts)


def _operation(title: str, operation: dict[str, Any], document: dict[str, Any]) -> Iterator[str]:
    yield f"#### `{title}`"
    said = [f"{operation['summary']}.", operation.get("description", "")]
    yield " ".join(filter(None, said))
    rule = operation.get("x-policy-rule")
    who = f"Policy rule: `{rule}`." if rule else "No authorization required."
    is_experimental = operation.get("x-stability") == "experimental"
    stability = " Experimental: it may change in any minor version." if is_experimental else ""
    yield f"Available from {operation['x-since']}. {who}{stability}"
    parameters = [_resolved(one, document) for one in operation["parameters"]]
    rows = [
        (f"`{one['name']}`", one["in"], "yes" if one["required"] else "", one["description"])
        for one in parameters
        if one["in"] != "header"
    ]
    if rows:
        yield _table(("parameter", "in", "required", "meaning"), rows)
    if "requestBody" in operation:
        yield "Example request body:"
        yield _example(operation["requestBody"]["content"])
    answers = []
    for status, reference in operation["responses"].items():
        response = {**_resolved(reference, document), **reference}
        answers.append((status, response["description"], _component(response, document)))
    yield _table(("status", "meaning", "body"), answers)
    shown = [one for one in operation["responses"].values() if _has_example(one)]
    for response in shown:
        yield "Example response:"
        yield _example(response["content"])


def _resolved(part: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in part:
        return part
    kind, name = part["$ref"].split("/")[2:]
    found: dict[str, Any] = document["components"][kind][name]
    return found


def _component(response: dict[str, Any], document: dict[str, Any]) -> str:
    content = _resolved(response, document).get("content", {})
    return f"`{_as_json(content)['schema']['$ref'].rpartition('/')[2]}`" if content else ""


def _has_example(response: dict[str, Any]) -> bool:
    return "example" in _as_json(response.get("content", {}))


def _example(content: dict[str, Any]) -> str:
    return f"```json\n{json.dumps(_as_json(content)['example'], indent=2)}\n```"


def _as_json(content: dict[str, Any]) -> dict[str, Any]:
    """The content that is JSON, or a line of JSON; empty without content."""
    described: dict[str, Any] = content.get(JSON) or content.get(JSON_LINES) or {}
    return described


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )

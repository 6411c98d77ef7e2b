# SPDX-License-Identifier: Apache-2.0
"""What every operation of `/berth/v1` refuses in the same way, by walking all of them.

Source: spec/beyond.md 1.4.
"""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import quote, urlencode

import pytest

from berth.api.namespaces import BERTH
from berth.api.operation import Operation
from tests.api import configured
from tests.client import Client, Response

INVALID: Final = "berth.request.invalid"
TOO_LARGE: Final = "berth.request.too_large"
JSON: Final = {"Content-Type": "application/json"}
#: Somebody with a token, and no right.
STRANGER: Final = {"X-Auth-Token": "eve:nowhere", "X-Roles": "none"}
VCPU: Final = {"query": "resources=VCPU:1"}
#: Deeper than any schema, and than Python's stack.
DEEP: Final = b'{"consumers": ' + b"[" * 3_000 + b"]" * 3_000 + b"}"


def named(operation: Operation) -> str:
    """An operation as tests are called."""
    return f"{operation.method} {operation.path}"


EVERY: Final = [pytest.param(each, id=named(each)) for each in BERTH.operations]
WITH_BODY: Final = [
    pytest.param(each, id=named(each))
    for each in BERTH.operations
    if each.contract.body is not None
]
WITH_ANSWER: Final = [
    pytest.param(each, id=named(each)) for each in BERTH.operations if each.contract.has_content
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A service of this module's own, with nothing in it."""
    return configured.serve(tmp_path_factory.mktemp("strict"))


def path_of(operation: Operation) -> str:
    """The path of an operation with the examples of its parameters."""
    examples = {name: quote(each.example, safe="") for name, each in operation.segments.items()}
    return BERTH.path_of(operation).format(**examples)


def body_of(operation: Operation) -> bytes | None:
    """The example of an operation's body."""
    return (
        None
        if operation.contract.body is None
        else json.dumps(operation.contract.body.example.at(0)).encode()
    )


def send(service: Client, operation: Operation, query: str = "", **options: Any) -> Response:
    """Send an operation with its example."""
    options = {"body": body_of(operation), **options}
    options["headers"] = {**(JSON if operation.contract.body else {}), **options.get("headers", {})}
    return service.request(operation.method, f"{path_of(operation)}{query}", **options)


def refusal(answer: Response) -> dict[str, Any]:
    """The error object of a refused request."""
    assert (answer.status, answer.code) == (400, INVALID), answer.text
    error: dict[str, Any] = answer.json["errors"][0]
    return error


@pytest.mark.parametrize("operation", EVERY)
def test_no_operation_takes_a_parameter_that_it_does_not_declare(
    service: Client, operation: Operation
) -> None:
    """400 that names it; a client that asks for a dry run must not find that it has written."""
    declared = list(operation.contract.query.parameters) if operation.contract.query else []
    undeclared = "colour" if "dry_run" in declared else "dry_run"
    error = refusal(send(service, operation, f"?{undeclared}=true"))
    assert error["parameter"] == undeclared
    rest = f"expected: {', '.join(declared)}" if declared else "this request takes none"
    assert f"The query parameter {undeclared} is unknown; {rest}." in error["detail"]


def test_a_refused_parameter_has_a_suggestion_and_has_written_nothing(service: Client) -> None:
    """As every name that does not exist; not even with a valid body."""
    for path, body in (("drains/d", {"providers": []}), ("flavors/f", {"request": VCPU})):
        error = refusal(service.put(f"/berth/v1/{path}?dryrun=true", json=body))
        assert error.get("did_you_mean", []) == ["dry_run"] * (path == "drains/d")
        assert service.get(f"/berth/v1/{path}").status == 404


@pytest.mark.parametrize(
    ("operation", "parameter"),
    [
        pytest.param(each, parameter, id=f"{named(each)}?{parameter.name}")
        for each in BERTH.operations
        if each.contract.query
        for parameter in each.contract.query.parameters.values()
    ],
)
def test_a_parameter_is_there_once(service: Client, operation: Operation, parameter: Any) -> None:
    """400 for one that appears twice, unless it is declared to repeat, even if both are equal."""
    pair = urlencode({parameter.name: parameter.example})
    answer = send(service, operation, f"?{pair}&{pair}")
    if parameter.repeats_since == 0:
        assert answer.status == 200
        return
    error = refusal(answer)
    assert error["parameter"] == parameter.name
    assert f"The query parameter {parameter.name} appears twice." in error["detail"]


@pytest.mark.parametrize("operation", WITH_ANSWER)
def test_accept_that_excludes_the_answer_is_406(service: Client, operation: Operation) -> None:
    """Whatever the method; before anything is written."""
    for accept in ("text/html", "application/json;q=0"):
        answer = send(service, operation, headers={"Accept": accept})
        assert answer.status == 406
        assert f"Only {' and '.join(operation.contract.media_types)} is provided" in answer.text


@pytest.mark.parametrize("operation", WITH_BODY)
@pytest.mark.parametrize("form", ["plain", "with an escape", "in a list"])
def test_the_same_member_twice_is_refused_at_any_depth(
    service: Client, operation: Operation, form: str
) -> None:
    """With the pointer to it: the last one would win in silence."""
    body = body_of(operation)
    assert body is not None
    name = next(iter(json.loads(body)))
    deep = {
        "plain": b'{"x": {"a/b": 1, "a/b": 1}, ',
        "with an escape": b'{"x": {"a/b": 1, "\\u0061/b": 1}, ',
        "in a list": b'{"x": [[], [{"a/b": ":", "a/b": ":"}]], ',
    }[form]
    error = refusal(send(service, operation, body=deep + body[1:]))
    assert error["pointer"] == ("/x/1/0/a~1b" if form == "in a list" else "/x/a~1b")
    assert "appears twice" in error["detail"]
    twice = b'{"%s": 1, %s' % (name.encode(), body[1:])
    assert refusal(send(service, operation, body=twice))["pointer"] == f"/{name}"


@pytest.mark.parametrize("operation", WITH_BODY)
@pytest.mark.parametrize(
    "body", [DEEP, b"{", b'{"consumers": "\\ud800"}', b'{"consumers": "\\u0000"}', b"\xff"]
)
def test_nothing_reads_a_body_before_it_is_checked(
    service: Client, operation: Operation, body: bytes
) -> None:
    """Not even the policy: who may not call it gets 403 for any body, and all others 400."""
    refusal(send(service, operation, body=body))
    assert send(service, operation, body=body, headers=STRANGER).status == 403


@pytest.mark.parametrize("operation", WITH_BODY)
def test_every_body_has_a_bound(service: Client, operation: Operation) -> None:
    """One byte more is refused, before it is decoded; what fills it up to there is not."""
    example = body_of(operation)
    assert example is not None
    body = example + b" " * (2**20 - len(example))
    assert TOO_LARGE not in send(service, operation, body=body).text
    answer = send(service, operation, body=body + b" ")
    assert (answer.status, answer.code) == (400, TOO_LARGE)
    assert "max_body_bytes, 1048576" in answer.detail


@pytest.mark.parametrize("text", ["€", "\U0001f6a2", "é", "\x85\u2028", "\x7f", "\ufeff"])
def test_a_query_may_have_any_character(service: Client, text: str) -> None:
    """It is read as if it were percent-encoded, as in the URL of a client."""
    written = f"resources=CUSTOM_{text}:1"
    shown = []
    for query in (written, quote(written, safe="=:")):
        body = {"request": {"query": query}}
        explained = service.post("/berth/v1/explain", json=body).json
        assert explained["verdict"] == "unknown_name"
        answers = [
            service.post("/berth/v1/candidates", json=body),
            service.put("/berth/v1/flavors/f", json=body),
        ]
        assert {(each.status, each.code) for each in answers} == {(400, "berth.name.unknown")}
        assert {each.error["pointer"] for each in answers} == {"/request/query"}
        shown.append((explained["unknown"], [each.detail for each in answers]))
    assert shown[0] == shown[1]

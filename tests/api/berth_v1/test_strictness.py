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
from berth.model.bounds import BOUNDS
from tests.api import configured
from tests.client import Client, Response

INVALID: Final = "berth.request.invalid"
TOO_LARGE: Final = "berth.request.too_large"
JSON: Final = {"Content-Type": "application/json"}
#: Somebody with a token, and no right.
STRANGER: Final = {"X-Auth-Token": "eve:nowhere", "X-Roles": "none"}
#: Deeper than any schema, and than Python's stack.
DEEP: Final = b'{"consumers": ' + b"[" * 3_000 + b"]" * 3_000 + b"}"


def named(operation: Operation) -> str:
    """An operation as tests are called."""
    return f"{operation.method} {operation.path}"


EVERY: Final = [pytest.param(each, id=named(each)) for each in BERTH.operations]
WITH_BODY: Final = [
    pytest.param(each, id=named(each)) for each in BERTH.operations if each.body is not None
]
WITH_ANSWER: Final = [
    pytest.param(each, id=named(each)) for each in BERTH.operations if each.has_content
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
    return None if operation.body is None else json.dumps(operation.body.example.at(0)).encode()


def send(service: Client, operation: Operation, query: str = "", **options: Any) -> Response:
    """Send an operation with its example."""
    options = {"body": body_of(operation), **options}
    options["headers"] = {**(JSON if operation.body else {}), **options.get("headers", {})}
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
    declared = list(operation.query.parameters) if operation.query else []
    undeclared = "colour" if "dry_run" in declared else "dry_run"
    error = refusal(send(service, operation, f"?{undeclared}=true"))
    assert error["parameter"] == undeclared
    rest = f"expected: {', '.join(declared)}" if declared else "this request takes none"
    assert f"The query parameter {undeclared} is unknown; {rest}." in error["detail"]


@pytest.mark.parametrize(
    ("operation", "parameter"),
    [
        pytest.param(each, parameter, id=f"{named(each)}?{parameter.name}")
        for each in BERTH.operations
        if each.query
        for parameter in each.query.parameters.values()
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


def test_a_misspelt_parameter_has_a_suggestion(service: Client) -> None:
    """As every name that does not exist."""
    error = refusal(service.put("/berth/v1/drains/d?dryrun=true", json={"providers": ["cn1"]}))
    assert error["did_you_mean"] == ["dry_run"]
    assert "Did you mean dry_run?" in error["detail"]


def test_a_refused_parameter_has_written_nothing(service: Client) -> None:
    """Not even with a valid body."""
    body = {"request": {"groups": {"": {"resources": {"VCPU": 1}}}}}
    refusal(service.put("/berth/v1/flavors/f?dry_run=true", json=body))
    assert service.get("/berth/v1/flavors/f").status == 404


@pytest.mark.parametrize("operation", WITH_ANSWER)
def test_accept_that_excludes_the_answer_is_406(service: Client, operation: Operation) -> None:
    """Whatever the method; before anything is written."""
    for accept in ("text/html", "application/json;q=0"):
        answer = send(service, operation, headers={"Accept": accept})
        assert answer.status == 406
        assert f"Only {' and '.join(operation.media_types)} is provided" in answer.text


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


def test_the_pointer_of_a_fault_is_right_whatever_the_names_of_members(service: Client) -> None:
    """Names with dots and brackets may look like a way to another member."""
    group = {"resources": {"VCPU": "x"}}
    body = {
        "request.groups": {"_A": {"resources": 1}},
        "request": {"groups": {"_A": group}, "groups._A": group},
    }
    error = refusal(service.post("/berth/v1/candidates", json=body))
    assert error["pointer"] == "/request/groups/_A/resources/VCPU"


def test_the_two_kinds_of_relations_share_their_bound(service: Client) -> None:
    """64 in all, whichever they are."""
    groups = {name: {"resources": {"VCPU": 1}} for name in ("_A", "_B")}
    relation = {"groups": ["_A", "_B"], "at": "tree"}

    def ask(together: int, apart: int) -> Response:
        relations = {"together": [relation] * together, "apart": [relation] * apart}
        return service.post(
            "/berth/v1/candidates", json={"request": {"groups": groups, **relations}}
        )

    assert ask(32, 32).status == 200
    for together, apart in ((33, 32), (1, 64), (64, 1)):
        answer = ask(together, apart)
        assert (answer.status, answer.code) == (400, TOO_LARGE)
        assert answer.error["pointer"] == "/request/apart"
        assert "64 relations (max_relations) in all" in answer.detail


#: Text that is JSON, and that few formats besides can have.
ODD_TEXTS: Final = ["€", "\U0001f6a2", "é", "\x85\u2028", "\x7f", "\ufeff", "\n"]


# Where text is pasted, a line break is no part of it.
@pytest.mark.parametrize("text", ODD_TEXTS[:-1])
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


@pytest.mark.parametrize("text", ["%00", "%ED%A0%80", "%FF"])
def test_a_query_of_no_characters_is_refused(service: Client, text: str) -> None:
    """Bytes that are not UTF-8, and a NUL, which no database stores."""
    body = {"request": {"query": f"resources=CUSTOM_{text}:1"}}
    for answer in (
        service.post("/berth/v1/candidates", json=body),
        service.post("/berth/v1/explain", json=body),
        service.put("/berth/v1/flavors/f", json=body),
    ):
        assert refusal(answer)["pointer"] == "/request/query"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A service with a tree, a flavor, a drain and labels."""
    service = configured.serve(tmp_path_factory.mktemp("fleet"))
    aggregates = [f"0000000{number}-0000-4000-8000-000000000000" for number in range(3)]
    tree = {
        "providers": [
            {"name": "node-12", "inventories": {"VCPU": {"total": 8}}, "aggregates": aggregates},
            {"name": "node-12_numa0", "parent": "node-12"},
        ]
    }
    puts: dict[str, Any] = {
        "trees/node-12": tree,
        "flavors/m1.large": {"request": {"groups": {"": {"resources": {"VCPU": 1}}}}},
        "drains/firmware": {"providers": ["node-12"], "effect": "none"},
        f"aggregates/{aggregates[0]}": {"labels": {"name": "az-1", "zone": "z1"}},
        f"aggregates/{aggregates[1]}": {"labels": {"zone": "z2"}},
        f"aggregates/{aggregates[2]}": {"labels": {"zone": "z2"}},
    }
    for path, body in puts.items():
        assert service.put(f"/berth/v1/{path}", json=body).status in (200, 201)
    return service


CLAIM: Final = {"user_id": "u", "consumer_type": "T"}


@pytest.mark.parametrize(
    ("path", "body", "pointer", "meant"),
    [
        (
            "trees/node-12",
            {"providers": [{"name": "node-12_gpu", "parent": "node-12_numa"}]},
            "/providers/0/parent",
            "node-12_numa0",
        ),
        (
            "trees/node-12",
            {"providers": [{"name": "node-12", "aggregates": ["zone=z0"]}]},
            "/providers/0/aggregates/0",
            "zone=z1",
        ),
        (
            "trees/node-12",
            {"providers": [{"name": "node-12", "aggregates": ["az-2"]}]},
            "/providers/0/aggregates/0",
            "az-1",
        ),
        (
            "trees/node-12",
            {"providers": [{"name": "node-12", "inventories": {"VCPUS": {"total": 1}}}]},
            "/providers/0/inventories/VCPUS",
            "VCPU",
        ),
        (
            "trees/node-12",
            {"providers": [{"name": "node-12", "traits": ["HW_NUMA_ROOTS"]}]},
            "/providers/0/traits/0",
            "HW_NUMA_ROOT",
        ),
        ("drains/d", {"providers": ["node-13"]}, "/providers/0", "node-12"),
        ("drains/d", {"select": {"in": ["nodes-12"]}}, "/select/in/0", "node-12"),
        ("drains/d", {"select": {"member_of": ["zone=z"]}}, "/select/member_of/0", "zone=z1"),
        (
            "drains/d",
            {"select": {"required": ["HW_NUMA_ROOTS"]}},
            "/select/required/0",
            "HW_NUMA_ROOT",
        ),
        (
            "consumers/p/n",
            {"allocations": {"node-1": {"resources": {"VCPU": 1}}}, **CLAIM},
            "/allocations/node-1",
            "node-12",
        ),
        (
            "consumers/p/n",
            {"allocations": {"node-12": {"resources": {"VCPUS": 1}}}, **CLAIM},
            "/allocations/node-12/resources/VCPUS",
            "VCPU",
        ),
        (
            "flavors/f",
            {"request": {"groups": {"": {"resources": {"VCPUS": 1}}}}},
            "/request/groups//resources/VCPUS",
            "VCPU",
        ),
    ],
)
def test_a_write_that_names_what_does_not_exist_has_suggestions(
    fleet: Client, path: str, body: dict[str, Any], pointer: str, meant: str
) -> None:
    """Whatever it is that does not exist, and also for people in the detail."""
    answer = fleet.put(f"/berth/v1/{path}", json=body)
    assert (answer.status, answer.code) == (400, "berth.name.unknown")
    assert answer.error["pointer"] == pointer
    assert meant in answer.error["did_you_mean"]
    assert f"Did you mean {' or '.join(answer.error['did_you_mean'])}?" in answer.detail


@pytest.mark.parametrize(
    ("path", "meant"),
    [("flavors/m1.larg", "m1.large"), ("drains/firmwar", "firmware"), ("trees/node-1", "node-12")],
)
def test_a_path_that_names_nothing_has_suggestions(fleet: Client, path: str, meant: str) -> None:
    """404 as before."""
    answer = fleet.get(f"/berth/v1/{path}")
    assert (answer.status, answer.code) == (404, "berth.not_found")
    assert answer.error["did_you_mean"] == [meant]


def test_a_write_names_one_aggregate(fleet: Client) -> None:
    """A label that several aggregates have is 400: a write does not choose one of them."""
    body = {"providers": [{"name": "node-12", "aggregates": ["zone=z2"]}]}
    error = refusal(fleet.put("/berth/v1/trees/node-12", json=body))
    assert error["pointer"] == "/providers/0/aggregates/0"
    assert "is a label of 2 aggregates: zone=z2" in error["detail"]


def test_summaries_without_candidates_are_empty(fleet: Client) -> None:
    """The member is there whenever it is asked for."""
    request = {"groups": {"": {"resources": {"VCPU": 9999}}}}
    for name in ("zone=z1", "zone=none"):
        body = {"request": {**request, "host": {"member_of": [name]}}, "summaries": True}
        answer = fleet.post("/berth/v1/candidates", json=body).json
        assert (answer["candidates"], answer["provider_summaries"]) == ([], {})


VCPU: Final = {"resources": {"VCPU": 1}}


@pytest.mark.parametrize(
    ("request_", "fits"),
    [
        ({"groups": {"": {**VCPU, "in_tree": []}}}, False),
        ({"groups": {"": {**VCPU, "under": []}}}, False),
        ({"groups": {"": VCPU}, "host": {"in": []}}, False),
        ({"groups": {"": VCPU}, "host": {"in": [["node-12"], []]}}, False),
        ({"groups": {"": {**VCPU, "not_under": [], "required": [], "member_of": []}}}, True),
        ({"groups": {"": {**VCPU, "split": {}}}, "together": [], "apart": []}, True),
        ({"groups": {"": VCPU}, "host": {"required": [], "anywhere": []}}, True),
        ({"groups": {"": VCPU}, "host": {"member_of": [], "not_in": []}, "tolerate": []}, True),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else "",
)
def test_an_empty_list_of_what_must_match_matches_nothing(
    fleet: Client, request_: Any, fits: bool
) -> None:
    """An empty list of anything else has no effect."""
    answer = fleet.post("/berth/v1/candidates", json={"request": request_})
    assert bool(answer.json["candidates"]) is fits
    verdict = fleet.post("/berth/v1/explain", json={"request": request_}).json["verdict"]
    assert (verdict == "fits") is fits


ASKED: Final = {"groups": {"": VCPU}}
CONSUMER: Final = {"name": "n", "project_id": "p", "user_id": "u", "consumer_type": "T"}
PLACED: Final = {"request": ASKED, "consumers": [CONSUMER]}
_NUMBERS: Final = [str(number) for number in range(300)]


def asked(**members: Any) -> dict[str, Any]:
    """The body of a question with further members of its request."""
    return {"request": {**ASKED, **members}}


#: For each bound of a request one that passes it by one.
BEYOND: Final[dict[str, tuple[str, str, Any]]] = {
    "max_groups": ("POST", "explain", {"request": {"groups": dict.fromkeys(_NUMBERS[:65], VCPU)}}),
    "max_classes": (
        "POST",
        "explain",
        asked(groups={"": {"resources": {f"CUSTOM_{each}": 1 for each in _NUMBERS[:33]}}}),
    ),
    "max_items": ("POST", "explain", asked(host={"required": ["HW_NUMA_ROOT"] * 65})),
    "max_references": ("POST", "explain", asked(host={"not_in": ["cn1"] * 10_001})),
    "max_relations": (
        "POST",
        "explain",
        asked(
            groups={"_A": VCPU, "_B": VCPU},
            apart=[{"groups": ["_A", "_B"], "at": "tree"}] * 33,
            together=[{"groups": ["_A", "_B"], "at": "tree"}] * 32,
        ),
    ),
    "max_preferences": (
        "POST",
        "candidates",
        {"request": ASKED, "order": {"prefer": [{"weight": 1}] * 17}},
    ),
    "max_preserved": (
        "POST",
        "candidates",
        {"request": ASKED, "order": {"preserve": dict.fromkeys(_NUMBERS[:17], 1)}},
    ),
    "max_preserve_among": (
        "POST",
        "candidates",
        {
            "request": ASKED,
            "order": {"by": "preserve", "preserve": {"m1.large": 1}, "among": 4_097},
        },
    ),
    "max_added_hosts": (
        "POST",
        "candidates",
        {"request": ASKED, "what_if": {"add_hosts": [{"like": "node-12", "count": 5_001}] * 2}},
    ),
    "max_alternatives": ("POST", "explain", {"request": {"alternatives": [ASKED] * 9}}),
    "max_candidates": ("POST", "candidates", {"request": ASKED, "limit": 10_001}),
    "max_consumers": ("POST", "place", {**PLACED, "consumers": [CONSUMER] * 257}),
    "max_label_keys": ("POST", "place", {**PLACED, "max_per": {f"k{n}": 1 for n in range(33)}}),
    "max_tries": ("POST", "place", {**PLACED, "tries": 33}),
    "max_lease_seconds": ("POST", "place", {**PLACED, "lease_seconds": 86_401}),
    "max_nearest": ("POST", "explain", {"request": ASKED, "nearest_max": 51}),
    "max_body_bytes": ("POST", "explain", {"request": {"query": "x" * 2**20}}),
    "max_labels": (
        "PUT",
        "aggregates/00000009-0000-4000-8000-000000000000",
        {"labels": {f"k{each}": "v" for each in _NUMBERS[:33]}},
    ),
    "max_flavor_bytes": ("PUT", "flavors/f", asked(host={"not_in": ["x" * 200] * 90})),
    "max_capacity_requests": ("POST", "capacity", {"flavors": [f"f{n}" for n in range(101)]}),
    "max_capacity_keys": ("POST", "capacity", {"by": ["a", "b", "c", "d", "e"]}),
    "max_capacity_best": ("POST", "capacity", {"hosts_max": 1_001}),
    "max_tree_providers": (
        "PUT",
        "trees/cn1",
        {"providers": [{"name": f"p{number}"} for number in range(1_001)]},
    ),
}
#: Those of what the fleet has, with the modules that have the tests.
OF_THE_FLEET: Final = {
    "max_added_providers": "test_scenario_bounds",
    "max_added_sharing": "test_scenario_bounds",
    "max_flavors": "test_flavors",
    "max_drains": "test_strictness",
    "max_drain_providers": "test_strictness",
    "max_capacity_values": "test_strictness",
    "max_capacity_hosts": "test_strictness",
    "max_capacity_lines": "test_strictness",
}


def test_every_bound_has_a_test(fleet: Client) -> None:
    """And stands in the version document."""
    assert {*BEYOND, *OF_THE_FLEET} == set(BOUNDS)
    shown = fleet.get("/berth/v1").json
    assert {name: shown[name] for name in BOUNDS} == BOUNDS


@pytest.mark.parametrize("bound", BEYOND)
def test_a_request_beyond_a_bound_is_refused_by_its_name(fleet: Client, bound: str) -> None:
    """400 `berth.request.too_large` for what is counted, and `invalid` for a single number."""
    method, path, body = BEYOND[bound]
    answer = fleet.request(method, f"/berth/v1/{path}", json=body)
    is_number = "must be at most" in answer.detail
    assert (answer.status, answer.code) == (400, INVALID if is_number else TOO_LARGE)
    assert bound in answer.detail


@pytest.mark.parametrize(
    ("bound", "constant", "method", "path", "body"),
    [
        (
            "max_capacity_values",
            "capacity.CAPACITY_VALUES_MAX",
            "POST",
            "capacity",
            {"by": ["zone"]},
        ),
        ("max_capacity_hosts", "capacity.CAPACITY_HOSTS_MAX", "POST", "capacity", {"by": ["host"]}),
        ("max_capacity_lines", "capacity.CAPACITY_LINES_MAX", "POST", "capacity", {"by": ["zone"]}),
        (
            "max_drain_providers",
            "drain_body.DRAIN_PROVIDERS_MAX",
            "PUT",
            "drains/d",
            {"providers": ["node-12"]},
        ),
    ],
)
def test_a_bound_of_the_fleet_is_named_too(
    fleet: Client,
    monkeypatch: pytest.MonkeyPatch,
    bound: str,
    constant: str,
    method: str,
    path: str,
    body: dict[str, Any],
) -> None:
    """Here with a bound that a small fleet passes."""
    monkeypatch.setattr(f"berth.api.berth_v1.{constant}", 0)
    answer = fleet.request(method, f"/berth/v1/{path}", json=body)
    assert (answer.status, answer.code) == (400, TOO_LARGE)
    assert bound in answer.detail


def test_there_are_so_many_drains_at_most(fleet: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that exists can still be replaced."""
    monkeypatch.setattr("berth.store.drains.DRAINS_MAX", 1)
    answer = fleet.put("/berth/v1/drains/another", json={"providers": ["node-12"]})
    assert (answer.status, answer.code) == (400, TOO_LARGE)
    assert "max_drains" in answer.detail
    assert fleet.put("/berth/v1/drains/firmware", json={"effect": "none"}).status == 200

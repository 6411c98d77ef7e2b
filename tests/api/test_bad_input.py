# SPDX-License-Identifier: Apache-2.0
"""Any request: a 4xx in the error format, never a 500, and nothing changes.

The tests read the whole state back. If the contract says which 4xx it is, the tests of each route
check that; here it only must not be a 500.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.api import configured
from tests.api.whole_state import WRITES, World, Write, small_world, whole_state, writes
from tests.api.worlds import NOWHERE
from tests.client import Client, Response
from tests.effort import scaled, some_of

JSON = {"Content-Type": "application/json"}

#: What a query means is asked here, however long it is.
ANY_LENGTH = "[berth]\nuri_kib_max = 16384\n"

MANY = 10_000


def where_the_original_fails(values: Sequence[str], failing: Collection[str]) -> list[Any]:
    """The values as parameters, marked where OpenStack Placement answers 500."""
    mark = pytest.mark.deliberately_different("odd input never makes a 500")
    return [pytest.param(value, marks=mark) if value in failing else value for value in values]


@pytest.fixture(scope="module")
def ground(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A server with little data, so that the whole state can be read quickly."""
    url = request.config.getoption("--berth-url")
    return (
        Client.at(url) if url else configured.serve(tmp_path_factory.mktemp("ground"), ANY_LENGTH)
    )


@pytest.fixture(scope="module")
def world(ground: Client) -> World:
    """The world that refused requests must not change."""
    return small_world(ground)


@pytest.fixture
def unchanged(ground: Client, world: World) -> Iterator[None]:
    """What can be read is afterwards as it was before."""
    before = whole_state(ground, world)
    yield
    assert whole_state(ground, world) == before


def assert_our_client_is_at_fault(answer: Response) -> None:
    """A 4xx in the error format."""
    assert 400 <= answer.status < 500, (answer.status, answer.body[:500])
    (error,) = answer.json["errors"]
    assert error["status"] == answer.status
    assert error["title"]
    assert error["detail"]
    assert error["code"]
    assert error["request_id"] == answer.headers["x-openstack-request-id"]


MALFORMED = {
    "nothing": b"",
    "blanks": b" \n ",
    "cut off": b'{"name": "a',
    "a bare word": b"nonsense",
    "one quote": b"{'name': 'a'}",
    "trailing garbage": b"{} {}",
    "trailing comma": b'{"name": "a",}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "not UTF-8": b'{"name": "\xff"}',
    "overlong UTF-8": b'{"name": "\xc0\xaf"}',
    "UTF-16": '{"name": "a"}'.encode("utf-16"),
    "a surrogate in UTF-8": b'{"name": "\xed\xa0\x80"}',
    "a raw NUL": b'{"name": "\x00"}',
    "a raw newline in a string": b'{"name": "a\nb"}',
    "a key that is no string": b"{1: 2}",
    "a wrong escape": b'{"name": "\\x41"}',
    "a comment": b'{} // {"name": "a"}',
    "leading zeros": b'{"total": 007}',
}

#: JSON, but no body of any route.
MISFITS = {
    "null": b"null",
    "true": b"true",
    "a number": b"3",
    "NaN": b"NaN",
    "a string": b'"body"',
    "a list": b"[]",
    "a list of objects": b"[{}]",
    "an unknown key": b'{"color": "red"}',
    "an empty key": b'{"": 1}',
    "a NUL in a key": b'{"\\u0000": 1}',
    "half a surrogate pair": b'{"\\ud800": "\\udfff"}',
    "an integer of 400 digits": b'{"name": ' + b"9" * 400 + b"}",
    "an integer of 5000 digits": b'{"name": ' + b"9" * 5000 + b"}",
    "a huge exponent": b'{"name": 1e999999999}',
    "a megabyte of blanks": b" " * 2**20 + b"7",
    "a string of a megabyte": b'"' + b"x" * 2**20 + b'"',
    "ten thousand keys": b"{" + b",".join(b'"%d": 1' % n for n in range(10_000)) + b"}",
    "a hundred thousand items": b"[" + b"1," * 100_000 + b"1]",
}

DEEP = {
    "lists, closed": b"[" * 100_000 + b"]" * 100_000,
    "lists, open": b"[" * 100_000,
    "objects, open": b'{"a":' * 100_000,
    "objects, closed": b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
    "as a value": b'{"name": ' + b"[" * 3_000 + b"]" * 3_000 + b"}",
}


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("name", WRITES)
def test_a_body_that_is_none(ground: Client, world: World, name: str) -> None:
    """400: malformed JSON, which the message says, or of the wrong form everywhere."""
    write = writes(ground, world)[name]
    for what, body in (MALFORMED | MISFITS).items():
        answer = ground.request(write.method, write.path, body=body, headers=JSON)
        assert_our_client_is_at_fault(answer)
        assert len(answer.body) < 3 * 2**20, what
        if what in MALFORMED:
            assert (answer.status, "Malformed JSON" in answer.detail) == (400, True), what


@pytest.mark.deliberately_different("a body too deep to parse is a 400, not a 500")
@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("name", WRITES)
def test_a_body_nested_too_deeply(ground: Client, world: World, name: str) -> None:
    """A hundred thousand levels down."""
    write = writes(ground, world)[name]
    for body in DEEP.values():
        answer = ground.request(write.method, write.path, body=body, headers=JSON)
        assert_our_client_is_at_fault(answer)


@pytest.mark.in_process
@pytest.mark.usefixtures("unchanged")
def test_a_huge_body(ground: Client) -> None:
    """A hundred megabytes are refused in one way or another."""
    body = b'{"name": "' + b"x" * (100 * 2**20) + b'"}'
    assert_our_client_is_at_fault(ground.post("/resource_providers", body=body, headers=JSON))


#: What is put in the place of every part of a right body.
ODD_VALUES: dict[str, Any] = {
    "null": None,
    "true": True,
    "an empty string": "",
    "a string": "x",
    "a string with NUL": "a\x00b",
    "half a surrogate pair": "\ud800",
    "a lower-case name": "custom_name",
    "an unknown name": "CUSTOM_NOT_THERE",
    "a name and a newline": "VCPU\n",
    "an unknown uuid": NOWHERE,
    "a long string": "A" * 300,
    "a very long string": "A" * 100_000,
    "an empty list": [],
    "a list": [1, "x", None],
    "an empty object": {},
    "an object": {"x": 1},
    "an object with an odd key": {"\x00\ud800": {"": None}},
    "zero": 0,
    "minus one": -1,
    "a fraction": 1.5,
    "2^31": 2**31,
    "2^63": 2**63,
    "-2^63 - 1": -(2**63) - 1,
    "10^400": 10**400,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "1e308": 1e308,
    "a float beyond 2^63": 1e30,
}


def parts(value: Any, way: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths of keys to every part of a body except itself."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        yield (*way, key)
        yield from parts(item, (*way, key))


def part(value: Any, way: tuple[str | int, ...]) -> Any:
    """The part of a body at a path of keys."""
    for key in way:
        value = value[key]
    return value


def with_part(value: Any, way: tuple[str | int, ...], new: Any) -> Any:
    """A copy of a body with one part replaced."""
    if not way:
        return new
    copy = value.copy()
    copy[way[0]] = with_part(value[way[0]], way[1:], new)
    return copy


def send(client: Client, write: Write, body: Any) -> Response:
    """Send the request with another body."""
    return client.request(write.method, write.path, json=body)


@pytest.mark.parametrize(
    "name",
    where_the_original_fails(WRITES, set(WRITES) - {"replace aggregates", "create a class"}),
)
def test_an_odd_value_in_any_place(ground: Client, name: str) -> None:
    """Either the value is valid there, or it is refused and nothing changes."""
    world = small_world(ground)
    write = writes(ground, world)[name]
    before = whole_state(ground, world)
    for number in range(len(list(parts(write.body)))):
        for odd in some_of(list(ODD_VALUES.values()), f"{name} {number}"):
            way = list(parts(write.body))[number]
            answer = send(ground, write, with_part(write.body, way, odd))
            if answer.status < 300:
                world = small_world(ground)
                write = writes(ground, world)[name]
                before = whole_state(ground, world)
            else:
                assert_our_client_is_at_fault(answer)
    assert whole_state(ground, world) == before


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(
    "name", where_the_original_fails(WRITES, {"replace inventories", "reshape"})
)
def test_one_key_too_many_in_any_object(ground: Client, world: World, name: str) -> None:
    """No object of any body allows unknown keys."""
    write = writes(ground, world)[name]
    objects = [way for way in [(), *parts(write.body)] if isinstance(part(write.body, way), dict)]
    for way in objects:
        body = with_part(write.body, way, part(write.body, way) | {"color": "red"})
        answer = send(ground, write, body)
        assert_our_client_is_at_fault(answer)
        assert answer.status == 400, way


@pytest.mark.deliberately_different("NUL cannot be stored everywhere; NaN is no ratio (14, 19, D)")
@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(
    ("name", "key", "values"),
    [
        *((f"{verb} a provider", "name", "text") for verb in ("create", "update")),
        *(("claim", key, "text") for key in ("project_id", "user_id")),
        *((f"{verb} inventory", "allocation_ratio", "nan") for verb in ("add an", "update an")),
    ],
)
def test_values_that_cannot_be_stored(
    ground: Client, world: World, name: str, key: str, values: str
) -> None:
    """NUL and halves of surrogate pairs are refused on every engine, and NaN as a ratio."""
    write = writes(ground, world)[name]
    for value in ["\x00", "a\x00b", "\ud800", "a\udfff"] if values == "text" else [float("nan")]:
        answer = send(ground, write, write.body | {key: value})
        assert_our_client_is_at_fault(answer)
        assert answer.status == 400


#: Queries that each list refuses, whatever it lists.
BAD_QUERIES = {
    "invalid UTF-8": "name=%FF",
    "invalid UTF-8 in a key": "%FF=1",
    "overlong UTF-8": "name=%C0%AF",
    "a surrogate": "name=%ED%A0%80",
    "half an escape": "na%me=1",
    "an unknown key": "color=red",
    "an empty key": "=1",
    "a NUL in a key": "na%00me=1",
    "ten thousand unknown keys": "&".join(f"k{n}=1" for n in range(MANY)),
    "ten thousand of one unknown key": "&".join(["color=red"] * MANY),
    "ten thousand of a group": "&".join(f"resources{n}=x" for n in range(1, MANY)),
    "a key of a megabyte": "k" * 2**20 + "=1",
}
LISTS = ["/resource_providers", "/traits", "/usages", "/allocation_candidates"]


@pytest.mark.in_process
@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("path", LISTS)
def test_bad_queries(ground: Client, path: str) -> None:
    """A closed set of keys, in UTF-8."""
    for what, query in BAD_QUERIES.items():
        if (path, what) != ("/traits", "half an escape"):
            answer = ground.get(f"{path}?{query}")
            assert_our_client_is_at_fault(answer)
            assert answer.status == 400, what


PROVIDERS = "/resource_providers?"
CANDIDATES = "/allocation_candidates?resources=VCPU:1&"

#: Ten thousand values of a parameter that may be repeated, or that counts by its last value.
REPEATED = [
    *((PROVIDERS, query) for query in ("name=x", "resources=VCPU:1", f"in_tree={NOWHERE}")),
    *((PROVIDERS, f"required={text}") for text in ("HW_CPU_X86_VMX", "!HW_CPU_X86_VMX")),
    *((PROVIDERS, f"member_of={text}") for text in (NOWHERE, f"!{NOWHERE}")),
    *(("/traits?", "name=in:A"), ("/usages?", "project_id=p")),
    *((CANDIDATES, query) for query in ("resources=VCPU:1", "required=HW_CPU_X86_VMX")),
    *((CANDIDATES, query) for query in (f"member_of={NOWHERE}", "root_required=HW_CPU_X86_VMX")),
    ("/allocation_candidates?", "resources1=VCPU:1&same_subtree=1"),
]
LONG_LISTS = [
    ("/resource_providers?required=", "HW_CPU_X86_VMX,"),
    ("/resource_providers?required=in:", "HW_CPU_X86_VMX,"),
    ("/resource_providers?member_of=in:", f"{NOWHERE},"),
    ("/resource_providers?member_of=!in:", f"{NOWHERE},"),
    ("/traits?name=in:", "CUSTOM_NOT_THERE,"),
    ("/allocation_candidates?resources=VCPU:1&required=", "HW_CPU_X86_VMX,"),
    ("/allocation_candidates?resources=VCPU:1&member_of=in:", f"{NOWHERE},"),
    ("/allocation_candidates?resources=", "VCPU:1,"),
]


@pytest.mark.in_process
@pytest.mark.parametrize(("path", "item"), [*REPEATED, *LONG_LISTS])
def test_ten_thousand_times_the_same(ground: Client, path: str, item: str) -> None:
    """A valid parameter repeated, or a list, has no limit of its own."""
    separator = "" if item.endswith(",") else "&"
    text = separator.join([item] * MANY).rstrip(",")
    answer = ground.get(f"{path}{text}")
    expected = 400 if item.startswith("root_required") else 200
    assert answer.status == expected, answer.body[:300]


PATHS = [
    *(f"/resource_providers/{name}" for name in ("%FF", "%00", "..%2F..", "x" * 10_000)),
    *("/resource_providers/a%00b/inventories", "/resource_providers/%ED%A0%80/usages"),
    *(f"/resource_providers/{NOWHERE}/inventories/{name}" for name in ("%FF", "X" * 10_000)),
    *(f"/traits/{name}" for name in ("%00", "%FF", "CUSTOM_" + "X" * 10_000)),
    *(f"/resource_classes/{name}" for name in ("%00", "%FF", "CUSTOM_" + "X" * 10_000)),
    *("/%FF", "/%00", "//", "/" + "a/" * 5_000),
]


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST"])
def test_bad_paths(ground: Client, method: str) -> None:
    """They match no route."""
    for path in PATHS:
        assert_our_client_is_at_fault(ground.request(method, path, json={"name": "x"}))


@pytest.mark.deliberately_different("NUL is refused wherever it stands, reading included")
@pytest.mark.usefixtures("unchanged")
def test_a_nul_names_no_consumer(ground: Client, world: World) -> None:
    """400 on every method."""
    claim = writes(ground, world)["claim"].body
    for method in ("GET", "PUT", "DELETE"):
        answer = ground.request(method, "/allocations/a%00b", json=claim)
        assert_our_client_is_at_fault(answer)
        assert answer.status == 400


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("name", ["%FF", "x" * 10_000, "%ED%A0%80"])
def test_bad_consumers(ground: Client, world: World, name: str) -> None:
    """No consumer can have such a name."""
    shown = ground.get(f"/allocations/{name}")
    assert (shown.status, shown.json) == (200, {"allocations": {}})
    claim = writes(ground, world)["claim"].body
    assert_our_client_is_at_fault(ground.put(f"/allocations/{name}", json=claim))
    assert_our_client_is_at_fault(ground.delete(f"/allocations/{name}"))


VALUES = [
    *("\x00", "x\x00", "-1", "0", str(2**63), "9" * 5000, "NaN", "x" * 10_000, "VCPU:" + "9" * 30),
    *("VCPU:NaN", "in:", "!in:", "!", ",", "\U0001f6a2"),
]
KEYS = {
    "/resource_providers": ["name", "uuid", "in_tree", "member_of", "resources", "required"],
    "/traits": ["name", "associated"],
    "/usages": ["project_id", "user_id", "consumer_type"],
    "/allocation_candidates": [
        *("resources", "resources1", "required", "member_of", "in_tree", "limit", "group_policy"),
        *("root_required", "same_subtree"),
    ],
}


@pytest.mark.parametrize(
    "path", where_the_original_fails(LISTS, {"/resource_providers", "/allocation_candidates"})
)
def test_odd_values_of_parameters(ground: Client, path: str) -> None:
    """A valid response or a refusal, never a 500."""
    for key in KEYS[path]:
        for value in VALUES:
            for others in ("", "project_id=p", "resources=VCPU:1"):
                answer = ground.get(f"{path}?{others}&{key}={quote(value)}")
                if answer.status != 200:
                    assert_our_client_is_at_fault(answer)


# Fuzzing: the same rule, for what nobody thought of.

FUZZING = settings(
    max_examples=scaled(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

TEXTS = st.text(max_size=8) | st.sampled_from(
    ["VCPU", "CUSTOM_A", NOWHERE, "in:VCPU", "!VCPU", "VCPU:1", "none", "1", "\x00", "\ud800"]
)
NUMBERS = st.integers() | st.floats() | st.sampled_from([2**31, 2**63, -(2**63), 10**40])
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def target(ground: Client) -> dict[str, Write]:
    """Valid requests to start with, on a world that fuzzing may change."""
    return writes(ground, small_world(ground))


@pytest.mark.in_process
@FUZZING
@given(name=st.sampled_from(WRITES), value=JSON_VALUES, data=st.data())
def test_any_json_in_any_place(
    ground: Client, target: dict[str, Write], name: str, value: Any, data: st.DataObject
) -> None:
    """A valid body with one part replaced by any value."""
    write = target[name]
    way = data.draw(st.sampled_from([(), *parts(write.body)]))
    answer = send(ground, write, with_part(write.body, way, value))
    if answer.status >= 300:
        assert_our_client_is_at_fault(answer)


@pytest.mark.in_process
@FUZZING
@given(name=st.sampled_from(WRITES), body=st.binary(max_size=200))
def test_any_bytes_as_a_body(
    ground: Client, target: dict[str, Write], name: str, body: bytes
) -> None:
    """They are never valid, unless they happen to be a JSON object: hypothesis also tries strings
    from the code."""
    assume(not is_json_object(body))
    answer = ground.request(target[name].method, target[name].path, body=body, headers=JSON)
    assert_our_client_is_at_fault(answer)


def is_json_object(body: bytes) -> bool:
    """Whether the bytes are covered by `test_any_json_in_any_place`."""
    try:
        return isinstance(json.loads(body), dict)
    except ValueError:
        return False


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A path with a query: known and unknown keys, raw and quoted values."""
    path = draw(st.sampled_from(sorted(KEYS)))
    keys = st.sampled_from(KEYS[path])
    raw = st.text(alphabet="%abcFf019:,!_=-+;{}", max_size=12)
    pairs = draw(st.lists(st.tuples(keys | raw, TEXTS.map(_quoted) | raw), min_size=0, max_size=5))
    return f"{path}?" + "&".join(f"{key}={value}" for key, value in pairs)


def _quoted(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


@pytest.mark.in_process
@FUZZING
@given(target_path=queries(), version=st.integers(10, 39))
def test_any_query(ground: Client, target_path: str, version: int) -> None:
    """A valid response or a refusal."""
    answer = ground.get(target_path, version=f"1.{version}")
    assert answer.status < 500, answer.body
    if answer.status >= 400:
        (error,) = answer.json["errors"]
        assert error["status"] == answer.status

# SPDX-License-Identifier: Apache-2.0
"""Hostile requests to `/berth/v1`, made from what its operations declare.

A request begins as a valid one: method, path, query and body are filled from the schemas of an
operation, with names that the fleet of `settle` has, and others. Then up to three faults are put
into it: other types, sizes, depths, repeated members, characters, parameters, headers, encodings,
paths and methods.

Each request depends on the seed and its number alone, so that one can be made again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final
from urllib.parse import quote

from berth.api.contract import Parameter
from berth.api.namespaces import BERTH
from berth.api.operation import Operation
from tests.client import ADMIN, Client

#: Stands for a revision that the service has given.
REVISION: Final = "b1.REVISION"
UUIDS: Final = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(12)]
HOSTS: Final = [f"cn{number}" for number in range(6)]
_PROVIDERS: Final = (*HOSTS, *(f"{host}_numa{node}" for host in HOSTS for node in range(2)), "pool")
_CLASSES: Final = ("VCPU", "MEMORY_MB", "DISK_GB", "VGPU", "CUSTOM_FPGA", "CUSTOM_NONE")
_TRAITS: Final = ("HW_NUMA_ROOT", "CUSTOM_GREEN", "MISC_SHARES_VIA_AGGREGATE", "COMPUTE_NODE")
_AGGREGATES: Final = ("zone=z1", "zone=z2", "az-1", *UUIDS[:3])
_GROUPS: Final = ("", "_A", "_B")
_DRAINS: Final = ("firmware", "rack-7")
_FLAVORS: Final = ("m1.small", "m1.large")
_KEYS: Final = ("zone", "rack", "name", "host")
#: What strings are drawn from, by the name of the member, parameter or path parameter.
VOCABULARY: Final[Mapping[str, Sequence[str]]] = {
    **dict.fromkeys(("resources", "inventories", "split", "classes", "resource_class"), _CLASSES),
    **dict.fromkeys(("required", "anywhere", "traits"), (*_TRAITS, "!CUSTOM_GREEN")),
    **dict.fromkeys(("member_of", "aggregates"), (*_AGGREGATES, "!zone=z2")),
    **dict.fromkeys(("in", "not_in", "in_tree", "under", "not_under", "like", "drain"), _PROVIDERS),
    **dict.fromkeys(("without_hosts", "providers", "host", "provider", "parent"), _PROVIDERS),
    **dict.fromkeys(("allocations", "reference"), _PROVIDERS),
    **dict.fromkeys(("tolerate", "undrain", "/drains/{name}"), (*_DRAINS, "*")),
    **dict.fromkeys(("flavor", "flavors", "preserve", "/flavors/{name}"), _FLAVORS),
    **dict.fromkeys(("by", "within", "max_per", "labels"), (*_KEYS, "aggregate")),
    **dict.fromkeys(("uuid", "consumer", "without_consumers"), UUIDS),
    "groups": _GROUPS,
    "of": ("host", *_GROUPS),
    "at": ("provider", "tree", "subtree", "HW_NUMA_ROOT"),
    "name": ("job-1", "job-2", *_PROVIDERS),
    "project_id": ("web", "batch"),
    "user_id": ("alice", "bob"),
    "consumer_type": ("INSTANCE", "unknown"),
    "query": ("resources=VCPU:1", "resources=VCPU:1,MEMORY_MB:64&limit=3", "resources_A=VGPU:1"),
    "include": ("inventories", "inventories,traits,usages", "allocations", ""),
    "label": ("zone=z1", "name=az-1"),
    "after": (REVISION, "b1.AA", "x"),
    "limit": ("1", "0", "1000"),
    "generation": ("1", "2"),
    # Nobody waits for changes here.
    "wait": ("0", "00", "-1", "61"),
    "": ("z1", "why", "true", "x" * 255),
}
#: What few formats and databases can have.
ODD_TEXTS: Final[Sequence[str]] = (
    *("€", "CUSTOM_€", "é", "\U0001f6a2", "\U0001f6a2" * 300, "ﬁ", "İ", "\x85", "\u2028", "\ufeff"),
    *("\x00", "a\x00b", "\ud800", "a\udfffb", "\x07\x1b[31m", "\x7f", "\r\nX-Odd: 1", "a\nb", "\t"),
    *(" ", " a ", "a/b", "a~b", "a~0~1b", "..", ".", "%", "%00", "%2F", "%s%n", "{0}", "{a.b}"),
    *(
        "'; DROP TABLE consumers; --",
        '"',
        "\\",
        "\\u0000",
        "<b>",
        "a=b=c",
        "=",
        "!",
        "!!",
        "A" * 70,
    ),
    *("x" * 256, "x" * 4096, "9" * 400, "request.groups", "groups[0]", "__proto__", "NaN", "null"),
    *(
        "resources=CUSTOM_€:1",
        "resources=VCPU:" + "9" * 5000,
        "limit=1e9&resources=%FF:1",
        "&;&;?=",
    ),
    *(f"{{{UUIDS[0]}}}", UUIDS[0].upper(), f"urn:uuid:{UUIDS[0]}", UUIDS[0].replace("-", "")),
    ";".join(f"resources{number}=VCPU:1" for number in range(70)),
)
NUMBERS: Final[Sequence[Any]] = (
    *(0, -0.0, -1, 1, 1.0, 1.5, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63) - 1),
    *(10**400, 1e308, 1e-320, float("nan"), float("inf"), float("-inf"), 100_000, 10_001, 4097),
)
OTHERS: Final[Sequence[Any]] = (None, True, False, [], {}, [[]], [{}], {"": {}}, [None], {"a": []})

#: A body of text that is no JSON, or JSON that few readers take.
_RAW: Final[Sequence[bytes]] = (
    *(b"", b" ", b"{", b"[", b"null", b"NaN", b"-", b"{}", b"[]", b'"', b"\xff", b"\xef\xbb\xbf{}"),
    *(
        b"{} {}",
        b"{'a': 1}",
        b'{"a": 1,}',
        b'{"a": 01}',
        b'{"a": "\xed\xa0\x80"}',
        b"\x1f\x8b\x08\x00",
    ),
    *(b"[" * 3_000 + b"]" * 3_000, b'{"a":' * 3_000),
    b'{"request": ' + b"[" * 40 + b"]" * 40 + b"}",
    *(b"{" + b",".join(b'"%d":1' % n for n in range(40_000)) + b"}", b"[" + b"1," * 90_000 + b"1]"),
    *(b'{"a":1e400}', b'{"a":-0}', b'{"a":1e-400}', b'{"a":' + b"9" * 5_000 + b"}"),
    b" " * 2**20 + b"7",
    *(b'"' + b"x" * 2**20 + b'"', b'{"a":"' + b"\\u0061" * 9_000 + b'"}', b'{"a":"\\ud83d"}'),
)
_HEADERS: Final[Mapping[str, Sequence[str]]] = {
    "Accept": (
        *("text/html", "*/*;q=0", "application/jsonl", "text/event-stream", "a", "application/*"),
        *("application/json;q=0.5, text/html", "application/json;" + "a=b;" * 500, ",,,", "é"),
    ),
    "Content-Type": (
        *("", "text/plain", "application/json; charset=latin-1", "application/JSON", "a" * 5000),
        *("application/jsonx", "multipart/form-data; boundary=x", ";"),
    ),
    "Content-Length": ("-1", "0", "1", "12345", "9" * 30, "1e3", " 7", "٣", "0x10", ""),
    "Transfer-Encoding": ("chunked", "gzip, chunked", "identity"),
    "Content-Encoding": ("gzip",),
    "If-Match": ("*", '"x"', 'W/"x"', "", '"', ",", "x" * 5000, '"é"', '"a", *'),
    "If-None-Match": ("*", '"b1.AA"', "W/*", ",,", "x" * 5000),
    "Last-Event-ID": (REVISION, "b1.AA", "b1.", "x", "é", "b1." + "A" * 5000, "b1.____", "b2.AAAA"),
    "OpenStack-API-Version": (
        *("placement 1.0", "placement latest", "placement 9.9", "placement x", "compute 2.1", "é"),
        *("placement 1.39, placement 1.0", "placement 1." + "9" * 500, "placement"),
    ),
    "X-Auth-Token": ("", "admin:x", ":", "é", "u:p:q", "a" * 5000, "eve:web"),
    "X-Roles": ("", "reader", "member", "auditor", "service", ",", "é"),
    "Host": ("a.b:99999", "[::1]:80", "a" * 5000),
    "X-Openstack-Request-Id": ("req-x", "é", "x" * 5000),
    "Traceparent": ("00-x", "00-" + "0" * 32 + "-" + "0" * 16 + "-01"),
    "Expect": ("100-continue",),
}
_METHODS: Final = (
    *("HEAD", "OPTIONS", "PATCH", "TRACE", "GET", "POST", "PUT", "DELETE", "get", "X" * 200),
)
_PATHS: Final = (
    *("%00", "%2F", "%C0%AF", "%ED%A0%80", "..", "%2E%2E", "", "%", "%F0%9F%9A%A2", "a" * 5000),
    *("%0d%0aX-Odd:1", ";a=b", "?", "%3F", "*", "%25%30%30"),
)
#: What takes a body is asked most, and what deletes least.
_WEIGHTS: Final = [
    4 if each.contract.body else 0.3 if each.method == "DELETE" else 0.6
    for each in BERTH.operations
]
#: How many of the optional members a body has.
_OPTIONAL: Final = 0.2
#: Members that are given with others hardly ever make a valid request.
_INSTEAD: Final = ("groups", "flavor", "query", "alternatives")


@dataclass(frozen=True)
class Hostile:
    """A request; each header of a name replaces the one before."""

    number: int
    operation: Operation
    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None

    def __str__(self) -> str:
        body = "" if self.body is None else f" {self.body[:1500]!r} ({len(self.body)} bytes)"
        return f"#{self.number} {self.method} {self.target[:600]} {dict(self.headers)}{body}"

    def knowing(self, revision: str) -> Hostile:
        """The same request with a revision of the service."""
        headers = {name: text.replace(REVISION, revision) for name, text in self.headers.items()}
        return replace(self, query=self.query.replace(REVISION, revision), headers=headers)

    @property
    def target(self) -> str:
        """The path with its query."""
        return f"{self.path}?{self.query}" if self.query else self.path


def hostile(seed: int, number: int) -> Hostile:
    """One request, by its number."""
    rng = Random(f"{seed} {number}")
    request, value = _valid(rng, number)
    for _ in range(rng.choice((0, 0, 0, 1, 1, 1, 2, 3))):
        request, value = rng.choice(_FAULTS)(rng, request, value)
    if value is not _NOTHING and request.body is None:
        request = replace(request, body=_text(rng, value))
    return request


_NOTHING: Final = object()


# --- Valid requests -------------------------------------------------------------------------------


def _valid(rng: Random, number: int) -> tuple[Hostile, Any]:
    operation = rng.choices(BERTH.operations, _WEIGHTS)[0]
    names = {
        name: rng.choice(VOCABULARY.get(operation.path, VOCABULARY[name]))
        for name in operation.segments
    }
    path = BERTH.path_of(operation).format(
        **{name: quote(text, safe="") for name, text in names.items()}
    )
    parameters = operation.contract.query.parameters.values() if operation.contract.query else ()
    pairs = [_pair(rng, each) for each in parameters if rng.random() < _OPTIONAL]
    headers = {**ADMIN, "OpenStack-API-Version": "placement 1.39"}
    request = Hostile(number, operation, operation.method, path, "&".join(pairs), headers)
    if operation.contract.body is None:
        return request, _NOTHING
    request = replace(request, headers={**headers, "Content-Type": "application/json"})
    if rng.random() < 0.1:
        return request, operation.contract.body.example.at(0)
    return request, _of(rng, operation.contract.body.schema.at(0).definition, "")


def _pair(rng: Random, parameter: Parameter) -> str:
    return f"{parameter.name}={quote(_name(rng, parameter.schema, parameter.name))}"


def _of(rng: Random, schema: Mapping[str, Any], name: str) -> Any:
    """A value that a schema admits, or nearly so; `name` is that of its member."""
    kind = schema.get("type", "object")
    kind = rng.choice(kind) if isinstance(kind, list) else kind
    if "enum" in schema:
        return rng.choice(schema["enum"])
    return _KINDS[kind](rng, schema, name)


def _object(rng: Random, schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    members = dict(schema.get("properties", {}))
    required = [*schema.get("required", ()), "resources", "uuid" if name == "consumers" else "name"]
    if "groups" in members and "query" in members:
        instead = rng.choice((*_INSTEAD[:1] * 5, *_INSTEAD))
        required.append(instead)
        members = {
            each: of for each, of in members.items() if each not in _INSTEAD or each == instead
        }
    value = {
        each: _of(rng, of_member, each)
        for each, of_member in members.items()
        if each in required or rng.random() < _OPTIONAL
    }
    others = dict(schema.get("patternProperties", {}))
    if isinstance(schema.get("additionalProperties"), dict):
        others[""] = schema["additionalProperties"]
    for pattern, of_member in others.items():
        for _ in range(rng.randint(1, 3)):
            value[_name(rng, {"pattern": pattern}, name)] = _of(rng, of_member, "")
    return value


def _array(rng: Random, schema: Mapping[str, Any], name: str) -> list[Any]:
    least = schema.get("minItems", 0)
    count = rng.randint(least, max(least, min(2, schema.get("maxItems", 2))))
    items = [_of(rng, schema["items"], name) for _ in range(count)]
    if schema.get("uniqueItems") and name in VOCABULARY:
        return rng.sample(VOCABULARY[name], min(count, len(VOCABULARY[name])))
    return items


def _name(rng: Random, schema: Mapping[str, Any], name: str) -> str:
    """A text that a schema admits, if there is one for the member."""
    if schema.get("format") == "uuid":
        return rng.choice(UUIDS)
    pattern = re.compile(schema.get("pattern", ""))
    words = VOCABULARY.get(name, VOCABULARY[""])
    return rng.choice([each for each in words if pattern.search(each)] or words)


def _number(rng: Random, schema: Mapping[str, Any], name: str) -> Any:
    least, most = schema.get("minimum", 0), schema.get("maximum", 100)
    return min(most, least + rng.choice((0, 0, 0, 1, 1, 1, 3, 7, 100, most)))


_KINDS: Final[Mapping[str, Callable[[Random, Mapping[str, Any], str], Any]]] = {
    "object": _object,
    "array": _array,
    "string": _name,
    "integer": _number,
    "number": _number,
    "boolean": lambda rng, schema, name: rng.random() < 0.5,
    "null": lambda rng, schema, name: None,
}


# --- Faults ---------------------------------------------------------------------------------------


def _text(rng: Random, value: Any) -> bytes:
    """A value as JSON, of which a part may be encoded in another way."""
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    return text.encode("utf-8", "surrogatepass")


def _place(rng: Random, value: Any) -> tuple[Any, Any] | None:
    """A place in a JSON value, if it has any: what contains it, and its key or number there."""
    if not isinstance(value, dict | list) or not value:
        return None
    key = rng.choice([*value]) if isinstance(value, dict) else rng.randrange(len(value))
    deeper = _place(rng, value[key]) if rng.random() < 0.8 else None
    return deeper or (value, key)


def _odd(rng: Random) -> Any:
    return rng.choice(rng.choice((ODD_TEXTS, NUMBERS, OTHERS, _PROVIDERS)))


def _in_body(change: Callable[[Random, Any, Any], None]) -> Any:
    """A fault at one place of the body."""

    def put(rng: Random, request: Hostile, value: Any) -> tuple[Hostile, Any]:
        if value is _NOTHING or request.body is not None:
            return request, value
        value = deepcopy(value)
        if place := _place(rng, value):
            change(rng, *place)
        return request, value

    return put


def _other_value(rng: Random, within: Any, key: Any) -> None:
    within[key] = _odd(rng)


def _other_text(rng: Random, within: Any, key: Any) -> None:
    odd = rng.choice(ODD_TEXTS)
    if isinstance(within[key], str):
        within[key] = rng.choice((odd, within[key] + odd, odd + within[key]))
    elif isinstance(within, dict):
        within[rng.choice((odd, key + odd, odd + key))] = within.pop(key)


def _less(rng: Random, within: Any, key: Any) -> None:
    del within[key]


def _more(rng: Random, within: Any, key: Any) -> None:
    if isinstance(within, dict):
        # A name that looks like the way to another member.
        inner = within[key] if isinstance(within[key], dict) else {key: None}
        ways = [f"{key}.{name}" for name in inner] or [key]
        name = rng.choice((*ODD_TEXTS, *_CLASSES, *_GROUPS, *ways, *ways * 9, f"{key}[0]"))
        within[name] = rng.choice((within[key], _odd(rng)))
    else:
        within.append(_odd(rng))


def _many(rng: Random, within: Any, key: Any) -> None:
    size = len(json.dumps(within[key], default=str))
    count = min(rng.choice((33, 65, 65, 101, 257, 1_001, 10_001)), 2_000_000 // (size + 1))
    if isinstance(within, list):
        within.extend([within[key]] * count)
    else:
        within |= {f"{key}{number}": within[key] for number in range(count)}


def _deep(rng: Random, within: Any, key: Any) -> None:
    for _ in range(rng.choice((5, 40, 200))):
        within[key] = rng.choice(([within[key]], {"a": within[key]}, {"groups": within[key]}))


def _raw(rng: Random, request: Hostile, value: Any) -> tuple[Hostile, Any]:
    """A body that is other text, is cut off, or has a byte or a member too many."""
    if value is _NOTHING:
        return replace(request, body=rng.choice((None, *_RAW))), value
    text = _text(rng, value) if request.body is None else request.body
    place = rng.randrange(len(text) + 1)
    if rng.random() < 0.4:
        return replace(request, body=rng.choice(_RAW)), value
    byte = rng.choice((b"\xff", b"\x00", b"\xc0\xaf", b"\\", b'"', b"}", b" "))
    spoiled = (
        text[:place],
        text[:place] + byte + text[place:],
        text.replace(b'": ', b'": 1, "a": 2, "a": ', 1),
        text.replace(b"{", b'{"request": {}, ', 1),
        text.replace(b"1", rng.choice((b"1e400", b"1.0", b"-0", b"1" * 500, b"NaN"))),
        text.decode("utf-8", "replace").encode("utf-16"),
        text + b" " * 2**20,
        text.replace(b'": ', b'": ' + b"[" * 3_000 + b"]" * 3_000 + b', "x": ', 1),
    )
    return replace(request, body=rng.choice(spoiled)), value


def _header(rng: Random, request: Hostile, value: Any) -> tuple[Hostile, Any]:
    name = rng.choice(list(_HEADERS))
    headers = {**request.headers, name: rng.choice(_HEADERS[name])}
    if rng.random() < 0.2:
        headers.pop(rng.choice(list(headers)))
    return replace(request, headers=headers), value


def _query(rng: Random, request: Hostile, value: Any) -> tuple[Hostile, Any]:
    odd = quote(rng.choice(ODD_TEXTS), errors="surrogatepass")
    declared = list(query.parameters) if (query := request.operation.contract.query) else []
    name = rng.choice((*declared, "dry_run", "limit", "colour", odd))
    added = rng.choice(
        (
            *(f"{name}={odd}", f"{name}=true", name, f"={odd}", "&".join([f"{name}=1"] * 500)),
            *(f"{name}=%FF", f"{name}=%00", "&;&", f"{name}={'x' * 60_000}", "%ZZ=%Z"),
            request.query,
        )
    )
    separator = rng.choice("&;")
    return replace(request, query=f"{request.query}{separator}{added}".strip("&;")), value


def _path(rng: Random, request: Hostile, value: Any) -> tuple[Hostile, Any]:
    segments = request.path.split("/")
    place = rng.randrange(1, len(segments))
    odd = rng.choice((*_PATHS, quote(rng.choice(ODD_TEXTS), safe="", errors="surrogatepass")))
    segments[place] = rng.choice((odd, segments[place] + odd, f"{segments[place]}/{odd}"))
    return replace(request, path="/".join(segments)), value


def _method(rng: Random, request: Hostile, value: Any) -> tuple[Hostile, Any]:
    return replace(request, method=rng.choice(_METHODS)), value


_FAULTS: Final[Sequence[Any]] = (
    *(_in_body(change) for change in (_other_value, _other_text, _less, _more, _many, _deep)),
    *(_raw, _header, _query, _path, _method),
)


# --- The fleet ------------------------------------------------------------------------------------


def settle(client: Client) -> str:
    """Make the fleet that requests name: hosts with NUMA nodes, a pool, labels, a flavor, a drain,
    and a consumer with a name and a lease. Returns a revision."""
    puts: dict[str, Any] = {}
    for number, host in enumerate(HOSTS):
        numa = [
            {
                "name": f"{host}_numa{node}",
                "parent": host,
                "inventories": {"VCPU": {"total": 160}, "MEMORY_MB": {"total": 4096 + number}},
                "traits": ["HW_NUMA_ROOT"],
            }
            for node in range(2)
        ]
        root = {"name": host, "inventories": {"VGPU": {"total": 40}}, "aggregates": UUIDS[:1]}
        puts[f"trees/{host}"] = {"providers": [root, *numa], "create_names": True}
    pool = {"name": "pool", "inventories": {"DISK_GB": {"total": 9000}}, "aggregates": UUIDS[:1]}
    shared = {**pool, "traits": ["MISC_SHARES_VIA_AGGREGATE", "CUSTOM_GREEN"]}
    puts["trees/pool"] = {"providers": [shared], "create_names": True}
    puts[f"aggregates/{UUIDS[0]}"] = {"labels": {"name": "az-1", "zone": "z1"}}
    puts["flavors/m1.small"] = {"request": {"groups": {"": {"resources": {"VCPU": 1}}}}}
    puts["drains/firmware"] = {"providers": [HOSTS[-1]]}
    puts["consumers/web/job-1"] = {
        "allocations": {"cn0_numa0": {"resources": {"VCPU": 1}}},
        "user_id": "alice",
        "consumer_type": "INSTANCE",
        "lease_seconds": 86_400,
    }
    for path, body in puts.items():
        answer = client.put(f"/berth/v1/{path}", json=body)
        assert answer.status in (200, 201), answer.text
    revision: str = client.get("/berth/v1/flavors").json["revision"]
    return revision

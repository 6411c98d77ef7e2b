# SPDX-License-Identifier: Apache-2.0
"""Section 1 of the REST specification: versions, routes, methods, Accept, bodies, tokens."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from bench.api import LATEST
from compare.script.step import Step, make_provider, request, uid

_HOST = "transport-host"

_VERSION_HEADERS = [
    "",
    "placement",
    "1.5",
    "compute 2.1",
    "placement 1.5",
    "PLACEMENT 1.7",
    "placement\t1.7",
    "  placement   1.7  ",
    "compute 2.1,placement 1.6",
    "compute 2.1, placement 1.6",
    "placement 1.3,placement 1.4",
    "placement 1.3, compute 2.9",
    "placement latest",
    "placement Latest",
    "placement LATEST",
    "placement 01.05",
    "placement 1.05",
    "placement 1",
    "placement 1.",
    "placement .5",
    "placement 1.2.3",
    "placement pony.horse",
    "placement 1.40",
    "placement 2.0",
    "placement 0.9",
    "placement 1.-1",
    "placement 1.5 extra",
    "placement 1.5,",
    "placement 1.5;q=1",
    "placement  ",
]

_PATHS = [
    "/",
    "/resource_providers",
    f"/resource_providers/{uid(_HOST)}",
    f"/resource_providers/{uid(_HOST)}/inventories",
    f"/resource_providers/{uid(_HOST)}/inventories/VCPU",
    f"/resource_providers/{uid(_HOST)}/usages",
    f"/resource_providers/{uid(_HOST)}/allocations",
    f"/resource_providers/{uid(_HOST)}/aggregates",
    f"/resource_providers/{uid(_HOST)}/traits",
    "/traits",
    "/traits/CUSTOM_TRANSPORT",
    "/resource_classes",
    "/resource_classes/CUSTOM_TRANSPORT",
    f"/allocations/{uid('nobody')}",
    "/allocations",
    "/allocation_candidates?resources=VCPU:1",
    "/usages?project_id=nobody",
    "/reshaper",
]

_UNKNOWN_PATHS = [
    "/resource_providers/",
    "/resource_providers//inventories",
    "//resource_providers",
    "/Resource_providers",
    "/allocations/",
    f"/resource_providers/{uid(_HOST)}/",
    f"/resource_providers/{uid(_HOST)}/inventories/",
    f"/resource_providers/{uid(_HOST)}/nothing",
    f"/resource_providers/{uid(_HOST)}/inventories/VCPU/more",
    "/traits/",
    "/traits/A%2FB",
    "/nothing",
    "/nothing.json",
    "/traits.json",
    "/usages/",
    "/reshaper/",
    "/allocation_candidates/",
    "/resource_classes/",
    "/%FF",
    "/traits/%FF",
    "/resource_providers/%C3%A9",
    "/resource_classes/%C3%A9",
]

_METHODS = ["HEAD", "OPTIONS", "PATCH", "TRACE", "get", "FROB", "DELETE", "PUT", "POST"]

#: The microversion that introduced a route or method, with one just below it.
_INTRODUCED = [
    ("GET", f"/resource_providers/{uid(_HOST)}/aggregates", "1.0", "1.1"),
    ("PUT", f"/resource_providers/{uid(_HOST)}/aggregates", "1.0", "1.1"),
    ("GET", "/resource_classes", "1.1", "1.2"),
    ("POST", "/resource_classes", "1.1", "1.2"),
    ("GET", "/resource_classes/VCPU", "1.1", "1.2"),
    ("PUT", "/resource_classes/CUSTOM_NONE", "1.1", "1.2"),
    ("DELETE", "/resource_classes/CUSTOM_NONE", "1.1", "1.2"),
    ("DELETE", f"/resource_providers/{uid(_HOST)}/inventories", "1.4", "1.5"),
    ("GET", "/traits", "1.5", "1.6"),
    ("GET", "/traits/CUSTOM_NONE", "1.5", "1.6"),
    ("PUT", "/traits/custom_bad", "1.5", "1.6"),
    ("DELETE", "/traits/CUSTOM_NONE", "1.5", "1.6"),
    ("GET", f"/resource_providers/{uid(_HOST)}/traits", "1.5", "1.6"),
    ("PUT", f"/resource_providers/{uid(_HOST)}/traits", "1.5", "1.6"),
    ("DELETE", f"/resource_providers/{uid(_HOST)}/traits", "1.5", "1.6"),
    ("GET", "/usages", "1.8", "1.9"),
    ("GET", "/allocation_candidates", "1.9", "1.10"),
    ("POST", "/allocations", "1.12", "1.13"),
    ("POST", "/reshaper", "1.29", "1.30"),
]

_ACCEPTS = [
    "",
    "*/*",
    "application/json",
    "application/*",
    "text/html;q=0.5,application/json",
    "text/plain,application/json;q=0.2",
    "text/html,application/json;q=0.1",
    "text/html,application/xml;q=0.9,*/*;q=0.8",
    "*/*;q=0.8",
    "application/json,text/html",
    "application/json, */*",
    "garbage",
    "text/html",
    "text/*",
    "text/plain",
    "application/xml",
    "application/json;q=0",
    "*/*;q=0",
    "application/json; charset=utf-8",
    "application/json;version=1",
]


def steps() -> Iterator[Step]:
    """Everything that is the same on every route."""
    yield make_provider(_HOST)
    yield from _versions()
    yield from _methods_and_paths()
    yield from _accept()
    yield from _bodies()
    yield from _tokens()
    yield from _order()


def _versions() -> Iterator[Step]:
    for value in _VERSION_HEADERS:
        for path in ("/", "/resource_classes", "/nothing"):
            yield request("GET", path, None, openstack_api_version=value)
    yield request("GET", "/resource_classes", None, x_openstack_placement_api_version="1.9")
    yield request("PATCH", "/", "1.40")
    yield request("GET", "/", "1.40", accept="text/html")
    yield request("GET", "/", "pony.horse", accept="text/plain")
    for version in ("1.0", "1.14", "1.15", "1.22", "1.23", LATEST):
        yield request("GET", "/", version)
        yield request("GET", "/nothing", version)
        yield request("GET", f"/resource_providers/{uid('nobody')}", version)
        yield request("PATCH", "/traits", version)


def _methods_and_paths() -> Iterator[Step]:
    for path in _PATHS:
        for method in _METHODS:
            if method in ("PUT", "POST", "DELETE") and path != "/":
                continue
            yield request(method, path)
    yield request("PUT", "/traits")
    yield request("DELETE", "/traits")
    yield request("DELETE", "/resource_classes")
    yield request("POST", "/usages")
    yield request("PUT", "/reshaper")
    yield request("GET", "/reshaper")
    yield request("GET", "/reshaper", "1.0")
    yield request("GET", "/allocations")
    yield request("HEAD", "/nothing")
    for path in _UNKNOWN_PATHS:
        yield request("GET", path)
        yield request("GET", path, "1.0")
    for method, path, before, since in _INTRODUCED:
        for version in (before, since):
            yield request(method, path, version)
    yield request("GET", "/resource_classes?foo=1")
    yield request("GET", f"/resource_providers/{uid(_HOST)}/usages?foo=1")
    yield request("GET", f"/resource_providers/{uid(_HOST)}?foo=1")
    for name in ("resource_providers", "traits", "usages", "allocation_candidates"):
        yield request("GET", f"/{name}?foo=1")
        yield request("GET", f"/{name}?foo=1&bar=2")
        yield request("GET", f"/{name}?Name=x")
        yield request("GET", f"/{name}?name=%FF")
        yield request("GET", f"/{name}?%FF=x")
        yield request("GET", f"/{name}?project_id=%FF&resources=%FF")


def _accept() -> Iterator[Step]:
    paths = [
        "/",
        "/resource_classes",
        "/resource_classes/CUSTOM_NOPE",
        "/traits/HW_CPU_X86_AVX",
        "/traits/CUSTOM_NOPE",
        f"/resource_providers/{uid(_HOST)}",
        f"/resource_providers/{uid('nobody')}",
        "/nothing",
    ]
    for value in _ACCEPTS:
        for path in paths:
            yield request("GET", path, accept=value)
        yield request("POST", "/resource_providers", LATEST, {"nome": "x"}, accept=value)
    for path in _PATHS:
        yield request("GET", path, accept="text/plain")
    yield request("GET", "/resource_classes", accept="text/html", x_auth_token=None, x_roles=None)
    yield request("GET", "/resource_classes", accept="text/plain", x_auth_token=None, x_roles=None)
    yield request("PUT", "/traits/CUSTOM_ACCEPTED", accept="text/plain")
    yield request("DELETE", "/traits/CUSTOM_ACCEPTED", accept="text/plain")


def _bodies() -> Iterator[Step]:
    good = b'{"name": "transport-body"}'
    for content_type in (
        None,
        "",
        "application/json; charset=utf-8",
        "application/json;foo=bar",
        "Application/JSON",
        "text/plain",
        "application/xml; charset=utf-8",
        "application/json ; charset=latin-1",
    ):
        yield request("POST", "/resource_classes", LATEST, good, content_type=content_type)
        yield request("POST", "/resource_classes", LATEST, b"", content_type=content_type)
        yield request("GET", "/resource_classes/VCPU", LATEST, good, content_type=content_type)
        yield request("DELETE", "/traits/CUSTOM_NOPE", LATEST, good, content_type=content_type)
        yield request("PUT", "/traits/CUSTOM_WITH_BODY", LATEST, good, content_type=content_type)
        yield request("PATCH", "/nothing", LATEST, good, content_type=content_type)
    for method, path in (
        ("POST", "/resource_providers"),
        ("PUT", f"/resource_providers/{uid(_HOST)}"),
        ("POST", f"/resource_providers/{uid(_HOST)}/inventories"),
        ("PUT", f"/resource_providers/{uid(_HOST)}/inventories"),
        ("PUT", f"/resource_providers/{uid(_HOST)}/inventories/VCPU"),
        ("PUT", f"/resource_providers/{uid(_HOST)}/aggregates"),
        ("PUT", f"/resource_providers/{uid(_HOST)}/traits"),
        ("POST", "/resource_classes"),
        ("PUT", f"/allocations/{uid('nobody')}"),
        ("POST", "/allocations"),
        ("POST", "/reshaper"),
    ):
        yield request(method, path, LATEST, b"")
        yield request(method, path, LATEST, b"", content_type="application/json")
        yield request(method, path, LATEST, b"{}", content_type="text/plain")
        for body in (
            b"{",
            b"{} x",
            b"\xef\xbb\xbf{}",
            b'{"name": "\xff"}',
            b"[]",
            b"{}",
            b"null",
            b'"text"',
            b"1",
            b' {"unknown": 1} ',
        ):
            yield request(method, path, LATEST, body)
    yield request("PUT", "/resource_classes/CUSTOM_X", "1.6", b"")
    yield request("PUT", "/resource_classes/CUSTOM_X", "1.6", b"{")
    yield request("POST", "/resource_providers", "1.22", b"{")
    yield request("POST", "/resource_classes", LATEST, b'{"name": "bad", "name": "CUSTOM_TWICE"}')
    yield request("GET", "/resource_classes", content_length="abc")


def _tokens() -> Iterator[Step]:
    for path in ("/", "/resource_providers", "/nothing", f"/usages?project_id={quote('p:q')}"):
        yield request("GET", path, x_auth_token=None, x_roles=None)
        yield request("GET", path, "1.40", x_auth_token=None, x_roles=None)
        yield request("GET", path, x_auth_token=None)
        for token in ("", "admin", "user", "user:p:q", "admin:other", "user:"):
            yield request("GET", path, x_auth_token=token, x_roles=None)
        for roles in ("", "reader", "member", "service", "ADMIN", "member, admin"):
            yield request("GET", path, x_auth_token="user:p:q", x_roles=roles)
        yield request("GET", path, openstack_system_scope="all")
    for method, url in (
        ("POST", "/reshaper"),
        ("POST", "/resource_providers"),
        ("PUT", "/traits/CUSTOM_FORBIDDEN"),
        ("DELETE", f"/resource_providers/{uid('nobody')}"),
        ("DELETE", f"/allocations/{uid('nobody')}"),
        ("PUT", f"/allocations/{uid('nobody')}"),
        ("GET", "/allocation_candidates"),
        ("GET", "/usages"),
    ):
        for roles in ("reader", "admin"):
            body = b"{}" if method in ("POST", "PUT") else b""
            yield request(method, url, LATEST, body, x_roles=roles, x_auth_token="user")
            yield request(method, url, "1.0", body, x_roles=roles, x_auth_token="user")


def _order() -> Iterator[Step]:
    """Requests with several faults at once: which answer comes first (section 1.14)."""
    nobody = f"/resource_providers/{uid('nobody')}"
    for method, path in (
        ("GET", "/resource_providers?foo=1"),
        ("POST", "/resource_providers"),
        ("GET", nobody),
        ("PUT", nobody),
        ("DELETE", nobody),
        ("GET", f"{nobody}/inventories"),
        ("POST", f"{nobody}/inventories"),
        ("PUT", f"{nobody}/inventories"),
        ("DELETE", f"{nobody}/inventories"),
        ("GET", f"{nobody}/inventories/CUSTOM_NOPE"),
        ("PUT", f"{nobody}/inventories/CUSTOM_NOPE"),
        ("DELETE", f"{nobody}/inventories/CUSTOM_NOPE"),
        ("GET", f"{nobody}/aggregates"),
        ("PUT", f"{nobody}/aggregates"),
        ("GET", f"{nobody}/usages"),
        ("GET", f"{nobody}/allocations"),
        ("GET", "/traits?foo=1"),
        ("GET", "/traits/bad"),
        ("PUT", "/traits/bad"),
        ("DELETE", "/traits/bad"),
        ("GET", f"{nobody}/traits"),
        ("PUT", f"{nobody}/traits"),
        ("DELETE", f"{nobody}/traits"),
        ("GET", "/resource_classes"),
        ("POST", "/resource_classes"),
        ("GET", "/resource_classes/bad"),
        ("PUT", "/resource_classes/bad"),
        ("DELETE", "/resource_classes/bad"),
        ("GET", "/usages"),
        ("GET", "/allocations/bad"),
        ("PUT", "/allocations/bad"),
        ("POST", "/allocations"),
        ("DELETE", "/allocations/bad"),
        ("POST", "/reshaper"),
        ("GET", "/allocation_candidates"),
    ):
        body = b'{"foo": 1}' if method in ("POST", "PUT") else b""
        for version in ("1.0", "1.4", "1.6", "1.18", LATEST):
            for roles in ("none", "admin,service"):
                for accept in ("text/plain", "application/json"):
                    for content_type in ("text/plain", "application/json") if body else (None,):
                        yield request(
                            method,
                            path,
                            version,
                            body,
                            x_roles=roles,
                            accept=accept,
                            content_type=content_type,
                        )

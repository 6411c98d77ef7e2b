# SPDX-License-Identifier: Apache-2.0
"""What clients read in errors: each kind of fault on each route, at old and new microversions.

The other sections meet many of them on their way; here each has a request of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import quote

from bench.api import LATEST, Json
from compare.script.step import (
    Step,
    claim,
    get,
    make_provider,
    request,
    set_aggregates,
    set_inventories,
    set_traits,
    uid,
)

_HOST, _CHILD, _BARE, _NOBODY = "errors-host", "errors-child", "errors-bare", "errors-nobody"
_CONSUMER, _HOLDER = "errors-consumer", "errors-holder"
_UNDER_HOST = f"/resource_providers/{uid(_HOST)}"
_CANDIDATES_SINCE = 10
_GROUPS_SINCE = 25

#: Names in which something looks like HTML, or like a new line.
_ODD_NAMES = (
    "a < b > c",
    "<br>x",
    "a<BR/>b",
    "<!-- y --> z",
    "a\r\nb\tc",
    "a --> b",
    "<a<br>b>",
    "x <",
    "{braces}",
    "100 %",
)

_MALFORMED = (
    b"[1,]",
    b'{"a" 1}',
    b'{"a": 1,}',
    b"tru",
    b'"abc',
    b'{"name": -}',
    b'{"name": "a\x01b"}',
    b'["\xc3\xa9\xc3\xa9\xff"]',
    b'{"name": NaN}',
    b'{"name": -Infinity}',
    b'{"name": 1e999}',
    b"1" * 5000,
)

_NUMBERS = ("1e400", "NaN", "Infinity", "1.5", '"1"', "true", "-1", "null", "1" * 30)


def steps() -> Iterator[Step]:
    """A small world, and everything that can be refused in it."""
    yield make_provider(_HOST)
    yield make_provider(_CHILD, _HOST)
    yield make_provider(_BARE)
    # Generations afterwards: 4, 0 and 0.
    inventories = {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 64, "min_unit": 4, "step_size": 4}}
    yield set_inventories(_HOST, 0, inventories)
    yield request("PUT", "/traits/CUSTOM_ERRORS_HELD")
    yield set_traits(_HOST, 1, ["CUSTOM_ERRORS_HELD"])
    yield set_aggregates(_HOST, 2, ["errors"])
    yield claim(_HOLDER, {_HOST: {"VCPU": 2, "MEMORY_MB": 8}})
    yield from _providers()
    yield from _inventories()
    yield from _traits_and_aggregates()
    yield from _names()
    yield from _queries()
    yield from _candidates()
    yield from _claims()
    yield from _reshapes()
    yield from _transport()


def _providers() -> Iterator[Step]:
    for version in ("1.0", "1.14", LATEST):
        for uuid in (uid(_NOBODY), uid(_NOBODY).upper(), uid(_NOBODY).replace("-", ""), "nothing"):
            path = f"/resource_providers/{uuid}"
            for part in ("", "/inventories", "/inventories/VCPU", "/usages", "/allocations"):
                yield request("GET", f"{path}{part}", version)
            for part in ("", "/inventories", "/inventories/VCPU", "/inventories/CUSTOM_NO"):
                yield request("DELETE", f"{path}{part}", version)
            yield request("PUT", path, version, {"name": "errors-new"})
        bodies: list[Json] = [
            {"name": _BARE},
            {"name": _BARE, "uuid": uid(_HOST)},
            {"name": "errors-new", "uuid": uid(_HOST)},
            {"name": ""},
            {"name": "", "uuid": uid(_HOST)},
            {"name": "", "uuid": "nothing"},
            {"name": "errors-new", "uuid": "nothing", "more": 1},
            {"name": 1, "more": 1},
            {"more": 1},
            {},
        ]
        for body in bodies:
            yield request("POST", "/resource_providers", version, body)
        yield request("PUT", f"/resource_providers/{uid(_BARE)}", version, {"name": _HOST})
        yield request("DELETE", _UNDER_HOST, version)
    parents: list[str | int] = [uid(_NOBODY), "nothing", 1]
    for version in ("1.14", "1.36", LATEST):
        new, child = uid("errors-new"), f"/resource_providers/{uid(_CHILD)}"
        for name in ("errors-new", ""):
            for parent in (new, *parents):
                below: Json = {"name": name, "uuid": new, "parent_provider_uuid": parent}
                yield request("POST", "/resource_providers", version, below)
        for parent in (uid(_CHILD), *parents):
            below = {"name": _CHILD, "parent_provider_uuid": parent}
            yield request("PUT", child, version, below)
        above = {"name": _HOST, "parent_provider_uuid": uid(_CHILD)}
        yield request("PUT", _UNDER_HOST, version, above)
    for new_parent in (uid(_BARE), None):
        moved: Json = {"name": _CHILD, "parent_provider_uuid": new_parent}
        yield request("PUT", f"/resource_providers/{uid(_CHILD)}", "1.36", moved)
    for name in _ODD_NAMES:
        odd = {"name": name, "uuid": uid(f"errors {name}")}
        yield request("POST", "/resource_providers", LATEST, odd)
        for accept in ("application/json", "text/plain", "text/html"):
            yield request("POST", "/resource_providers", LATEST, {"name": name}, accept=accept)
        yield request("GET", f"/resource_providers/{quote(name, safe='')}")
        yield request("DELETE", f"/resource_providers/{uid(f'errors {name}')}")


def _inventories() -> Iterator[Step]:
    path = f"{_UNDER_HOST}/inventories"
    sets: list[Json] = [
        {},
        {"VCPU": {"total": 8}},
        {"CUSTOM_NO": {"total": 8}, "VCPU": {"total": 8}},
        {"VCPU": {"total": 8}, "lower": {"total": 8}},
        {"A-B": {"total": 8}, "VCPU": {"total": 8}},
        {"VCPU": {"total": 8, "reserved": 9}, "CUSTOM_NO": {"total": 8}},
        {"VCPU": {"total": "8", "more": 1}, "MEMORY_MB": {}},
    ]
    for version in ("1.0", "1.25", "1.26", LATEST):
        changes: list[dict[str, Json]] = [{"reserved": 9}, {"total": 0}, {"allocation_ratio": -1}]
        if version in ("1.0", "1.25"):
            changes.append({"reserved": 8})
        for generation in (3, 4):
            one: dict[str, Json] = {"resource_provider_generation": generation, "total": 8}
            for name in ("VCPU", "DISK_GB", "CUSTOM_NO"):
                for record in ({**one, **change} for change in changes):
                    yield request("PUT", f"{path}/{name}", version, record)
                    yield request("POST", path, version, {**record, "resource_class": name})
            for name in ("DISK_GB", "CUSTOM_NO"):
                yield request("PUT", f"{path}/{name}", version, one)
            for name in ("VCPU", "CUSTOM_NO"):
                yield request("POST", path, version, {**one, "resource_class": name})
            for inventories in sets:
                body = {"resource_provider_generation": generation, "inventories": inventories}
                yield request("PUT", path, version, body)
        yield request("GET", f"{path}/DISK_GB", version)
        yield request("GET", f"{path}/CUSTOM_NO", version)
        yield request("DELETE", f"{path}/DISK_GB", version)
        yield request("DELETE", f"{path}/CUSTOM_NO", version)
        yield request("DELETE", f"{path}/VCPU", version)
        yield request("DELETE", path, version)
        for number in _NUMBERS:
            of_disk = '{"resource_class": "DISK_GB", "total": %s}'
            yield request("POST", path, version, (of_disk % number).encode())


def _traits_and_aggregates() -> Iterator[Step]:
    for version in ("1.6", "1.18", "1.19", LATEST):
        for generation in (0, 4, 10**20):
            for names in (
                ["CUSTOM_NO"],
                ["CUSTOM_NO", "CUSTOM_NA", "CUSTOM_NE"],
                ["no"],
                [""],
                "x",
            ):
                body: Json = {"resource_provider_generation": generation, "traits": names}
                yield request("PUT", f"{_UNDER_HOST}/traits", version, body)
            body = {"resource_provider_generation": generation, "aggregates": ["nothing"]}
            yield request("PUT", f"{_UNDER_HOST}/aggregates", version, body)
            twice = [uid("errors"), uid("errors")]
            body = {"resource_provider_generation": generation, "aggregates": twice}
            yield request("PUT", f"{_UNDER_HOST}/aggregates", version, body)
        nobody = f"/resource_providers/{uid(_NOBODY)}"
        for part in ("traits", "aggregates"):
            yield request("GET", f"{nobody}/{part}", version)
            yield request("DELETE", f"{nobody}/{part}", version)
            for generation in (0, 3):
                body = {"resource_provider_generation": generation, part: []}
                yield request("PUT", f"{nobody}/{part}", version, body)
        stale: Json = {"resource_provider_generation": 3, "traits": []}
        yield request("PUT", f"{_UNDER_HOST}/traits", version, stale)
        stale = {"resource_provider_generation": 3, "aggregates": []}
        yield request("PUT", f"{_UNDER_HOST}/aggregates", version, stale)


def _names() -> Iterator[Step]:
    too_long = f"CUSTOM_{'A' * 300}"
    for version in ("1.2", "1.6", "1.7", LATEST):
        for name in (
            "CUSTOM_NO",
            "VCPU",
            "no",
            too_long,
            quote('CUSTOM_"'),
            "%C3%A9",
            "CUSTOM_B%5C",
        ):
            for method in ("GET", "DELETE"):
                yield request(method, f"/resource_classes/{name}", version)
                yield request(method, f"/traits/{name}", version)
        for name in ("VCPU", "no", too_long, quote('CUSTOM_"'), "%C3%A9", "CUSTOM_B%5C"):
            body: Json = {"name": "CUSTOM_ERRORS_NEW"} if version < "1.7" else b""
            yield request("PUT", f"/resource_classes/{name}", version, body)
            yield request("PUT", f"/traits/{name}", version)
        wrongs: list[Json] = ["VCPU", "no", too_long, "", 1, None]
        for wrong in wrongs:
            yield request("POST", "/resource_classes", version, {"name": wrong})
    yield request("PUT", "/resource_classes/CUSTOM_ERRORS_A")
    yield request("PUT", "/resource_classes/CUSTOM_ERRORS_B")
    in_use: Json = {"resource_class": "CUSTOM_ERRORS_A", "total": 1}
    yield request("POST", f"/resource_providers/{uid(_BARE)}/inventories", LATEST, in_use)
    for version in ("1.2", "1.6", LATEST):
        yield request("POST", "/resource_classes", version, {"name": "CUSTOM_ERRORS_A"})
        yield request("DELETE", "/resource_classes/CUSTOM_ERRORS_A", version)
        yield request("DELETE", "/traits/CUSTOM_ERRORS_HELD", version)
        yield request("DELETE", "/traits/HW_CPU_X86_AVX", version)
    for new in ("CUSTOM_ERRORS_B", "VCPU", "no"):
        yield request("PUT", "/resource_classes/CUSTOM_ERRORS_A", "1.6", {"name": new})
        yield request("PUT", "/resource_classes/CUSTOM_NO", "1.2", {"name": new})
    yield request("DELETE", f"/resource_providers/{uid(_BARE)}/inventories/CUSTOM_ERRORS_A")


def _queries() -> Iterator[Step]:
    one, two = uid("errors"), uid(_HOST)
    for query in (
        "name=VCPU",
        "name=",
        "name=in",
        "associated=",
        "associated=1",
        "name=in:A&associated=maybe",
        "name=a%FF",
        "other=1",
    ):
        yield from get(f"/traits?{query}", "1.6", LATEST)
    for query in (
        "",
        "project_id=",
        "user_id=a",
        "project_id=a&consumer_type=b",
        "project_id=a&consumer_type=",
        "project_id=a&other=1",
    ):
        yield from get(f"/usages?{query}", "1.9", "1.37", "1.38", LATEST)
    for query in (
        "uuid=nothing",
        "uuid=",
        "in_tree=nothing",
        "other=1&more=2",
        "name=%C3%A9%FF",
        "resources=",
        "resources=VCPU",
        "resources=VCPU:x",
        "resources=VCPU:0",
        "resources=CUSTOM_NO:1,CUSTOM_NA:1",
        "required=",
        "required=CUSTOM_NO",
        "required=CUSTOM_NO,CUSTOM_NA",
        "required=!CUSTOM_NO",
        "required=in:CUSTOM_NO,CUSTOM_NA",
        "required=in:",
        "required=in:A,!B",
        "member_of=nothing",
        "member_of=in:nothing,other",
        f"member_of=in:{one},",
        f"member_of={one},{two}",
        f"member_of=!{one}",
        f"member_of=!in:{one}",
        f"member_of=!{one},{two}",
        "member_of=!nothing",
        f"member_of={one}&member_of={two}",
    ):
        versions = ("1.0", "1.3", "1.4", "1.14", "1.18", "1.22", "1.24", "1.32", LATEST)
        yield from get(f"/resource_providers?{query}", *versions)


def _candidates() -> Iterator[Step]:
    one, two = uid("errors"), uid(_HOST)
    for suffix in ("", "1", "_A"):
        asked = f"resources{suffix}=VCPU:1"
        for query in (
            f"resources{suffix}=",
            f"resources{suffix}=VCPU",
            f"resources{suffix}=VCPU:x",
            f"resources{suffix}=VCPU:0",
            f"resources{suffix}=CUSTOM_NO:1",
            f"{asked}&required{suffix}=",
            f"{asked}&required{suffix}=CUSTOM_NO",
            f"{asked}&required{suffix}=CUSTOM_NO,CUSTOM_NA,!CUSTOM_NE",
            f"{asked}&required{suffix}=!CUSTOM_NO",
            f"{asked}&required{suffix}=in:CUSTOM_NO,CUSTOM_NA",
            f"{asked}&required{suffix}=in:A,!B",
            f"{asked}&required{suffix}=in:A,,B",
            f"{asked}&required{suffix}=A,!A,B,!B",
            f"{asked}&required{suffix}=D,A,!A,C,!C,B,A,!B,!D",
            f"{asked}&required{suffix}=!A,!B,!C&required{suffix}=in:C,A&required{suffix}=B,A,B",
            f"{asked}&member_of{suffix}=nothing",
            f"{asked}&member_of{suffix}=in:nothing,other",
            f"{asked}&member_of{suffix}={one},{two}",
            f"{asked}&member_of{suffix}=!{one}",
            f"{asked}&member_of{suffix}=!nothing",
            f"{asked}&member_of{suffix}={one}&member_of{suffix}={two}",
            f"{asked}&in_tree{suffix}=nothing",
            f"required{suffix}=CUSTOM_NO",
            f"member_of{suffix}={one}",
            f"in_tree{suffix}={two}",
            f"{asked}&resources2=VCPU:1&resources3=VCPU:1",
            f"{asked}&group_policy=never",
            f"{asked}&limit=0",
            f"{asked}&limit=x&other=1",
            f"{asked}&root_required=",
            f"{asked}&root_required=in:A",
            f"{asked}&root_required=CUSTOM_NO,CUSTOM_NA",
            f"{asked}&root_required=A,!A,B,!B",
            f"{asked}&root_required=A&root_required=B",
            f"{asked}&same_subtree=",
            f"{asked}&same_subtree=1,3,4",
            f"{asked}&required5=HW_CPU_X86_AVX&same_subtree=5,,",
            f"{asked}&required5=HW_CPU_X86_AVX&required6=HW_CPU_X86_AVX&same_subtree=5,7",
            f"{asked}&required5=HW_CPU_X86_AVX&member_of6={one}&required7=!A",
        ):
            first = _CANDIDATES_SINCE if suffix == "" else _GROUPS_SINCE
            versions = (
                first,
                *(minor for minor in (17, 21, 24, 25, 31, 33, 35, 36) if minor > first),
            )
            yield from get(f"/allocation_candidates?{query}", *(f"1.{minor}" for minor in versions))
            yield from get(f"/allocation_candidates?{query}")


def _claims() -> Iterator[Step]:
    yield request("GET", f"/allocations/{uid(_NOBODY)}", LATEST)
    for uuid in (uid(_NOBODY), uid(_NOBODY).upper(), "nothing", "%C3%A9"):
        yield from (request("DELETE", f"/allocations/{uuid}", minor) for minor in ("1.0", LATEST))
        yield request("PUT", f"/allocations/{uuid}", LATEST, {})
    for version in ("1.0", "1.8", "1.12", "1.13", "1.28", "1.34", "1.38", LATEST):
        claims: list[dict[str, dict[str, int]]] = [
            {_NOBODY: {"VCPU": 1}},
            {_NOBODY: {"CUSTOM_NO": 1}},
            {_BARE: {"VCPU": 1}},
            {_BARE: {"VCPU": 1, "MEMORY_MB": 4}},
            {_BARE: {"VCPU": 1}, _CHILD: {"VCPU": 1}},
            {_CHILD: {"VCPU": 1}, _HOST: {"VCPU": 1}, _BARE: {"MEMORY_MB": 4}},
            {_HOST: {"DISK_GB": 1}},
            {_HOST: {"CUSTOM_NO": 1, "CUSTOM_NA": 1}},
            {_HOST: {"MEMORY_MB": 1}},
            {_HOST: {"MEMORY_MB": 6}},
            {_HOST: {"VCPU": 99}},
            {_HOST: {"VCPU": 0}},
            {_HOST: {"vcpu": 1}},
            {_HOST: {}},
        ]
        for held in claims:
            yield from _refused_claim(version, held)


def _refused_claim(version: str, held: Mapping[str, Mapping[str, int]]) -> Iterator[Step]:
    """A claim that cannot be, of a new consumer and of one that holds something already."""
    minor = int(version.partition(".")[2])
    for consumer, generation in ((_CONSUMER, None), (_CONSUMER, 7), (_HOLDER, None), (_HOLDER, 1)):
        body: dict[str, Json] = {}
        if minor < 12:
            body["allocations"] = [
                {"resource_provider": {"uuid": uid(name)}, "resources": dict(resources)}
                for name, resources in held.items()
            ]
        else:
            body["allocations"] = {
                uid(name): {"resources": dict(resources)} for name, resources in held.items()
            }
        if minor >= 8:
            body |= {"project_id": "errors", "user_id": "errors"}
        if minor >= 28:
            body["consumer_generation"] = generation
        elif generation is not None:
            continue
        if minor >= 38:
            body["consumer_type"] = "INSTANCE"
        # A consumer of its own each time: Placement keeps some of those that it refuses.
        uuid = uid(_HOLDER) if consumer == _HOLDER else uid(f"{version} {held} {generation}")
        yield request("PUT", f"/allocations/{uuid}", version, body)
        if minor >= 13:
            uuid = (
                uid(_HOLDER) if consumer == _HOLDER else uid(f"POST {version} {held} {generation}")
            )
            yield request("POST", "/allocations", version, {uuid: body})


def _reshapes() -> Iterator[Step]:
    host = uid(_HOST)
    for version in ("1.30", "1.34", "1.38", LATEST):
        sets: list[tuple[str, int, Json]] = [
            (_NOBODY, 0, {"VCPU": {"total": 8}}),
            (_HOST, 3, {"VCPU": {"total": 8}}),
            (_HOST, 4, {"VCPU": {"total": 8}, "CUSTOM_NO": {"total": 8}}),
            (_HOST, 4, {"VCPU": {"total": 8}}),
            (_HOST, 4, {}),
            (_HOST, 4, {"VCPU": {"total": 0}}),
        ]
        for name, generation, inventories in sets:
            one: Json = {"resource_provider_generation": generation, "inventories": inventories}
            body: Json = {"inventories": {uid(name): one}, "allocations": {}}
            yield request("POST", "/reshaper", version, body)
        all_of_it: Json = {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 64}}
        for held in (
            {_NOBODY: {"VCPU": 1}},
            {_HOST: {"CUSTOM_NO": 1}},
            {_HOST: {"DISK_GB": 1}},
            {_HOST: {"VCPU": 99}},
        ):
            for generation in (1, 7):
                claimed: dict[str, Json] = {
                    "allocations": {
                        uid(name): {"resources": dict(amounts)} for name, amounts in held.items()
                    },
                    "project_id": "errors",
                    "user_id": "errors",
                    "consumer_generation": generation,
                }
                if version in ("1.38", LATEST):
                    claimed["consumer_type"] = "INSTANCE"
                one = {"resource_provider_generation": 4, "inventories": all_of_it}
                body = {"inventories": {host: one}, "allocations": {uid(_HOLDER): claimed}}
                yield request("POST", "/reshaper", version, body)


def _transport() -> Iterator[Step]:
    for body in _MALFORMED:
        for method, path in (
            ("POST", "/resource_providers"),
            ("PUT", f"{_UNDER_HOST}/inventories"),
            ("PUT", f"{_UNDER_HOST}/traits"),
            ("PUT", f"/allocations/{uid(_NOBODY)}"),
            ("POST", "/reshaper"),
        ):
            yield request(method, path, LATEST, body)
    for accept in (
        None,
        "",
        "*/*",
        "text/html",
        "text/html;q=0.5",
        "text/plain",
        "application/*",
        "application/xml",
        "text/html, */*",
        "text/plain;q=0.5, application/json;q=0.1",
    ):
        for version in ("1.0", LATEST, "1.40", "1.", "one"):
            yield request("GET", "/resource_providers", version, accept=accept)
            yield request("PATCH", "/resource_providers", version, accept=accept)
            yield request("GET", "/nothing", version, accept=accept)
            yield request(
                "DELETE", f"{_UNDER_HOST}/inventories", version, accept=accept, x_roles="no"
            )
        yield request(
            "POST", "/resource_providers", LATEST, b"{}", content_type="<b>", accept=accept
        )
        yield request("GET", "/resource_providers", x_auth_token=None, x_roles=None, accept=accept)

# SPDX-License-Identifier: Apache-2.0
"""What people paste, and the request in it: the one table for the reader, the command line, the
API and the page."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple
from urllib.parse import quote

AGGREGATES: Final = ("fca9175a-554e-5e4f-aa3e-59b70cccc276", "5e08ea53-c4c6-448e-9334-ac4953de3cfa")

#: A query as nova sends it, and the same decoded.
ENCODED: Final = (
    "limit=1000&required=COMPUTE_IMAGE_TYPE_QCOW2%2C%21COMPUTE_STATUS_DISABLED"
    "&resources=DISK_GB%3A40%2CMEMORY_MB%3A4096%2CVCPU%3A1"
)
DECODED: Final = (
    "limit=1000&required=COMPUTE_IMAGE_TYPE_QCOW2,!COMPUTE_STATUS_DISABLED"
    "&resources=DISK_GB:40,MEMORY_MB:4096,VCPU:1"
)
GROUPS: Final = (
    "group_policy=isolate&limit=1000&member_of=in%3A" + "%2C".join(AGGREGATES) + "&required_PCI="
    "CUSTOM_A100&resources_PCI=CUSTOM_PCI_10DE_20B0%3A1&resources=MEMORY_MB%3A4096%2CVCPU%3A4"
    "&resources1=VGPU%3A1&root_required=%21COMPUTE_STATUS_DISABLED&same_subtree=_PCI%2C1"
)
PATH: Final = "/placement/allocation_candidates?"
STAMP: Final = "2026-01-02 07:26:13.981 23"


class Example(NamedTuple):
    """A text, and the request that is in it."""

    name: str
    text: str
    request: dict[str, Any]


def wrapped(text: str, width: int, between: str = "\n") -> str:
    """A text as a terminal or a mail of some width breaks it."""
    return between.join(text[at : at + width] for at in range(0, len(text), width))


def _queries(query: str, label: str) -> list[tuple[str, str]]:
    """One query in everything that may stand around it."""
    called = f"GET {PATH}{query}"
    debug = f"{STAMP} DEBUG placement.requestlog [req-0 req-1 - - - -]"
    texts = {
        "alone": query,
        "after the path": f"{PATH}{query}",
        "in a URL in angle brackets": f"see <https://cloud.example.com{PATH}{query}> for it",
        "in a URL in Markdown": f"[the query](https://cloud.example.com{PATH}{query}), it failed",
        "placement's log": f"{STAMP} INFO placement.requestlog [req-0 a b - default default] "
        f'10.0.0.1 "{called}" status: 200 len: 53 microversion: 1.36',
        "placement's log, at the start": f'{debug} Starting request: 10.0.0.1 "{called}" '
        "__call__ /usr/lib/python3/placement/requestlog.py:61",
        "uWSGI": f"[pid: 12|app: 0|req: 1/1] 10.0.0.1 () {{60 vars in 1000 bytes}} [Fri Jan  2 "
        f"07:26:13 2026] {called} => generated 53 bytes in 12 msecs (HTTP/1.1 200) 7 headers",
        "nginx in JSON": json.dumps(
            {"time": "now", "request": f"{called} HTTP/1.1", "status": 200}
        ),
        "oslo.log in JSON": json.dumps({"message": f'10.0.0.1 "{called}" status: 200', "pid": 7}),
        "curl in a debug log": f"{STAMP} DEBUG keystoneauth.session [-] REQ: curl -g -i -X GET "
        f'\'http://10.0.0.5{PATH}{query}\' -H "Accept: application/json" -H "X-Auth-Token: ***"',
        "keystoneauth": f"{STAMP} DEBUG keystoneauth.session [-] GET call to placement for "
        f"http://10.0.0.5{PATH}{query} used request id req-7 request /usr/lib/session.py:955",
        "berth.explain": f"{STAMP} INFO berth.explain [req-1 req-2 admin admin - - - -] used_up: "
        f"No host fits now. Query: {query}",
        "berth's log in JSON": json.dumps({"message": "used_up: no host", "query": query}),
        "double quotes": f'"{query}"',
        "repr": f"b'{PATH}{query}'",
        "a sentence": f"Why does nova get nothing for {query}?",
        "an environment": f"REQUEST_METHOD=GET QUERY_STRING={query} SERVER_PORT=8778",
        "HTML": f"<td>{called.replace('&', '&amp;')}</td>",
        "HTML twice": query.replace("&", "&amp;amp;"),
        "HTML in numbers": f"&#34;{called.replace('&', '&#38;')}&#34; status",
        "JSON with escapes": f'{{\\"path\\": \\"{PATH}{query}\\", \\"status\\": 200}}',
        "JSON of Go": f'"{called}"'.replace("&", "\\u0026"),
        "a shell's backslashes": query.replace("&", "\\&").replace("!", "\\!"),
        "escaped quotes": f'"log": "10.0.0.1 \\"{called}\\" status: 200"',
        "a link to it": f"https://logs.example.com/?q={quote(f'{PATH}{query}', safe='')}&from=now",
        "encoded as a whole": quote(query, safe=""),
        "invisible characters": query.replace("&", "&\u200b"),
        "colours": f'"GET \x1b[32m{PATH}{query}\x1b[0m" status: 200',
        "a terminal's lines": wrapped(f'{debug} "{called}" status: 200 len: 53', 80),
        "lines in JSON": json.dumps({"message": wrapped(f'"{called}" status: 200', 70)}),
        "a parameter a line": query.replace("&", "&\n  "),
        "a second line of the log": f'{debug} "{called}" status: 200\n{debug} "GET /" status: 200',
        "a line of the log after it": f"Query: {query}\n2026-01-02 07:26:14.000 23 INFO x [-] y",
        "words after it": f"{query}\nnobody knows why: please help",
        "a berth command": f"$ berth why '{query}' --nearest 3",
        "a body of the API": json.dumps({"request": {"query": f'"{called}"'}, "paint": True}),
    }
    return [(f"{label}, {name}", text) for name, text in texts.items()]


VCPU: Final = {"": {"resources": {"VCPU": 4}}}

COMMANDS: Final = (
    Example("its output too", "$ berth why VCPU=4\nCONSTRAINT  ALONE  LEFT", {"groups": VCPU}),
    Example("a file for its output", "berth why VCPU=4 --json > out.json", {"groups": VCPU}),
    Example("options first", "berth --debug why --url http://b VCPU:4", {"groups": VCPU}),
    Example("a flavor", "berth candidates m1.large", {"flavor": "m1.large"}),
    Example(
        "a flavor and hosts",
        "berth why --flavor m1 --host-in cn1 --host-in cn2 --tolerate fw",
        {"flavor": "m1", "host": {"in": ["cn1", "cn2"]}, "tolerate": ["fw"]},
    ),
    Example(
        "conditions",
        "berth why VCPU=4 --required A,!B --required in:C,D --required '!in:E,F' "
        "--member-of zone=z1 --in-tree cn1",
        {
            "groups": {
                "": {
                    "resources": {"VCPU": 4},
                    "required": ["A", "!B", ["C", "D"], "!E", "!F"],
                    "member_of": ["zone=z1"],
                    "in_tree": ["cn1"],
                }
            }
        },
    ),
    Example(
        "groups, continued",
        "berth why VCPU=4 \\\n  --group '_A VGPU=1 required=CUSTOM_X' \\\n"
        '  --group "_B VGPU=1 split=VGPU:parts=3" --apart _A,_B@HW_NUMA_ROOT',
        {
            "groups": {
                **VCPU,
                "_A": {"resources": {"VGPU": 1}, "required": ["CUSTOM_X"]},
                "_B": {"resources": {"VGPU": 1}, "split": {"VGPU": {"parts": 3}}},
            },
            "apart": [{"groups": ["_A", "_B"], "at": "HW_NUMA_ROOT"}],
        },
    ),
    Example(
        "JSON for a command",
        'printf %s \'{"groups": {"": {"resources": {"VCPU": 4}}}}\' | berth why --request -',
        {"groups": VCPU},
    ),
    Example("JSON", '{"request": {"groups": {"": {"resources": {"VCPU": 4}}}}}', {"groups": VCPU}),
    Example(
        "JSON with a query and drains",
        '{"request": {"query": "resources=VCPU:4", "tolerate": ["fw"]}}',
        {"query": "resources=VCPU:4", "tolerate": ["fw"]},
    ),
)

#: nova's own words for a request that placement has refused.
GROUPS_OF_NOVA: Final = Example(
    "nova's groups",
    f"{STAMP} ERROR nova.scheduler.client.report [req-1] Failed to retrieve allocation candidates "
    f"from placement API for filters: RequestGroup(aggregates=[['{AGGREGATES[0]}','{AGGREGATES[1]}'"
    f"],['{AGGREGATES[1]}']],forbidden_aggregates=set(['{AGGREGATES[0]}']),forbidden_traits=set(["
    f"'CUSTOM_B']),in_tree={AGGREGATES[0]},provider_uuids=[],requester_id=None,required_traits=set("
    "['CUSTOM_C','CUSTOM_A']),resources={DISK_GB=2,VCPU=4},use_same_provider=False), RequestGroup("
    "aggregates=[],forbidden_aggregates=set([]),forbidden_traits=set([]),in_tree=None,"
    "provider_uuids=[],requester_id='1',required_traits=set([]),resources={VGPU=1},"
    "use_same_provider=True), RequestGroup(aggregates=[],forbidden_aggregates=set([]),"
    "forbidden_traits=set([]),in_tree=None,provider_uuids=[],requester_id=None,"
    "required_traits=set([]),resources={FPGA=1},use_same_provider=True)\nGot 500: Internal error",
    {
        "query": "resources=DISK_GB:2,VCPU:4&required=CUSTOM_A,CUSTOM_C,!CUSTOM_B"
        f"&member_of=in:{AGGREGATES[0]},{AGGREGATES[1]}&member_of=in:{AGGREGATES[1]}"
        f"&member_of=!in:{AGGREGATES[0]}&in_tree={AGGREGATES[0]}"
        "&resources1=VGPU:1&resources2=FPGA:1&group_policy=none"
    },
)

EXAMPLES: Final = (
    GROUPS_OF_NOVA,
    *(
        Example(name, text, {"query": query})
        for query, label in ((ENCODED, "encoded"), (DECODED, "decoded"), (GROUPS, "groups"))
        for name, text in _queries(query, label)
    ),
    *COMMANDS,
)

#: Texts without a request, and words of the refusal.
UNREADABLE: Final = (
    ("hello there", "There is no query in it"),
    ('10.0.0.1 "GET /placement/usages?project_id=x" status: 200', "There is no query in it"),
    ("berth why 'VCPU=4", "A quote is not closed"),
    ("berth why --nearest 3", "asks for nothing"),
    ("berth why --request body.json", "body.json"),
    ("berth why VCPU=4 --colour red", "--colour"),
    ("berth why VCPU=x", "VCPU=x"),
    ("berth why m1 m2", "m2"),
    ('{"groups": ', "There is no query in it"),
)

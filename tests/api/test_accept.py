# SPDX-License-Identifier: Apache-2.0
"""The effect of `Accept` on responses and errors.

Source: rest-api.md 1.4.
"""

import json

import pytest

from tests.api.answers import assert_refused
from tests.api.wire import Rule, rules
from tests.api.worlds import NOBODY, new_uuid
from tests.client import Client

JSON = "application/json"
HTML = "text/html; charset=UTF-8"
PLAIN = "text/plain; charset=UTF-8"

TIE = pytest.mark.deliberately_different("berth answers JSON when HTML and JSON match equally well")

#: GET routes that do not look at `Accept` are not among these.
CHECKED = [
    "/resource_providers",
    "/resource_providers/{uuid}",
    "/resource_providers/{uuid}/inventories",
    "/resource_providers/{uuid}/inventories/VCPU",
    "/resource_providers/{uuid}/usages",
    "/resource_providers/{uuid}/allocations",
    "/resource_providers/{uuid}/aggregates",
    "/resource_providers/{uuid}/traits",
    "/traits",
    "/resource_classes",
    "/resource_classes/VCPU",
    "/allocations/{uuid}",
    "/allocation_candidates?resources=VCPU:1",
    "/usages?project_id=x",
]

#: What a client accepts, and the forms of an answer and of a refusal; no answer is 406.
ACCEPTED = [
    (None, JSON, JSON),
    ("", JSON, JSON),
    ("*/*", JSON, JSON),
    ("application/*", JSON, JSON),
    ("text/html;q=0.5,application/json", JSON, JSON),
    ("text/html,application/json;q=0.1", JSON, HTML),
    ("text/html,application/xml;q=0.9,*/*;q=0.8", JSON, HTML),
    pytest.param("*/*;q=0.8", JSON, JSON, marks=TIE),
    pytest.param("application/json,text/html", JSON, JSON, marks=TIE),
    pytest.param("application/json, application/json;q=0", JSON, JSON, marks=TIE),
    pytest.param("garbage", JSON, JSON, marks=TIE),
    ("text/html", None, HTML),
    ("text/plain", None, PLAIN),
    ("application/xml", None, PLAIN),
    ("application/json;q=0", None, PLAIN),
    ("application/json; charset=utf-8", None, PLAIN),
]


@pytest.mark.parametrize(("accept", "answered", "refused"), ACCEPTED)
def test_the_form_follows_accept(
    api: Client, accept: str | None, answered: str | None, refused: str
) -> None:
    """A GET is answered in JSON or refused, before policy; a refusal is in HTML or JSON, whichever
    matches better, and in plain text if the client accepts neither."""
    headers = {"Accept": accept}
    answer = api.get("/resource_classes", headers=headers)
    if answered:
        assert (answer.status, answer.headers["Content-Type"]) == (200, answered)
    else:
        for path in CHECKED:
            answer = api.get(path.format(uuid=new_uuid()), headers={**NOBODY, **headers})
            assert (answer.status, answer.headers["Content-Type"]) == (406, refused)
            assert "Only application/json is provided" in answer.text
    for path in ("/no/such/path", "/traits/CUSTOM_NO_SUCH_TRAIT"):
        answer = api.get(path, headers=headers)
        assert (answer.status, answer.headers["Content-Type"]) == (404, refused)
        if refused == JSON:
            assert_refused(answer, 404)
        else:
            assert "Not Found" in answer.text
            with pytest.raises(json.JSONDecodeError):
                json.loads(answer.text)


@rules(
    """
    a write does not look at Accept
        > Accept: text/plain
        POST /resource_providers {name: $name, uuid: $new} => 200 {uuid: $new, ...}
        < Content-Type: application/json
        > Accept: text/plain
        PUT $new {name: $other} => 200 {uuid: $new, ...}
        < Content-Type: application/json
        > Accept: text/plain
        DELETE $new => 204
    asking for one trait does not look at Accept, because there is nothing to negotiate
        > Accept: text/plain
        GET /traits/$1 => $2
        | HW_CPU_X86_AVX2 | 204
        | CUSTOM_NOT_THERE | 404
    """
)
def test_writes(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)

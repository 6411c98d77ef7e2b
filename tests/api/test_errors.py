# SPDX-License-Identifier: Apache-2.0
"""The form of errors: their fields, their codes, and that a message is one line of plain text.

Source: rest-api.md 1.11, 1.12 and 17. The messages are in `test_error_sentences.py`.
"""

import pytest

from tests.api.answers import DUPLICATE_NAME, assert_refused, detail
from tests.api.versions import at_least
from tests.api.worlds import NOBODY, NOWHERE, new_name, provider
from tests.client import Client, Response


def refusals(api: Client, version: str = "1.39") -> dict[int, Response]:
    """An error of each status that does not depend on the state of the service."""
    return {
        400: api.post("/resource_providers", json={}, version=version),
        403: api.get("/resource_providers", headers=NOBODY, version=version),
        404: api.get(f"/resource_providers/{NOWHERE}", version=version),
        405: api.request("PATCH", "/resource_providers", version=version),
        409: api.post(
            "/resource_providers", json={"name": new_name(), "uuid": provider(api)}, version=version
        ),
        415: api.post("/resource_providers", version=version),
    }


@pytest.mark.parametrize("version", ["1.0", "1.22", "1.23", "1.39"])
def test_a_refusal_has_a_code_from_1_23(api: Client, version: str) -> None:
    """At every status; it has no other fields, and its message stands on the last line."""
    fields = {"status", "title", "detail", "request_id"}
    for status, answer in refusals(api, version).items():
        code = DUPLICATE_NAME if status == 409 else "placement.undefined_code"
        assert_refused(answer, status, code=code, version=version)
        assert set(answer.json) == {"errors"}
        assert set(answer.error) == fields | ({"code"} if at_least(version, "1.23") else set())
        sentence, message = answer.detail.split("\n\n")
        assert sentence.strip()
        assert "\n" not in message
    assert NOWHERE in detail(refusals(api, version)[404])


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("line\nbreak", "line break"),
        ("carriage\r\nreturn", "carriage return"),
        ("a\r\nb\tc", "a b\tc"),
        ("a < b > c", "a  c"),
        ("a<script>b", "ab"),
        ("<br>x", "\nx"),
        ("<!-- y --> z", " y  z"),
        ("<a<br>b>", ""),
        ("x <", "x <"),
        ("{error}", "{error}"),
    ],
)
def test_a_message_is_one_line_without_tags(api: Client, name: str, shown: str) -> None:
    """As webob makes it; the name itself is stored unchanged."""
    name = new_name(name)
    uuid = provider(api, name=name)
    answer = api.post("/resource_providers", json={"name": name})
    message = f"Conflicting resource provider name: {shown}-{name.rpartition('-')[2]} already"
    assert_refused(answer, 409, f"\n\n {message}", code=DUPLICATE_NAME)
    assert api.get(f"/resource_providers/{uuid}").json["name"] == name
    page = api.post("/resource_providers", json={"name": name}, headers={"Accept": "text/html"})
    assert (page.status, "<script>" in page.text) == (409, False)

# SPDX-License-Identifier: Apache-2.0
"""What a reader of the fleet may do on the page, and what is greyed. Source: page.md, view 5."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from uuid import uuid4

import pytest

from berth.cli.policy import members_file
from tests.client import Client
from tests.e2e.serving import Service
from tests.page.browser import Browser
from tests.page.services import create_hosts, create_token, serving_page

#: The path of each list, and what a reader cannot do there.
LISTS = {"drains": "drains", "leases": "leases", "flavors": "flavors", "labels": "labels"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A service with something in each list, and people with other rights."""
    home = tmp_path_factory.mktemp("rights")
    tokens = home / "tokens"
    admin, auditor = (create_token(tokens, role, role=role) for role in ("admin", "auditor"))
    member = create_token(tokens, "alice", role="member", project="web")
    (home / "policy.d").mkdir()
    (home / "policy.d" / "members.yaml").write_text(members_file())
    policies = f"[oslo_policy]\npolicy_dirs = {home / 'policy.d'}\n"
    api = f"auth_strategy = token\ntoken_file = {tokens}"
    with serving_page(home, api=api, more=policies) as service:
        fill(Client.at(service.url).acting_as({"X-Auth-Token": admin}))
        yield Guarded(service, auditor, member)


class Guarded(NamedTuple):
    """A service, and the tokens of an auditor and of a member of the project web."""

    service: Service
    auditor: str
    member: str


def fill(api: Client) -> None:
    """Two hosts, two consumers with leases, a flavor, a drain and an aggregate."""
    create_hosts(api, "cn1", "cn2")
    (host,) = api.get("/resource_providers?name=cn1").json["resource_providers"]
    consumer, foreign, aggregate = (str(uuid4()) for _ in range(3))
    claim = {
        "allocations": {host["uuid"]: {"resources": {"VCPU": 1}}},
        "project_id": "web",
        "user_id": "alice",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    named = {key: claim[key] for key in ("allocations", "user_id", "consumer_type")}
    flavor = {"request": {"groups": {"": {"resources": {"VCPU": 4}}}}}
    for path, body in (
        (f"/allocations/{consumer}", claim),
        (f"/allocations/{foreign}", {**claim, "project_id": "db"}),
        (f"/berth/v1/leases/{foreign}", {"seconds": 600}),
        ("/berth/v1/consumers/web/job-17", named),
        (f"/berth/v1/leases/{consumer}", {"seconds": 600}),
        ("/berth/v1/flavors/medium", flavor),
        ("/berth/v1/drains/fans", {"providers": ["cn2"]}),
        (f"/berth/v1/aggregates/{aggregate}", {"labels": {"zone": "z1"}}),
    ):
        answer = api.put(path, json=body)
        assert answer.status in (200, 201, 204), answer.text


def test_a_reader_sees_everything_and_changes_nothing(browser: Browser, guarded: Guarded) -> None:
    """Each list says why, its buttons and its form are greyed, and nothing is refused on the way:
    the page knows before. Questions are answered."""
    browser.open(guarded.service.url)
    sign_in(browser, guarded.auditor)
    browser.find(".lead", "2 hosts")
    for view, things in LISTS.items():
        browser.visit(f"#/{view}")
        said = browser.find(".refusal", f"You cannot change {things}.").text
        assert "admin" in said and "auditor" in said, said
        assert browser.find("tbody tr")
        buttons = browser.all("tbody button, form button")
        assert buttons and not any(button.is_enabled() for button in buttons), view
    browser.visit("#/drains/fans")
    browser.find(".refusal", "You cannot do this.")
    assert not browser.find("button", "End…").is_enabled()
    browser.visit('#/ask?request={"groups":{"":{"resources":{"VCPU":8}}}}')
    browser.find(".verdict.fails", "No host fits now")
    browser.visit("#/capacity?drain=cn1")
    browser.find("tbody", "medium")
    assert browser.table("How many more fit") == [["medium", "1", "0", "−1", "1", "0"]]


def sign_in(browser: Browser, token: str) -> None:
    """Sign in."""
    browser.write("Token", token)
    browser.click(".sign-in button")


def test_a_member_of_a_project_asks_and_sees_what_is_theirs(
    browser: Browser, guarded: Guarded
) -> None:
    """Without the fleet, Ask is the first view. Each view says in a sentence what is missing, and
    nothing is asked for that would be refused: the browser's log would have each 403."""
    browser.open(guarded.service.url)
    sign_in(browser, guarded.member)
    browser.find("main .refusal", "You cannot see the fleet: there is no map")
    assert browser.find("nav a[aria-current]").text == "Ask"
    browser.visit('#/ask?request={"groups":{"":{"resources":{"VCPU":8}}}}')
    browser.find(".verdict.fails", "No host fits now")
    assert browser.table("Constraints") == [["not drained", "1", "1"], ["VCPU 8", "1", "0"]]
    for view, missing in (("fleet", "the fleet"), ("labels", "labels"), ("hosts/cn1", "the fleet")):
        browser.visit(f"#/{view}")
        browser.find("main .refusal", f"You cannot see {missing}. It needs the role")
    for view in ("drains", "flavors"):
        browser.visit(f"#/{view}")
        browser.find("main .refusal", f"You cannot see {view}. It needs the role")
    browser.visit("#/capacity")
    browser.find("main .refusal", "You cannot see the fleet")
    assert browser.table("How many more fit")[0][0] == "medium"
    browser.visit("#/leases")
    browser.find("main", "You see the leases of your project web.")
    ((_, project, *_),) = browser.table("Leases")
    assert project == "web"
    browser.press("/", *"job-1")
    browser.click(".result", "web/job-17")
    browser.find("dd", "job-17")
    assert [row[0] for row in browser.table("What it holds")] == ["cn1"]
    browser.absent(".light")

# SPDX-License-Identifier: Apache-2.0
"""The page reads a query of the old API as the request that has the same candidates, and writes it
back; the numbers of an answer are the API's. Source: page.md, view 3."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import pytest

from tests.candidates.strategies import Dice, fleet, query, request
from tests.client import Client
from tests.e2e.serving import Service
from tests.effort import SEED
from tests.page.browser import Browser
from tests.queries import query_text
from tests.world_over_http import built_over_http
from tests.worlds import provider_uuid, world

QUERIES = 40

#: What the page makes of queries: the request, the query string and the command line of each.
READ = """
    const { asCommand, asQuery, parse } = await import("./wanted.js");
    const names = { labels: new Map(), providers: new Map() };
    const headers = { "X-Auth-Token": "admin", "Content-Type": "application/json" };
    const api = { post: async (path, body) => {
        const sent = { method: "POST", headers, body: JSON.stringify(body) };
        const answer = await fetch(`/${path}`, sent);
        if (!answer.ok) throw new Error(await answer.text());
        return await answer.json();
    } };
    const read = [];
    for (const text of arguments[0]) {
        const wanted = await parse(api, text).catch(() => null);
        read.push(wanted && { wanted, query: asQuery(wanted, names), command: asCommand(wanted) });
    }
    return read;
"""


def test_a_query_and_what_the_page_reads_have_the_same_candidates(
    browser: Browser, plain: Service
) -> None:
    """Of random queries of 1.39 to a random fleet: as the request, as the query string that the
    page writes, and as the request that the service reads from the command line."""
    api, dice = Client.at(plain.url), Dice(SEED)
    drawn = fleet(dice)
    with built_over_http(drawn, api), built_over_http(world("lone  VCPU=8"), api):
        texts = [drawn.resolve(query_text(query(dice, drawn))) for _ in range(QUERIES)]
        # One provider, which could serve both groups, were they not to be apart.
        at = provider_uuid("lone")
        texts += [
            f"resources_A=VCPU:1&in_tree_A={at}&resources_B=VCPU:1&in_tree_B={at}&group_policy={how}"
            for how in ("isolate", "none")
        ]
        browser.open(plain.url)
        read = browser.script(READ, texts)
        for text, made in zip(texts, read, strict=True):
            due = candidates(api, {"query": text})
            if made is None:
                assert due is None, (SEED, text)
                continue
            asked = [made["wanted"], {"query": made["command"]}]
            asked += [{"query": made["query"]}] if made["query"] else []
            for wanted in asked:
                assert candidates(api, wanted) == due, (SEED, text, wanted)
        read_at_all = [made for made in read if made is not None]
        assert any(made["query"] for made in read_at_all)
        assert any("groups" in made["wanted"] for made in read_at_all)


#: What the page makes of a request: a command line; without two traits; with another name.
EDIT = """
    const { asCommand, renamed, without } = await import("./wanted.js");
    const traits = ["/groups//required/0", "/groups//required/1"];
    const [wanted] = arguments;
    return [asCommand(wanted), without(wanted, traits), renamed(wanted, "CUSTOM_C", "CUSTOM_D")];
"""


def test_a_request_is_changed_where_it_is_meant(browser: Browser, demo: Service) -> None:
    """Whatever name a host has, the command line has it as one word; other traits stay; a name is
    another one where it is forbidden, too."""
    name, traits = "o'neill; touch x", ["CUSTOM_A", "CUSTOM_B", "!CUSTOM_C"]
    own = {"resources": {"VCPU": 1}, "required": traits}
    browser.open(demo.url)
    command, less, other = browser.script(EDIT, {"groups": {"": own}, "host": {"in": [name]}})
    assert shlex.split(command)[-2:] == ["--host-in", name]
    assert less["groups"][""]["required"] == ["!CUSTOM_C"]
    assert other["groups"][""]["required"] == ["CUSTOM_A", "CUSTOM_B", "!CUSTOM_D"]


def candidates(api: Client, wanted: Any) -> Sequence[str] | None:
    """The candidates of a request, in no order; None if it is refused."""
    answer = api.post("/berth/v1/candidates", json={"request": wanted, "limit": 1000})
    if answer.status == 400:
        return None
    return sorted(
        json.dumps([each["allocations"], groups(each)], sort_keys=True)
        for each in answer.json["candidates"]
    )


def groups(candidate: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
    """The providers of each group; those of one stand in no order."""
    return {name: sorted(uuids) for name, uuids in candidate["mappings"].items()}


@pytest.mark.parametrize("number", range(2))
def test_the_legend_counts_what_the_api_counts(
    browser: Browser, plain: Service, number: int
) -> None:
    """Of random requests to a random fleet: the hosts of each colour, in the order of the
    constraints."""
    seed, own = SEED + number, Client.at(plain.url)
    dice = Dice(seed)
    drawn = fleet(dice)
    with built_over_http(drawn, own):
        browser.open(plain.url)
        browser.find(".light", "Live")
        for _ in range(5):
            wanted = request(dice, drawn)
            browser.visit(f"#/ask?request={quote(json.dumps(wanted))}")
            browser.until(partial(is_written, browser, wanted), f"{wanted} in the form")
            browser.find(".asking .hint", "As of")
            # As the page writes it: in a JavaScript object, a group "1" is the first.
            body = {"request": written(browser), "paint": True}
            answer = own.post("/berth/v1/explain", json=body)
            assert answer.status == 200, (wanted, answer.text)
            shown = [int(row[1]) for row in browser.table("Hosts by colour")]
            assert shown == counted(answer.json), (seed, wanted)


def is_written(browser: Browser, wanted: Any) -> bool | None:
    """Whether the form has this request."""
    return written(browser) == wanted or None


def written(browser: Browser) -> Any:
    """The request that the form has."""
    return json.loads(browser.find("[data-at=json]").get_attribute("value") or "null")


def counted(explained: Mapping[str, Any]) -> list[int]:
    """The hosts that fit, and those that fail each constraint first; without zeros."""
    lefts = [explained["hosts"]["total"], *(stage["left"] for stage in explained["stages"])]
    failing = [before - after for before, after in pairwise(lefts)]
    return [count for count in (explained["hosts"]["fit"], *failing) if count]

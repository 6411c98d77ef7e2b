# SPDX-License-Identifier: Apache-2.0
"""The page reads a query of the old API as the request that has the same candidates, and writes it
back. Source: page.md, view 3."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from tests.candidates.strategies import Dice, fleet, query
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

# SPDX-License-Identifier: Apache-2.0
"""The documentation names everything that exists, and nothing that does not."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from oslo_config import cfg

from berth.api.berth_v1.codes import CODES
from berth.api.namespaces import BERTH
from berth.api.policy import list_rules
from berth.cli.failure import ExitCode
from berth.config.options import register_logging, register_opts
from berth.hosts import agent_config
from berth.hosts.agent import Agent, Orders, Woken
from berth.hosts.agent_report import AgentReport
from berth.hosts.plan import Plan
from berth.hosts.tracker import Node
from berth.model.bounds import BOUNDS
from tests.client import Client
from tests.docs.pages import DOCS, FENCE, PAGES, ROOT, anchors, links, published, section
from tests.exposed import Exposed, scrape
from tests.hosts.test_requests import ON_BERTH, ON_PLACEMENT, ORIGINAL
from tests.routes import VERSIONS

AGENT = published("agent.md")

#: Options of every ConfigOpts, described in the text instead of the tables.
OF_OSLO_CONFIG = {"config_file", "config_dir", "config_source", "shell_completion"}


#: Words that CONTRIBUTING.md replaces, and openings that say nothing.
AVOIDED = re.compile(
    r"\b(anew|mend(s|ed|ing)?|the original('s)?|(told|held|hold|tells) of|nobody|somebody"
    r"|to look only)\b|After this page",
    re.IGNORECASE,
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_whole(page: Path) -> None:
    """Links lead to a file or heading of the tree, files that are named by their path exist (but
    for what `make docs` builds), the rows of a table have as many cells as its header, and words
    are common ones outside tables of words and output (CONTRIBUTING.md, Language)."""
    text = page.read_text()
    dead = []
    for target in links(text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, fragment = target.partition("#")
        file = page.parent / name if name else page
        if not file.exists() or (fragment and fragment not in anchors(file.read_text())):
            dead.append(target)
    assert not dead
    text = FENCE.sub("", text)
    tree = r"`((?:berth|bench|compare|contrib|docs(?!/_build)|tests|tools)/[\w./-]+)`"
    assert [path for path in re.findall(tree, text) if not (ROOT / path).exists()] == []
    for table in re.findall(r"(?:^[ ]*\|.*\n?)+", text, re.MULTILINE):
        head, *rest = (line.strip() for line in table.splitlines())
        assert rest, head
        assert re.fullmatch(r"[|\-: ]+", rest[0]), head
        cells = {len(re.findall(r"(?<!\\)\|", line)) for line in (head, *rest)}
        assert len(cells) == 1, head
    if page.name == "CONTRIBUTING.md":
        text = re.sub(r"^\|.*\n", "", text, flags=re.MULTILINE)
    assert [match[0] for match in AVOIDED.finditer(text)] == []


def test_every_page_is_reached_from_the_first() -> None:
    """Every page is in a table of contents."""
    front = (DOCS / "index.md").read_text() + (DOCS / "operating.md").read_text()
    pages = [page for page in PAGES if DOCS in page.parents and page.name != "index.md"]
    paths = [str(page.relative_to(DOCS).with_suffix("")) for page in pages]
    assert [path for path in paths if f"\n{path}\n" not in front] == []


def test_microversions_and_error_codes_are_on_the_api_page() -> None:
    """In order; every code in the sources."""
    page = published("api.md")
    rows = re.findall(r"^\| (1\.\d+) \| [^|]+ \|$", page, re.MULTILINE)
    assert rows[-len(VERSIONS) :] == VERSIONS
    sources = "".join(
        path.read_text()
        for part in ("api", "edge")
        for path in (ROOT / "berth" / part).rglob("*.py")
    )
    # The rules of policy look alike but for their colons.
    used = set(re.findall(r'"(placement(?:\.[a-z_]+)+)"', sources)) - {"placement.requestlog"}
    assert used <= set(re.findall(r"^\| `(placement\.[a-z_.]+)` \|", page, re.MULTILINE))


def test_berths_own_api_is_on_its_page_alone() -> None:
    """Codes, operations and bounds; the page of the other routes keeps the two apart."""
    page = published("berth-api.md")
    codes = page.partition("\n## Errors\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"`((?:berth|placement)\.[a-z_.]+)`", codes)) == CODES.all
    for operation in BERTH.operations:
        assert f"#### `{operation.method} {BERTH.path_of(operation)}`" in page
    for bound in BOUNDS:
        assert f"| `{bound}` |" in page
    assert "| `/berth/v1" not in published("api.md")


def test_every_option_is_in_the_reference() -> None:
    """Including those of libraries, under the heading of their group."""
    conf = cfg.ConfigOpts()
    register_opts(conf)
    register_logging(conf)
    page = published("operating/options.md")
    sections = dict(re.findall(r"^## `\[(\w+)\]`\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL))
    conf([], default_config_files=[], default_config_dirs=[])
    for name in conf:
        value = conf[name]
        options = value if isinstance(value, cfg.ConfigOpts.GroupAttr) else {name: value}
        group = name if isinstance(value, cfg.ConfigOpts.GroupAttr) else "DEFAULT"
        wanted = [f"| `{option}` |" for option in options if option not in OF_OSLO_CONFIG]
        assert [option for option in wanted if option not in sections[group]] == []


def test_policy_rules_and_exit_codes_are_on_their_pages() -> None:
    """With the defaults; scripts may rely on the codes."""
    page = published("operating/authorization.md")
    for rule in list_rules():
        assert f"| `{rule.name}` | `{rule.check_str}` |" in page
    page = published("command-line.md")
    for code in ExitCode:
        assert f"| {code.value} | `{code.name}` |" in page


def test_every_make_target_is_described() -> None:
    """On some page."""
    targets = re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    text = "".join(page.read_text() for page in PAGES)
    assert [target for target in targets if f"make {target}" not in text] == ["help"]


def test_nothing_is_fetched_from_elsewhere() -> None:
    """Images are files of the site; no page loads scripts, styles or fonts from elsewhere."""
    for page in PAGES:
        assert not re.search(r"!\[[^\]]*\]\(https?:|<(script|img|link)\b", page.read_text())
    for picture in (DOCS / "images").rglob("*.svg"):
        assert not re.search(r'(href|src)="|@import|url\((?!#)', picture.read_text())


def test_change_notes_are_named_by_their_kind() -> None:
    """`<slug>.<added|changed|fixed|removed>.md`, and not empty."""
    notes = [note for note in (ROOT / "changes").iterdir() if note.name != "README.md"]
    for note in notes:
        assert re.fullmatch(r"[a-z0-9-]+\.(added|changed|fixed|removed)\.md", note.name)
        assert note.read_text().strip()


def labelled(page: str) -> dict[str, set[str]]:
    """The metrics that a page lists, each with its labels."""
    rows = re.findall(r"^\| `(berth_\w+)` \|([^|]*)\|", page, re.MULTILINE)
    return {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}


def test_every_metric_of_the_service_is_on_its_page(client: Client) -> None:
    """By the name that queries use, with its labels, and no others."""
    documented = labelled(published("metrics.md"))
    client.get("/resource_providers/nowhere")
    request = {"groups": {"": {"resources": {"VCPU": 1}}}}
    assert client.put("/berth/v1/flavors/small", json={"request": request}).status == 201
    told = scrape(client)
    assert set(documented) == told.names()
    for name, labels in documented.items():
        series = told.series(name) or told.series(f"{name}_count")
        # A single process without shared files has no pid on its gauges.
        assert all(set(one) in (labels, labels - {"pid"}) for one in series), name


class Done:
    """Every report is done."""

    def report(self, node: Node, *, startup: bool) -> Plan:
        """Nothing differs."""
        return Plan()

    def is_reshape_pending(self, node: Node) -> bool:
        """It is not."""
        return False


def test_every_metric_of_the_agent_is_on_its_page() -> None:
    """With its labels, and no others."""
    agent = Agent(
        lambda: Orders(Done(), [Node("u", "cn1")], interval_s=1, start_patience_s=0),
        wait=lambda seconds: Woken.TO_STOP,
        clock=lambda: 0.0,
        now=lambda: 0.0,
        rng=Random(1),
    )
    agent.start()
    _, body = AgentReport(agent, Counter(GET=1)).metrics("")
    told, documented = Exposed(body.decode()), labelled(AGENT)
    assert set(documented) == told.names()
    for name, labels in documented.items():
        series = told.series(name) or told.series(f"{name}_count")
        assert series and all(set(one) == labels for one in series), name


def test_every_key_of_the_agent_is_on_its_page() -> None:
    """And no others; and the requests as tests/hosts/test_requests.py counts them."""
    of_sections = {
        "service": agent_config.ServiceAccess.__struct_fields__,
        "node": agent_config.NodeEntry.__struct_fields__,
        "metrics": agent_config.MetricsEndpoint.__struct_fields__,
    }
    keys = {
        f"{key}.{inner}" if inner else key
        for key in agent_config.AgentFile.__struct_encode_fields__
        for inner in of_sections.get(key, ("",))
    }
    documented = re.findall(r"^\| `([\w.]+)` \|", section(AGENT, "agent.yaml"), re.MULTILINE)
    assert set(documented) == keys
    rows = re.findall(r"^\|" + r" (\d+) \|" * 7 + "$", AGENT, re.MULTILINE)
    counted = []
    for size, original in ORIGINAL.items():
        ours = ON_PLACEMENT[size]
        counted.append((*size, ON_BERTH[0], ours[0], original[0], ours[1], original[1]))
    assert rows == [tuple(map(str, row)) for row in counted]

# SPDX-License-Identifier: Apache-2.0
"""The documentation names everything there is, and nothing that is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from oslo_config import cfg

from berth.api.policy import list_rules
from berth.cli.exit_codes import ExitCode
from berth.config.options import register_logging, register_opts
from tests.docs.pages import DOCS, FENCE, PAGES, ROOT, anchors, links, published
from tests.routes import ROUTES, VERSIONS

#: What every ConfigOpts has, to find the rest: described in the text above the tables.
OF_OSLO_CONFIG = {"config_file", "config_dir", "config_source", "shell_completion"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    """To a file of the tree, and to a heading in it where the link names one."""
    dead = []
    for target in links(page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, fragment = target.partition("#")
        file = page.parent / name if name else page
        if not file.exists() or (fragment and fragment not in anchors(file.read_text())):
            dead.append(target)
    assert not dead


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_are_whole(page: Path) -> None:
    """Every row has the cells of its head; a row after a blank line would be no table at all."""
    text = FENCE.sub("", page.read_text())
    for table in re.findall(r"(?:^[ ]*\|.*\n?)+", text, re.MULTILINE):
        head, *rest = (line.strip() for line in table.splitlines())
        assert rest, head
        assert re.fullmatch(r"[|\-: ]+", rest[0]), head
        cells = {len(re.findall(r"(?<!\\)\|", line)) for line in (head, *rest)}
        assert len(cells) == 1, head


def test_every_page_is_reached_from_the_first() -> None:
    """A page that is in no table of contents is not found."""
    front = (DOCS / "index.md").read_text()
    pages = [*DOCS.glob("*.md"), *DOCS.glob("how-to/*.md")]
    missing = [page.name for page in pages if page.stem not in front]
    assert not missing


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.template)
def test_every_route_is_on_the_api_page(route: object) -> None:
    """With its methods, and the microversion in which it began."""
    page = published("api.md")
    template, methods, since = (getattr(route, name) for name in ("template", "methods", "since"))
    (row,) = re.findall(rf"^\| `{re.escape(template)}` \|(.*)\|(.*)\|$", page, re.MULTILINE)
    assert {method.strip() for method in row[0].split(",")} == set(methods)
    assert row[1].split(";")[0].strip() == since


def test_every_microversion_is_on_the_api_page() -> None:
    """In the order in which they came."""
    page = published("api.md")
    assert (
        re.findall(r"^\| (1\.\d+) \| [^|]+ \|$", page, re.MULTILINE)[-len(VERSIONS) :] == VERSIONS
    )


def test_every_error_code_is_on_the_api_page() -> None:
    """The codes that the sources name, and no others."""
    sources = "".join(path.read_text() for path in (ROOT / "berth" / "api").rglob("*.py"))
    # The rules of policy look alike but for their colons.
    used = set(re.findall(r'"(placement(?:\.[a-z_]+)+)"', sources)) - {"placement.requestlog"}
    documented = set(
        re.findall(r"^\| `(placement\.[a-z_.]+)` \|", published("api.md"), re.MULTILINE)
    )
    assert used <= documented


def test_every_option_is_on_the_operating_page() -> None:
    """Those of the libraries too, under the heading of their group."""
    conf = cfg.ConfigOpts()
    register_opts(conf)
    register_logging(conf)
    (_, _, page) = published("operating.md").partition("## Every option")
    sections = dict(
        re.findall(r"^### `\[(\w+)\]`\n(.*?)(?=^###|\Z)", page, re.MULTILINE | re.DOTALL)
    )
    conf([], default_config_files=[], default_config_dirs=[])
    for name in conf:
        value = conf[name]
        options = value if isinstance(value, cfg.ConfigOpts.GroupAttr) else {name: value}
        group = name if isinstance(value, cfg.ConfigOpts.GroupAttr) else "DEFAULT"
        wanted = [f"| `{option}` |" for option in options if option not in OF_OSLO_CONFIG]
        assert [option for option in wanted if option not in sections[group]] == []


def test_every_policy_rule_is_on_the_operating_page() -> None:
    """With its default."""
    page = published("operating.md")
    for rule in list_rules():
        assert f"| `{rule.name}` | `{rule.check_str}` |" in page


@pytest.mark.parametrize("command", ["berth serve", "berth db upgrade", "berth db version"])
def test_every_command_is_on_the_command_line_page(command: str) -> None:
    """The page is made from the commands; these three are those that the issue asked for."""
    assert f"## `{command}`" in published("command-line.md")


def test_every_exit_code_is_on_the_command_line_page() -> None:
    """Scripts may rely on them."""
    page = published("command-line.md")
    for code in ExitCode:
        assert f"| {code.value} | `{code.name}` |" in page


def test_every_make_target_is_described() -> None:
    """In the page for those who change berth, or where one starts."""
    targets = re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    text = "".join(page.read_text() for page in PAGES)
    assert [target for target in targets if f"make {target}" not in text] == ["help"]


def test_nothing_is_fetched_from_elsewhere() -> None:
    """Pictures are files of the site; nothing asks for a script, a style or a font of others."""
    for page in PAGES:
        assert not re.search(r"!\[[^\]]*\]\(https?:|<(script|img|link)\b", page.read_text())
    for picture in (DOCS / "images").iterdir():
        assert not re.search(r'(href|src)="|@import|url\((?!#)', picture.read_text())


def test_change_notes_are_named_by_their_kind() -> None:
    """`<slug>.<added|changed|fixed|removed>.md`, and not empty."""
    notes = [note for note in (ROOT / "changes").iterdir() if note.name != "README.md"]
    for note in notes:
        assert re.fullmatch(r"[a-z0-9-]+\.(added|changed|fixed|removed)\.md", note.name)
        assert note.read_text().strip()

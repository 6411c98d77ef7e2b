# SPDX-License-Identifier: Apache-2.0
"""The documentation names everything that exists, and nothing that does not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from oslo_config import cfg

from berth.api.namespaces import BERTH
from berth.api.operations.berth_v1.codes import CODES
from berth.api.policy import list_rules
from berth.cli.exit_codes import ExitCode
from berth.config.options import register_logging, register_opts
from berth.model.bounds import BOUNDS
from tests.docs.pages import DOCS, FENCE, PAGES, ROOT, anchors, links, published
from tests.routes import VERSIONS

#: Options of every ConfigOpts, described in the text instead of the tables.
OF_OSLO_CONFIG = {"config_file", "config_dir", "config_source", "shell_completion"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    """To a file of the tree, and to a heading in it if the link names one."""
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
    """Every row has as many cells as its header; a row after a blank line is not a table."""
    text = FENCE.sub("", page.read_text())
    for table in re.findall(r"(?:^[ ]*\|.*\n?)+", text, re.MULTILINE):
        head, *rest = (line.strip() for line in table.splitlines())
        assert rest, head
        assert re.fullmatch(r"[|\-: ]+", rest[0]), head
        cells = {len(re.findall(r"(?<!\\)\|", line)) for line in (head, *rest)}
        assert len(cells) == 1, head


def test_every_page_is_reached_from_the_first() -> None:
    """Every page is in a table of contents."""
    front = (DOCS / "index.md").read_text() + (DOCS / "operating.md").read_text()
    pages = [page for page in PAGES if DOCS in page.parents and page.name != "index.md"]
    paths = [str(page.relative_to(DOCS).with_suffix("")) for page in pages]
    assert [path for path in paths if f"\n{path}\n" not in front] == []


def test_every_microversion_is_on_the_api_page() -> None:
    """In order."""
    page = published("api.md")
    assert (
        re.findall(r"^\| (1\.\d+) \| [^|]+ \|$", page, re.MULTILINE)[-len(VERSIONS) :] == VERSIONS
    )


def test_every_error_code_is_on_the_api_page() -> None:
    """Every code in the sources."""
    sources = "".join(
        path.read_text()
        for part in ("api", "edge")
        for path in (ROOT / "berth" / part).rglob("*.py")
    )
    # The rules of policy look alike but for their colons.
    used = set(re.findall(r'"(placement(?:\.[a-z_]+)+)"', sources)) - {"placement.requestlog"}
    documented = set(
        re.findall(r"^\| `(placement\.[a-z_.]+)` \|", published("api.md"), re.MULTILINE)
    )
    assert used <= documented


def test_every_error_code_of_berths_own_api_is_on_its_page() -> None:
    """With the codes that it shares with the other routes."""
    page = published("berth-api.md").partition("\n## Errors\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"`((?:berth|placement)\.[a-z_.]+)`", page)) == CODES.all


def test_every_operation_of_berths_own_api_is_on_its_page_alone() -> None:
    """The page of the other routes keeps the two apart."""
    page, other = published("berth-api.md"), published("api.md")
    for operation in BERTH.operations:
        assert f"#### `{operation.method} {BERTH.path_of(operation)}`" in page
    for bound in BOUNDS:
        assert f"| `{bound}` |" in page
    assert "| `/berth/v1" not in other


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


def test_every_policy_rule_is_on_the_authorization_page() -> None:
    """With its default."""
    page = published("operating/authorization.md")
    for rule in list_rules():
        assert f"| `{rule.name}` | `{rule.check_str}` |" in page


@pytest.mark.parametrize("command", ["berth serve", "berth db upgrade", "berth db version"])
def test_every_command_is_on_the_command_line_page(command: str) -> None:
    """The page is generated from the commands."""
    assert f"## `{command}`" in published("command-line.md")


def test_every_exit_code_is_on_the_command_line_page() -> None:
    """Scripts may rely on them."""
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_of_the_tree_exist(page: Path) -> None:
    """Those that a page names by their path, but for what `make docs` builds."""
    named = re.findall(
        r"`((?:berth|bench|compare|contrib|docs(?!/_build)|tests|tools)/[\w./-]+)`",
        FENCE.sub("", page.read_text()),
    )
    assert [path for path in named if not (ROOT / path).exists()] == []


#: Words that CONTRIBUTING.md replaces, and openings that say nothing.
AVOIDED = re.compile(
    r"\b(anew|mend(s|ed|ing)?|the original('s)?|(told|held|hold|tells) of|nobody|somebody"
    r"|to look only)\b|After this page",
    re.IGNORECASE,
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_use_common_words(page: Path) -> None:
    """Outside tables of words and the output of programs (CONTRIBUTING.md, Language)."""
    text = FENCE.sub("", page.read_text())
    if page.name == "CONTRIBUTING.md":
        text = re.sub(r"^\|.*\n", "", text, flags=re.MULTILINE)
    assert [match[0] for match in AVOIDED.finditer(text)] == []

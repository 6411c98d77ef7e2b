# SPDX-License-Identifier: Apache-2.0
"""The examples of the documentation are what they say: they run, parse, and name what exists.

What a fence promises is in CONTRIBUTING.md. The README's `sh` blocks run in
`tests/e2e/test_readme.py`, against a server; those of `docs/how-to/` in `test_how_to.py`.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from _pytest.mark import ParameterSet
from keystoneauth1 import loading
from oslo_config import cfg, iniparser

from berth.api.policy import list_rules
from berth.config.options import register_logging, register_opts
from tests.docs.how_to import HOW_TO
from tests.docs.pages import FENCE, PAGES, ROOT, Block, blocks

#: The kinds of fences that pages may have; the last row is never run.
KINDS = {
    *("sh", "python", "ini", "yaml", "json"),
    *("{include} ../README.md", "{include} ../CONTRIBUTING.md", "{include} ../CHANGELOG.md"),
    *("{include} performance/results.md", "{include} performance/engines/results.md"),
    *("{toctree}", "{berth-options}", "{berth-commands}", "{berth-exit-codes}", "{berth-policy}"),
    "{berth-openapi}",
    *("console", "text", "http"),
}


#: The group of Keystone's options; those of the way of authentication stand in it as well.
KEYSTONE = "keystone_authtoken"


def keystone_options() -> list[cfg.Opt]:
    """Those of the middleware, and what `auth_type = password` brings into its group."""
    ((_, options),) = import_module("keystonemiddleware.opts").list_auth_token_opts()
    return [
        *options,
        *loading.get_auth_common_conf_options(),
        *loading.get_auth_plugin_conf_options("password"),
    ]


def examples(kind: str) -> list[ParameterSet]:
    """Each block of a kind, named by the page it stands on, as a parameter of a test."""
    return [
        pytest.param(block, id=f"{page.name}-{number}")
        for page in PAGES
        for number, block in enumerate(blocks(dedented(page), kind))
    ]


def dedented(page: Path) -> str:
    """A page's text with the fences of lists moved to the margin."""
    lines = page.read_text().splitlines(keepends=True)
    return "".join(line.removeprefix("   ") for line in lines)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_fences_say_what_they_hold(page: Path) -> None:
    """So that each is either run, or is of a kind that cannot be."""
    kinds = {match["kind"].strip() for match in FENCE.finditer(dedented(page))}
    assert kinds <= KINDS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_shell_examples_stand_where_they_are_run(page: Path) -> None:
    """In the README and the how-tos; elsewhere they would be printed and never tried."""
    assert page in (ROOT / "README.md", *HOW_TO) or not blocks(dedented(page), "sh")


@pytest.mark.parametrize("block", examples("json"))
def test_json_examples_parse(block: Block) -> None:
    """They are bodies, whole ones."""
    json.loads(block.text)


@pytest.mark.parametrize("block", examples("python"))
def test_python_examples_run(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an empty directory with a `placement.conf` that names a fresh database."""
    database = tmp_path / "berth.db"
    (tmp_path / "placement.conf").write_text(
        f"[placement_database]\nconnection = sqlite:///{database}\n"
    )
    monkeypatch.chdir(tmp_path)
    exec(compile(block.text, "example", "exec"), {"__name__": "example"})
    assert database.exists()


@pytest.mark.parametrize("block", examples("ini"))
def test_configuration_examples_name_options_that_exist(block: Block) -> None:
    """Each group and option is one that berth knows, and the value is of its type."""
    conf = cfg.ConfigOpts()
    register_opts(conf)
    register_logging(conf)
    parser = OptionCollector()
    parser.parse(block.text.splitlines())
    conf([], default_config_files=[], default_config_dirs=[])
    conf.register_opts(keystone_options(), group=KEYSTONE)
    for group, name, value in parser.options:
        conf.set_override(name, value, group=group)


#: What drivers of hosts take is tried by tests/hosts/test_hosts_pages.py.
POLICIES = [one for one in examples("yaml") if not str(one.id).startswith("hosts-")]


@pytest.mark.parametrize("block", POLICIES)
def test_policy_examples_name_rules_that_exist(block: Block) -> None:
    """A rule that the service does not know would be ignored without a word."""
    assert set(yaml.safe_load(block.text)) <= {rule.name for rule in list_rules()}


class OptionCollector(iniparser.BaseParser):
    """Reads a configuration file's text into (group, option, value)."""

    def __init__(self) -> None:
        super().__init__()
        self.options: list[tuple[str, str, str]] = []
        self.group = "DEFAULT"

    def new_section(self, section: str) -> None:
        """Enter a group."""
        self.group = section

    def assignment(self, key: str, value: list[str]) -> None:
        """Note an option of the present group."""
        self.options.append((self.group, key, "\n".join(value)))

# SPDX-License-Identifier: Apache-2.0
"""The examples of the documentation run, parse, and name only what exists.

CONTRIBUTING.md says what each kind of fence promises. The README's `sh` blocks run in
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

from berth.api.berth_v1.capacity import BODY as CAPACITY
from berth.api.berth_v1.grammar import REQUEST
from berth.api.berth_v1.inputs import PointedSchema
from berth.api.berth_v1.questions import read_request
from berth.api.policy import list_rules
from berth.config.options import register_logging, register_opts
from tests.docs.how_to import HOW_TO
from tests.docs.pages import FENCE, PAGES, RENDERERS, ROOT, Block, blocks

#: The kinds of fences that pages may have; those of the last row are never run.
KINDS = {
    *("sh", "python", "ini", "yaml", "json"),
    *("{include} ../README.md", "{include} ../CONTRIBUTING.md", "{include} ../CHANGELOG.md"),
    *("{include} performance/results.md", "{include} performance/engines/results.md"),
    "{include} scaling/results.md",
    *("{toctree}", "{eval-rst}"),
    *(f"{{{name}}}" for name in RENDERERS),
    *("console", "text", "http"),
}


#: The group of Keystone's options, which also has those of the authentication plugin.
KEYSTONE = "keystone_authtoken"


def keystone_options() -> list[cfg.Opt]:
    """Return the options of the middleware, and those that `auth_type = password` adds."""
    ((_, options),) = import_module("keystonemiddleware.opts").list_auth_token_opts()
    return [
        *options,
        *loading.get_auth_common_conf_options(),
        *loading.get_auth_plugin_conf_options("password"),
    ]


def examples(kind: str) -> list[ParameterSet]:
    """Return each block of a kind as a test parameter, named after its page."""
    return [
        pytest.param(block, id=f"{page.name}-{number}")
        for page in PAGES
        for number, block in enumerate(blocks(dedented(page), kind))
    ]


def dedented(page: Path) -> str:
    """Return a page's text with the fences in lists moved to the margin."""
    lines = page.read_text().splitlines(keepends=True)
    return "".join(line.removeprefix("   ") for line in lines)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_fences_say_what_they_hold(page: Path) -> None:
    """Every fence has a kind, and is run if its kind can be: shell examples stand only in the
    README and the how-tos, because other pages are not run. JSON is a complete body."""
    text = dedented(page)
    assert {match["kind"].strip() for match in FENCE.finditer(text)} <= KINDS
    assert page in (ROOT / "README.md", *HOW_TO) or not blocks(text, "sh")
    for block in blocks(text, "json"):
        json.loads(block.text)


@pytest.mark.parametrize("block", examples("python"))
def test_python_examples_run(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They run in an empty directory with a `placement.conf` that names a new database."""
    database = tmp_path / "berth.db"
    (tmp_path / "placement.conf").write_text(
        f"[placement_database]\nconnection = sqlite:///{database}\n"
    )
    monkeypatch.chdir(tmp_path)
    exec(compile(block.text, "example", "exec"), {"__name__": "example"})
    assert database.exists()


@pytest.mark.parametrize("block", examples("ini"))
def test_configuration_examples_name_options_that_exist(block: Block) -> None:
    """berth knows each group and option, and the value has its type."""
    conf = cfg.ConfigOpts()
    register_opts(conf)
    register_logging(conf)
    parser = OptionCollector()
    parser.parse(block.text.splitlines())
    conf([], default_config_files=[], default_config_dirs=[])
    conf.register_opts(keystone_options(), group=KEYSTONE)
    for group, name, value in parser.options:
        conf.set_override(name, value, group=group)


#: tests/hosts/test_drivers.py tests the options of host drivers.
POLICIES = [one for one in examples("yaml") if not str(one.id).startswith("hosts-")]


@pytest.mark.parametrize("block", POLICIES)
def test_policy_examples_name_rules_that_exist(block: Block) -> None:
    """The service would silently ignore an unknown rule."""
    assert set(yaml.safe_load(block.text)) <= {rule.name for rule in list_rules()}


class OptionCollector(iniparser.BaseParser):
    """Reads the text of a configuration file into (group, option, value)."""

    def __init__(self) -> None:
        super().__init__()
        self.options: list[tuple[str, str, str]] = []
        self.group = "DEFAULT"

    def new_section(self, section: str) -> None:
        """Enter a group."""
        self.group = section

    def assignment(self, key: str, value: list[str]) -> None:
        """Record an option of the current group."""
        self.options.append((self.group, key, "\n".join(value)))


def test_the_requests_of_the_questions_page_can_be_asked() -> None:
    """Each is a request, a body with one, or one of `capacity`, with several."""
    for block in blocks((ROOT / "docs/questions.md").read_text(), "json"):
        sent = json.loads(block.text)
        if "requests" in sent:
            CAPACITY.check(sent)
        for request in sent.get("requests", {"": sent.get("request", sent)}).values():
            PointedSchema(REQUEST).check(request)
            assert read_request(request, "")

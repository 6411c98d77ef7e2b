# SPDX-License-Identifier: Apache-2.0
"""Tests see berth from outside; what else of it they import is listed, each with a reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
LIST = ROOT / "tests" / "from_inside.yaml"


def imported() -> set[str]:
    """The modules of berth that the tests import anywhere."""
    return {
        name
        for file in (ROOT / "tests").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        for name in names_in(node)
        if name.partition(".")[0] == "berth"
    }


def names_in(node: ast.AST) -> Iterator[str]:
    """The modules that a statement imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if is_module(inner) else node.module


def is_module(name: str) -> bool:
    """Whether a name of berth is a module, and not something in one."""
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or path.is_dir()


def test_what_tests_import_from_inside_is_listed() -> None:
    """Each module once, and none that no test imports any more."""
    listed = [name for part in yaml.safe_load(LIST.read_text()) for name in part["modules"]]
    used = imported()
    assert sorted(used - set(listed)) == [], "give the reason in tests/from_inside.yaml"
    assert sorted(set(listed) - used) == [], "no test imports these any more"
    assert len(listed) == len(set(listed))

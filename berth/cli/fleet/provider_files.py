# SPDX-License-Identifier: Apache-2.0
"""Files with a tree of providers, in YAML or JSON."""

from __future__ import annotations

from typing import Any, TextIO

from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.hosts.errors import BadConfiguration
from berth.hosts.validation import parse_yaml


def read_wanted_tree(file: TextIO) -> tuple[str, dict[str, Any]]:
    """A provider of the tree in a file, and the body that makes the tree.

    The root is preferred, because a tree that exists has it already.

    Raises:
        CommandFailed: the file has no providers, or is neither YAML nor JSON.
    """
    try:
        read = parse_yaml(file.read(), file.name)
    except (BadConfiguration, UnicodeDecodeError) as error:
        words = " ".join(str(error).split())
        raise _unusable(file, f"is neither YAML nor JSON: {words}") from error
    providers = read.get("providers") if isinstance(read, dict) else read
    if not isinstance(providers, list) or not providers:
        raise _unusable(file, "has no list of providers")
    roots = [each for each in providers if isinstance(each, dict) and not each.get("parent")]
    named = (each.get("uuid") or each.get("name") for each in [*roots[:1], *providers[:1]] if each)
    reference = next((str(each) for each in named if each), None)
    if reference is None:
        raise _unusable(file, "has a provider without a uuid and a name")
    return reference, {"providers": providers}


def _unusable(file: TextIO, fault: str) -> CommandFailed:
    return CommandFailed(f"{file.name} {fault}", ExitCode.USAGE)

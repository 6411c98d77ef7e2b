# SPDX-License-Identifier: Apache-2.0
"""Writes flavors of nova to the service: what has changed, and what could not be written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from berth.cli.columns import counted
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.fleet.client import FLAVORS, Client, path_of, print_answer
from berth.cli.fleet.named import put_named
from berth.cli.fleet.nova_flavors import NovaFlavor
from berth.cli.fleet.refusals import InConflict, ServiceRefused
from berth.cli.fleet.requests_in_words import in_words
from berth.cli.output import say

_WORDS: Final = {"+": "created", "~": "replaced", "=": "unchanged"}


class Import:
    """One run of `berth flavor import`."""

    def __init__(self, client: Client, *, may_replace: bool, is_dry_run: bool) -> None:
        self._client = client
        self._may_replace = may_replace
        self._is_dry_run = is_dry_run
        self._stored: dict[str, Any] = {
            item["name"]: item for item in client.read(FLAVORS)["flavors"]
        }
        self._done: Counter[str] = Counter()
        self._seen: set[str] = set()

    def run(self, flavors: Iterable[NovaFlavor]) -> None:
        """Write some flavors, with a line for each.

        Raises:
            CommandFailed: some are not written (SERVICE), or would be (PENDING).
        """
        every = list(flavors)
        failed = sum(not self._is_written(flavor) for flavor in every)
        if not self._client.as_json:
            say(self._sums())
        if failed:
            raise CommandFailed(
                f"{failed} of {counted(len(every), 'flavor')}"
                f" {'is' if failed == 1 else 'are'} not imported",
                ExitCode.SERVICE,
            )
        if self._is_dry_run and (pending := self._done["+"] + self._done["~"]):
            raise CommandFailed(
                f"dry run: {counted(pending, 'flavor')} would change; nothing was written",
                ExitCode.PENDING,
            )

    def _is_written(self, flavor: NovaFlavor) -> bool:
        if flavor.name in self._seen:
            _warn(f"{flavor.name} is not imported again: two flavors would have this name")
            return False
        self._seen.add(flavor.name)
        if flavor.left_out:
            _warn(f"{flavor.name} is imported without {', '.join(flavor.left_out)}")
        try:
            self._write(flavor)
        except ServiceRefused as refused:
            _warn(f"{flavor.name} is not imported: {refused}")
            return False
        return True

    def _write(self, flavor: NovaFlavor) -> None:
        stored = self._stored.get(flavor.name)
        body = {"request": flavor.request, "description": flavor.description}
        if stored is not None:
            # nova does not know it.
            body["expose"] = stored["expose"]
        mark = "+" if stored is None else "=" if _is_same(body, stored) else "~"
        may_replace = self._may_replace or _is_of(flavor, stored)
        if mark == "~" and not may_replace:
            raise InConflict("another flavor has this name; --replace replaces it")
        if mark != "=" and not self._is_dry_run:
            path = f"{FLAVORS}{path_of(flavor.name)}"
            answer, _ = put_named(self._client, path, body, may_replace=may_replace)
            if self._client.as_json:
                print_answer(answer)
        self._done[mark] += 1
        if not self._client.as_json:
            say(f"{mark} {flavor.name}  {in_words(flavor.request)}")

    def _sums(self) -> str:
        counts = ", ".join(
            f"{number:,} {_WORDS[mark]}" for mark, number in self._done.items() if number
        )
        return f"{counted(self._done.total(), 'flavor')}" + (f": {counts}" if counts else "")


def _is_of(flavor: NovaFlavor, stored: Mapping[str, Any] | None) -> bool:
    """Whether an earlier import wrote what is stored, from the same flavor of nova; a person who
    replaces it replaces the description too."""
    return bool(flavor.source and stored and stored["description"].endswith(flavor.source))


def _is_same(body: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    """Also in the order of the groups, which counts."""
    return all(json.dumps(body[member]) == json.dumps(stored[member]) for member in body)


def _warn(sentence: str) -> None:
    say(f"berth: {sentence}", err=True)

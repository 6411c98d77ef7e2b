# SPDX-License-Identifier: Apache-2.0
"""Aggregates by the names that people give them: their labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from berth.cli.fleet.refusals import Reader
from berth.model.paths import AGGREGATES
from berth.model.refusals import NoOwnApi, NotThere


def parsed_uuid(reference: str) -> str | None:
    """The UUID that a reference is, in its usual form; None if it is a name."""
    try:
        return str(UUID(reference))
    except ValueError:
        return None


class Labels:
    """The labels of every aggregate, read when they are first needed.

    A service without labels, such as OpenStack Placement, has none.
    """

    def __init__(self, client: Reader) -> None:
        self._client = client
        self._labels: dict[str, dict[str, str]] | None = None

    def by_uuid(self) -> Mapping[str, Mapping[str, str]]:
        """The labels of each aggregate that has any."""
        if self._labels is None:
            self._labels = _labels_in(self._client)
        return self._labels

    def aggregates(self, reference: str) -> list[str]:
        """The aggregates with a UUID, a name, or a label `key=value`.

        Raises:
            NotThere: there is none.
        """
        if uuid := parsed_uuid(reference):
            return [uuid]
        key, equals, value = reference.partition("=")
        wanted = (key, value) if equals else ("name", reference)
        uuids = [uuid for uuid, labels in self.by_uuid().items() if wanted in labels.items()]
        if not uuids:
            raise NotThere(
                f"no aggregate has the label {'='.join(wanted)}; `berth aggregate list` prints all "
                "of them"
            )
        return uuids

    def describe(self, uuid: str) -> str:
        """An aggregate by its name and its other labels, or by its UUID without any."""
        labels = dict(self.by_uuid().get(uuid, {}))
        name = labels.pop("name", None)
        others = ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
        if name is None:
            return others or uuid
        return f"{name} ({others})" if others else name


def _labels_in(client: Reader) -> dict[str, dict[str, str]]:
    try:
        listed = client.read(AGGREGATES)["aggregates"]
    except NoOwnApi:
        return {}
    return {
        str(aggregate["uuid"]): dict(aggregate["labels"])
        for aggregate in listed
        if aggregate["labels"]
    }


def described(labels: Labels, uuids: Iterable[str]) -> str:
    """Several aggregates in a sentence, in alphabetical order."""
    return ", ".join(sorted(map(labels.describe, uuids)))


def memberships(labels: Labels, texts: Iterable[str]) -> Iterator[str]:
    """Conditions on aggregates as the API has them, with UUIDs instead of names and labels.

    Raises:
        NotThere: an aggregate does not exist.
    """
    # Deferred: most commands name no aggregates.
    from berth.pasted.command import conditions

    for text in texts:
        for names, is_forbidden in conditions(text):
            uuids = [uuid for name in names for uuid in labels.aggregates(name)]
            mark = "!" if is_forbidden else ""
            yield mark + (uuids[0] if len(uuids) == 1 else f"in:{','.join(uuids)}")

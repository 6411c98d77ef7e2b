# SPDX-License-Identifier: Apache-2.0
"""A copy of the fleet that follows its changes. Source: spec/beyond.md 6.2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from berth.client.errors import Refused

if TYPE_CHECKING:
    from berth.client.client import Client

#: The codes of a revision after which the service cannot tell what changed: it has forgotten, or
#: the database has another identity, as after a restore.
_UNKNOWN_REVISION: Final = frozenset({"berth.revision.gone", "berth.revision.foreign"})

#: A provider as `GET /berth/v1/fleet` shows it.
Provider = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """What has changed of one provider, or of names.

    Attributes:
        kind: `usage`, `provider`, `gone`, `names`, or a word of a newer release.
        commits: how many commits did it.
        before: the provider as the copy had it; None if it was not there, and for names.
        now: as it is; None if it is gone, and for names.
    """

    kind: str
    commits: int
    before: Provider | None
    now: Provider | None


class Replica:
    """A copy of the whole fleet, which `follow` brings up to date.

        fleet = Replica(client)
        while True:
            for change in fleet.follow():
                print(change.kind, change.now)

    Attributes:
        providers: all of them, by UUID.
        revision: the state that the copy is of.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self.providers: dict[str, Provider] = {}
        self.revision = ""
        self.read()

    def read(self) -> None:
        """Read the whole fleet.

        Raises:
            Incomplete: the answer broke off; the copy is as it was.
        """
        fleet = self._client.fleet()
        self.providers = {provider["uuid"]: provider for provider in fleet.providers}
        self.revision = fleet.revision

    def follow(self, wait: int = 20) -> list[Change]:
        """Apply what has changed since the last call.

        If the service cannot tell what changed since then, because it was too long ago or the
        database has a new identity, the whole fleet is read again; what is not as it was counts as
        changed by one commit.

        Args:
            wait: seconds to wait for a change, 0 to 60.

        Returns:
            The changes; empty if there are none.

        Raises:
            Incomplete: the answer broke off; the copy is as it was.
        """
        try:
            changes = self._client.changes(self.revision, wait=wait)
        except Refused as refusal:
            if refusal.code not in _UNKNOWN_REVISION:
                raise
            return self._read_again()
        applied = [self._apply(event) for event in changes.events]
        self.revision = changes.revision
        return applied

    def _apply(self, event: Mapping[str, Any]) -> Change:
        state = dict(event)
        kind, commits = state.pop("change"), state.pop("commits")
        uuid = state.get("uuid", "")
        before = self.providers.get(uuid)
        if kind == "gone":
            # It may have come and gone between two calls.
            self.providers.pop(uuid, None)
        elif uuid:
            self.providers[uuid] = {**(before or {}), **state}
        return Change(kind, commits, before, self.providers.get(uuid))

    def _read_again(self) -> list[Change]:
        before = self.providers
        self.read()
        now = self.providers
        gone = [Change("gone", 1, before[uuid], None) for uuid in before.keys() - now.keys()]
        changed = [
            Change("provider", 1, before.get(uuid), provider)
            for uuid, provider in now.items()
            if before.get(uuid) != provider
        ]
        return gone + changed

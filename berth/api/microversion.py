# SPDX-License-Identifier: Apache-2.0
"""Microversions: which one a request asks for, and values that change with them.

The versions are 1.0 to 1.39, so in `api/` a microversion is just its minor number, 0 to 39, and
comparisons read `microversion >= 26`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Generic, TypeVar

from berth.api.errors import Refused

MINOR_MAX = 39
VERSION_MIN = "1.0"
VERSION_MAX = f"1.{MINOR_MAX}"
SERVICE_TYPE = "placement"

#: The headers as nearly every client sends them. PERF reading a header takes ten times as long.
USUAL_HEADERS: Final[Mapping[str | None, int]] = {
    None: 0,
    **{f"{SERVICE_TYPE} 1.{minor}": minor for minor in range(MINOR_MAX + 1)},
}

T = TypeVar("T")


class ByMicroversion(Generic[T]):
    """A value that changes at some microversions, and stays until the next change.

    It has no value below the first.
    """

    def __init__(self, since: Mapping[int, T]) -> None:
        self.first = min(since)
        newest = since[self.first]
        values = []
        for minor in range(self.first, MINOR_MAX + 1):
            newest = since.get(minor, newest)
            values.append(newest)
        self._values = values

    def at(self, microversion: int) -> T:
        """The value at a microversion, which must not be below the first."""
        assert microversion >= self.first, "no request reaches a route below its first microversion"
        return self._values[microversion - self.first]

    def values(self) -> Sequence[T]:
        """The values at all microversions, from the first on."""
        return self._values


def negotiate(header: str | None) -> int:
    """The microversion that an `OpenStack-API-Version` header asks for, or 0 if none.

    Raises:
        Refused: 400 for a malformed version, 406 for one that is not served.

    Source: spec/rest-api.md 1.2; several lines of the header arrive joined by commas.
    """
    usual = USUAL_HEADERS.get(header)
    if usual is not None:
        return usual
    asked = _version_in(header)
    if asked is None:
        return 0
    if asked == "latest":
        return MINOR_MAX
    return _parse(asked)


def names_version(header: str | None) -> bool:
    """Whether an `OpenStack-API-Version` header asks for a version of this service."""
    return _version_in(header) is not None


def _version_in(header: str | None) -> str | None:
    asked = None
    for entry in (header or "").split(","):
        words = entry.split(None, 1)
        if len(words) == 2 and words[0].lower() == SERVICE_TYPE:
            asked = words[1].strip()
    return asked


def _parse(asked: str) -> int:
    halves = asked.split(".", 1)
    try:
        numbers = [int(half) for half in halves]
        if len(numbers) < 2:
            # COMPAT: Python's own message for this error, like those of `int`.
            raise ValueError("Version.__new__() missing 1 required positional argument: 'minor'")
    except ValueError as error:
        raise Refused(
            400, f"Invalid microversion: invalid version string: {asked}; {error}"
        ) from None
    major, minor = numbers
    if major != 1 or not 0 <= minor <= MINOR_MAX:
        raise Refused(
            406,
            f"Invalid microversion: Unacceptable version header: {asked}",
            hint=f"Versions {VERSION_MIN} to {VERSION_MAX} are served.",
            facts={"max_version": VERSION_MAX, "min_version": VERSION_MIN},
        )
    return minor

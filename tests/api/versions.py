# SPDX-License-Identifier: Apache-2.0
"""Ranges of microversions, for tests that hold over many of them."""

NEWEST_MINOR = 39


def versions(first: str, last: str = f"1.{NEWEST_MINOR}") -> list[str]:
    """Every microversion from `first` to `last`, both included."""
    return [f"1.{minor}" for minor in range(_minor(first), _minor(last) + 1)]


def at_least(version: str, first: str) -> bool:
    """Whether `version` is `first` or newer."""
    return _minor(version) >= _minor(first)


def _minor(version: str) -> int:
    major, minor = version.split(".")
    assert major == "1", "there is one major version"
    return int(minor)

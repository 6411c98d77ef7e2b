# SPDX-License-Identifier: Apache-2.0
"""Drivers are found by their names."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints

import pytest

from berth.hosts import drivers
from berth.hosts.drivers import driver_names, load_driver
from berth.hosts.drivers.linux import LinuxDriver
from berth.hosts.errors import BadConfiguration


def test_a_driver_is_loaded_by_its_name() -> None:
    """It gets its options, and a function that returns usages."""
    driver = load_driver("linux", {"model": "numa"}, used=lambda uuid: {uuid: 1})
    assert isinstance(driver, LinuxDriver)
    assert driver.used is not None
    assert driver.used("x") == {"x": 1}


def test_an_unknown_driver_is_told_with_those_that_exist() -> None:
    """In one sentence."""
    with pytest.raises(BadConfiguration) as refused:
        load_driver("windows", {})
    assert str(refused.value) == (
        f"Unknown driver 'windows'; the installed ones are {', '.join(driver_names())}"
    )
    assert "linux" in driver_names()


def test_a_driver_without_its_library_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if its extra was not installed."""
    broken = EntryPoint("broken", "no_such_library_x:create", drivers.GROUP)
    monkeypatch.setattr(drivers, "entry_points", EntryPoints([broken]).select)
    with pytest.raises(BadConfiguration, match="broken needs a library that is not installed"):
        load_driver("broken", {})


def test_a_driver_of_another_package_that_is_broken_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error names the package, so that its author is asked."""
    points = EntryPoints(
        [
            EntryPoint("gone", "json:no_such_function", drivers.GROUP),
            EntryPoint("strict", "json:loads", drivers.GROUP),
        ]
    )
    monkeypatch.setattr(drivers, "entry_points", lambda **params: points.select(**params))
    with pytest.raises(BadConfiguration, match=r"gone cannot be loaded from json:no_such_function"):
        load_driver("gone", {})
    with pytest.raises(BadConfiguration, match=r"strict, json:loads cannot be created: TypeError"):
        load_driver("strict", {})

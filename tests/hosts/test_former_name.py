# SPDX-License-Identifier: Apache-2.0
"""`berth.compute`, the former name of `berth.hosts`, works for one more release."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from berth.hosts import HealingNeeded, ReshapeNeeded, drivers
from berth.hosts.drivers import driver_names, load_driver

PROGRAM = """
import berth.compute.drivers.linux as former
import berth.hosts.drivers.linux as present
from berth.compute.provider_tree import ProviderTree
from berth.hosts import provider_tree
assert former is present
assert ProviderTree is provider_tree.ProviderTree
try:
    import berth.compute.nothing
except ModuleNotFoundError as error:
    assert str(error) == "No module named 'berth.hosts.nothing'", error
else:
    raise AssertionError
"""


def test_its_modules_are_those_of_the_present_name() -> None:
    """There is one warning, which names the new one; a module that never was is not found."""
    done = subprocess.run(
        [sys.executable, "-W", "always::DeprecationWarning", "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("berth.compute is called berth.hosts now") == 1


def test_what_a_driver_calls_truth_is_the_actual_usage() -> None:
    """As an argument and as an attribute, with a warning for each."""
    usage = {"guest": {"VGPU": 2}}
    for signal in (partial(ReshapeNeeded, "the VGPUs move"), HealingNeeded):
        with pytest.warns(DeprecationWarning, match="`truth` is called `actual_usage` now"):
            needed: ReshapeNeeded = signal(truth=usage)
        assert needed.actual_usage == usage
        with pytest.warns(DeprecationWarning, match="`truth` is called `actual_usage` now"):
            assert needed.truth == usage


def test_a_driver_may_be_registered_under_the_former_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """If both names have it, the one under the new name is used."""
    points = EntryPoints(
        [
            EntryPoint("theirs", "berth.hosts.drivers.static:make_driver", drivers.FORMER_GROUP),
            EntryPoint("static", "json:no_such_function", drivers.FORMER_GROUP),
            EntryPoint("static", "berth.hosts.drivers.static:make_driver", drivers.GROUP),
        ]
    )
    monkeypatch.setattr(drivers, "entry_points", lambda **params: points.select(**params))
    assert driver_names() == ["static", "theirs"]
    for name in driver_names():
        assert load_driver(name, {"file": "/nowhere.yaml"}) is not None

# SPDX-License-Identifier: Apache-2.0
"""A release of nova in a virtual environment of its own, as a black box.

It is installed from the package index into `build/peer/nova-<release>` if it is missing, and asked
by short programs that call it and print what it answers.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

RELEASE: Final = "32.0.0"
_PLACE: Final = Path(__file__).resolve().parents[2] / "build" / "peer"
_FOLDER: Final = _PLACE / f"nova-{RELEASE}"
_INSTALLED: Final = _FOLDER / "installed"
_SECONDS_MAX: Final = 300

_BEGIN: Final = """
import json, pathlib, sys, tempfile, warnings
warnings.filterwarnings("ignore")
import nova.conf
nova.conf.CONF([], project="nova", default_config_files=[])
def each(answer):
    for asked in json.load(sys.stdin):
        try:
            said = answer(asked)
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said))
"""

#: From flavors to the queries that nova's scheduler sends for them.
FLAVORS: Final = (
    _BEGIN
    + """
from nova import objects
from nova.scheduler import utils
from nova.virt import hardware
objects.register_all()
def query(asked):
    flavor = objects.Flavor(
        id=1, flavorid="f", name="f", is_public=True, disabled=False, rxtx_factor=1.0,
        vcpus=asked["vcpus"], memory_mb=asked["ram"], root_gb=asked["disk"],
        ephemeral_gb=asked["ephemeral"], swap=asked["swap"], extra_specs=asked["properties"])
    image = objects.ImageMeta.from_dict({"properties": asked["image"]})
    spec = objects.RequestSpec(
        flavor=flavor, image=image, is_bfv=False, requested_resources=[],
        request_level_params=objects.RequestLevelParams())
    spec.numa_topology = hardware.numa_get_constraints(flavor, image)
    return {"query": utils.ResourceRequest.from_request_spec(spec).to_querystring()}
each(query)
"""
)

#: From the texts of provider.yaml files to what nova reads in their directory.
PROVIDER_FILES: Final = (
    _BEGIN
    + """
from nova.compute import provider_config
def read(texts):
    with tempfile.TemporaryDirectory() as directory:
        for number, text in enumerate(texts):
            (pathlib.Path(directory) / f"{number}.yaml").write_text(text)
        return {"read": provider_config.get_provider_configs(directory)}
each(read)
"""
)


class NotInstalled(Exception):
    """The release is not installed and cannot be downloaded."""


def install() -> None:
    """Install the release if it is missing.

    Raises:
        NotInstalled: with pip's message.
    """
    _PLACE.mkdir(parents=True, exist_ok=True)
    with (_PLACE / "lock-nova").open("w") as lock:
        # One of the processes that share the tests does it; the others find it done.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _INSTALLED.exists():
            return
        shutil.rmtree(_FOLDER, ignore_errors=True)
        # With the pip of the tests: a venv takes four seconds of a processor to install its own.
        pip = (sys.executable, "-m", "pip", "--python", str(_FOLDER / "bin" / "python"))
        for command in (
            (sys.executable, "-m", "venv", "--without-pip", str(_FOLDER)),
            (*pip, "install", "-q", "--no-compile", f"nova=={RELEASE}"),
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                said = (done.stderr or done.stdout).strip().splitlines()
                raise NotInstalled(f"nova {RELEASE}: {said[-1] if said else 'pip failed'}")
        _INSTALLED.touch()


def answers(program: str, asked: Sequence[Any]) -> list[dict[str, Any]]:
    """What nova says of each, in order; `error` where it refuses."""
    done = subprocess.run(
        [str(_FOLDER / "bin" / "python"), "-c", program],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=_SECONDS_MAX,
        check=True,
    )
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(said) == len(asked), done.stderr[-2000:]
    return said

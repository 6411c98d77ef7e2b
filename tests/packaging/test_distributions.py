# SPDX-License-Identifier: Apache-2.0
"""The wheel and the source distribution, built from a copy of the tree, and the wheel installed."""

from __future__ import annotations

import email
import email.message
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

import berth
from berth.cli.exit_codes import ExitCode
from tests.client import Client
from tests.docs.pages import ROOT
from tests.e2e.serving import serving
from tests.packaging.clean import CleanEnvironment

# What is built is built once, by one of the processes that share the tests.
pytestmark = pytest.mark.xdist_group("packaging")

#: What lies about in a tree that is worked on, and the repository itself.
NOT_SOURCES = shutil.ignore_patterns(
    *(".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", "_build"),
    ".hypothesis",
)


@dataclass(frozen=True)
class Built:
    """What `python -m build` has made: the wheel from the source distribution, as it does."""

    wheel: Path
    sdist: Path

    def files_of_wheel(self) -> set[str]:
        """The names of all files."""
        with zipfile.ZipFile(self.wheel) as archive:
            return set(archive.namelist())

    def files_of_sdist(self) -> set[str]:
        """The names of all files, below the one folder that holds them."""
        with tarfile.open(self.sdist) as archive:
            names = [member.name for member in archive.getmembers() if member.isfile()]
        return {name.partition("/")[2] for name in names}

    def metadata(self) -> email.message.Message:
        """What the wheel says about itself."""
        with zipfile.ZipFile(self.wheel) as archive:
            (name,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
            return email.message_from_bytes(archive.read(name))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources, and nothing that a build may find beside them."""
    return Path(
        shutil.copytree(ROOT, tmp_path_factory.mktemp("tree") / "berth", ignore=NOT_SOURCES)
    )


@pytest.fixture(scope="module")
def built(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Both, built once."""
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(tree)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Built(wheel, sdist)


@pytest.fixture(scope="module")
def clean(built: Built, tmp_path_factory: pytest.TempPathFactory) -> CleanEnvironment:
    """A virtual environment with the wheel, and without its extras."""
    return CleanEnvironment(tmp_path_factory.mktemp("clean"), built.wheel)


def files_below(folder: Path) -> set[str]:
    """The files of a part of the tree, named from its top."""
    top = folder.parent
    return {str(path.relative_to(top)) for path in folder.rglob("*") if path.is_file()}


def test_the_wheel_holds_the_package_and_no_other(built: Built, tree: Path) -> None:
    """Every file of `berth/`, migrations and `py.typed` too; no tests, no benchmarks, no pages."""
    files = built.files_of_wheel()
    inside = {name for name in files if not name.startswith("berthd-")}
    assert inside == files_below(tree / "berth")


def test_the_wheel_brings_what_operators_copy(built: Built, tree: Path) -> None:
    """Into `share/berth` of the environment that it is installed in."""
    shared = f"berthd-{berth.__version__}.data/data/share/berth"
    brought = {name.removeprefix(shared) for name in built.files_of_wheel() if shared in name}
    contrib = tree / "contrib"
    assert brought == {
        f"/{file.relative_to(contrib)}" for file in contrib.rglob("*") if file.is_file()
    }


def test_the_command_knows_where_they_are(clean: CleanEnvironment, tmp_path: Path) -> None:
    """`$(berth files)/prometheus/berth-alerts.yaml`, wherever berth was installed."""
    done = clean.run(tmp_path, "berth", "files")
    assert (done.returncode, done.stderr) == (0, "")
    shown = Path(done.stdout.strip())
    assert shown == (clean.folder / "share" / "berth").resolve()
    assert (shown / "prometheus" / "berth-alerts.yaml").is_file()
    assert (shown / "grafana" / "berth-agents.json").is_file()


def test_the_sources_are_enough_to_build_and_test(built: Built, tree: Path) -> None:
    """The tests and what they start from, the pages, the pinned versions, the licence."""
    files = built.files_of_sdist()
    for folder in ("berth", "bench", "changes", "contrib", "docs", "tests", "tools"):
        assert files_below(tree / folder) <= files
    top = {"LICENSE", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", ".ci/run"}
    assert top | {"constraints.txt", "pyproject.toml"} <= files


def test_the_metadata_says_what_it_is(built: Built) -> None:
    """Name, version, licence, and the README as its description."""
    said = built.metadata()
    assert (said["Name"], said["Version"]) == ("berthd", berth.__version__)
    assert said["License-Expression"] == "Apache-2.0"
    assert said["License-File"] == "LICENSE"
    assert said["Description-Content-Type"] == "text/markdown"
    assert said.get_payload(decode=True) == (ROOT / "README.md").read_bytes()
    assert "Environment :: OpenStack" in said.get_all("Classifier", [])


def test_the_command_knows_its_version(clean: CleanEnvironment, tmp_path: Path) -> None:
    """It is that of the wheel."""
    done = clean.run(tmp_path, "berth", "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"berth {berth.__version__}\n", "")


#: What the extras bring, and berth does without until it is asked for.
OF_EXTRAS = {"keystonemiddleware", "libvirt", "psycopg", "pymysql", "pynvml"}

#: Prints where berth is, and the modules that any module of it would not find. Those left out run
#: when they are imported.
IMPORT_ALL = """
import importlib, pkgutil, berth
print(berth.__file__)
for found in pkgutil.walk_packages(berth.__path__, "berth."):
    if found.name not in ("berth.wsgi", "berth.cli.__main__") and ".migrations." not in found.name:
        try:
            importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            print(error.name)
"""


def test_every_module_finds_what_it_imports(clean: CleanEnvironment, tmp_path: Path) -> None:
    """Nothing is imported that the metadata does not name, but what the extras bring."""
    done = clean.run(tmp_path, "python", "-c", IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    place, *missing = done.stdout.split()
    assert place.startswith(str(clean.folder))
    assert set(missing) <= OF_EXTRAS


def test_an_installed_berth_serves(clean: CleanEnvironment, tmp_path: Path) -> None:
    """By deployment tools' commands and its own, from an empty folder."""
    url = f"sqlite:///{tmp_path}/berth.db"
    told = {"OS_PLACEMENT_DATABASE__CONNECTION": url, "OS_API__AUTH_STRATEGY": "noauth2"}
    for program, *arguments in (
        ("placement-manage", "db", "sync"),
        ("placement-status", "upgrade", "check"),
    ):
        done = clean.run(tmp_path, program, *arguments, **told)
        assert done.returncode == 0, done.stdout + done.stderr
    with serving(
        tmp_path, command=clean.command("berth"), environ=clean.variables(tmp_path, **told)
    ) as service:
        client = Client.at(service.url)
        assert client.post("/resource_providers", json={"name": "cn1"}).status == 200
        assert client.get("/allocation_candidates?resources=VCPU:1").status == 200


def test_an_extra_that_is_not_installed_is_asked_for(
    clean: CleanEnvironment, tmp_path: Path
) -> None:
    """In one line, before anything is served."""
    told = {
        "OS_PLACEMENT_DATABASE__CONNECTION": f"sqlite:///{tmp_path}/berth.db",
        "OS_API__AUTH_STRATEGY": "keystone",
    }
    done = clean.run(tmp_path, "berth", "serve", "--bind", "127.0.0.1:0", **told)
    assert done.returncode == ExitCode.UNSUPPORTED
    assert "keystonemiddleware" in done.stderr
    assert done.stderr.count("\n") == 1

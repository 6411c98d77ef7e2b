# SPDX-License-Identifier: Apache-2.0
"""The wheel and the source distribution, built from a copy of the tree, and the wheel installed."""

from __future__ import annotations

import email
import email.message
import shutil
import subprocess
import sys
import tarfile
import uuid
import zipfile
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import berth
from berth.cli.failure import ExitCode
from berth.extras import SERVICE_PACKAGES
from tests.client import Client
from tests.docs.pages import ROOT
from tests.e2e.serving import serving
from tests.packaging.clean import CleanEnvironment

# What is built is built once, by one of the processes that share the tests.
pytestmark = [pytest.mark.xdist_group("packaging"), pytest.mark.thorough]

#: What lies about in a tree that is worked on, and the repository itself.
NOT_SOURCES = shutil.ignore_patterns(
    *(".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", "_build"),
    *(".hypothesis", "node_modules"),
)


@dataclass(frozen=True)
class Built:
    """The result of `python -m build`, which builds the wheel from the source distribution."""

    wheel: Path
    sdist: Path

    def files_of_wheel(self) -> set[str]:
        """The names of all files."""
        with zipfile.ZipFile(self.wheel) as archive:
            return set(archive.namelist())

    def files_of_sdist(self) -> set[str]:
        """The names of all files, below its top directory."""
        with tarfile.open(self.sdist) as archive:
            names = [member.name for member in archive.getmembers() if member.isfile()]
        return {name.partition("/")[2] for name in names}

    def metadata(self) -> email.message.Message:
        """The metadata of the wheel."""
        with zipfile.ZipFile(self.wheel) as archive:
            (name,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
            return email.message_from_bytes(archive.read(name))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources only, without anything else that a build might pick up."""
    return Path(
        shutil.copytree(ROOT, tmp_path_factory.mktemp("tree") / "berth", ignore=NOT_SOURCES)
    )


@pytest.fixture(scope="module")
def built(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
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
    """A virtual environment with the wheel and its extra `service`."""
    return CleanEnvironment(tmp_path_factory.mktemp("clean"), built.wheel, "service")


@pytest.fixture(scope="module")
def light(built: Built, tmp_path_factory: pytest.TempPathFactory) -> CleanEnvironment:
    """A virtual environment with the wheel, and without its extras."""
    return CleanEnvironment(tmp_path_factory.mktemp("light"), built.wheel)


def files_below(folder: Path) -> set[str]:
    """The files of a part of the tree, named from its top."""
    top = folder.parent
    return {str(path.relative_to(top)) for path in folder.rglob("*") if path.is_file()}


def test_the_wheel_holds_the_package_and_no_other(built: Built, tree: Path) -> None:
    """Every file of `berth/`, including migrations and `py.typed`; no tests, benchmarks or
    pages."""
    files = built.files_of_wheel()
    inside = {name for name in files if not name.startswith("berthd-")}
    assert inside == files_below(tree / "berth")


def test_the_wheel_brings_what_operators_copy(built: Built, tree: Path) -> None:
    """In `share/berth` of the environment."""
    shared = f"berthd-{berth.__version__}.data/data/share/berth"
    brought = {name.removeprefix(shared) for name in built.files_of_wheel() if shared in name}
    contrib = tree / "contrib"
    assert brought == {
        f"/{file.relative_to(contrib)}" for file in contrib.rglob("*") if file.is_file()
    }


def test_the_command_knows_where_they_are(clean: CleanEnvironment, tmp_path: Path) -> None:
    """`$(berth files)/prometheus/berth-alerts.yaml`, wherever berth is installed."""
    done = clean.run(tmp_path, "berth", "files")
    assert (done.returncode, done.stderr) == (0, "")
    shown = Path(done.stdout.strip())
    assert shown == (clean.folder / "share" / "berth").resolve()
    assert (shown / "prometheus" / "berth-alerts.yaml").is_file()
    assert (shown / "grafana" / "berth-agents.json").is_file()


def test_the_sources_are_enough_to_build_and_test(built: Built, tree: Path) -> None:
    """The tests and their data, the pages, the pinned versions, the licence."""
    files = built.files_of_sdist()
    for folder in ("berth", "bench", "changes", "contrib", "docs", "tests", "tools"):
        assert files_below(tree / folder) <= files
    top = {"LICENSE", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", ".ci/run"}
    assert top | {"constraints.txt", "pyproject.toml"} <= files


def test_the_metadata_says_what_it_is(built: Built) -> None:
    """Name, version, licence, and the README as the description."""
    said = built.metadata()
    assert (said["Name"], said["Version"]) == ("berthd", berth.__version__)
    assert said["License-Expression"] == "Apache-2.0"
    assert said["License-File"] == "LICENSE"
    assert said["Description-Content-Type"] == "text/markdown"
    assert said.get_payload(decode=True) == (ROOT / "README.md").read_bytes()
    assert "Environment :: OpenStack" in said.get_all("Classifier", [])


#: What the extras bring, and berth does without until it is asked for.
OF_EXTRAS = {"keystonemiddleware", "libvirt", "opentelemetry", "psycopg", "pymysql", "pynvml"}

#: Prints where berth is, and each module of it that lacks another one, with that one's name. Those
#: left out run when they are imported.
IMPORT_ALL = """
import importlib, pkgutil, berth
print(berth.__file__)
for found in pkgutil.walk_packages(berth.__path__, "berth.", onerror=lambda name: None):
    if found.name not in ("berth.wsgi", "berth.cli.__main__") and ".migrations." not in found.name:
        try:
            importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            print(found.name, error.name)
"""


def lacking(environment: CleanEnvironment, home: Path) -> dict[str, str]:
    """The modules of berth that cannot be imported there, with the missing package of each."""
    done = environment.run(home, "python", "-c", IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    place, *missing = done.stdout.splitlines()
    assert place.startswith(str(environment.folder))
    return {module: package.partition(".")[0] for module, package in map(str.split, missing)}


def test_every_module_finds_what_it_imports(clean: CleanEnvironment, tmp_path: Path) -> None:
    """With the extra `service`, only packages of other extras are missing."""
    assert set(lacking(clean, tmp_path).values()) <= OF_EXTRAS


def test_the_host_side_does_without_the_service(light: CleanEnvironment, tmp_path: Path) -> None:
    """Without extras, `berth.hosts`, its dependencies and the agent's commands are complete."""
    missing = lacking(light, tmp_path)
    assert {"berth.deploy", "berth.config", "berth.store.claims", "berth.direct"} <= missing.keys()
    assert set(missing.values()) <= SERVICE_PACKAGES | OF_EXTRAS
    parts = ("berth.hosts", "berth.model", "berth.cli.agent", "berth.cli.audit")
    of_hosts = {package for module, package in missing.items() if module.startswith(parts)}
    assert of_hosts <= OF_EXTRAS


def test_the_names_of_the_service_s_packages_are_those_of_its_extra(built: Built) -> None:
    """`berth.extras` and pyproject.toml agree, so that messages name the right extra."""
    of_service = {
        canonicalize_name(requirement.name)
        for requirement in map(Requirement, built.metadata().get_all("Requires-Dist", []))
        if requirement.marker is not None and requirement.marker.evaluate({"extra": "service"})
    }
    by_package = packages_distributions()
    named = {canonicalize_name(by_package[package][0]) for package in SERVICE_PACKAGES}
    assert named == of_service


def test_the_host_side_is_small(light: CleanEnvironment) -> None:
    """It is installed on every machine of a fleet: under 40 MB, where the service takes 250."""
    assert light.size() < 40_000_000


def test_an_agent_of_the_host_side_reports_to_a_service(
    light: CleanEnvironment, clean: CleanEnvironment, tmp_path: Path
) -> None:
    """It starts, reports and logs, and audits by URL, in an environment that cannot serve."""
    told = {
        "OS_PLACEMENT_DATABASE__CONNECTION": f"sqlite:///{tmp_path}/berth.db",
        "OS_API__AUTH_STRATEGY": "noauth2",
    }
    host = tmp_path / "host"
    host.mkdir()
    with serving(
        tmp_path, command=clean.command("berth"), environ=clean.variables(tmp_path, **told)
    ) as service:
        (host / "token").write_text("admin")
        (host / "host.yaml").write_text("inventories: {VCPU: {total: 8}}")
        (host / "agent.yaml").write_text(
            f"service: {{url: '{service.url}', token_file: {host}/token}}\n"
            f"driver: static\noptions: {{file: {host}/host.yaml}}\n"
            f"node: {{name: cn1}}\nstate_dir: {host}/state\n"
        )
        agent = ("agent", "run", "--once", "--config", f"{host}/agent.yaml")
        done = light.run(host, "berth", *agent)
        assert done.returncode == 0, done.stdout + done.stderr
        (provider,) = Client.at(service.url).get("/resource_providers").json["resource_providers"]
        assert provider["name"] == "cn1"
        audit = ("audit", "--url", service.url)
        done = light.run(host, "berth", *audit, OS_TOKEN="admin")
        assert done.returncode == 0, done.stdout + done.stderr
        told = {"BERTH_URL": service.url, "OS_TOKEN": "admin"}
        for words in (
            ("provider", "tree", "cn1"),
            ("candidates", "VCPU=2"),
            ("claim", str(uuid.uuid4()), "cn1:VCPU=2", "--project", "p", "--user", "u"),
            ("why", "VCPU=8"),
        ):
            done = light.run(host, "berth", *words, **told)
            assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


#: What a host is told that was installed without the service, behind the program's name.
NEEDS: dict[str, tuple[str, ...]] = {
    ": this needs berth's service": (
        *("berth serve", "berth db check", "berth status", "berth policy list"),
        *("berth config show", "berth token list", "berth user list"),
        *("placement-manage db sync", "placement-status upgrade check"),
    ),
    # Whoever forgets BERTH_URL wants a service, and only rarely berth's own libraries.
    ": no service is named: set --url or BERTH_URL, and ": ("berth audit", "berth provider list"),
}


@pytest.mark.parametrize(
    ("words", "told"), [(words, told) for told, every in NEEDS.items() for words in every]
)
def test_the_host_side_says_what_it_needs(
    light: CleanEnvironment, tmp_path: Path, words: str, told: str
) -> None:
    """One sentence with the extra to install, and an exit code of its own; no traceback."""
    program, *arguments = words.split()
    done = light.run(tmp_path, program, *arguments)
    assert (done.returncode, done.stdout) == (ExitCode.UNSUPPORTED, "")
    assert done.stderr.startswith(f"{program}{told}")
    assert done.stderr.endswith("pip install 'berthd[service]'\n")
    assert done.stderr.count("\n") == 1


def test_the_host_side_has_its_help_and_completion(light: CleanEnvironment, tmp_path: Path) -> None:
    """Every command is listed, and names of policy rules are completed."""
    done = light.run(tmp_path, "berth", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "serve" in done.stdout and "agent" in done.stdout
    typed = {"COMP_WORDS": "berth policy check placement:", "COMP_CWORD": "3"}
    done = light.run(tmp_path, "berth", _BERTH_COMPLETE="bash_complete", **typed)
    assert (done.returncode, done.stderr) == (0, "")
    assert "placement:reshaper:reshape" in done.stdout


def test_a_script_is_told_what_direct_use_needs(light: CleanEnvironment, tmp_path: Path) -> None:
    """The traceback ends with the same sentence."""
    done = light.run(tmp_path, "python", "-c", "import berth.direct")
    assert done.stderr.endswith("pip install 'berthd[service]'\n")


def test_an_installed_berth_serves(clean: CleanEnvironment, tmp_path: Path) -> None:
    """With the commands of deployment tools and its own, from an empty directory."""
    url = f"sqlite:///{tmp_path}/berth.db"
    told = {"OS_PLACEMENT_DATABASE__CONNECTION": url, "OS_API__AUTH_STRATEGY": "noauth2"}
    assert clean.run(tmp_path, "berth", "--version").stdout == f"berth {berth.__version__}\n"
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

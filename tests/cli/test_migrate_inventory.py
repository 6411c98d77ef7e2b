# SPDX-License-Identifier: Apache-2.0
"""`berth migrate-inventory`: hosts take their new shape with every service stopped."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from berth import config
from berth.cli import migrate_inventory as command
from berth.cli.failure import ExitCode
from berth.cli.progress import reporting
from berth.direct import PlacementDirect
from berth.hosts.drivers.static import StaticDriver
from berth.hosts.state_dir import StateLock
from berth.hosts.tracker import Tracker
from tests.cli.in_process import InProcess
from tests.hosts.machines import TWO_SOCKETS
from tests.hosts.stage import Stage, consumer_uuid, drawn
from tests.worlds import provider_uuid

BEFORE = """
    cn1  VCPU=16  VGPU=8
    i1: cn1 VCPU=2 VGPU=1
    i2: cn1 VCPU=2 VGPU=4
"""

AFTER = """
    cn1  VCPU=16
      cn1_gpu0  VGPU=4  CUSTOM_OWNER_BERTH_STATIC
      cn1_gpu1  VGPU=4  CUSTOM_OWNER_BERTH_STATIC
    i1: cn1 VCPU=2, cn1_gpu1 VGPU=1
    i2: cn1 VCPU=2, cn1_gpu0 VGPU=4
"""

PROVIDERS = """
inventories:
  VCPU: {total: 16}
children:
  - {name: $NODE_gpu0, inventories: {VGPU: {total: 4}}}
  - {name: $NODE_gpu1, inventories: {VGPU: {total: 4}}}
moves:
  - {class: VGPU, from: $NODE, to: [$NODE_gpu0, $NODE_gpu1]}
"""


class Office:
    """A database, the configuration of a host's agent, and no service."""

    def __init__(self, folder: Path, run: InProcess) -> None:
        self.folder = folder
        self.agent = folder / "agent.yaml"
        self._run = run
        self._conf = folder / "placement.conf"
        self._conf.write_text(f"[placement_database]\nconnection = sqlite:///{folder}/berth.db\n")
        (folder / "providers.yaml").write_text(PROVIDERS)
        self.nodes("cn1")

    def nodes(self, *names: str) -> None:
        """Say which nodes the host has; the static driver knows all of them."""
        listed = "".join(f"  - {{name: {one}, uuid: {provider_uuid(one)}}}\n" for one in names)
        self.configure(
            f"driver: static\n"
            f"options: {{file: {self.folder}/providers.yaml, state: {self.folder}/owned.json}}\n"
            f"nodes:\n{listed}"
        )

    def configure(self, text: str) -> None:
        """Write the agent's configuration."""
        self.agent.write_text(f"{text}state_dir: {self.folder}/state\n")

    @contextmanager
    def stage(self) -> Iterator[Stage]:
        """The service in this process."""
        with PlacementDirect(config.load([str(self._conf)])) as client:
            stage = Stage(client)
            stage.name_consumers("i1", "i2", "i3")
            yield stage

    def show(self, drawing: str) -> None:
        """Put a world into the database."""
        with self.stage() as stage:
            stage.show(drawing)

    def picture(self) -> str:
        """The state of the database, drawn."""
        with self.stage() as stage:
            return stage.picture()

    def everything(self) -> tuple[list[str], list[str]]:
        """Every row of the database, and every file of the host."""
        with closing(sqlite3.connect(self.folder / "berth.db")) as database:
            rows = list(database.iterdump())
        files = (path for path in self.folder.rglob("*") if "berth.db" not in path.name)
        return rows, sorted(str(path) for path in files)

    def migrate(self, *options: object) -> subprocess.CompletedProcess[str]:
        """`berth migrate-inventory ...`."""
        arguments = [str(option) for option in options]
        own = ["--config", str(self.agent), "--config-file", str(self._conf)]
        return self._run("migrate-inventory", *own, *arguments)


@pytest.fixture
def office(tmp_path: Path, in_process: InProcess) -> Office:
    """A host whose vGPUs are to move from its root to two GPUs."""
    return Office(tmp_path, in_process)


def test_it_does_not_write_beside_a_running_agent(office: Office) -> None:
    """Not a row; a dry run may look all the same."""
    office.show(BEFORE)
    with closing(StateLock()) as agent:
        agent.hold(office.folder / "state")
        before = office.everything()
        assert office.migrate("--dry-run").returncode == ExitCode.PENDING
        done = office.migrate()
        assert done.returncode == ExitCode.IN_USE, done.stderr
        assert f"uses {office.folder}/state: stop it" in done.stderr
        assert office.everything() == before


def test_a_dry_run_shows_what_would_be_and_writes_nothing(office: Office) -> None:
    """One tree with its changes marked, and what moves; not a row, not a file."""
    office.show(BEFORE)
    before = office.everything()
    done = office.migrate("--dry-run")
    assert done.returncode == ExitCode.PENDING
    assert office.everything() == before
    i1, i2 = consumer_uuid("i1"), consumer_uuid("i2")
    moves = sorted([f"{i1}: cn1 VGPU=1 -> cn1_gpu1 VGPU=1", f"{i2}: cn1 VGPU=4 -> cn1_gpu0 VGPU=4"])
    assert done.stdout.splitlines() == [
        f"cn1 ({provider_uuid('cn1')})",
        "  ~ cn1  VCPU=16  -VGPU=8",
        "  +   cn1_gpu0  +VGPU=4  +CUSTOM_OWNER_BERTH_STATIC",
        "  +   cn1_gpu1  +VGPU=4  +CUSTOM_OWNER_BERTH_STATIC",
        *(f"  ~ consumer {move}" for move in moves),
        "  2 providers created, 1 changed, 0 deleted; 2 consumers moved; 5 writes",
    ]
    assert "dry run: 1 of 1 node would change; nothing was written" in done.stderr


def test_a_dry_run_of_a_host_that_is_not_known_writes_nothing(office: Office) -> None:
    """Neither its root nor the uuid that it would have."""
    office.show("cn9  VCPU=1")
    (office.folder / "providers.yaml").write_text(
        "inventories: {CUSTOM_THING: {total: 1}}\ntraits: [CUSTOM_NEW]\n"
    )
    office.configure(office.agent.read_text().partition("nodes:")[0] + "node: {name: cn1}\n")
    before = office.everything()
    done = office.migrate("--dry-run")
    assert done.returncode == ExitCode.PENDING
    assert "  + cn1  +CUSTOM_THING=1  +CUSTOM_NEW\n" in done.stdout
    assert office.everything() == before


def test_a_host_is_migrated_once_and_taken_back(office: Office) -> None:
    """The second run writes nothing; the file of the first one undoes it."""
    office.show(BEFORE)
    done = office.migrate()
    assert (done.returncode, office.picture()) == (ExitCode.OK, drawn(AFTER))
    first, last = done.stdout.splitlines()
    assert first == "cn1: done, 2 providers created, 1 changed, 0 deleted; 2 consumers moved"
    (undo,) = (office.folder / "state/undo").iterdir()
    assert last == f"to undo this: berth migrate-inventory --undo {undo}"
    assert undo.stat().st_mode & 0o777 == 0o600

    before = office.everything()
    again = office.migrate()
    assert (again.returncode, again.stdout) == (ExitCode.OK, "cn1: nothing to do\n")
    assert office.everything() == before

    assert office.migrate("--undo", undo, "--dry-run").returncode == ExitCode.PENDING
    assert office.everything() == before
    assert office.migrate("--undo", undo).returncode == ExitCode.OK
    assert office.picture() == drawn(BEFORE)
    assert office.migrate("--undo", undo).stdout == "cn1: nothing to do\n"


def test_a_host_with_another_name_is_something_to_do(office: Office) -> None:
    """Even where its name is all that differs."""
    office.show("cn1  VCPU=16")
    (office.folder / "providers.yaml").write_text("inventories: {VCPU: {total: 16}}\n")
    assert office.migrate().stdout == "cn1: nothing to do\n"
    office.agent.write_text(office.agent.read_text().replace("name: cn1,", "name: cn1-new,"))
    done = office.migrate("--dry-run")
    assert done.returncode == ExitCode.PENDING
    assert "0 providers created, 1 changed, 0 deleted; 0 consumers moved; 1 write\n" in done.stdout
    assert office.migrate().stdout.startswith("cn1-new: done, 0 providers created, 1 changed")
    assert office.picture() == drawn("cn1-new  VCPU=16")
    assert office.migrate("--dry-run").stdout == "cn1-new: nothing to do\n"


def test_a_child_that_goes_is_one_write(office: Office) -> None:
    """What it has goes with it."""
    office.show("""
        cn1  VCPU=16
          cn1_gpu0  VGPU=4  CUSTOM_OWNER_BERTH_STATIC
    """)
    (office.folder / "providers.yaml").write_text("inventories: {VCPU: {total: 16}}\n")
    done = office.migrate("--dry-run")
    assert "0 providers created, 0 changed, 1 deleted; 0 consumers moved; 1 write\n" in done.stdout
    assert office.migrate().returncode == ExitCode.OK
    assert office.picture() == drawn("cn1  VCPU=16")


def test_an_undo_that_cannot_be_names_who_is_in_the_way(office: Office) -> None:
    """And changes nothing."""
    office.show(BEFORE)
    office.migrate("--undo-file", office.folder / "undo")
    with office.stage() as stage:
        stage.hold("i3", "cn1_gpu1 VGPU=2")
    before = office.picture()
    done = office.migrate("--undo", office.folder / "undo")
    assert done.returncode == ExitCode.HOST
    assert (
        f"consumer {consumer_uuid('i3')} holds 2 VGPU on cn1_gpu1, which would be deleted"
        in done.stdout
    )
    assert office.picture() == before


def test_who_cannot_be_migrated_is_told_and_the_others_are(office: Office) -> None:
    """Those with one reason together, at the end; each is as before."""
    office.nodes("cn1", "cn2", "cn3")
    office.show(BEFORE)
    office.show("cn2  VGPU=9\ncn3  VCPU=1\ni3: cn2 VGPU=9")
    done = office.migrate()
    assert done.returncode == ExitCode.HOST
    assert "cn1: done," in done.stdout and "cn3: done," in done.stdout
    assert "cn2: not migrated: " in done.stdout and consumer_uuid("i3") in done.stdout
    assert "1 of 3 nodes cannot be migrated and is unchanged" in done.stderr
    assert "nodes: 3" in done.stderr
    assert "i3: cn2 VGPU=9" in office.picture() and "i2: cn1 VCPU=2, cn1_gpu0" in office.picture()


def test_a_file_that_is_wrong_is_told_once_for_all_nodes(office: Office) -> None:
    """Not a thousand times."""
    office.nodes(*(f"host-{number}" for number in range(12)))
    office.show(BEFORE)
    (office.folder / "providers.yaml").write_text("inventories: {VCPU: {total: -1}}\n")
    done = office.migrate()
    assert done.returncode == ExitCode.CONFIGURATION
    assert done.stdout.count("inventories.VCPU.total: expected") == 1
    assert "host-9 and 2 more: not migrated: " in done.stdout


@pytest.mark.parametrize("adopts", [False, True])
def test_a_host_that_was_installed_anew_is_told_or_goes_on(office: Office, adopts: bool) -> None:
    """Scenario L: the name is that of a provider of which nobody holds anything."""
    office.show("cn1  VCPU=8")
    named = office.agent.read_text().partition("nodes:")[0]
    office.configure(f"{named}node: {{name: cn1}}\nadopt: {str(adopts).lower()}\n")
    before = office.everything()
    assert office.migrate("--dry-run").returncode == (13 if adopts else ExitCode.SERVICE)
    assert office.everything() == before
    done = office.migrate()
    if adopts:
        assert (done.returncode, office.picture().splitlines()[0]) == (ExitCode.OK, "cn1  VCPU=16")
    else:
        assert f"cn1 is taken by provider {provider_uuid('cn1')}" in done.stdout
        assert office.picture() == "cn1  VCPU=8"


def test_somebody_who_writes_meanwhile_is_told(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever else has just written, before; whoever does so again and again, in the end."""
    office.show(BEFORE)
    monkeypatch.setattr(command, "Tracker", partial(Tracker, attempts_max=2))
    edit = StaticDriver.update_provider_tree
    traits = iter(range(100))

    def meanwhile(self: StaticDriver, *arguments: Any) -> None:
        with office.stage() as stage:
            stage.trait("cn1", f"CUSTOM_T{next(traits)}")
        edit(self, *arguments)

    monkeypatch.setattr(StaticDriver, "update_provider_tree", meanwhile)
    done = office.migrate()
    assert done.returncode == ExitCode.IN_USE
    assert "warning: something wrote to sqlite:///" in done.stderr
    assert "cn1: not migrated: another program writes to it; stop every service" in done.stdout
    assert "i1: cn1 VCPU=2 VGPU=1" in office.picture()


def test_programs_can_read_it(office: Office) -> None:
    """As JSON: what would be, and what was done."""
    office.show(BEFORE)
    would = json.loads(office.migrate("--dry-run", "--json").stdout)
    (node,) = would["nodes"]
    assert (would["dry_run"], would["undo_file"], node["state"]) == (True, None, "to do")
    assert node["created"] == ["cn1_gpu0", "cn1_gpu1"]
    assert [one["name"] for one in node["after"]] == ["cn1", "cn1_gpu0", "cn1_gpu1"]
    assert {what: number for what, number in node["writes"].items() if number} == {
        "create": 2,
        "traits": 2,
        "reshape": 1,
    }
    (move,) = (one for one in node["moves"] if one["consumer"] == consumer_uuid("i2"))
    assert [(one["provider"], one["amount"]) for one in move["from"]] == [("cn1", 4)]
    assert [(one["provider"], one["amount"]) for one in move["to"]] == [("cn1_gpu0", 4)]
    done = json.loads(office.migrate("--json").stdout)
    assert done["nodes"][0]["state"] == "done" and Path(done["undo_file"]).exists()
    assert json.loads(office.migrate("--json").stdout)["nodes"][0]["state"] == "nothing to do"


def test_a_recorded_machine_is_split_by_its_nodes(office: Office) -> None:
    """Scenario B, as its operator does it: another model in the file, and the command."""
    root = TWO_SOCKETS.write(office.folder / "machine")
    text = (
        "driver: linux\nnode: {name: cn1, uuid: %s}\noptions: {root: %s, model: %s, disk: false}\n"
    )
    office.configure(text % (provider_uuid("cn1"), root, "flat"))
    office.show("")
    assert office.migrate().returncode == ExitCode.OK
    with office.stage() as stage:
        stage.hold("i1", "cn1 VCPU=4 MEMORY_MB=8192")
    office.configure(text % (provider_uuid("cn1"), root, "numa"))
    assert "i1: cn1 MEMORY_MB=8192 VCPU=4" in office.picture()
    assert office.migrate("--dry-run").returncode == ExitCode.PENDING
    assert office.migrate().returncode == ExitCode.OK
    assert "i1: cn1_NUMA0 MEMORY_MB=8192 VCPU=4" in office.picture()
    assert office.migrate().stdout == "cn1: nothing to do\n"


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--url", "http://x"), ExitCode.USAGE, "name a database, and --url"),
        (("--config", "/nowhere"), ExitCode.CONFIGURATION, "there is no file /nowhere"),
        (("--driver", "vmware"), ExitCode.CONFIGURATION, "Unknown driver 'vmware'"),
        (("--undo", __file__), ExitCode.CONFIGURATION, "cannot be read"),
    ],
)
def test_what_cannot_be_meant_is_one_line(
    office: Office, options: tuple[str, ...], code: ExitCode, said: str
) -> None:
    """With what would be right."""
    office.show("")
    done = office.migrate(*options)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr


@pytest.mark.parametrize("option", [(), ("--dry-run",)])
def test_a_database_that_is_not_there_is_not_made(office: Office, option: tuple[str, ...]) -> None:
    """It is certainly not the service's own."""
    done = office.migrate(*option)
    assert done.returncode == ExitCode.DATABASE
    assert "there is no database" in done.stderr
    assert not (office.folder / "berth.db").exists()


def test_on_a_pipe_a_line_is_printed_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    """Every ten seconds, and when it is done."""
    clock = iter([0.0, 1.0, 11.0, 12.0, 13.0])
    with reporting(lambda: next(clock)) as report:
        for number in range(1, 5):
            report("nodes", number, 4)
    assert capsys.readouterr().err == "nodes: 2 of 4\nnodes: 4\n"

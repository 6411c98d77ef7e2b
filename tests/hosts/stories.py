# SPDX-License-Identifier: Apache-2.0
"""Stories of hosts: what a machine shows, and what its driver reports to a service then.

They are in `stories/*.yaml`, by name; what is said under `.all` is so in each of a file. A story
has a world, drawn as in `tests/hosts/stage.py`, a host, the driver's options, and steps; a story of
one step has the members of its step itself. Each step changes the world or the host, reports, and
says what is so then (see `Step`). In drawings, `own` is the trait of berth's own providers, and an
inventory without `max` is given out whole (`max:any` is the service's default), except where a file
declares it. A picture leaves out what the root's processor can do.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, get_type_hints

import msgspec
import pytest

from berth.hosts.drivers.host_model.options import LibvirtOptions
from berth.hosts.drivers.libvirt.driver import LibvirtDriver
from berth.hosts.drivers.provider_config import ProviderConfig, WithProviderConfig
from berth.hosts.drivers.static import StaticDriver
from berth.hosts.errors import ComputeError
from berth.hosts.plan import Plan
from berth.hosts.report_client import ReportClient
from berth.hosts.service import Service
from berth.hosts.tracker import Driver
from tests.hosts import linux_hosts
from tests.hosts.drivers import GPUHost
from tests.hosts.hosts import periodic, start
from tests.hosts.libvirt_hosts import RecordedHost, domain_xml, gpu_host, pci_xml
from tests.hosts.linux_hosts import FakeNVML
from tests.hosts.machines import MACHINES, Machine
from tests.hosts.stage import Stage, consumer_uuid, drawn
from tests.worlds import aggregate_uuid, provider_uuid

#: What a provider.yaml begins with.
_CONFIG: Final = "meta: {schema_version: '1.0'}\nproviders: "

FOLDER: Final = Path(__file__).parent / "stories"


#: A drawing, or its lines, some of which may be lists themselves.
Lines = str | list[Any]


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happens, in this order, and what is so then."""

    #: Other members of the host, or the text of its file; a new driver reads it, unless the host is
    #: one with libvirt.
    host: dict[str, Any] | str | None = None
    #: By path, the text of changed files of a host with Linux, which the same driver reads.
    files: dict[str, str | None] = {}
    #: Other options, for a new driver.
    options: dict[str, Any] | None = None
    #: Whether the agent was started anew.
    anew: bool = False
    #: By consumer, what it holds from now on.
    hold: dict[str, str] = {}
    #: A consumer whose allocations are deleted, which moves no provider's generation.
    release: str = ""
    #: By name of a new provider, its parent.
    make: dict[str, str] = {}
    #: "PROVIDER CLASS AMOUNT"
    reserve: str = ""
    #: "PROVIDER TRAIT"
    trait: str = ""
    #: By provider and class, fields of an inventory.
    stock: dict[str, dict[str, dict[str, int]]] = {}
    #: What reports, on which node: a "start", or a "pass", which may be made several times;
    #: "unsent": a pass that the service does not get.
    do: str = "start"
    node: str = "cn1"
    times: int = 1

    #: The report fails: "TYPE: PATTERN", and nothing changes.
    error: str = ""
    #: "nothing", "something" or "reshape"
    plan: str = ""
    #: The world, or "same": as before the report.
    picture: Lines = ""
    #: Parts of it.
    has: list[str] = []
    lacks: list[str] = []
    #: All notices, and a part of them.
    notices: list[str] | None = None
    notice: str = ""
    #: What is logged once, in all steps.
    log: str = ""
    #: A resource class that exists.
    class_: str = msgspec.field(default="", name="class")
    #: A provider that is not written to.
    still: str = ""
    #: By consumer, the amount that is left on the root.
    unattributed: dict[str, int] | None = None


class Story(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happens to a host."""

    steps: list[Step]
    #: Kinds of drivers, each of which lives through it.
    driver: str = ""
    world: Lines = ""
    host: dict[str, Any] | str = {}
    options: dict[str, Any] = {}
    #: Whether the driver can ask for the use of providers.
    used: bool = False


_OF_STORY: Final = {field.name for field in msgspec.structs.fields(Story)}


def read_stories(name: str) -> list[Any]:
    """The stories of a file, each with the kind of driver, as pytest's parameters."""
    cases = []
    stories = msgspec.yaml.decode((FOLDER / f"{name}.yaml").read_bytes())
    for title, of_story in stories.items():
        if title.startswith("."):
            continue
        members = {**stories.get(".all", {}), **of_story}
        if "steps" not in members:
            only = {key: members.pop(key) for key in [*members] if key not in _OF_STORY}
            members["steps"] = [only]
        story = msgspec.convert(members, Story)
        for kind in (story.driver or name).split():
            cases.append(pytest.param(kind, story, id=f"{kind}-{title}".replace(" ", "_")))
    return cases


class Host:
    """A host of one kind, its driver, and the service to which it reports."""

    def __init__(self, kind: str, story: Story, stage: Stage, folder: Path) -> None:
        self._kind = kind
        self._stage = stage
        self._folder = folder
        self._used = stage.used if story.used else None
        self._members: Any = story.host
        self._options = story.options
        self._recorded = RecordedHost()
        self._made = 0
        self._files: dict[str, str | None] = {}
        self._change(story.host)
        self.driver: Any = self._make()

    def turn(self, step: Step) -> None:
        """Change the host, or start its agent anew."""
        self._files |= step.files
        write_files(self._root, self._files if self._kind == "linux" else step.files)
        if isinstance(step.host, str):
            self._change(step.host)
        elif step.host is not None:
            self._members = {**self._members, **step.host}
            self._change(self._members)
        if step.options is not None:
            self._options = {**self._options, **step.options}
        is_new = step.anew or step.options is not None
        if is_new or (self._kind == "linux" and step.host is not None):
            self.driver = self._make()

    @property
    def _root(self) -> Path:
        return self._folder / str(self._made) if self._kind == "linux" else self._folder

    def _change(self, members: Any) -> None:
        if self._kind == "static" and members:
            beside = self._folder / "new.yaml"
            beside.write_text(_UUID_OF.sub(_uuid_of, members))
            beside.replace(self._folder / "providers.yaml")
        elif self._kind == "config":
            texts = {f"provider_config/{name}": text for name, text in members.items()}
            texts = {name: text and _CONFIG + text for name, text in texts.items()}
            write_files(self._folder, {"provider_config": "/", **texts})
        elif self._kind == "libvirt":
            vars(self._recorded).update(vars(recorded_host(**members)))

    def _make(self) -> Driver:
        self._made += 1
        if self._kind == "config":
            config = ProviderConfig(self._folder / "provider_config", self._folder / "owned.json")
            return WithProviderConfig(GPUHost({}), config)
        if self._kind == "static":
            made = StaticDriver(self._folder / "providers.yaml", self._folder / "owned.json")
            made.used = self._used
            return made
        if self._kind == "libvirt":
            driver = LibvirtDriver(self._recorded, LibvirtOptions.read(_resolved(self._options)))
            driver.used = self._used
            return driver
        linux = linux_driver(self._root, self._members, self._options, used=self._used)
        write_files(self._root, self._files)
        return linux


def linux_driver(root: Path, members: Mapping[str, Any], options: Any, **more: Any) -> Driver:
    """The linux driver of a machine of `machines.yaml`, with other members.

    Args:
        members: `machine`, its name; `files`: by path, the text of one, `None` if it is not there,
            or "/" if it is a directory; `nvml`: how NVIDIA's library answers.
    """
    changes = dict(members)
    machine = MACHINES[changes.pop("machine", "plain")]
    files, nvml = changes.pop("files", {}), changes.pop("nvml", None)
    hints = get_type_hints(Machine)
    machine = replace(machine, **{k: msgspec.convert(v, hints[k]) for k, v in changes.items()})
    machine.write(root)
    write_files(root, files)
    library = None if nvml is None else FakeNVML(**nvml)
    return linux_hosts.driver(machine, root, nvml=library, **_resolved(options), **more)


def write_files(root: Path, files: Mapping[str, str | None]) -> None:
    """Write some of a machine's files."""
    for name, text in files.items():
        path = root / name
        if text is None and path.is_dir():
            shutil.rmtree(path)
        elif text is None:
            path.unlink(missing_ok=True)
        elif text == "/":
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{_UUID_OF.sub(_uuid_of, text)}\n")


def recorded_host(
    *,
    gpus: Mapping[str, str] | None = None,
    size: int = 4,
    stopped: str = "",
    names_uuid: bool = True,
    unseen: str = "",
    guests: Mapping[str, Mapping[str, Any]] | None = None,
    functions: Mapping[str, str] | None = None,
    node: int | None = None,
    parked: Mapping[int, int] | None = None,
    resting: tuple[int, ...] = (),
    **members: Any,
) -> RecordedHost:
    """A host with libvirt.

    Args:
        gpus, size, stopped, names_uuid: see `gpu_host`.
        unseen: a bus on which no device is seen.
        guests: by the name of a consumer, the arguments of `domain_xml`.
        functions: by the address of a physical function and of each virtual one of it, the device.
        node: the NUMA node of virtual functions.
        parked: by CPU of which libvirt does not tell, its NUMA node.
    """
    host = RecordedHost()
    if gpus is not None:
        host = gpu_host(gpus, size=size, stopped=stopped, names_uuid=names_uuid)
    if unseen:
        host.node_devices = [text for text in host.node_devices if f"_{unseen}_" not in text]
    for name, of_guest in (guests or {}).items():
        text = domain_xml(consumer_uuid(name), **of_guest)
        host.domains.append((text, name not in stopped.split()))
    card = next(iter(functions or ()), "")
    for address, device in (functions or {}).items():
        above = "" if address == card else card
        on = node if above else None
        host.node_devices.append(pci_xml(address, device, physical=above, node=on))
    host.resting_on = parked or {}
    host.resting = frozenset(parked or resting)
    vars(host).update(members)
    return host


def _resolved(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options in which consumers have their uuids."""
    changes = {}
    for name in ("placements", "assume", "migrations"):
        if isinstance(of := options.get(name), dict):
            changes[name] = {consumer_uuid(who): _uuid_of_text(where) for who, where in of.items()}
    return {**options, **changes}


def _uuid_of_text(value: object) -> object:
    is_name = isinstance(value, str) and re.fullmatch(r"[a-z]\d", value)
    return consumer_uuid(str(value)) if is_name else value


def live(
    kind: str, story: Story, stage: Stage, folder: Path, log: pytest.LogCaptureFixture
) -> None:
    """Tell a story, and see that it is so."""
    drawing = Drawing(kind)
    stage.name_aggregates("A", "B")
    stage.show(drawing.whole(story.world))
    host = Host(kind, story, stage, folder)
    for number, step in enumerate(story.steps):
        where = f"step {number}"
        for consumer, part in step.hold.items():
            stage.hold(consumer, part)
        if step.release:
            stage.release(step.release)
        for name, parent in step.make.items():
            stage.make(name, parent)
        if step.reserve:
            provider, name, amount = step.reserve.split()
            stage.reserve(provider, name, int(amount))
        if step.trait:
            stage.trait(*step.trait.split())
        for provider, stocks in step.stock.items():
            for name, fields in stocks.items():
                stage.stock(provider, name, **fields)
        host.turn(step)
        before = stage.picture() if step.error or step.picture == "same" else ""
        seen = stage.generation_of(step.still) if step.still else 0
        report = REPORTS[step.do]
        try:
            for _ in range(step.times):
                plan = report(ReportClient(stage.transport), host.driver, step.node)
        except ComputeError as error:
            text = f"{type(error).__name__}: {error} {getattr(error, 'actual_usage', '')}"
            assert step.error and re.search(_with_uuids(step.error), text), f"{where}: {text}"
            assert stage.picture() in (before, before or step.node), where
            continue
        assert not step.error, where
        after = stage.picture()
        if step.plan:
            shape = "reshape" if plan.is_reshape else "something" if plan else "nothing"
            assert shape == step.plan, where
        if step.picture == "same":
            assert after == before, where
        elif step.picture:
            whole = drawn(drawing.whole(step.picture))
            assert drawing.hidden(after) == drawing.hidden(whole), where
        short = drawing.short(after)
        assert [part for part in step.has if part not in short] == [], f"{where}:\n{short}"
        assert [part for part in step.lacks if part in short] == [], f"{where}:\n{short}"
        if step.notices is not None:
            assert list(host.driver.notices) == [_with_uuids(text) for text in step.notices], (
                f"{where}: {host.driver.notices}"
            )
        if step.notice:
            assert _with_uuids(step.notice) in "; ".join(host.driver.notices), where
        if step.log:
            assert log.text.count(_with_uuids(step.log)) == 1, where
        assert not step.class_ or Service(stage.transport).get(f"/resource_classes/{step.class_}")
        assert not step.still or stage.generation_of(step.still) == seen, where
        if step.unattributed is not None:
            left = {consumer.consumer: consumer.amount for consumer in host.driver.unattributed}
            assert left == {consumer_uuid(k): v for k, v in step.unattributed.items()}, where


def unsent(client: ReportClient, driver: Driver, node: str) -> Plan:
    """A pass that nobody sends."""
    tree = client.get_provider_tree_and_ensure_root(None, provider_uuid(node), node)
    driver.update_provider_tree(tree, node)
    return Plan()


REPORTS: Final[Mapping[str, Callable[[ReportClient, Driver, str], Plan]]] = {
    "start": start,
    "pass": periodic,
    "unsent": unsent,
}


def _with_uuids(text: str) -> str:
    """A text in which `<i1>` stands for the uuid of a consumer."""
    return re.sub(r"<([a-z]+\d?)>", lambda match: consumer_uuid(match[1]), text)


class Drawing:
    """Drawings of the hosts of one kind of driver."""

    def __init__(self, kind: str) -> None:
        self._is_declared = kind in ("static", "config")
        self._owner = f"CUSTOM_OWNER_BERTH{'_STATIC' if self._is_declared else ''}"

    def whole(self, lines: Lines) -> str:
        """With the owner's trait, and each `max`."""
        drawing = "\n".join(_flat(lines))
        drawing = re.sub(r"\bown\b", self._owner, drawing)
        return drawing if self._is_declared else _STOCK.sub(_with_max, drawing)

    def short(self, picture: str) -> str:
        """A picture as it is drawn in a story."""
        picture = re.sub(rf"\b{self._owner}\b", "own", picture)
        return picture if self._is_declared else _STOCK.sub(_without_max, picture)

    def hidden(self, picture: str) -> str:
        """Without what the root's processor and disk can do."""
        return picture if self._is_declared else _OF_PROCESSOR.sub(_without_traits, picture)


_UUID_OF: Final = re.compile(r"<(rp|agg):(\w+)>")


def _uuid_of(name: re.Match[str]) -> str:
    return provider_uuid(name[2]) if name[1] == "rp" else aggregate_uuid(name[2])


def _flat(lines: Lines) -> Iterator[str]:
    if isinstance(lines, str):
        yield lines
    else:
        for some in lines:
            yield from _flat(some)


_STOCK: Final = re.compile(r"(?<=  )([A-Z]\w*)=(\d+)(?:\(([^)]*)\))?", re.MULTILINE)
_OF_PROCESSOR: Final = re.compile(r"^\w.*", re.MULTILINE)


def _with_max(stock: re.Match[str]) -> str:
    fields = stock[3] or ""
    if "max:" not in fields:
        fields = ",".join(filter(None, [fields, f"max:{stock[2]}"]))
    fields = re.sub(r",?max:any", "", fields)
    return f"{stock[1]}={stock[2]}" + (f"({fields})" if fields else "")


def _without_max(stock: re.Match[str]) -> str:
    fields = [f for f in (stock[3] or "").split(",") if f and f != f"max:{stock[2]}"]
    if "max:" not in (stock[3] or ""):
        fields.append("max:any")
    return f"{stock[1]}={stock[2]}" + (f"({','.join(fields)})" if fields else "")


def _without_traits(line: re.Match[str]) -> str:
    return re.sub(r"  (?:HW_ARCH|HW_CPU|STORAGE_DISK|COMPUTE_NODE)\w*", "", line[0])

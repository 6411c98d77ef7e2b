# SPDX-License-Identifier: Apache-2.0
"""The configuration and the state of an agent: their faults, each with its place, the nodes, the
machine to which the state belongs, and files after a crash.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from contextlib import closing
from math import inf
from pathlib import Path
from typing import Any, Final

import pytest

from berth.cli.agent import SAMPLE
from berth.hosts.agent_config import AgentConfig, AgentFile, ServiceAccess, read_agent_config
from berth.hosts.errors import (
    BadConfiguration,
    ComputeError,
    NotThere,
    OtherMachine,
    Refused,
    Unreachable,
)
from berth.hosts.fields import FilePath
from berth.hosts.files import UndoFile, replace_file
from berth.hosts.service import Answer, Service
from berth.hosts.state_dir import StateLock, take_over_state
from berth.hosts.tracker import Node
from berth.hosts.transports import of_service, with_token
from berth.hosts.undo import new_undo_path
from tests.hosts.hosts import Answered
from tests.servers.ports import free_port

UUID = "6f1c2d5e-3a41-4f58-9a3c-0d6f0e9b7a10"


def said(folder: Path, text: str) -> AgentConfig:
    """The message for a file."""
    path = folder / "agent.yaml"
    path.write_text(f"{text}\nstate_dir: {folder}/state\n")
    return read_agent_config(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("drivr: linux", "drivr: unknown key; did you mean driver?"),
        ("service: {}", "service: needs either token_file, or auth_type and auth"),
        ("service: {token_file: t}", "service: needs the url of the service"),
        (
            "service: {url: 'placement:8778', token_file: t}",
            "service.url: expected http:// or https:// and a host",
        ),
        ("service: {url: http://x, token_file: t, auth_type: password}", "service: needs either"),
        ("interval_s: 0", "interval_s: expected a number of seconds >= 1, got 0"),
        ("interval_s: .inf", "interval_s: expected a number of seconds >= 1, got inf"),
        (
            "start_patience_s: long",
            "start_patience_s: expected a number of seconds >= 0, or forever, got 'long'",
        ),
        (
            "metrics: {bind: here}",
            "metrics.bind: expected HOST:PORT, as in 127.0.0.1:9109 or [::1]:9109, got 'here'",
        ),
        ("metrics: {bind: '127.0.0.1:70000'}", "expected HOST:PORT"),
        ("node: {uuid: host-1}", "node.uuid: expected a uuid, got 'host-1'"),
        ("node: {name: a}\nnodes: [{name: b}]", "has both node and nodes; use one of them"),
        ("nodes: []", "nodes: expected a list of length >= 1, got []"),
        ("nodes: [{}]", "nodes[0].name: is missing"),
        ("nodes: [{name: a}, {name: a}]", "2 nodes have the name a"),
        (
            f"nodes: [{{name: a, uuid: {UUID}}}, {{name: b, uuid: {UUID}}}]",
            "2 nodes have the uuid 6f1c",
        ),
    ],
)
def test_a_fault_is_told_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    """The message says what would be valid."""
    with pytest.raises(BadConfiguration) as refused:
        said(tmp_path, text)
    assert says in str(refused.value)


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    """So that the operator can repair them in one go."""
    with pytest.raises(BadConfiguration) as refused:
        said(tmp_path, "interval_s: 0\nstart_patience_s: -1\nnode: {name: ''}")
    assert len(refused.value.faults) == 3


def test_a_service_is_needed_where_it_is_asked(tmp_path: Path) -> None:
    """Not earlier: some commands use the database directly, or contact no service."""
    config = said(tmp_path, "node: {name: cn1}")
    with pytest.raises(BadConfiguration, match="service: is missing; it needs url"):
        config.access()


@pytest.mark.parametrize(("text", "seconds"), [("forever", inf), ("0", 0), ("0.5", 0.5)])
def test_patience_has_no_end_or_any(tmp_path: Path, text: str, seconds: float) -> None:
    """For hosts that no one watches, and for those where somebody waits."""
    assert said(tmp_path, f"start_patience_s: {text}").start_patience_s == seconds


def test_several_nodes_keep_their_uuids_by_their_names(tmp_path: Path) -> None:
    """For nodes whose uuid is not in the configuration."""
    given = Node(UUID, "b")
    first = said(tmp_path, f"nodes: [{{name: a}}, {{name: b, uuid: {UUID}}}]").nodes()
    then = said(tmp_path, f"nodes: [{{name: c}}, {{name: b, uuid: {UUID}}}, {{name: a}}]").nodes()
    assert (first[1], then[1], then[2]) == (given, given, first[0])
    assert len({node.uuid for node in then}) == 3
    said(tmp_path, "nodes: [{name: d}]").nodes()
    assert said(tmp_path, "nodes: [{name: c}, {name: a}]").nodes() == (then[0], then[2])


@pytest.mark.parametrize("text", ["node: {name: a}", "nodes: [{name: a}]"])
def test_who_only_looks_leaves_no_uuid_behind(tmp_path: Path, text: str) -> None:
    """The agent itself, as its own user, makes the directory later."""
    said(tmp_path, text).nodes(read_only=True)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(("text", "file"), [("node", "node-uuid"), ("nodes", "node-uuids.json")])
def test_a_broken_file_of_uuids_is_not_replaced(tmp_path: Path, text: str, file: str) -> None:
    """New uuids would be new hosts, and the allocations on the old ones would be lost."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / file).write_text("oops")
    config = said(tmp_path, "node: {name: a}" if text == "node" else "nodes: [{name: a}]")
    with pytest.raises(BadConfiguration, match=f"{file} does not contain"):
        config.nodes()
    assert (tmp_path / "state" / file).read_text() == "oops"


def test_several_nodes_are_not_one_host(tmp_path: Path) -> None:
    """Otherwise each would report all resources of the host."""
    config = said(tmp_path, "driver: linux\nnodes: [{name: a}, {name: b}]")
    with pytest.raises(BadConfiguration, match="nodes: the driver linux reports one host"):
        config.make_driver(lambda uuid: {})


def test_the_sample_is_a_configuration(tmp_path: Path) -> None:
    """It has every key, and the lines that are commented out are valid as well."""
    assert said(tmp_path, SAMPLE).access().token_file == Path("/etc/berth/agent.token")
    whole = re.sub(r"^# (?=[a-z_]+:)", "", SAMPLE, flags=re.MULTILINE).replace("\nstate_dir", "\n#")
    assert said(tmp_path, whole).metrics_bind == ("127.0.0.1", 9109)
    assert said(tmp_path, "metrics: {bind: '[::1]:9109'}").metrics_bind == ("::1", 9109)
    for key in set(AgentFile.__struct_encode_fields__) - {"nodes"}:
        assert re.search(rf"^(# )?{key}:", SAMPLE, re.MULTILINE), key


def test_a_file_in_a_folder_of_others_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error explains it to whoever starts the agent as another user."""

    def refused(path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", refused)
    with pytest.raises(BadConfiguration, match=r"cannot read .*agent\.yaml: Permission denied"):
        read_agent_config(tmp_path / "agent.yaml")


def machine(folder: Path, name: str, machine_id: str | None, *, node: str = "node") -> AgentConfig:
    """The configuration of an agent on a machine, with its state in a folder."""
    folder.mkdir(exist_ok=True)
    (folder / "etc").mkdir(exist_ok=True)
    (folder / "etc/machine-id").unlink(missing_ok=True)
    if machine_id is not None:
        (folder / "etc/machine-id").write_text(f"{machine_id}\n")
    entry = {"name": name}
    body = {
        "driver": "linux" if node == "node" else "static",
        node: entry if node == "node" else [entry],
        "options": {"root": str(folder)},
        "state_dir": str(folder / "state"),
    }
    path = folder / "agent.yaml"
    path.write_text(json.dumps(body))
    return read_agent_config(path)


def cloned(folder: Path, name: str, machine_id: str | None) -> AgentConfig:
    """A machine that was made from the image of `first`, which has reported."""
    shutil.copytree(folder / "first", folder / "clone")
    return machine(folder / "clone", name, machine_id)


@pytest.mark.parametrize(
    ("first", "second", "is_refused"),
    [
        (("a", "id-1"), ("a", "id-1"), False),  # it starts again
        (("a", "id-1"), ("b", "id-1"), True),  # a clone with its machine ID, or it was renamed
        (("a", "id-1"), ("a", "id-2"), True),  # a clone that has not got its name yet
        (("a", "id-1"), ("b", "id-2"), True),
        (("a", "id-1"), ("b", None), True),
        (("a", None), ("b", "id-2"), True),
        (("a", None), ("b", None), True),
        (("a", "id-1"), ("b", "uninitialized"), True),
        (("a", "uninitialized"), ("b", "uninitialized"), True),
        (("a", "id-1"), ("a", None), False),  # as far as anybody can tell
        (("a", None), ("a", "id-1"), False),  # it has got an id
        (("a", "uninitialized"), ("a", "id-1"), False),
        (("a", "id-1"), ("a", "uninitialized"), False),
    ],
)
def test_the_state_of_another_machine_is_refused(
    tmp_path: Path,
    first: tuple[str, str | None],
    second: tuple[str, str | None],
    is_refused: bool,
) -> None:
    """By the machine's id or the node's name; before anything is sent, and whatever command
    asks."""
    (original,) = machine(tmp_path / "first", *first).nodes()
    clone = cloned(tmp_path, *second)
    for read_only in (True, False):
        if is_refused:
            with pytest.raises(OtherMachine, match="that reports the host a: if this machine was"):
                clone.nodes(read_only=read_only)
        else:
            assert clone.nodes(read_only=read_only)[0].uuid == original.uuid
    assert machine(tmp_path / "first", *first).nodes() == (original,)
    # It is confidential, and the state may be shown to others.
    assert "id-" not in (tmp_path / "first/state/machine.json").read_text()


def test_a_machine_takes_the_place_of_another(tmp_path: Path) -> None:
    """On purpose; then it is the other that is refused, if it still has this state. A clone without
    the state is a host of its own."""
    (original,) = machine(tmp_path / "first", "a", "id-1").nodes()
    clone = cloned(tmp_path, "b", "id-2")
    take_over_state(clone.state_dir, clone.machine)
    assert clone.nodes() == (Node(original.uuid, "b"),)
    shutil.rmtree(tmp_path / "first/state")
    shutil.copytree(clone.state_dir, tmp_path / "first/state")
    with pytest.raises(OtherMachine, match="reports the host b"):
        machine(tmp_path / "first", "a", "id-1").nodes()
    shutil.rmtree(clone.state_dir)
    assert clone.nodes()[0].uuid != original.uuid


def test_a_list_of_nodes_belongs_to_no_machine(tmp_path: Path) -> None:
    """It reports others, from wherever it runs."""
    first = machine(tmp_path / "first", "a", "id-1", node="nodes").nodes()
    shutil.copytree(tmp_path / "first", tmp_path / "clone")
    assert machine(tmp_path / "clone", "a", "id-2", node="nodes").nodes() == first


def test_what_nobody_can_read_is_not_replaced(tmp_path: Path) -> None:
    """The message says what would be right."""
    config = machine(tmp_path / "first", "a", "id-1")
    config.state_dir.mkdir()
    (config.state_dir / "machine.json").write_text("{}")
    with pytest.raises(BadConfiguration, match=r"machine\.json does not say .* --take-over"):
        config.nodes()
    assert (config.state_dir / "machine.json").read_text() == "{}"


def test_state_that_cannot_be_written_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An agent with a UUID in its configuration reports without it."""
    config = machine(tmp_path / "first", "a", "id-1")
    config.nodes()
    (config.state_dir / "machine.json").unlink()
    (config.state_dir / "machine.json.new").mkdir()
    assert len(config.nodes()) == 1
    assert "A copy of this host's image would report as this host" in caplog.text


#: A user that is not root.
NOBODY: Final = 65534


def read(undo: UndoFile) -> list[object]:
    """The numbers of the changes in a file."""
    return [change["n"] for change in undo.read(lambda change: "n" in change, made_by="a test")]


def test_a_change_that_was_not_written_whole_was_not_made(tmp_path: Path) -> None:
    """The process was killed while writing the last change; the earlier ones can still be
    undone."""
    undo = UndoFile(tmp_path / "undo.jsonl")
    undo.create()
    undo.append({"n": 1})
    with undo.path.open("a") as file:
        file.write('{"n": 2, "provid')
    assert read(undo) == [1]
    undo.append({"n": 3})
    assert read(undo) == [1, 3]


def test_a_file_that_is_broken_in_its_middle_is_refused(tmp_path: Path) -> None:
    """Its meaning would be a guess."""
    undo = UndoFile(tmp_path / "undo.jsonl")
    undo.path.write_text('{"n": 1}\n{"n"\n{"n": 3}\n')
    with pytest.raises(BadConfiguration, match="cannot be read"):
        read(undo)


def test_a_kept_file_outlasts_a_fall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Including its directory entry: a host that lost its uuid would come back as another host."""
    synced: list[str] = []

    def fsync(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))

    monkeypatch.setattr(os, "fsync", fsync)
    replace_file(tmp_path / "node-uuid", "x\n")
    assert synced == [f"{tmp_path}/node-uuid.new", str(tmp_path)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_root_makes_in_an_agents_folder_is_the_agents(tmp_path: Path) -> None:
    """If root migrates a host, the agent can still start afterwards."""
    os.chown(tmp_path, NOBODY, NOBODY)
    undo = UndoFile(new_undo_path(tmp_path))
    undo.create()
    replace_file(tmp_path / "node-uuid", "x\n")
    with closing(StateLock()) as lock:
        lock.hold(tmp_path)
    made = [undo.path, undo.path.parent, tmp_path / "node-uuid", tmp_path / "lock"]
    assert {path.stat().st_uid for path in made} == {NOBODY}


def test_no_link_in_an_agents_folder_leads_elsewhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Root does not write through links that the agent's user has made."""
    other = tmp_path / "other"
    other.write_text("of somebody else")
    for name in ("lock", "node-uuid.new"):
        (tmp_path / name).symlink_to(other)
    with closing(StateLock()) as lock:
        lock.hold(tmp_path)
    with pytest.raises(OSError, match="symbolic links"):
        replace_file(tmp_path / "node-uuid", "x\n")
    assert other.read_text() == "of somebody else"
    assert "Cannot lock the state directory" in caplog.text


PAGE = "<!DOCTYPE html><html><head><title>Log in</title></head><body>Please</body></html>"


class Says(Answered):
    """A transport with one response to any request, which is that response too."""

    def request(self, url: str, method: str, **options: Any) -> Answer:
        return self


_ELSEWHERE: Final = r"^[^<]*there is no placement service here: check the URL of the service$"


@pytest.mark.parametrize(
    ("answer", "path", "kind", "words"),
    [
        # It is not mistaken for a deleted provider; an HTML page is shown without tags.
        (Says(404, PAGE), "", Refused, _ELSEWHERE),
        (Says(404, ""), "", Refused, _ELSEWHERE),
        # A provider that is not there is no wrong URL.
        (Says(404, "{}"), "/x/traits", NotThere, "404"),
        # For example a maintenance page of a proxy.
        (Says(200, PAGE), "", Unreachable, "not JSON; check that the URL is that of the placement"),
        (
            Says(401, '{"message": "No valid identity.", "code": "401"}'),
            "",
            Refused,
            r"^GET /resource_providers\?in_tree=x was answered 401: No valid identity; "
            "authentication failed: check the token or the password$",
        ),
    ],
)
def test_an_answer_that_is_none_is_told(
    answer: Says, path: str, kind: type[ComputeError], words: str
) -> None:
    """In the words of the service, and with what to do."""
    with pytest.raises(kind, match=words) as raised:
        Service(answer).get(f"/resource_providers{path}", in_tree="x")
    assert type(raised.value) is kind


@pytest.mark.parametrize(("user", "told"), [("", ""), ("agent:hunter2@", "agent:***@")])
def test_who_does_not_answer_is_told_in_a_few_words(user: str, told: str) -> None:
    """The address without its password, and the reason."""
    at = f"127.0.0.1:{free_port()}"
    with pytest.raises(Unreachable) as raised:
        Service(with_token(f"http://{user}{at}", "token")).get("/traits")
    assert str(raised.value) == (
        f"GET /traits got no answer from http://{told}{at}: Connection refused"
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot read {}: No such file or directory"),
        (b"\xff", "cannot read {}: it is not UTF-8 text"),
        # For example because the command that writes it has failed.
        (b"\n", "{} is empty; `berth token create"),
    ],
)
def test_a_token_file_that_cannot_be_read_is_named_with_the_reason(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    """In words, without an error number or a codec."""
    token = tmp_path / "token"
    if content is not None:
        token.write_bytes(content)
    with pytest.raises(BadConfiguration) as refused:
        of_service(ServiceAccess(url="http://x", token_file=FilePath(token)))
    assert f"service.token_file: {reason.format(token)}" in str(refused.value)

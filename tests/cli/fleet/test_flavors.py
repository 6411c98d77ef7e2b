# SPDX-License-Identifier: Apache-2.0
"""`berth flavor`, and questions with `--flavor`, on the demo fleet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.fleet.ways import BothWays
from tests.openapi.conformance import check_body

SMALL: Final = ("VCPU=2", "MEMORY_MB=2048")


@pytest.fixture(scope="module")
def first_database(demo_database: Path) -> Path:
    """The demo fleet."""
    return demo_database


@pytest.fixture(autouse=True)
def no_flavors(berth: BothWays) -> Iterator[None]:
    """Each test begins without flavors."""
    yield
    if names := [item["name"] for item in berth.ok("flavor", "list", "--json").answer["flavors"]]:
        berth.ok("flavor", "delete", *names)


def stored(berth: BothWays, name: str) -> dict[str, Any]:
    """A flavor as the service has it."""
    shown: dict[str, Any] = berth.ok("flavor", "show", name, "--json").answer
    del shown["revision"], shown["name"]
    return shown


def test_a_flavor_is_set_listed_shown_and_deleted(berth: BothWays) -> None:
    """With the options of a question."""
    assert berth.ok("flavor", "list").lines == ["0 flavors"]
    options = ("--required", "!HW_CPU_X86_AVX", "--host-member-of", "zone=z1")
    assert berth.ok("flavor", "set", "m1.small", *SMALL, *options).lines == [
        "created m1.small: VCPU 2, MEMORY_MB 2,048"
    ]
    device = ("--group", "_GPU VGPU=1 required=CUSTOM_A100", "--together", ",_GPU@HW_NUMA_ROOT")
    text = ("--description", "One GPU", "--hide")
    berth.ok("flavor", "set", "gpu", "VCPU=4", *device, *text)
    assert berth.ok("flavor", "list").lines == [
        "FLAVOR    ASKS FOR                 DESCRIPTION",
        "gpu       VCPU 4; _GPU: VGPU 1     One GPU",
        "m1.small  VCPU 2, MEMORY_MB 2,048  -",
        "2 flavors",
    ]
    first, *request = berth.ok("flavor", "show", "gpu").lines
    assert first == "gpu: One GPU, not in metrics"
    assert json.loads("\n".join(request)) == {
        "groups": {
            "": {"resources": {"VCPU": 4}},
            "_GPU": {"resources": {"VGPU": 1}, "required": ["CUSTOM_A100"]},
        },
        "together": [{"groups": ["", "_GPU"], "at": "HW_NUMA_ROOT"}],
    }
    assert stored(berth, "m1.small") == {
        "request": {
            "groups": {
                "": {
                    "resources": {"VCPU": 2, "MEMORY_MB": 2048},
                    "required": ["!HW_CPU_X86_AVX"],
                }
            },
            "host": {"member_of": ["zone=z1"]},
        },
        "expose": True,
        "description": "",
    }
    assert berth.ok("flavor", "delete", "gpu", "m1.small").lines == [
        "deleted gpu",
        "deleted m1.small",
    ]
    for command in ("show", "delete"):
        gone = berth("flavor", command, "gpu")
        assert (gone.code, gone.stderr) == (11, "berth: There is no flavor gpu\n")


def test_a_flavor_is_replaced_whole(berth: BothWays) -> None:
    """From options, from a query, or from the output of `flavor show --json`."""
    berth.ok("flavor", "set", "a", *SMALL, "--description", "Small", "--hide")
    taken = berth("flavor", "set", "a", "resources=VCPU:4")
    assert (taken.code, taken.stdout) == (11, "")
    assert taken.stderr == "berth: There is a flavor a already: --replace replaces it\n"
    assert berth.ok("flavor", "set", "a", "resources=VCPU:4", "--replace").lines == [
        "replaced a: resources=VCPU:4"
    ]
    assert stored(berth, "a") == {
        "request": {"query": "resources=VCPU:4"},
        "expose": True,
        "description": "",
    }


def test_a_flavor_comes_from_a_file(berth: BothWays, tmp_path: Path) -> None:
    """A request, or a flavor as `flavor show --json` prints it, which options change."""
    berth.ok("flavor", "set", "a", *SMALL, "--description", "Small", "--hide")
    file = tmp_path / "flavor.json"
    file.write_text(berth.ok("flavor", "show", "a", "--json").stdout)
    berth.ok("flavor", "set", "b", "--request", str(file))
    assert stored(berth, "b") == stored(berth, "a")
    others = ("--expose", "--description", "Other", "--replace")
    berth.ok("flavor", "set", "b", "--request", str(file), *others)
    assert stored(berth, "b") == stored(berth, "a") | {"expose": True, "description": "Other"}
    file.write_text('{"groups": {"": {"resources": {"VCPU": 1}}}}')
    berth.ok("flavor", "set", "b", "--request", str(file), "--replace")
    assert stored(berth, "b")["request"] == {"groups": {"": {"resources": {"VCPU": 1}}}}


def test_what_is_wrong_is_said(berth: BothWays) -> None:
    """By the service; nothing is written."""
    wrong = berth("flavor", "set", "a", "VCPUU=1")
    assert wrong.code == 11
    assert wrong.stderr.startswith("berth: There is no resource class VCPUU. Did you mean VCPU")
    wrong = berth("flavor", "set", "a b", "VCPU=1")
    assert wrong.code == 11 and "A flavor has a name of 1 to 255 letters" in wrong.stderr
    assert berth("flavor", "set", "a").code == 2
    assert berth.ok("flavor", "list").lines == ["0 flavors"]


def test_questions_ask_for_a_flavor(berth: BothWays) -> None:
    """And for the host that is named beside it."""
    berth.ok("flavor", "set", "gpu", "VGPU=1", "--required", "CUSTOM_A100")
    every = berth.ok("candidates", "VGPU=1", "--required", "CUSTOM_A100", "--json").answer
    by_flavor = berth.ok("candidates", "--flavor", "gpu", "--json").answer
    assert by_flavor["candidates"] == every["candidates"]
    lines = berth.ok("candidates", "--flavor", "gpu", "--host-in", "cn010").lines
    assert lines[1].startswith("cn010  cn010_gpu")
    here = ("--flavor", "gpu", "--host-in", "cn010", "--host-not-in", "cn010")
    printed = berth("candidates", *here)
    assert printed.code == 14
    assert printed.lines == berth.ok("why", *here).lines
    assert "on cn010" in printed.stdout
    gone = berth("candidates", "--flavor", "gpus")
    assert (gone.code, gone.stdout) == (11, "")
    assert "There is no flavor gpus" in gone.stderr and "Did you mean gpu?" in gone.stderr


@pytest.mark.parametrize(
    ("typed", "option"),
    [
        (("VCPU=1",), "CLASS=AMOUNT"),
        (("resources=VCPU:1",), "CLASS=AMOUNT"),
        (("--required", "CUSTOM_A100"), "--required"),
        (("--group", "_GPU VGPU=1"), "--group"),
        (("--apart", "_A,_B@tree"), "--apart"),
    ],
)
def test_a_flavor_has_groups_of_its_own(
    berth: BothWays, typed: tuple[str, ...], option: str
) -> None:
    """Options for groups are refused beside it, rather than ignored."""
    for question in ("candidates", "why"):
        wrong = berth(question, "--flavor", "gpu", *typed)
        assert wrong.code == 2 and f"{option} and --flavor exclude each other" in wrong.stderr


def test_a_file_excludes_a_flavor(berth: BothWays, tmp_path: Path) -> None:
    """As it does all other options of the request."""
    file = tmp_path / "request.json"
    file.write_text('{"flavor": "gpu"}')
    wrong = berth("candidates", "--flavor", "gpu", "--request", str(file))
    assert wrong.code == 2 and "--flavor and --request exclude each other" in wrong.stderr
    berth.ok("flavor", "set", "gpu", "VGPU=1")
    assert berth.ok("candidates", "--request", str(file)).code == 0


def test_answers_are_as_described(berth: BothWays) -> None:
    """With --json, each is one of the operation."""
    path = "/berth/v1/flavors"
    for words, operation in (
        (("set", "a", *SMALL), f"PUT {path}/{{name}}"),
        (("show", "a"), f"GET {path}/{{name}}"),
        (("list",), f"GET {path}"),
    ):
        method, template = operation.split()
        for run in (berth.over_http, berth.on_database):
            check_body(method, template, run("flavor", *words, "--json").stdout.encode())
    assert berth.ok("flavor", "delete", "a", "--json").stdout == ""


# --- Import ---------------------------------------------------------------------------------------

#: `openstack flavor list --all --long -f json`.
LISTED: Final = [
    {
        "ID": "1",
        "Name": "m1.small",
        "RAM": 2048,
        "Disk": 20,
        "Ephemeral": 0,
        "VCPUs": 1,
        "Is Public": True,
        "Swap": 0,
        "RXTX Factor": 1.0,
        "Properties": {},
    },
    {
        "ID": "2",
        "Name": "GPU large (A100)",
        "RAM": 16384,
        "Disk": 10,
        "Ephemeral": 5,
        "VCPUs": 4,
        "Is Public": False,
        "Swap": 1025,
        "RXTX Factor": 1.0,
        "Properties": {
            "hw:cpu_policy": "dedicated",
            "hw:cpu_thread_policy": "isolate",
            "hw:numa_nodes": "2",
            "resources:DISK_GB": "0",
            "resources1:VGPU": "1",
            "trait1:CUSTOM_A100": "required",
            "resources2:VGPU": "1",
            "trait2:CUSTOM_T4": "forbidden",
            "trait:HW_CPU_X86_AVX2": "required",
            "trait3:HW_CPU_X86_AVX": "forbidden",
            "group_policy": "isolate",
            "quota:vif_inbound_average": "100",
            "resources:VGPU": "many",
        },
    },
]
GPU: Final = {
    "groups": {
        "": {
            "resources": {"PCPU": 4, "MEMORY_MB": 16384},
            "required": ["!HW_CPU_HYPERTHREADING", "HW_CPU_X86_AVX2"],
        },
        "1": {"resources": {"VGPU": 1}, "required": ["CUSTOM_A100"]},
        "2": {"resources": {"VGPU": 1}, "required": ["!CUSTOM_T4"]},
    },
    "apart": [{"groups": ["1", "2"], "at": "provider"}],
}
WITHOUT: Final = (
    "berth: GPU-large--A100- is imported without hw:numa_nodes=2, quota:vif_inbound_average=100,"
    " resources:VGPU=many, trait3:HW_CPU_X86_AVX=forbidden\n"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A list of nova's flavors."""
    path = tmp_path / "flavors.json"
    path.write_text(json.dumps(LISTED))
    return path


def test_flavors_of_nova_are_imported(berth: BothWays, file: Path) -> None:
    """As what nova asks placement for; what a request cannot say is named."""
    printed = berth("flavor", "import", str(file))
    assert (printed.code, printed.stderr) == (0, WITHOUT)
    assert printed.lines == [
        "+ m1.small  VCPU 1, MEMORY_MB 2,048, DISK_GB 20",
        "+ GPU-large--A100-  PCPU 4, MEMORY_MB 16,384; 1: VGPU 1; 2: VGPU 1",
        "2 flavors: 2 created",
    ]
    assert stored(berth, "GPU-large--A100-")["request"] == GPU
    assert stored(berth, "m1.small")["request"] == {
        "groups": {"": {"resources": {"VCPU": 1, "MEMORY_MB": 2048, "DISK_GB": 20}}}
    }


def test_what_differs_is_replaced_with_replace(berth: BothWays, file: Path) -> None:
    """And named without it. Whether metrics may show a flavor is berth's; others stay."""
    berth("flavor", "import", str(file))
    berth.ok("flavor", "set", "m1.small", "VCPU=3", "--hide", "--replace")
    berth.ok("flavor", "set", "own", "VCPU=1")
    refused = berth("flavor", "import", str(file))
    assert refused.code == 11
    assert (
        "berth: m1.small is not imported: another flavor has this name; --replace replaces it\n"
        in refused.stderr
    )
    assert stored(berth, "m1.small")["request"]["groups"][""]["resources"] == {"VCPU": 3}
    printed = berth("flavor", "import", str(file), "--replace")
    assert printed.lines == [
        "~ m1.small  VCPU 1, MEMORY_MB 2,048, DISK_GB 20",
        "= GPU-large--A100-  PCPU 4, MEMORY_MB 16,384; 1: VGPU 1; 2: VGPU 1",
        "2 flavors: 1 replaced, 1 unchanged",
    ]
    assert stored(berth, "m1.small")["expose"] is False
    assert len(berth.ok("flavor", "list").lines) == 5


def test_what_an_import_wrote_the_next_one_renews(berth: BothWays, tmp_path: Path) -> None:
    """nova changed it since; until someone replaces it, and not from another flavor of nova."""

    def imported(ram: int, number: str) -> tuple[int, str]:
        file = tmp_path / "nova.json"
        properties = {"ID": number, "Name": "x", "VCPUs": 1, "RAM": ram, "Disk": 0}
        file.write_text(json.dumps([{**properties, "Properties": {}, "Description": "Small"}]))
        printed = berth("flavor", "import", str(file))
        return printed.code, printed.lines[0]

    assert imported(512, "7") == (0, "+ x  VCPU 1, MEMORY_MB 512")
    assert stored(berth, "x")["description"] == "Small nova's flavor 7"
    assert imported(1024, "7") == (0, "~ x  VCPU 1, MEMORY_MB 1,024")
    assert imported(2048, "8") == (11, "0 flavors")
    berth.ok("flavor", "set", "x", "VCPU=3", "--replace")
    assert imported(1024, "7") == (11, "0 flavors")


def test_a_dry_run_writes_nothing(berth: BothWays, file: Path) -> None:
    """Its exit code says whether there is anything to write."""
    printed = berth("flavor", "import", str(file), "--dry-run")
    assert printed.code == 13
    assert printed.stderr == (
        f"{WITHOUT}berth: dry run: 2 flavors would change; nothing was written\n"
    )
    assert [line[0] for line in printed.lines] == ["+", "+", "2"]
    assert berth.ok("flavor", "list").lines == ["0 flavors"]
    berth("flavor", "import", str(file))
    printed = berth("flavor", "import", str(file), "--dry-run")
    assert (printed.code, printed.stderr) == (0, WITHOUT)


def test_novas_own_answer_is_read(berth: BothWays, tmp_path: Path) -> None:
    """`GET /flavors/detail` at 2.61 or later; swap is "" if there is none."""
    item = {
        "id": "1",
        "name": "m1.tiny",
        "vcpus": 1,
        "ram": 512,
        "disk": 1,
        "OS-FLV-EXT-DATA:ephemeral": 2,
        "swap": "",
        "description": "x" * 300,
        "extra_specs": {"hw:cpu_policy": "shared", "hw:cpu_thread_policy": "isolate"},
    }
    path = tmp_path / "detail.json"
    path.write_text(json.dumps({"flavors": [item]}))
    printed = berth("flavor", "import", str(path))
    assert (printed.code, printed.stderr) == (
        0,
        "berth: m1.tiny is imported without hw:cpu_thread_policy=isolate\n",
    )
    shown = stored(berth, "m1.tiny")
    assert shown["request"]["groups"][""]["resources"] == {
        "VCPU": 1,
        "MEMORY_MB": 512,
        "DISK_GB": 3,
    }
    assert shown["description"] == "x" * 239 + " nova's flavor 1"


def test_swap_is_rounded_up_to_whole_gigabytes(berth: BothWays, tmp_path: Path) -> None:
    """nova gives it in MB, and asks for DISK_GB so."""
    amounts = {"vcpus": 1, "ram": 512, "disk": 20, "swap": 512}
    named: dict[str, Any] = {"id": "1", "name": "s", "description": None, "extra_specs": {}}
    path = tmp_path / "detail.json"
    path.write_text(json.dumps({"flavors": [{**named, **amounts}]}))
    berth.ok("flavor", "import", str(path))
    assert stored(berth, "s")["request"]["groups"][""]["resources"]["DISK_GB"] == 21


def test_a_flavor_that_cannot_be_written_stops_no_other(berth: BothWays, tmp_path: Path) -> None:
    """Each is named with the reason, and the exit code says that some are missing."""
    unknown = {**LISTED[0], "Name": "ghost", "Properties": "resources:CUSTOM_GHOST='1', a='b'"}
    twice = [{**LISTED[0], "Name": "m1 x"}, {**LISTED[0], "Name": "m1-x"}]
    empty = {**LISTED[0], "Name": "none", "VCPUs": 0, "RAM": 0, "Disk": 0}
    path = tmp_path / "flavors.json"
    path.write_text(json.dumps([unknown, *twice, empty]))
    printed = berth("flavor", "import", str(path))
    assert printed.code == 11
    assert printed.lines == ["+ m1-x  VCPU 1, MEMORY_MB 2,048, DISK_GB 20", "1 flavor: 1 created"]
    messages = printed.stderr.splitlines()
    assert messages[0] == "berth: ghost is imported without a=b"
    assert messages[1].startswith("berth: ghost is not imported: There is no resource class CUSTOM")
    assert messages[2].startswith("berth: m1-x is not imported again")
    assert messages[3].startswith("berth: none is not imported: /request/groups must not be empty")
    assert messages[4:] == ["berth: 3 of 4 flavors are not imported"]


@pytest.mark.parametrize(
    "content",
    ["", "[1]", '{"flavor": {}}', '[{"Name": "a"}]', '[{"Name": "a", "Properties": {}}]', "3"],
)
def test_another_file_is_refused(berth: BothWays, tmp_path: Path, content: str) -> None:
    """The message says how to write the right one."""
    path = tmp_path / "flavors.json"
    path.write_text(content)
    printed = berth("flavor", "import", str(path))
    assert printed.code == 2
    assert f"{path} has no flavors of nova" in printed.stderr.replace("\n", " ")
    assert "--long -f json" in printed.stderr


def test_json_prints_what_was_written(berth: BothWays, file: Path) -> None:
    """One answer on each line."""
    for run in (berth.over_http, berth.on_database):
        lines = run("flavor", "import", str(file), "--json").lines
        assert [json.loads(line)["name"] for line in lines] == ["m1.small", "GPU-large--A100-"]
        for line in lines:
            check_body("PUT", "/berth/v1/flavors/{name}", line.encode())
        assert run("flavor", "import", str(file), "--json").lines == []

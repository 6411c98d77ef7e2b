# SPDX-License-Identifier: Apache-2.0
"""The report client as programs like nova use it (spec/compute-side.md 2.3 and 2.6)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from berth.hosts import BadProviderTree, Conflict
from berth.hosts.errors import NotThere, TooOld, Unreachable
from berth.hosts.report_client import ReportClient
from tests.hosts.hosts import BEFORE, Falling, lost_connection, start, three_guests
from tests.hosts.stage import Stage, consumer_uuid, drawn
from tests.worlds import aggregate_uuid, provider_uuid

WORLD = """
    cn1  VCPU=8  PCPU=4  MEMORY_MB=1024  COMPUTE_NODE
    nfs  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
    i1: cn1 VCPU=2 PCPU=1 MEMORY_MB=512
"""

CN1, A = provider_uuid("cn1"), aggregate_uuid("A")
NOBODY = aggregate_uuid("nobody")


SERVICES = ["berth"]


@pytest.fixture
def client(stage: Stage) -> ReportClient:
    """A client that has read nothing yet."""
    stage.show(WORLD)
    return ReportClient(stage.transport)


def test_single_things_are_read(client: ReportClient) -> None:
    """A missing object is an error, never None."""
    found = client.get_provider_traits(None, CN1)
    assert found.traits == {"COMPUTE_NODE"} and found.generation > 0
    assert client.get_resource_provider_name(None, CN1) == "cn1"
    allocations = client.get_allocations_for_resource_provider(None, CN1).allocations
    assert allocations[consumer_uuid("i1")]["resources"] == {"VCPU": 2, "PCPU": 1, "MEMORY_MB": 512}
    assert set(client.get_allocations_for_consumer(None, consumer_uuid("i1"))) == {CN1}
    assert client.get_allocations_for_consumer(None, consumer_uuid("i9")) == {}
    for read in (
        client.get_provider_traits,
        client.get_resource_provider_name,
        client.get_allocations_for_resource_provider,
    ):
        with pytest.raises(NotThere):
            read(None, NOBODY)


def test_usage_is_counted_for_quotas(client: ReportClient) -> None:
    """VCPU and PCPU together; of one user, if given."""
    assert client.get_usages_counts_for_quota(None, "web") == {"project": {"cores": 3, "ram": 512}}
    assert client.get_usages_counts_for_quota(None, "web", user_id="bob") == {
        "project": {"cores": 3, "ram": 512},
        "user": {"cores": 0, "ram": 0},
    }


def test_one_provider_is_written(stage: Stage, client: ReportClient) -> None:
    """Its inventory, traits and aggregates; nothing is sent if nothing differs."""
    inventory = {"VCPU": {"total": 8}, "PCPU": {"total": 4}, "MEMORY_MB": {"total": 2048}}
    for _ in range(2):
        client.set_inventory_for_provider(None, CN1, inventory)
        client.set_traits_for_provider(None, CN1, ["CUSTOM_GOLD"])
        client.set_aggregates_for_provider(None, CN1, [A], use_cache=False)
        assert stage.picture() == drawn(
            WORLD.replace("1024  COMPUTE_NODE", "2048  CUSTOM_GOLD  @A")
        )
        writes = client.service.requests["PUT"]
    assert writes == 3, "the custom trait is made with the tree"
    with pytest.raises(BadProviderTree, match="cn1 would lose its MEMORY_MB"):
        client.set_inventory_for_provider(None, CN1, {"VCPU": {"total": 8}, "PCPU": {"total": 4}})
    with pytest.raises(NotThere):
        client.set_traits_for_provider(None, NOBODY, [])
    with pytest.raises(Conflict):
        client.set_traits_for_provider(None, CN1, ["COMPUTE_NODE"], generation=0)


def test_who_lost_a_race_wins_the_next(stage: Stage, client: ReportClient) -> None:
    """After a conflict the client reads the tree again, whichever client changed it. A claim is no
    conflict."""
    client.set_traits_for_provider(None, CN1, ["COMPUTE_NODE", "CUSTOM_GOLD"])
    stage.trait("cn1", "CUSTOM_RACK_7")
    wanted = ["COMPUTE_NODE", "CUSTOM_RACK_7"]
    with pytest.raises(Conflict):
        client.set_traits_for_provider(None, CN1, wanted)
    client.set_traits_for_provider(None, CN1, wanted)
    assert stage.picture() == drawn(WORLD.replace("COMPUTE_NODE", "COMPUTE_NODE  CUSTOM_RACK_7"))
    stage.name_consumers("i2")
    parts = {"allocations": {CN1: {"resources": {"VCPU": 1}}}}
    client.claim_resources(None, consumer_uuid("i2"), parts, "web", "alice")
    client.set_aggregates_for_provider(None, CN1, [A])
    assert "CUSTOM_RACK_7  @A" in stage.picture()


@pytest.mark.parametrize("is_told", [True, False])
def test_what_is_as_it_should_be_was_not_read_long_ago(stage: Stage, is_told: bool) -> None:
    """What another client removed is restored after an hour, or at once if the client is told."""
    stage.show(WORLD)
    now = [0.0]
    client = ReportClient(stage.transport, clock=lambda: now[0])
    client.set_traits_for_provider(None, CN1, ["COMPUTE_NODE"])
    ReportClient(stage.transport).set_traits_for_provider(None, CN1, [])
    if is_told:
        client.invalidate_resource_provider(CN1)
    else:
        now[0] = 3600.0
    client.set_traits_for_provider(None, CN1, ["COMPUTE_NODE"])
    assert stage.picture() == drawn(WORLD)


def test_what_may_have_been_done_is_looked_at(stage: Stage) -> None:
    """If the answer was lost, the client reads the provider again."""
    stage.show(WORLD)
    broken = Falling(stage.transport, at=0, is_done=True, fault=lost_connection())
    client = ReportClient(broken)
    with pytest.raises(Unreachable):
        client.set_traits_for_provider(None, CN1, [])
    client.set_traits_for_provider(None, CN1, ["COMPUTE_NODE"])
    assert stage.picture() == drawn(WORLD)


def test_a_host_is_put_into_an_aggregate(stage: Stage, client: ReportClient) -> None:
    """By name or uuid, and out of it again; its tree then includes the aggregate's sharing
    providers."""
    for _ in range(2):
        client.aggregate_add_host(None, A, host_name="cn1")
        assert stage.picture() == drawn(WORLD.replace("COMPUTE_NODE", "COMPUTE_NODE  @A"))
    tree = client.get_provider_subtree_and_ensure_root(None, CN1, name="cn1")
    assert tree.has_sharing_provider("DISK_GB")
    client.aggregate_remove_host(None, A, "cn1")
    assert stage.picture() == drawn(WORLD)
    tree = client.get_provider_subtree_and_ensure_root(None, CN1, name="cn1")
    assert not tree.has_sharing_provider("DISK_GB")
    client.aggregate_add_host(None, A, rp_uuid=CN1)
    with pytest.raises(ValueError, match="No such provider cn9"):
        client.aggregate_add_host(None, A, "cn9")
    with pytest.raises(ValueError, match="Give the host's name"):
        client.aggregate_add_host(None, A)


def test_nobody_loses_his_type(stage: Stage, client: ReportClient) -> None:
    """This client uses microversions without types; the existing type stays."""
    i1 = consumer_uuid("i1")
    client.add_resources_to_instance_allocation(None, i1, {CN1: {"VCPU": 1}})
    nfs = {"allocations": {provider_uuid("nfs"): {"resources": {"DISK_GB": 1}}}}
    client.claim_resources(None, i1, nfs, "web", "alice", "1.36", consumer_generation=None)
    assert stage.type_of("i1") == "INSTANCE"
    stage.hold("m1", "cn1 VCPU=1", kind="MIGRATION")
    client.move_allocations(None, i1, consumer_uuid("m1"))
    assert stage.type_of("m1") == "MIGRATION"
    client.delete_allocation_for_instance(None, consumer_uuid("m1"), "migration", force=True)
    assert stage.picture() == drawn(WORLD.replace("    i1: cn1 VCPU=2 PCPU=1 MEMORY_MB=512\n", ""))


def test_a_reshape_keeps_types(stage: Stage) -> None:
    """For all consumers whose allocations move."""
    stage.show(BEFORE)
    stage.hold("i3", "cn1 VCPU=2 MEMORY_MB=2048 VGPU=1", kind="MIGRATION")
    start(ReportClient(stage.transport), three_guests())
    assert [stage.type_of(name) for name in ("i1", "i3")] == ["INSTANCE", "MIGRATION"]


class Old:
    """A service whose newest microversion is 1.29."""

    class Answer:
        """The response of OpenStack Placement to an unknown microversion."""

        status_code = 406
        headers: Mapping[str, str] = MappingProxyType({})
        text = "Unacceptable version header: 1.30"

        def json(self) -> Any:
            """The body."""
            error = {"detail": self.text, "max_version": "1.29", "min_version": "1.0"}
            return {"errors": [error]}

    def request(self, url: str, method: str, **options: Any) -> Answer:
        """Refuse newer microversions."""
        assert options["microversion"] == "1.30"
        return self.Answer()


def test_a_service_that_is_too_old_is_named_as_that() -> None:
    """Every call fails with that message, and nothing is written."""
    client = ReportClient(Old())
    with pytest.raises(
        TooOld, match=r"does not speak microversion 1\.30, only up to 1\.29; upgrade it"
    ):
        start(client, three_guests())
    assert client.service.requests == {"GET": 1}

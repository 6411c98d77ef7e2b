# SPDX-License-Identifier: Apache-2.0
"""Writing allocations as programs like nova do (spec/compute-side.md 2.6)."""

from __future__ import annotations

from typing import Any

import pytest

from berth.hosts import Conflict
from berth.hosts.consumers import ConsumerClient
from berth.hosts.errors import NotHeld, Refused
from berth.hosts.service import Answer, Service, Transport
from tests.hosts.hosts import Answered, Meanwhile
from tests.hosts.stage import Stage, consumer_uuid, drawn
from tests.worlds import provider_uuid

HOSTS = """
    cn1  VCPU=4
      gpu  VGPU=4
    cn2  VCPU=4
    nfs  DISK_GB=100
"""

GUEST = "    i1: cn1 VCPU=2, gpu VGPU=1, nfs DISK_GB=10\n"


@pytest.fixture
def client(stage: Stage) -> ConsumerClient:
    """A client that does not pause, of a service with two hosts and shared storage."""
    stage.show(HOSTS)
    return ConsumerClient(Service(stage.transport), pause=lambda seconds: None)


def candidate(**held: dict[str, int]) -> dict[str, Any]:
    """An allocation request of a candidate, by providers' names."""
    return {
        "allocations": {
            provider_uuid(name): {"resources": resources} for name, resources in held.items()
        },
        "mappings": {"": [provider_uuid(name) for name in held]},
    }


def claim(client: ConsumerClient, consumer: str, **held: dict[str, int]) -> None:
    """Claim for a consumer in a project."""
    client.claim_resources(None, consumer_uuid(consumer), candidate(**held), "web", "alice")


def test_a_candidate_is_claimed(stage: Stage, client: ConsumerClient) -> None:
    """For a consumer without allocations."""
    stage.name_consumers("i1")
    candidates = client.get_allocation_candidates(
        None, resources="VCPU:2", in_tree=provider_uuid("cn1")
    )
    client.claim_resources(
        None, consumer_uuid("i1"), candidates["allocation_requests"][0], "web", "alice"
    )
    assert stage.picture() == drawn(HOSTS + "    i1: cn1 VCPU=2")
    assert client.get_usages_counts_for_limits(None, "web") == {"VCPU": 2}


def test_who_is_evacuated_holds_of_both_hosts(stage: Stage, client: ConsumerClient) -> None:
    """Its existing allocations on providers outside of the candidate stay."""
    stage.show(GUEST)
    claim(client, "i1", cn2={"VCPU": 1}, nfs={"DISK_GB": 99})
    assert stage.picture() == drawn(
        HOSTS + "    i1: cn1 VCPU=2, cn2 VCPU=1, gpu VGPU=1, nfs DISK_GB=10"
    )


def test_a_consumer_that_changed_is_a_conflict(stage: Stage, client: ConsumerClient) -> None:
    """Only the caller knows what to do then."""
    stage.show(GUEST)
    meddling = Meanwhile(stage.transport, "PUT", lambda: stage.hold("i1", "cn2 VCPU=4"))
    with pytest.raises(Conflict):
        claim(ConsumerClient(Service(meddling)), "i1", cn2={"VCPU": 1})
    assert stage.picture() == drawn(HOSTS + "    i1: cn2 VCPU=4")


def test_adding_and_taking_look_again_at_a_consumer_that_changed(
    stage: Stage, client: ConsumerClient
) -> None:
    """Both change the current allocations instead of replacing them."""
    stage.show(GUEST)
    meddling = ConsumerClient(
        Service(
            Meanwhile(stage.transport, "PUT", lambda: stage.hold("i1", "cn1 VCPU=1, gpu VGPU=2"))
        )
    )
    more = {provider_uuid("cn1"): {"VCPU": 2}, provider_uuid("nfs"): {"DISK_GB": 1}}
    meddling.add_resources_to_instance_allocation(None, consumer_uuid("i1"), more)
    assert stage.picture() == drawn(HOSTS + "    i1: cn1 VCPU=3, gpu VGPU=2, nfs DISK_GB=1")
    client.remove_resources_from_instance_allocation(None, consumer_uuid("i1"), more)
    assert stage.picture() == drawn(HOSTS + "    i1: cn1 VCPU=1, gpu VGPU=2")


def test_what_is_not_held_cannot_be_taken(stage: Stage, client: ConsumerClient) -> None:
    """The message says what is missing."""
    stage.show(GUEST)
    with pytest.raises(NotHeld, match="less than 3 VCPU"):
        client.remove_resources_from_instance_allocation(
            None, consumer_uuid("i1"), {provider_uuid("cn1"): {"VCPU": 3}}
        )
    with pytest.raises(NotHeld, match="has no allocations"):
        client.add_resources_to_instance_allocation(None, consumer_uuid("i9"), {})
    assert stage.picture() == drawn(HOSTS + GUEST)


def test_all_is_moved_at_once(stage: Stage, client: ConsumerClient) -> None:
    """From a guest to its migration; the second time there is nothing to move."""
    stage.show(GUEST)
    stage.name_consumers("m1")
    for _ in range(2):
        client.move_allocations(None, consumer_uuid("i1"), consumer_uuid("m1"))
        assert stage.picture() == drawn(HOSTS + GUEST.replace("i1:", "m1:"))


def test_one_tree_is_taken_from_a_consumer(stage: Stage, client: ConsumerClient) -> None:
    """The parts on the root and its children, but not on sharing providers."""
    stage.show(GUEST)
    for _ in range(2):
        client.remove_provider_tree_from_instance_allocation(
            None, consumer_uuid("i1"), provider_uuid("cn1")
        )
        assert stage.picture() == drawn(HOSTS + "    i1: nfs DISK_GB=10")


@pytest.mark.parametrize("force", [False, True])
def test_all_is_taken_from_a_consumer(stage: Stage, client: ConsumerClient, force: bool) -> None:
    """Whether it has allocations or not."""
    stage.show(GUEST)
    for _ in range(2):
        client.delete_allocation_for_instance(None, consumer_uuid("i1"), force=force)
        assert stage.picture() == drawn(HOSTS)


def test_a_tree_in_use_is_deleted_only_with_what_is_held_of_it(
    stage: Stage, client: ConsumerClient
) -> None:
    """With that option the whole tree is deleted, children first; consumers keep their other
    allocations."""
    stage.show(GUEST)
    with pytest.raises(Refused):
        client.delete_resource_provider(None, provider_uuid("cn1"))
    assert stage.picture() == drawn(HOSTS + GUEST)
    client.delete_resource_provider(None, provider_uuid("cn1"), cascade=True)
    assert stage.picture() == drawn(
        """
        cn2  VCPU=4
        nfs  DISK_GB=100
        i1: nfs DISK_GB=10
        """
    )


def test_who_has_gone_meanwhile_is_no_fault(stage: Stage) -> None:
    """When a tree is deleted with its allocations."""
    stage.show(HOSTS + "    i1: cn2 VCPU=1\n    i2: cn2 VCPU=1")

    path = f"/resource_providers/{provider_uuid('cn2')}/allocations"
    allocations = Service(stage.transport).get(path)["allocations"]
    _, second = ({consumer_uuid(name): name for name in ("i1", "i2")}[uuid] for uuid in allocations)
    meddling = Meanwhile(stage.transport, "PUT", lambda: stage.hold(second, ""))
    client = ConsumerClient(Service(meddling))
    client.delete_resource_provider(None, provider_uuid("cn2"), cascade=True)
    assert "cn2" not in stage.picture()


class Busy:
    """A service in which another client changes a provider, once at each path."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.refused: set[str] = set()

    def request(self, url: str, method: str, **options: Any) -> Answer:
        """Send a request, or answer with a conflict."""
        if method == "GET" or url in self.refused:
            return self._transport.request(url, method, **options)
        self.refused.add(url)
        error = '{"code": "placement.concurrent_update", "detail": ""}'
        return Answered(409, f'{{"errors": [{error}]}}')


def test_who_lost_a_race_for_a_provider_sends_again(stage: Stage) -> None:
    """For every kind of write; the consumers do not change."""
    stage.show(HOSTS + GUEST)
    stage.name_consumers("m1")
    busy = Busy(stage.transport)
    client = ConsumerClient(Service(busy), pause=lambda seconds: None)
    client.move_allocations(None, consumer_uuid("i1"), consumer_uuid("m1"))
    claim(client, "m1", cn2={"VCPU": 1})
    assert len(busy.refused) == 2
    assert "m1: cn1 VCPU=2, cn2 VCPU=1, gpu VGPU=1, nfs DISK_GB=10" in stage.picture()

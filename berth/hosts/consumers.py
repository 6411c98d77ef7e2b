# SPDX-License-Identifier: Apache-2.0
"""Claims: reads and writes the allocations of consumers, for programs such as nova.

Each call succeeds or raises; none returns None or False for a failure. A write that lost a race for
a provider is sent again. A write that lost a race for its consumer is a `Conflict`, because only
the caller knows whether it still wants it.
Source: spec/compute-side.md 2.3 and 2.6.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Set
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from random import Random
from typing import Any, Final, NamedTuple

from berth.hosts.errors import Conflict, NotHeld, NotThere
from berth.hosts.service import (
    CANDIDATES_VERSION,
    Service,
    named_path,
    provider_path,
    repeated,
    with_all_below,
)

LOG = logging.getLogger(__name__)

#: A consumer's allocations: by provider UUID, `{"resources": {class: amount}}`.
Parts = dict[str, dict[str, Any]]
#: Amounts to add or to subtract, by provider and resource class.
Amounts = Mapping[str, Mapping[str, int]]

#: How often a write is sent, and how many seconds pass at most before the second and later
#: attempts.
_SENDINGS_MAX: Final = 4
_PAUSE_S: Final = 1.0


class Holders(NamedTuple):
    """The allocations of one provider."""

    #: By consumer: its `resources` and its `consumer_generation`.
    allocations: dict[str, dict[str, Any]]


@dataclass(eq=False)
class ConsumerClient:
    """Reads and writes the allocations of consumers."""

    service: Service
    _: KW_ONLY
    pause: Callable[[float], None] = time.sleep
    rng: Random = field(default_factory=Random)

    def get_allocs_for_consumer(self, context: object, consumer: str) -> dict[str, Any]:
        """A consumer's allocations, as the service shows them; without a project if empty."""
        body: dict[str, Any] = self.service.get(named_path("/allocations", consumer))
        return body

    def get_allocations_for_consumer(
        self, context: object, consumer: str
    ) -> dict[str, dict[str, Any]]:
        """A consumer's allocations, by provider: the provider's generation and the `resources`."""
        body: dict[str, dict[str, Any]] = self.get_allocs_for_consumer(context, consumer)
        return body["allocations"]

    def get_allocations_for_resource_provider(self, context: object, rp_uuid: str) -> Holders:
        """The allocations of one provider, by consumer.

        Raises:
            NotThere: there is no such provider.
        """
        return Holders(self.service.get_part(rp_uuid, "allocations"))

    def get_allocation_candidates(self, context: object, **query: str) -> dict[str, Any]:
        """The candidates for a request: `allocation_requests` and `provider_summaries`."""
        body: dict[str, Any] = self.service.get(
            "/allocation_candidates", version=CANDIDATES_VERSION, **query
        )
        return body

    def get_usages_counts_for_limits(self, context: object, project_id: str) -> dict[str, int]:
        """A project's usage, by resource class."""
        usages: dict[str, int] = self.service.get("/usages", project_id=project_id)["usages"]
        return usages

    def get_usages_counts_for_quota(
        self, context: object, project_id: str, user_id: str | None = None
    ) -> dict[str, dict[str, int]]:
        """The usage of a project, and of a user in it, of what quotas limit: `cores` and `ram`
        (MiB).

        `cores` counts both VCPU and PCPU.
        """
        counts = {"project": self.get_usages_counts_for_limits(context, project_id)}
        if user_id is not None:
            counts["user"] = self.service.get("/usages", project_id=project_id, user_id=user_id)[
                "usages"
            ]
        return {
            whose: {
                "cores": usages.get("VCPU", 0) + usages.get("PCPU", 0),
                "ram": usages.get("MEMORY_MB", 0),
            }
            for whose, usages in counts.items()
        }

    def put_allocations(self, context: object, consumer: str, body: Mapping[str, Any]) -> None:
        """Replace all allocations of a consumer.

        Args:
            body: with the `consumer_generation` that was read, None for a new consumer.

        Raises:
            Conflict: the consumer has changed since.
            Refused: the allocations do not fit, or are invalid.
        """
        path = named_path("/allocations", consumer)
        generation = body["consumer_generation"]
        self._insist(lambda: self.service.put(path, body), {consumer: generation})

    def claim_resources(
        self,
        context: object,
        consumer: str,
        alloc_request: Mapping[str, Any],
        project_id: str,
        user_id: str,
        allocation_request_version: str | None = None,
        consumer_generation: int | None = None,
    ) -> None:
        """Claim a candidate for a consumer.

        The consumer keeps its allocations on other providers: while a guest is evacuated, it has
        allocations on both hosts.

        Args:
            alloc_request: one of the `allocation_requests` of the candidates.
            allocation_request_version: ignored; the format is the same since 1.12.
            consumer_generation: the one that the caller has read with the consumer's allocations;
                None: the current one.

        Raises:
            Conflict: the consumer has changed meanwhile.
            Refused: the candidate does not fit any more.
        """
        current = self.get_allocs_for_consumer(context, consumer)
        wanted = {
            provider: {"resources": part["resources"]}
            for provider, part in alloc_request["allocations"].items()
        }
        body = {
            "allocations": {**wanted, **_parts(current)},
            "project_id": project_id,
            "user_id": user_id,
            "consumer_generation": (
                current.get("consumer_generation")
                if consumer_generation is None
                else consumer_generation
            ),
        }
        self.put_allocations(context, consumer, body)

    def move_allocations(self, context: object, source: str, target: str) -> None:
        """Move all allocations of one consumer to another in one step; do nothing if there are
        none.

        Raises:
            Conflict: one of the consumers has changed meanwhile.
        """
        of_source = self.get_allocs_for_consumer(context, source)
        of_target = self.get_allocs_for_consumer(context, target)
        if not of_source["allocations"]:
            return
        whose = {"project_id": of_source["project_id"], "user_id": of_source["user_id"]}
        bodies = {
            source: {
                **whose,
                "allocations": {},
                "consumer_generation": of_source["consumer_generation"],
            },
            target: {
                **whose,
                "allocations": _parts(of_source),
                "consumer_generation": of_target.get("consumer_generation"),
            },
        }
        self._insist(
            lambda: self.service.post("/allocations", bodies),
            {consumer: body["consumer_generation"] for consumer, body in bodies.items()},
        )

    def add_resources_to_instance_allocation(
        self, context: object, consumer: str, resources: Amounts
    ) -> None:
        """Increase a consumer's allocations.

        Raises:
            NotHeld: it has no allocations yet.
            Refused: the increase does not fit.
        """
        repeat_after_conflicts(partial(self._edit, consumer, resources, sign=1))

    def remove_resources_from_instance_allocation(
        self, context: object, consumer: str, resources: Amounts
    ) -> None:
        """Reduce a consumer's allocations.

        Raises:
            NotHeld: it has less than is to be removed.
        """
        repeat_after_conflicts(partial(self._edit, consumer, resources, sign=-1))

    def remove_provider_tree_from_instance_allocation(
        self, context: object, consumer: str, root: str
    ) -> None:
        """Remove a consumer's allocations in one tree; those in other trees stay."""
        listed = self.service.list_providers(in_tree=root)
        self._release(consumer, {provider["uuid"] for provider in listed})

    def delete_allocation_for_instance(
        self,
        context: object,
        uuid: str,
        consumer_type: str = "instance",
        force: bool = False,
    ) -> None:
        """Remove all allocations of a consumer; do nothing if there are none.

        Args:
            consumer_type: for the log.
            force: remove whatever it has by then; otherwise what it has when this is called.

        Raises:
            Conflict: the consumer has changed meanwhile.
        """
        if force:
            try:
                self.service.delete(named_path("/allocations", uuid))
            except NotThere:
                return
        elif (current := self.get_allocs_for_consumer(context, uuid))["allocations"]:
            self.put_allocations(context, uuid, {**_writable(current), "allocations": {}})
        LOG.info("The %s %s has no allocations any more", consumer_type, uuid)

    def delete_resource_provider(
        self, context: object, uuid: str, *, cascade: bool = False
    ) -> None:
        """Delete a provider and everything below it.

        Args:
            cascade: remove their allocations first.

        Raises:
            Refused: one of them has allocations.
        """
        listed = self.service.list_providers(in_tree=uuid)
        going = with_all_below(uuid, listed)
        for provider in going if cascade else ():
            for consumer in self.service.get_part(provider, "allocations"):
                self._release(consumer, {*going})
        for provider in reversed(going):
            self.service.delete(provider_path(provider))

    def _insist(self, send: Callable[[], object], generations: Mapping[str, int | None]) -> None:
        """Send a write of allocations, and again if another client was faster with a provider.

        Args:
            generations: the generation of each consumer that is written.

        Raises:
            Conflict: one of the consumers is at another generation.
        """
        for sending in range(_SENDINGS_MAX - 1):
            try:
                send()
                return
            except Conflict:
                for consumer, generation in generations.items():
                    current = self.get_allocs_for_consumer(None, consumer)
                    if current.get("consumer_generation") != generation:
                        raise
                self.pause(self.rng.uniform(0, _PAUSE_S * (sending + 1)))
        send()

    def _release(self, consumer: str, providers: Set[str]) -> None:
        """Remove a consumer's allocations on some providers."""
        current = self.get_allocs_for_consumer(None, consumer)
        left = {uuid: part for uuid, part in _parts(current).items() if uuid not in providers}
        if len(left) != len(current["allocations"]):
            self.put_allocations(None, consumer, {**_writable(current), "allocations": left})

    def _edit(self, consumer: str, resources: Amounts, *, sign: int) -> None:
        current = self.get_allocs_for_consumer(None, consumer)
        if not current["allocations"]:
            raise NotHeld(f"Consumer {consumer} has no allocations")
        parts = _parts(current)
        for provider, amounts in resources.items():
            own = parts.setdefault(provider, {"resources": {}})["resources"]
            for resource_class, amount in amounts.items():
                left = own.pop(resource_class, 0) + sign * amount
                if left < 0:
                    raise NotHeld(
                        f"Consumer {consumer} has less than {amount} {resource_class} on {provider}"
                    )
                if left:
                    own[resource_class] = left
            if not own:
                del parts[provider]
        self.put_allocations(None, consumer, {**_writable(current), "allocations": parts})


def repeat_after_conflicts(edit: Callable[[], None]) -> None:
    """Read and write something, up to four times if other clients write in between.

    Raises:
        Conflict: they were faster each time.
    """
    repeated(edit, _SENDINGS_MAX, Conflict)


def _parts(body: Mapping[str, Any]) -> Parts:
    """A copy of a consumer's allocations, in the form in which they are written."""
    return {
        provider: {"resources": deepcopy(part["resources"])}
        for provider, part in body["allocations"].items()
    }


def _writable(body: Mapping[str, Any]) -> dict[str, Any]:
    """The other fields that are written with them."""
    return {name: body[name] for name in ("project_id", "user_id", "consumer_generation")}

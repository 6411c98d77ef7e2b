# SPDX-License-Identifier: Apache-2.0
"""Claims: what consumers hold, written by programs such as nova.

Each call does all that it says or raises; none tells failure by None or False. A write of one that
lost a race for a provider is sent again; one that lost a race for its consumer is a `Conflict`,
because only the caller knows whether it still wants it.
Source: spec/compute-side.md 2.3 and 2.6.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from random import Random
from typing import Any, Final, NamedTuple

from berth.hosts.errors import Conflict, NotHeld, NotThere
from berth.hosts.service import (
    CANDIDATES_VERSION,
    Service,
    named_path,
    provider_path,
    with_all_below,
)

LOG = logging.getLogger(__name__)

#: A consumer's allocations: providers' uuids, and of each `{"resources": {class: amount}}`.
Held = dict[str, dict[str, Any]]
#: Amounts to add or to take, by provider and resource class.
Amounts = Mapping[str, Mapping[str, int]]

#: How often a write is sent, and how long its second and later sendings wait for, at most.
_SENDINGS_MAX: Final = 4
_PAUSE_S: Final = 1.0


class Holders(NamedTuple):
    """Who holds what of one provider."""

    #: By consumer: its `resources`, and its `consumer_generation`.
    allocations: dict[str, dict[str, Any]]


class ConsumerClient:
    """Reads and writes what consumers hold."""

    def __init__(
        self,
        service: Service,
        *,
        pause: Callable[[float], None] = time.sleep,
        rng: Random | None = None,
    ) -> None:
        self.service = service
        self._pause = pause
        self._rng = rng or Random()

    def get_allocs_for_consumer(self, context: object, consumer: str) -> dict[str, Any]:
        """What a consumer holds, as the service shows it; without a project where it is nothing."""
        body: dict[str, Any] = self.service.get(named_path("/allocations", consumer))
        return body

    def get_allocations_for_consumer(
        self, context: object, consumer: str
    ) -> dict[str, dict[str, Any]]:
        """What a consumer holds, by provider: its generation and its `resources`."""
        held: dict[str, dict[str, Any]] = self.get_allocs_for_consumer(context, consumer)
        return held["allocations"]

    def get_allocations_for_resource_provider(self, context: object, rp_uuid: str) -> Holders:
        """Who holds what of one provider.

        Raises:
            NotThere: there is no such provider.
        """
        return Holders(self.service.get(provider_path(rp_uuid, "allocations"))["allocations"])

    def get_allocation_candidates(self, context: object, **query: str) -> dict[str, Any]:
        """Where a request fits: `allocation_requests` and `provider_summaries`."""
        body: dict[str, Any] = self.service.get(
            "/allocation_candidates", version=CANDIDATES_VERSION, **query
        )
        return body

    def get_usages_counts_for_limits(self, context: object, project_id: str) -> dict[str, int]:
        """What a project uses of each resource class."""
        usages: dict[str, int] = self.service.get("/usages", project_id=project_id)["usages"]
        return usages

    def get_usages_counts_for_quota(
        self, context: object, project_id: str, user_id: str | None = None
    ) -> dict[str, dict[str, int]]:
        """What a project, and a user in it, use of what quotas limit: `cores` and `ram` (MiB).

        Cores are those of both kinds, VCPU and PCPU.
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
        """Let a consumer hold what a body says, and nothing else.

        Args:
            body: with `consumer_generation` as it was read, None for a new consumer.

        Raises:
            Conflict: the consumer has changed since.
            Refused: it does not fit, or makes no sense.
        """
        path = named_path("/allocations", consumer)
        self._insist(
            context,
            lambda: self.service.put(path, body),
            {consumer: body["consumer_generation"]},
        )

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

        What it holds of other providers it keeps: while a guest is evacuated, it holds of both
        hosts.

        Args:
            alloc_request: one of the `allocation_requests` of the candidates.
            allocation_request_version: not looked at; the form is the same since 1.12.
            consumer_generation: the caller's, where it has read what the consumer holds; None:
                that of now.

        Raises:
            Conflict: the consumer has changed meanwhile.
            Refused: it does not fit any more.
        """
        held = self.get_allocs_for_consumer(context, consumer)
        wanted = {
            provider: {"resources": part["resources"]}
            for provider, part in alloc_request["allocations"].items()
        }
        body = {
            "allocations": {**wanted, **_parts(held)},
            "project_id": project_id,
            "user_id": user_id,
            "consumer_generation": (
                held.get("consumer_generation")
                if consumer_generation is None
                else consumer_generation
            ),
        }
        self.put_allocations(context, consumer, body)

    def move_allocations(self, context: object, source: str, target: str) -> None:
        """Give all that one consumer holds to another, in one step; nothing where that is done.

        Raises:
            Conflict: one of them has changed meanwhile.
        """
        held = self.get_allocs_for_consumer(context, source)
        there = self.get_allocs_for_consumer(context, target)
        if not held["allocations"]:
            return
        whose = {"project_id": held["project_id"], "user_id": held["user_id"]}
        bodies = {
            source: {
                **whose,
                "allocations": {},
                "consumer_generation": held["consumer_generation"],
            },
            target: {
                **whose,
                "allocations": _parts(held),
                "consumer_generation": there.get("consumer_generation"),
            },
        }
        self._insist(
            context,
            lambda: self.service.post("/allocations", bodies),
            {consumer: body["consumer_generation"] for consumer, body in bodies.items()},
        )

    def add_resources_to_instance_allocation(
        self, context: object, consumer: str, resources: Amounts
    ) -> None:
        """Let a consumer hold some more.

        Raises:
            NotHeld: it holds nothing yet.
            Refused: it does not fit.
        """
        self._edit(context, consumer, resources, sign=1)

    def remove_resources_from_instance_allocation(
        self, context: object, consumer: str, resources: Amounts
    ) -> None:
        """Let a consumer hold some less.

        Raises:
            NotHeld: it does not hold so much.
        """
        self._edit(context, consumer, resources, sign=-1)

    def remove_provider_tree_from_instance_allocation(
        self, context: object, consumer: str, root: str
    ) -> None:
        """Take from a consumer all that it holds of a tree; what it holds elsewhere stays."""
        listed = self.service.list_providers(in_tree=root)
        own = {provider["uuid"] for provider in listed}
        held = self.get_allocs_for_consumer(context, consumer)
        left = {provider: part for provider, part in _parts(held).items() if provider not in own}
        if len(left) != len(held["allocations"]):
            self.put_allocations(context, consumer, {**_writable(held), "allocations": left})

    def delete_allocation_for_instance(
        self,
        context: object,
        uuid: str,
        consumer_type: str = "instance",
        force: bool = False,
    ) -> None:
        """Let a consumer hold nothing; nothing is done where it does not.

        Args:
            consumer_type: for the log.
            force: whatever it holds by now; else what it holds when this is called.

        Raises:
            Conflict: it has changed meanwhile.
        """
        if force:
            try:
                self.service.delete(named_path("/allocations", uuid))
            except NotThere:
                return
        elif (held := self.get_allocs_for_consumer(context, uuid))["allocations"]:
            self.put_allocations(context, uuid, {**_writable(held), "allocations": {}})
        LOG.info("The %s %s holds nothing any more", consumer_type, uuid)

    def delete_resource_provider(
        self, context: object, uuid: str, *, cascade: bool = False
    ) -> None:
        """Delete a provider and all below it.

        Args:
            cascade: what consumers hold of them goes first.

        Raises:
            Refused: somebody holds something of it.
        """
        listed = self.service.list_providers(in_tree=uuid)
        going = with_all_below(uuid, listed)
        for provider in going if cascade else ():
            held = self.service.get(provider_path(provider, "allocations"))["allocations"]
            for consumer in held:
                self._forget_providers(context, consumer, {*going})
        for provider in reversed(going):
            self.service.delete(provider_path(provider))

    def _insist(
        self,
        context: object,
        send: Callable[[], object],
        generations: Mapping[str, int | None],
    ) -> None:
        """Send a write of allocations, and again where somebody was quicker with a provider.

        Args:
            generations: those of the consumers that it writes.

        Raises:
            Conflict: one of the consumers is not at its generation any more.
        """
        for sending in range(_SENDINGS_MAX - 1):
            try:
                send()
                return
            except Conflict:
                for consumer, generation in generations.items():
                    held = self.get_allocs_for_consumer(context, consumer)
                    if held.get("consumer_generation") != generation:
                        raise
                self._pause(self._rng.uniform(0, _PAUSE_S * (sending + 1)))
        send()

    def _forget_providers(self, context: object, consumer: str, providers: set[str]) -> None:
        held = self.get_allocs_for_consumer(context, consumer)
        left = {uuid: part for uuid, part in _parts(held).items() if uuid not in providers}
        if len(left) != len(held["allocations"]):
            self.put_allocations(context, consumer, {**_writable(held), "allocations": left})

    def _edit(self, context: object, consumer: str, resources: Amounts, *, sign: int) -> None:
        for _ in range(_SENDINGS_MAX - 1):
            try:
                self._edit_once(context, consumer, resources, sign)
                return
            except Conflict:
                continue
        self._edit_once(context, consumer, resources, sign)

    def _edit_once(self, context: object, consumer: str, resources: Amounts, sign: int) -> None:
        held = self.get_allocs_for_consumer(context, consumer)
        if not held["allocations"]:
            raise NotHeld(f"Consumer {consumer} holds nothing")
        parts = _parts(held)
        for provider, amounts in resources.items():
            own = parts.setdefault(provider, {"resources": {}})["resources"]
            for resource_class, amount in amounts.items():
                left = own.pop(resource_class, 0) + sign * amount
                if left < 0:
                    raise NotHeld(
                        f"Consumer {consumer} holds less than {amount} {resource_class} of "
                        f"{provider}"
                    )
                if left:
                    own[resource_class] = left
            if not own:
                del parts[provider]
        self.put_allocations(context, consumer, {**_writable(held), "allocations": parts})


def _parts(held: Mapping[str, Any]) -> Held:
    """What a consumer holds, in the form in which it is written; a copy."""
    return {
        provider: {"resources": deepcopy(part["resources"])}
        for provider, part in held["allocations"].items()
    }


def _writable(held: Mapping[str, Any]) -> dict[str, Any]:
    """The rest of what is written with it."""
    return {name: held[name] for name in ("project_id", "user_id", "consumer_generation")}

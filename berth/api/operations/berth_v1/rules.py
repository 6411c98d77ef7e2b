# SPDX-License-Identifier: Apache-2.0
"""The policy rules of `/berth/v1`. Source: spec/beyond.md 1.5."""

from __future__ import annotations

from typing import Final

from berth.api.operation import Rule, for_agents, for_services

#: Admits administrators, services, and those who may only read.
READERS: Final = "rule:berth_reader"
#: Admits agents, each for its own host.
AGENTS: Final = "rule:agent_api"


def for_readers(name: str, description: str) -> Rule:
    """A rule that also admits those who may only read."""
    return Rule(name, READERS, description)


def for_readers_and_agents(name: str, description: str) -> Rule:
    """A rule that also admits those who may only read, and agents."""
    return Rule(name, f"{READERS} or {AGENTS}", description)


CANDIDATES: Final = for_readers_and_agents("berth:candidates", "Ask where a request fits.")
EXPLAIN: Final = for_readers_and_agents("berth:explain", "Ask why a request does not fit.")
CAPACITY: Final = for_readers_and_agents("berth:capacity", "Ask how many more fit.")
PLACE: Final = for_agents(
    "berth:place", "Choose hosts for consumers and claim there, and show where they were placed."
)
FLEET: Final = for_readers("berth:fleet", "Read the fleet, its changes and single trees.")
TREES_SHOW: Final = Rule(
    "berth:trees:show", f"rule:{FLEET.name} or {AGENTS}", "Show a tree of providers."
)
AGGREGATES_LIST: Final = for_readers_and_agents(
    "berth:aggregates:list", "List aggregates with their labels."
)
AGGREGATES_UPDATE: Final = for_services(
    "berth:aggregates:update", "Replace the labels of an aggregate."
)
FLAVORS_LIST: Final = for_readers("berth:flavors:list", "List flavors.")
FLAVORS_UPDATE: Final = for_services("berth:flavors:update", "Create, replace and delete flavors.")
TREES_UPDATE: Final = for_agents(
    "berth:trees:update", "Create and change whole trees of providers."
)
DRAINS_LIST: Final = for_readers_and_agents(
    "berth:drains:list", "List drains, and what is left on them."
)
DRAINS_UPDATE: Final = for_agents("berth:drains:update", "Create, replace and delete drains.")
LEASES_LIST: Final = for_readers_and_agents("berth:leases:list", "List leases.")
LEASES_UPDATE: Final = for_agents("berth:leases:update", "Create, renew, end and sweep leases.")

#: Admits every caller who is authenticated.
PERMISSIONS: Final = Rule("berth:permissions:show", "@", "Show what the caller may do.")

#: Also admits readers of the project that is asked for, and agents.
_READERS_OF_PROJECT: Final = f"{READERS} or rule:project_reader_api or {AGENTS}"
CONSUMERS_LIST: Final = Rule(
    "berth:consumers:list", _READERS_OF_PROJECT, "List consumers with what they hold."
)
CONSUMERS_SHOW: Final = Rule(
    "berth:consumers:show", _READERS_OF_PROJECT, "Show a consumer with what it holds."
)
CONSUMERS_UPDATE: Final = for_agents(
    "berth:consumers:update", "Allocate resources to a consumer with a name."
)
CONSUMERS_DELETE: Final = for_agents(
    "berth:consumers:delete", "Release everything that a consumer holds."
)

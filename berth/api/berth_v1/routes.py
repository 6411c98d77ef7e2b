# SPDX-License-Identifier: Apache-2.0
"""The operations of `/berth/v1` with their policy rules and their handlers: for each path, its
methods in the order of `Allow`. Source: spec/beyond.md 1.5.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from berth.api import examples
from berth.api.operation import Operation, Rule, Segment, for_agents, for_services
from berth.api.shapes import CONSUMER_NAME, EXTERNAL_ID, NAME, UUID

#: Its minor number counts additions.
VERSION: Final = "1.0"

_SERVICE: Final = "Service"
_QUESTIONS: Final = "Questions"
_PLACEMENTS: Final = "Placements"
_AGGREGATES: Final = "Aggregates"
_FLEET: Final = "Fleet"
_CONSUMERS: Final = "Consumers"
_LEASES: Final = "Leases"
_FLAVORS: Final = "Flavors"
_TREES: Final = "Trees"
_DRAINS: Final = "Drains"

#: The headings of the OpenAPI document.
TAGS: Final = {
    _SERVICE: "The API itself.",
    _QUESTIONS: "Where a request fits, why it does not, and how many more do.",
    _PLACEMENTS: "Choose hosts and claim in one call.",
    _AGGREGATES: "Groups of providers, with labels such as names and zones.",
    _FLEET: "Every provider, and what changes.",
    _CONSUMERS: "Who holds what.",
    _LEASES: "When berth takes back what consumers hold.",
    _FLAVORS: "Requests with a name.",
    _TREES: "Whole trees of providers, read and written in one call.",
    _DRAINS: "Providers that get nothing new.",
}

#: Seconds for which an explanation works, unless the body says otherwise.
EXPLAIN_SECONDS: Final = 1.0

# --- Policy rules ---------------------------------------------------------------------------------

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

# --- Operations -----------------------------------------------------------------------------------

_NAMED_CONSUMER: Final = {
    "project_id": Segment("The project of the consumer.", EXTERNAL_ID, "web"),
    "name": Segment("Its name within the project.", CONSUMER_NAME, "job-17"),
}

_on_aggregates = partial(Operation, path="/aggregates", tag=_AGGREGATES)
_on_aggregate = partial(
    Operation,
    path="/aggregates/{uuid}",
    segments={"uuid": Segment("The UUID of the aggregate.", UUID, examples.AGGREGATE)},
    tag=_AGGREGATES,
)
_on_consumers = partial(Operation, path="/consumers", tag=_CONSUMERS)
_on_consumer = partial(
    _on_consumers,
    path="/consumers/{uuid}",
    segments={"uuid": Segment("The UUID of the consumer.", UUID, examples.CONSUMER)},
)
_on_named_consumer = partial(
    _on_consumers, path="/consumers/{project_id}/{name}", segments=_NAMED_CONSUMER
)
_on_leases = partial(Operation, path="/leases", tag=_LEASES)
_on_lease = partial(
    _on_leases,
    path="/leases/{consumer}",
    segments={"consumer": Segment("The UUID of the consumer.", UUID, examples.CONSUMER)},
)
_on_tree = partial(
    Operation,
    path="/trees/{reference}",
    segments={
        "reference": Segment(
            "The UUID or the name of any provider of the tree.",
            {"type": "string", "minLength": 1},
            "cn1",
            is_rest=True,
        )
    },
    tag=_TREES,
)
_of_service = partial(Operation, "GET", tag=_SERVICE)
_of_fleet = partial(Operation, "GET", rule=FLEET, tag=_FLEET)
_question = partial(Operation, "POST", tag=_QUESTIONS, is_search=True)
_of_placements = partial(Operation, rule=PLACE, tag=_PLACEMENTS)


def _on_records(
    noun: str, example: str, tag: str, to_list: Rule, to_update: Rule, *, may_be_dry: bool = False
) -> tuple[Operation, ...]:
    """The operations of a kind of named record; the handlers are in the module of its noun."""
    path, handlers = f"/{noun}s", f"berth_v1.{noun}s"
    on_one = partial(
        Operation,
        path=f"{path}/{{name}}",
        segments={"name": Segment(f"The name of the {noun}.", NAME, example)},
        tag=tag,
    )
    return (
        Operation("GET", f"{handlers}:list_{noun}s", to_list, path=path, tag=tag),
        on_one("GET", f"{handlers}:show_{noun}", to_list),
        on_one("PUT", f"{handlers}:put_{noun}", to_update, may_be_dry=may_be_dry),
        on_one("DELETE", f"{handlers}:delete_{noun}", to_update),
    )


OPERATIONS: Final = (
    _of_service("berth_v1.service:show_version", None, path=""),
    _of_service("berth_v1.service:show_description", None, path="/openapi.json"),
    _of_service("berth_v1.service:show_permissions", PERMISSIONS, path="/permissions"),
    _on_aggregates("GET", "berth_v1.aggregates:list_aggregates", AGGREGATES_LIST),
    _on_aggregate("GET", "berth_v1.aggregates:show_aggregate", AGGREGATES_LIST),
    _on_aggregate("PUT", "berth_v1.aggregates:replace_labels", AGGREGATES_UPDATE),
    _on_consumers("GET", "berth_v1.consumers:list_consumers", CONSUMERS_LIST),
    _on_consumer("GET", "berth_v1.consumers:show_consumer", CONSUMERS_SHOW),
    _on_consumer("DELETE", "berth_v1.consumers:release_consumer", CONSUMERS_DELETE),
    _on_named_consumer("GET", "berth_v1.consumers:show_named_consumer", CONSUMERS_SHOW),
    _on_named_consumer("PUT", "berth_v1.consumers:claim_for_name", CONSUMERS_UPDATE),
    _on_named_consumer("DELETE", "berth_v1.consumers:release_named_consumer", CONSUMERS_DELETE),
    _on_leases("GET", "berth_v1.leases:list_leases", LEASES_LIST),
    _on_leases("POST", "berth_v1.leases:sweep_leases", LEASES_UPDATE),
    _on_lease("GET", "berth_v1.leases:show_lease", LEASES_LIST),
    _on_lease("PUT", "berth_v1.leases:put_lease", LEASES_UPDATE),
    _on_lease("DELETE", "berth_v1.leases:end_lease", LEASES_UPDATE),
    *_on_records("flavor", "m1.large", _FLAVORS, FLAVORS_LIST, FLAVORS_UPDATE),
    *_on_records("drain", "firmware-4.2", _DRAINS, DRAINS_LIST, DRAINS_UPDATE, may_be_dry=True),
    _on_tree("PUT", "berth_v1.trees:put_tree", TREES_UPDATE, may_be_dry=True),
    _on_tree("GET", "berth_v1.trees:show_tree", TREES_SHOW),
    _of_fleet("berth_v1.fleet:show_fleet", path="/fleet"),
    _of_fleet("berth_v1.changes:list_changes", path="/changes", is_watch=True),
    _question("berth_v1.candidates:find_candidates", CANDIDATES, path="/candidates"),
    _question(
        "berth_v1.explain:explain_request",
        EXPLAIN,
        path="/explain",
        search_seconds=EXPLAIN_SECONDS,
    ),
    _question("berth_v1.capacity:count_capacity", CAPACITY, path="/capacity"),
    _of_placements("POST", "berth_v1.place:place", path="/place", may_be_dry=True),
    _of_placements(
        "GET",
        "berth_v1.place:show_placement",
        path="/placements/{consumer}",
        segments={
            "consumer": Segment(
                "The UUID of the consumer.", UUID, "11111111-1f4a-4c11-8a3f-0d6f3d6f8a01"
            )
        },
    ),
    _of_placements(
        "GET",
        "berth_v1.place:show_placement_by_name",
        path="/placements/{project_id}/{name}",
        segments=_NAMED_CONSUMER,
    ),
)

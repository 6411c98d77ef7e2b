# SPDX-License-Identifier: Apache-2.0
"""Every path, method and microversion, with what is asked of a request before its handler.

One table: which policy rule guards an operation, since when it exists, whether it looks at `Accept`
or takes JSON, and in which order it is judged. Source: spec/rest-api.md 1.3, 1.4, 1.5 and 1.14.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from berth.api import (
    aggregates,
    allocation_candidates,
    allocations,
    inventories,
    providers,
    reshaper,
    resource_classes,
    root,
    traits,
    usages,
)
from berth.api.microversion import MINOR_MAX
from berth.api.openapi.handler import show_description
from berth.api.request import Request

#: Takes the services, the request, the response, and the parameters of the path in order.
Handler = Callable[..., None]
#: What the policy judges, when it is not the caller's own project.
Target = Callable[[Request], Mapping[str, str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of a path, within a range of microversions."""

    handler: Handler
    #: The policy rule; None for what everybody may do.
    rule: str | None
    since: int = 0
    until: int = MINOR_MAX
    #: Answers 406 where `Accept` does not admit JSON.
    checks_accept: bool = False
    #: Answers 415 to any other body.
    takes_json: bool = False
    #: The media types are judged before the microversion, instead of after it.
    media_first: bool = False
    #: Below `since`: 405 (without `Allow`), where every other operation is 404.
    absent_is_405: bool = False
    target: Target | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """A path template and its operations by method, in the order of the `Allow` header."""

    path: str
    methods: Mapping[str, tuple[Operation, ...]]


def _shows(handler: Handler, rule: str, *, since: int = 0, media_first: bool = False) -> Operation:
    """A GET with a body in its answer."""
    return Operation(
        handler=handler, rule=rule, since=since, checks_accept=True, media_first=media_first
    )


def _takes(
    handler: Handler,
    rule: str,
    *,
    since: int = 0,
    until: int = MINOR_MAX,
    media_first: bool = False,
) -> Operation:
    """A PUT or POST with JSON in its request."""
    return Operation(
        handler=handler,
        rule=rule,
        since=since,
        until=until,
        takes_json=True,
        media_first=media_first,
    )


def _does(handler: Handler, rule: str, *, since: int = 0, absent_is_405: bool = False) -> Operation:
    """Anything that looks at the path alone."""
    return Operation(handler=handler, rule=rule, since=since, absent_is_405=absent_is_405)


_RP = "placement:resource_providers"
_RC = "placement:resource_classes"

ROUTES: tuple[Route, ...] = (
    Route("/", {"GET": (Operation(handler=root.show_versions, rule=None),)}),
    Route("/openapi.json", {"GET": (Operation(handler=show_description, rule=None),)}),
    Route(
        "/resource_providers",
        {
            "GET": (_shows(providers.list_providers, f"{_RP}:list"),),
            "POST": (_takes(providers.create_provider, f"{_RP}:create"),),
        },
    ),
    Route(
        "/resource_providers/{uuid}",
        {
            "GET": (_shows(providers.show_provider, f"{_RP}:show"),),
            "DELETE": (_does(providers.delete_provider, f"{_RP}:delete"),),
            "PUT": (_takes(providers.update_provider, f"{_RP}:update"),),
        },
    ),
    Route(
        "/resource_providers/{uuid}/inventories",
        {
            "GET": (_shows(inventories.list_inventories, f"{_RP}:inventories:list"),),
            "POST": (_takes(inventories.create_inventory, f"{_RP}:inventories:create"),),
            "PUT": (_takes(inventories.replace_inventories, f"{_RP}:inventories:update"),),
            "DELETE": (
                _does(
                    inventories.delete_inventories,
                    f"{_RP}:inventories:delete",
                    since=5,
                    absent_is_405=True,
                ),
            ),
        },
    ),
    Route(
        "/resource_providers/{uuid}/inventories/{resource_class}",
        {
            "GET": (_shows(inventories.show_inventory, f"{_RP}:inventories:show"),),
            "PUT": (_takes(inventories.update_inventory, f"{_RP}:inventories:update"),),
            "DELETE": (_does(inventories.delete_inventory, f"{_RP}:inventories:delete"),),
        },
    ),
    Route(
        "/resource_providers/{uuid}/usages",
        {"GET": (_shows(usages.show_provider_usages, f"{_RP}:usages"),)},
    ),
    Route(
        "/resource_providers/{uuid}/allocations",
        {"GET": (_shows(allocations.list_provider_allocations, f"{_RP}:allocations:list"),)},
    ),
    Route(
        "/resource_providers/{uuid}/aggregates",
        {
            "GET": (
                _shows(
                    aggregates.list_aggregates, f"{_RP}:aggregates:list", since=1, media_first=True
                ),
            ),
            "PUT": (
                _takes(
                    aggregates.replace_aggregates,
                    f"{_RP}:aggregates:update",
                    since=1,
                    media_first=True,
                ),
            ),
        },
    ),
    Route(
        "/resource_providers/{uuid}/traits",
        {
            "GET": (_shows(traits.list_provider_traits, f"{_RP}:traits:list", since=6),),
            "PUT": (_takes(traits.replace_provider_traits, f"{_RP}:traits:update", since=6),),
            "DELETE": (_does(traits.delete_provider_traits, f"{_RP}:traits:delete", since=6),),
        },
    ),
    Route("/traits", {"GET": (_shows(traits.list_traits, "placement:traits:list", since=6),)}),
    Route(
        "/traits/{name}",
        {
            "GET": (_does(traits.show_trait, "placement:traits:show", since=6),),
            "PUT": (_does(traits.ensure_trait, "placement:traits:update", since=6),),
            "DELETE": (_does(traits.delete_trait, "placement:traits:delete", since=6),),
        },
    ),
    Route(
        "/resource_classes",
        {
            "GET": (_shows(resource_classes.list_resource_classes, f"{_RC}:list", since=2),),
            "POST": (_takes(resource_classes.create_resource_class, f"{_RC}:create", since=2),),
        },
    ),
    Route(
        "/resource_classes/{name}",
        {
            "GET": (_shows(resource_classes.show_resource_class, f"{_RC}:show", since=2),),
            "PUT": (
                _takes(resource_classes.rename_resource_class, f"{_RC}:update", since=2, until=6),
                _does(resource_classes.ensure_resource_class, f"{_RC}:update", since=7),
            ),
            "DELETE": (_does(resource_classes.delete_resource_class, f"{_RC}:delete", since=2),),
        },
    ),
    Route(
        "/allocations",
        {
            "POST": (
                _takes(allocations.manage_allocations, "placement:allocations:manage", since=13),
            )
        },
    ),
    Route(
        "/allocations/{consumer_uuid}",
        {
            "GET": (_shows(allocations.show_allocations, "placement:allocations:list"),),
            "PUT": (_takes(allocations.replace_allocations, "placement:allocations:update"),),
            "DELETE": (_does(allocations.delete_allocations, "placement:allocations:delete"),),
        },
    ),
    Route(
        "/allocation_candidates",
        {
            "GET": (
                _shows(
                    allocation_candidates.list_candidates,
                    "placement:allocation_candidates:list",
                    since=10,
                ),
            )
        },
    ),
    Route(
        "/usages",
        {
            "GET": (
                Operation(
                    handler=usages.show_project_usages,
                    rule="placement:usages",
                    since=9,
                    checks_accept=True,
                    target=usages.target_project,
                ),
            )
        },
    ),
    Route(
        "/reshaper",
        {"POST": (_takes(reshaper.reshape, "placement:reshaper:reshape", since=30),)},
    ),
)

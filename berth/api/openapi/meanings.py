# SPDX-License-Identifier: Apache-2.0
"""What the members of bodies mean: one name has one meaning, wherever it stands."""

from __future__ import annotations

from collections.abc import Mapping

_OWNER = "An opaque id, as the identity service has it."
_RELATED = "What it is to the thing that is shown: itself, or a part of it."

MEANINGS: Mapping[str, str] = {
    "aggregates": "The aggregates that the provider is a member of, all of them.",
    "allocation_ratio": "How often the resource may be given out: capacity is (total - reserved) "
    "times this, rounded down.",
    "allocation_requests": "The candidates: each can be sent as the allocations of a consumer.",
    "allocations": "What is held. In a request this replaces everything that the consumer held.",
    "capacity": "How much can be given out in all.",
    "code": "The kind of error, for programs.",
    "consumer_count": "How many consumers hold this.",
    "consumer_generation": "Counts the changes of the consumer. In a request: what was read last, "
    "or null for a consumer that is new.",
    "consumer_type": "What kind of thing holds the resources.",
    "detail": "What was wrong: a sentence for the status, and the message alone on the last line.",
    "error": "What was wrong.",
    "errors": "What was wrong: always one.",
    "generation": "Counts the changes of the provider. In a request it is not looked at.",
    "href": "A path of this service, its prefix included; empty for the document itself.",
    "id": "The name of the version.",
    "in_tree": "The tree of this provider.",
    "info": "What is described.",
    "inventories": "What the provider has, by resource class. In a request this replaces all of "
    "it.",
    "links": "Where to go on.",
    "mappings": "For each request group, by its suffix, the providers that serve it.",
    "max_unit": "The most that one allocation may take.",
    "max_version": "The newest microversion that is served.",
    "message": "What was wrong.",
    "min_unit": "The least that one allocation may take.",
    "min_version": "The oldest microversion that is served.",
    "name": "The name.",
    "openapi": "The version of OpenAPI.",
    "parent_provider_uuid": "The provider directly above; null for a root.",
    "paths": "The operations.",
    "project_id": _OWNER,
    "provider_summaries": "The providers of the candidates, by uuid.",
    "rel": _RELATED,
    "request_id": "Names the request; the same stands in the service's log.",
    "reserved": "How much of the total is kept for others.",
    "resource_class": "The name of the resource class.",
    "resource_classes": "All resource classes, the standard ones first.",
    "resource_provider": "The provider that gives.",
    "resource_provider_generation": "Counts the changes of the provider. In a request: what was "
    "read last; where the provider has changed since, the answer is 409.",
    "resource_providers": "The providers that meet all filters.",
    "resources": "Amounts, or capacities, by resource class.",
    "root_provider_uuid": "The provider at the top of the tree; itself for a root.",
    "status": "The HTTP status, or that of the version.",
    "step_size": "Amounts are multiples of this.",
    "title": "The reason phrase of the status.",
    "total": "How much there is.",
    "traits": "Names of traits.",
    "usages": "What is held, summed up by resource class.",
    "used": "How much is held.",
    "user_id": _OWNER,
    "uuid": "The uuid.",
    "versions": "The versions that are served: always one.",
}

# SPDX-License-Identifier: Apache-2.0
"""The model's requests in HTTP, and the script of a failure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final
from urllib.parse import urlencode

from tests.client import Unset
from tests.proof.model.plain_model import Claim, Claims, Record
from tests.proof.model.plain_reads import ProviderQuery
from tests.worlds import provider_uuid

#: What a failing history begins with, so that its lines can be pasted into a shell.
PRELUDE: Final = r"""
# BERTH=http://127.0.0.1:8778
api() {
  curl -s -w ' # %{http_code}\n' -X "$2" "$BERTH$3" ${4:+-d "$4"} \
    -H "openstack-api-version: placement $1" -H 'content-type: application/json' \
    -H 'x-auth-token: admin' -H 'x-roles: admin,service'
}"""


def script_line(minor: int, method: str, path: str, body: Any, status: int) -> str:
    """A request as a line of the script, with the response's status."""
    words = [f"api 1.{minor} {method} {shlex.quote(path)}"]
    if not isinstance(body, Unset):
        words.append(shlex.quote(json.dumps(body)))
    return f"{' '.join(words)}  # {status}"


def inventories_body(seen: int, records: Mapping[str, Record]) -> dict[str, Any]:
    """PUT inventories (5.3)."""
    return {
        "resource_provider_generation": seen,
        "inventories": {name: asdict(record) for name, record in records.items()},
    }


def claim_body(minor: int, claim: Claim) -> dict[str, Any]:
    """PUT /allocations/{consumer}, in the form of the microversion (10.3)."""
    if minor < 12:
        body: dict[str, Any] = {
            "allocations": [
                {"resource_provider": {"uuid": uuid}, "resources": dict(some)}
                for uuid, some in claim.held.items()
            ]
        }
    else:
        body = {
            "allocations": {uuid: {"resources": dict(some)} for uuid, some in claim.held.items()}
        }
    if minor >= 8:
        body |= {"project_id": claim.project, "user_id": claim.user}
    if minor >= 28:
        body["consumer_generation"] = claim.seen
    if minor >= 34 and claim.held:
        body["mappings"] = {"": list(claim.held)}
    if minor >= 38:
        body["consumer_type"] = claim.type
    return body


def claims_body(minor: int, claims: Claims) -> dict[str, Any]:
    """POST /allocations, and the `allocations` of POST /reshaper."""
    return {uuid: claim_body(minor, claim) for uuid, claim in claims.items()}


def comparable(value: Any) -> Any:
    """The value with its lists sorted: the contract leaves their order open."""
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((comparable(item) for item in value), key=repr)
    return value


def path_of(place: str, what: str = "") -> str:
    """The path of a provider, or of a part of it."""
    path = f"/resource_providers/{provider_uuid(place)}"
    return f"{path}/{what}" if what else path


def query_of(query: ProviderQuery) -> str:
    """The query string of GET /resource_providers (4.1)."""
    pairs = [("name", query.name), ("in_tree", query.in_tree)]
    amounts = [f"{name}:{amount}" for name, amount in query.resources.items()]
    pairs.append(("resources", ",".join(amounts)))
    pairs += [("member_of", "in:" + ",".join(sorted(some))) for some in query.member_of]
    if query.not_member_of:
        pairs.append(("member_of", "!in:" + ",".join(sorted(query.not_member_of))))
    single = [name for some in query.required if len(some) == 1 for name in sorted(some)]
    traits = single + [f"!{name}" for name in sorted(query.forbidden)]
    pairs.append(("required", ",".join(traits)))
    pairs += [
        ("required", "in:" + ",".join(sorted(some))) for some in query.required if len(some) > 1
    ]
    given = [(key, value) for key, value in pairs if value]
    return f"?{urlencode(given, safe=':,!')}" if given else ""

# SPDX-License-Identifier: Apache-2.0
"""Flavors: requests with a name. Source: spec/beyond.md 4.5."""

from __future__ import annotations

import json
from typing import Any

from berth.api.berth_v1 import body
from berth.api.berth_v1.asking import check_names
from berth.api.berth_v1.pointed import refused
from berth.api.berth_v1.reading import JSONObject, read_question
from berth.api.berth_v1.refusals import check_name, not_found
from berth.api.berth_v1.revisions import after_write, is_unchanged
from berth.api.entity_tags import insists_on_new
from berth.api.errors import Refused
from berth.api.operations.berth_v1.codes import TOO_LARGE
from berth.api.operations.berth_v1.flavors import PUT
from berth.api.rendering import answer, answer_empty, encode
from berth.api.request import Request, Response, Services
from berth.index.snapshot import Snapshot
from berth.model.bounds import FLAVOR_BYTES_MAX
from berth.model.flavor import Flavor, FlavorName
from berth.model.similar_names import similar
from berth.store import flavors as store


def list_flavors(services: Services, request: Request, response: Response) -> None:
    """List all flavors."""
    snapshot = services.index.snapshot()
    if is_unchanged(request, response, snapshot):
        return
    flavors = snapshot.names.flavors
    shown = [_shown(name, flavors[name]) for name in sorted(flavors)]
    answer(response, {"revision": snapshot.revision, "flavors": shown})


def show_flavor(services: Services, request: Request, response: Response, name: str) -> None:
    """Show one flavor."""
    snapshot = services.index.snapshot()
    flavor = snapshot.names.flavors.get(FlavorName(name))
    if flavor is None:
        raise _not_found(name, snapshot)
    answer(response, {"revision": snapshot.revision, **_shown(name, flavor)})


def put_flavor(services: Services, request: Request, response: Response, name: str) -> None:
    """Create or replace a flavor."""
    check_name("flavor", name)
    sent: JSONObject = body.read(request, PUT)
    asked = read_question(sent["request"], "/request")
    before = services.index.snapshot()
    check_names((asked,), before)
    flavor = Flavor(_text(sent["request"]), sent.get("expose", True), sent.get("description", ""))
    is_new = store.put_flavor(
        services.database, FlavorName(name), flavor, is_new=insists_on_new(request)
    )
    if is_new:
        response.set_header("location", request.location(request.path))
    shown = {"revision": after_write(services, before).revision, **_shown(name, flavor)}
    answer(response, shown, status=201 if is_new else 200)


def delete_flavor(services: Services, request: Request, response: Response, name: str) -> None:
    """Delete a flavor."""
    if not store.delete_flavor(services.database, FlavorName(name)):
        raise _not_found(name, services.index.snapshot())
    answer_empty(response)


def _not_found(name: str, snapshot: Snapshot) -> Refused:
    return not_found(f"There is no flavor {name}.", similar(name, snapshot.names.flavors))


def _text(request: JSONObject) -> str:
    """A request as it is stored.

    Raises:
        Refused: 400 if it is too long.
    """
    text = encode(request)
    if len(text) > FLAVOR_BYTES_MAX:
        raise refused(
            "/request",
            f"may have at most {FLAVOR_BYTES_MAX:,} bytes (max_flavor_bytes), and has"
            f" {len(text):,}",
            code=TOO_LARGE,
        )
    return text.decode()


def _shown(name: str, flavor: Flavor) -> dict[str, Any]:
    return {
        "name": name,
        "request": _request(flavor),
        "expose": flavor.expose,
        "description": flavor.description,
    }


def _request(flavor: Flavor) -> JSONObject:
    """The stored request; nothing if it is damaged, which `berth db check` reports."""
    try:
        request = json.loads(flavor.request)
    except ValueError:
        return {}
    return request if isinstance(request, dict) else {}

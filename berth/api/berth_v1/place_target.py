# SPDX-License-Identifier: Apache-2.0
"""Whose consumers a call of `place` writes, for the policy. Source: spec/beyond.md 6.4."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from berth.api.berth_v1 import body
from berth.api.errors import Refused
from berth.api.paths import consumer_uuid
from berth.api.request import Request, Services
from berth.model.bounds import CONSUMERS_MAX
from berth.store.consumer_lists import get_consumer


class _Consumer(msgspec.Struct):
    project_id: str
    uuid: str | None = None


class _Body(msgspec.Struct):
    consumers: Annotated[list[_Consumer], msgspec.Meta(max_length=CONSUMERS_MAX)]
    replace: bool = False


def project_of_body(services: Services, request: Request) -> Mapping[str, str | None]:
    """The project of all consumers of a body, before the call and after it.

    There is none if they are of several projects, or if the body does not say: only authorized
    callers learn what is wrong with it. A consumer that is replaced is at the generation that the
    body names, or it is refused; so its project is still the one that was read here.
    """
    try:
        sent = msgspec.convert(body.content(request), _Body)
    except (Refused, msgspec.ValidationError):
        return {}
    projects = {consumer.project_id for consumer in sent.consumers}
    if sent.replace:
        uuids = {consumer_uuid(each.uuid) for each in sent.consumers if each.uuid is not None}
        present = [get_consumer(services.database, uuid) for uuid in uuids]
        projects.update(each.project_id for each in present if each is not None)
    return {"project_id": projects.pop()} if len(projects) == 1 else {}

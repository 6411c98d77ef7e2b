# SPDX-License-Identifier: Apache-2.0
"""The body of `POST /berth/v1/place`. Source: spec/beyond.md 5.2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from random import Random

import msgspec

from berth.api.berth_v1 import body
from berth.api.berth_v1.asking import read_what_if
from berth.api.berth_v1.pointed import pointer_of, refused
from berth.api.berth_v1.reading import (
    JSONObject,
    Part,
    Requested,
    read_conditions,
    read_request,
)
from berth.api.operations.berth_v1.place import AMONG, BODY_SCHEMA, TRIES
from berth.api.paths import is_dry_run
from berth.api.request import Request
from berth.candidates.choosing import Limits
from berth.candidates.host_groups import HOST
from berth.candidates.what_if import WhatIf
from berth.model.bounds import KEPT_REQUEST_BYTES_MAX
from berth.model.ids import ConsumerUUID, Generation, parse_uuid_lax

#: Bits of a random seed.
_SEED_BITS = 64


@dataclass(frozen=True, slots=True)
class NewConsumer:
    """A consumer to be placed.

    `uuid`: None if only its name says which it is. `generation`: None for a new one.
    """

    uuid: ConsumerUUID | None
    name: str | None
    project_id: str
    user_id: str
    consumer_type: str
    generation: Generation | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """A body, decoded and checked against everything but the fleet.

    Attributes:
        requested: empty if each consumer keeps its own request.
        kept: the request as JSON; "" if it is not kept with the placements.
        conditions: further ones of this call alone.
        order: as JSON, with the defaults of placements.
        digest: of everything in the body that matters to the outcome.
        lease_seconds: None if the consumers keep what they get.
        question: the same for calls that may choose from one pool; None for one that chooses for
            itself: its order has a seed of its own, say.
        label_keys: those that `limits` names, by the pointers to them.
    """

    requested: tuple[Requested, ...]
    kept: str
    conditions: Part
    consumers: tuple[NewConsumer, ...]
    order: JSONObject
    limits: Limits
    what_if: WhatIf | None
    digest: str
    lease_seconds: int | None
    question: bytes | None
    label_keys: Mapping[str, str]
    tries: int
    replaces: bool
    explains: bool
    is_dry_run: bool


def read_body(request: Request, rng: Random) -> Wanted:
    """The decoded body and query.

    Args:
        rng: for the seed of an order that names none.

    Raises:
        Refused: 400.
    """
    is_dry = is_dry_run(request.env)
    sent: JSONObject = body.read(request, BODY_SCHEMA)
    what_if = sent.get("what_if")
    if what_if is not None and not is_dry:
        raise refused("/what_if", "is allowed with the query dry_run=true only")
    if "request" not in sent and not sent.get("replace", False):
        raise refused("", "lacks request, which can be left out with replace only")
    seed = rng.getrandbits(_SEED_BITS)
    return Wanted(
        requested=read_request(sent["request"], "/request") if "request" in sent else (),
        kept=_kept(sent),
        conditions=read_conditions(sent),
        consumers=tuple(_consumers(sent)),
        order={"by": "spread", "among": AMONG, "seed": seed, **sent.get("order", {})},
        limits=Limits(sent.get("max_per", {}), sent.get("within")),
        what_if=None if what_if is None else read_what_if(what_if, "/what_if"),
        digest=_digest(sent),
        lease_seconds=sent.get("lease_seconds"),
        question=_question(sent),
        label_keys=_label_keys(sent),
        tries=sent.get("tries", TRIES),
        replaces=sent.get("replace", False),
        explains=sent.get("explain", True),
        is_dry_run=is_dry,
    )


def _consumers(sent: JSONObject) -> Iterator[NewConsumer]:
    """The consumers, all of which must be different."""
    replaces = sent.get("replace", False)
    uuids, names = set[str](), set[tuple[str, str]]()
    for place, consumer in enumerate(sent["consumers"]):
        at = f"/consumers/{place}"
        name = consumer.get("name")
        uuid = parse_uuid_lax(consumer["uuid"]) if "uuid" in consumer else None
        if uuid is None and name is None:
            raise refused(at, "lacks uuid, or a name instead")
        if name is not None and "/" in consumer["project_id"]:
            raise refused(f"{at}/name", "names a consumer of a project whose id has a slash")
        if uuid in uuids:
            raise refused(f"{at}/uuid", "repeats an earlier consumer")
        if (consumer["project_id"], name) in names:
            raise refused(f"{at}/name", "repeats that of an earlier consumer of the project")
        if uuid is not None:
            uuids.add(uuid)
        if name is not None:
            names.add((consumer["project_id"], name))
        generation = consumer.get("consumer_generation")
        if replaces and generation is None:
            raise refused(at, "lacks consumer_generation, which replace needs")
        if generation is not None and not replaces:
            raise refused(f"{at}/consumer_generation", "is for replace only")
        yield NewConsumer(
            None if uuid is None else ConsumerUUID(uuid),
            name,
            consumer["project_id"],
            consumer["user_id"],
            consumer["consumer_type"],
            generation,
        )


def _kept(sent: JSONObject) -> str:
    """`Wanted.kept`, in the order of the body: groups count in it."""
    if "request" not in sent:
        return ""
    text = msgspec.json.encode(sent["request"])
    return text.decode() if len(text) <= KEPT_REQUEST_BYTES_MAX else ""


def _digest(sent: JSONObject) -> str:
    """A digest of the body, whatever the order of its members."""
    members = {name: value for name, value in sent.items() if name != "explain"}
    return sha256(msgspec.json.encode(members, order="sorted")).hexdigest()


def _question(sent: JSONObject) -> bytes | None:
    """`Wanted.question`."""
    order = sent.get("order", {})
    if "seed" in order or "preserve" in order or "within" in sent or sent.get("replace", False):
        return None
    if "host" in sent or "tolerate" in sent:
        return None
    return msgspec.json.encode((sent["request"], order))


def _label_keys(sent: JSONObject) -> dict[str, str]:
    """`Wanted.label_keys`."""
    keys = {pointer_of(("max_per", key)): key for key in sent.get("max_per", ())}
    if "within" in sent:
        keys["/within"] = sent["within"]
    return {at: key for at, key in keys.items() if key != HOST}

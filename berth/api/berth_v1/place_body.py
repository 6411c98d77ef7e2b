# SPDX-License-Identifier: Apache-2.0
"""The body of `POST /berth/v1/place`, and its consumers: who they are, and what they have.

Source: spec/beyond.md 5.2, 5.3 and 6.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from random import Random
from typing import Annotated, Any, Final
from uuid import uuid4

import msgspec
from msgspec import Struct, field, structs

from berth.api.berth_v1 import codes, grammar, inputs
from berth.api.berth_v1.fleet_questions import read_what_if
from berth.api.berth_v1.grammar import (
    REQUEST,
    TOLERATE,
    OrderInput,
    WhatIfInput,
    counted,
    counted_map,
    integer,
    up_to,
)
from berth.api.berth_v1.inputs import BodySchema
from berth.api.berth_v1.questions import JSONObject, Part, Requested, read_conditions, read_request
from berth.api.berth_v1.refusals import pointer_of, refused
from berth.api.errors import Refused
from berth.api.paths import consumer_uuid, is_dry_run
from berth.api.request import Call, Services
from berth.api.shapes import CONSUMER_NAME, CONSUMER_TYPE, GENERATION, LEASE_SECONDS, UUID
from berth.api.struct_schema import Input
from berth.candidates.place.bounds import HOST, Limits
from berth.candidates.what_if import WhatIf
from berth.model.bounds import CONSUMERS_MAX, KEPT_REQUEST_BYTES_MAX
from berth.model.errors import ConcurrentUpdate, ConsumerGenerationConflict
from berth.model.ids import ClassId, ConsumerUUID, Generation, ProviderId
from berth.model.names import LABEL_KEY
from berth.model.own_errors import ConsumerNameTaken
from berth.model.shown import UNSET, ExternalId, Sometimes
from berth.model.structs import converter
from berth.store.consumer_lists import get_consumer
from berth.store.consumers import named_consumers
from berth.store.placements import Placement, Standing, standings

_order_of: Final = converter(OrderInput)

#: Candidates that are tried before giving up, unless the body says otherwise.
TRIES: Final = 8
#: Hosts that are scored, unless the body says otherwise.
AMONG: Final = 512


_LABEL_KEY: Final = rf"^{LABEL_KEY}\Z"


class NewConsumer(Input, kw_only=True):
    """A consumer to be placed; without a UUID, its name says which it is."""

    uuid: Annotated[
        ConsumerUUID | None,
        UUID,
        "Chosen by the client; it makes the call repeatable. It may be left out if there is a"
        " `name`, which makes it repeatable too.",
    ] = None
    name: Annotated[str | None, CONSUMER_NAME] = None
    project_id: ExternalId
    user_id: ExternalId
    consumer_type: Annotated[str, CONSUMER_TYPE]
    consumer_generation: Annotated[Generation | None, GENERATION, "Needed with `replace` only."] = (
        None
    )


class Body(Input, kw_only=True):
    """What to place."""

    request: Annotated[
        JSONObject | None,
        REQUEST,
        "What each of the consumers gets. With `replace` it may be left out: each consumer then"
        " keeps its own request.",
    ] = None
    host: Annotated[
        JSONObject | None,
        grammar.HOST,
        "Further conditions on hosts, of this call alone: they are not kept with the request. Their"
        " `in` takes the place of that of the request.",
    ] = None
    tolerate: Annotated[Any, TOLERATE, "Further drains to tolerate in this call."] = None
    consumers: Annotated[
        Sequence[NewConsumer],
        {"minItems": 1, **counted("max_consumers")},
        "All of them are placed, or none.",
    ]
    order: Annotated[
        OrderInput,
        f"As for candidates; by default `spread`, `among` {AMONG} hosts, with a random `seed`.",
    ] = field(default_factory=OrderInput)
    max_per: Annotated[
        Mapping[str, int],
        counted_map(_LABEL_KEY, integer(1, CONSUMERS_MAX), "max_label_keys"),
        "`host`, or a label key: at most this many of these consumers on one host, or on the hosts"
        " with one value of the label.",
    ] = {}
    within: Annotated[
        str | None,
        {"type": "string", "pattern": _LABEL_KEY},
        "`host`, or a label key: all consumers are on one host, or on hosts with one value of the"
        " label.",
    ] = None
    replace: Annotated[
        bool,
        "Whether the consumers exist and hold something, which they give back in the same"
        " transaction; each then needs `consumer_generation`.",
    ] = False
    lease_seconds: Annotated[
        int | None,
        LEASE_SECONDS,
        "How long they may hold it, unless the lease is renewed: then berth takes it back. By"
        " default, until they release it.",
    ] = None
    tries: Annotated[
        int,
        up_to("max_tries"),
        "How many candidates are tried if others are faster each time.",
    ] = TRIES
    explain: Annotated[bool, "Whether a refusal says why there is no place."] = True
    what_if: Annotated[Sometimes[WhatIfInput], "With `dry_run=true` only."] = UNSET


BODY: Final = BodySchema(Body)
EXAMPLE_CONSUMER: Final = "11111111-1f4a-4c11-8a3f-0d6f3d6f8a01"
EXAMPLE: Final = {
    "request": {"groups": {"": {"resources": {"VCPU": 8, "MEMORY_MB": 16384}}}},
    "consumers": [
        {
            "uuid": EXAMPLE_CONSUMER,
            "project_id": "web",
            "user_id": "alice",
            "consumer_type": "INSTANCE",
        }
    ],
    "order": {"by": "spread"},
    "max_per": {"host": 1, "rack": 2},
    "within": "zone",
}

#: Bits of a random seed.
_SEED_BITS = 64


class Wanted(Struct, frozen=True):
    """A body, decoded and checked against everything but the fleet.

    Attributes:
        requested: empty if each consumer keeps its own request.
        kept: the request as JSON; "" if it is not kept with the placements.
        conditions: further ones of this call alone.
        order: with the defaults of placements.
        digest: of everything in the body that matters to the outcome.
        question: the same for calls that may choose from one pool; None for one that chooses for
            itself: its order has a seed of its own, say.
        label_keys: those that `limits` names, by the pointers to them.
    """

    body: Body
    requested: tuple[Requested, ...]
    kept: str
    conditions: Part
    consumers: tuple[NewConsumer, ...]
    order: OrderInput
    limits: Limits
    what_if: WhatIf | None
    digest: str
    question: bytes | None
    label_keys: Mapping[str, str]
    is_dry_run: bool


def read_body(call: Call, rng: Random) -> Wanted:
    """The decoded body and query.

    Args:
        rng: for the seed of an order that names none.

    Raises:
        Refused: 400.
    """
    is_dry = is_dry_run(call.env)
    body = BODY.read(call)
    if body.what_if is not UNSET and not is_dry:
        raise refused("/what_if", "is allowed with the query dry_run=true only")
    if body.request is None and not body.replace:
        raise refused("", "lacks request, which can be left out with replace only")
    # The conditions are read as they were sent: `body` has defaults.
    sent: Any = inputs.content(call)
    defaults = {"by": "spread", "among": AMONG, "seed": rng.getrandbits(_SEED_BITS)}
    return Wanted(
        body,
        requested=() if body.request is None else read_request(body.request, "/request"),
        kept=_kept(body),
        conditions=read_conditions(sent),
        consumers=tuple(_consumers(body)),
        order=_order_of({**defaults, **sent.get("order", {})}),
        limits=Limits(body.max_per, body.within),
        what_if=read_what_if(body.what_if),
        digest=_digest(sent),
        question=_question(sent),
        label_keys=_label_keys(body),
        is_dry_run=is_dry,
    )


def _consumers(body: Body) -> Iterator[NewConsumer]:
    """The consumers, all of which must be different, with canonical uuids."""
    uuids, names = set[str](), set[tuple[str, str]]()
    for place, consumer in enumerate(body.consumers):
        at = f"/consumers/{place}"
        name, generation = consumer.name, consumer.consumer_generation
        uuid = None if consumer.uuid is None else consumer_uuid(consumer.uuid)
        if uuid is None and name is None:
            raise refused(at, "lacks uuid, or a name instead")
        if name is not None and "/" in consumer.project_id:
            raise refused(f"{at}/name", "names a consumer of a project whose id has a slash")
        if uuid in uuids:
            raise refused(f"{at}/uuid", "repeats an earlier consumer")
        if name is not None and _name_of(consumer) in names:
            raise refused(f"{at}/name", "repeats that of an earlier consumer of the project")
        if uuid is not None:
            uuids.add(uuid)
        if name is not None:
            names.add(_name_of(consumer))
        if body.replace and generation is None:
            raise refused(at, "lacks consumer_generation, which replace needs")
        if generation is not None and not body.replace:
            raise refused(f"{at}/consumer_generation", "is for replace only")
        yield structs.replace(consumer, uuid=uuid)


def _kept(body: Body) -> str:
    """`Wanted.kept`, in the order of the body: groups count in it."""
    if body.request is None:
        return ""
    text = msgspec.json.encode(body.request)
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


def _label_keys(body: Body) -> dict[str, str]:
    """`Wanted.label_keys`."""
    keys = {pointer_of(("max_per", key)): key for key in body.max_per}
    if body.within is not None:
        keys["/within"] = body.within
    return {at: key for at, key in keys.items() if key != HOST}


# --- The target of the policy ---------------------------------------------------------------------


class _Consumer(msgspec.Struct):
    project_id: str
    uuid: str | None = None


class _Body(msgspec.Struct):
    consumers: Annotated[list[_Consumer], msgspec.Meta(max_length=CONSUMERS_MAX)]
    replace: bool = False


_projects_of: Final = converter(_Body)


def project_of_body(call: Call) -> Mapping[str, str | None]:
    """The project of all consumers of a body, before the call and after it.

    There is none if they are of several projects, or if the body does not say: only authorized
    callers learn what is wrong with it. A consumer that is replaced is at the generation that the
    body names, or it is refused; so its project is still the one that was read here.
    """
    try:
        sent = _projects_of(inputs.content(call))
    except (Refused, msgspec.ValidationError):
        return {}
    projects = {consumer.project_id for consumer in sent.consumers}
    if sent.replace:
        uuids = {consumer_uuid(each.uuid) for each in sent.consumers if each.uuid is not None}
        present = [get_consumer(call.services.database, uuid) for uuid in uuids]
        projects.update(each.project_id for each in present if each is not None)
    return {"project_id": projects.pop()} if len(projects) == 1 else {}


# --- The consumers (5.3) --------------------------------------------------------------------------


#: The consumers that a refusal names.
_SHOWN_MAX: Final = 3


class Consumers:
    """The consumers of one call, in the order of its body.

    Raises:
        Refused: 400, two of the consumers are one.
    """

    def __init__(self, services: Services, wanted: Wanted) -> None:
        self._services = services
        self._wanted = wanted
        #: Those of the body, those of the consumers that have the names already, or new ones.
        self.uuids: Sequence[ConsumerUUID] = self._identified()
        #: What they have; empty as long as it does not matter.
        self.standings: Mapping[ConsumerUUID, Standing] = {}

    def __len__(self) -> int:
        return len(self.uuids)

    def __iter__(self) -> Iterator[tuple[ConsumerUUID, NewConsumer]]:
        return zip(self.uuids, self._wanted.consumers, strict=True)

    def look_up(self) -> bool:
        """Look up their names again; whether they are others now."""
        before, self.uuids = self.uuids, self._identified()
        return self.uuids != before

    def read(self) -> None:
        """Read what they have."""
        self.standings = standings(self._services.database, self.uuids)

    @property
    def placed_before(self) -> dict[ConsumerUUID, tuple[Standing, Placement]]:
        """What they still have of an earlier call with the same body; empty if that is not all."""
        placed = {
            uuid: (standing, standing.placement)
            for uuid, standing in self.standings.items()
            if standing.placement and standing.placement.digest == self._wanted.digest
        }
        return placed if len(placed) == len(self) else {}

    def check(self) -> None:
        """Check that none has anything yet, or that those to be replaced are as the body says.

        Raises:
            Refused: 409.
            ConsumerGenerationConflict: one is at another generation.
        """
        if self._wanted.body.replace:
            for uuid, each in self:
                if (actual := self.standings[uuid].generation) != each.consumer_generation:
                    raise _is_at_another(uuid, each, actual)
            return
        holding = {uuid: each for uuid, each in self if self.standings[uuid].generation is not None}
        if holding:
            names = ", ".join(_called(*each) for each in list(holding.items())[:_SHOWN_MAX])
            others = " and others" if len(holding) > _SHOWN_MAX else ""
            raise conflict(
                self._services,
                codes.CONSUMER_HOLDS,
                f"Consumer {names} holds something already."
                if len(holding) == 1
                else f"Consumers {names}{others} hold something already.",
                "Use replace to move them, or other uuids or names for new consumers.",
                consumers=[*holding],
            )

    def check_names(self) -> None:
        """Check that the names are free, as a claim would.

        Raises:
            ConsumerNameTaken: another consumer has one, and keeps it.
        """
        wanted = {_name_of(each): uuid for uuid, each in self if each.name is not None}
        own = dict(self)
        for (project, name), holder in self._named(wanted).items():
            losing = own.get(holder)
            keeps = losing is None or (losing.name is None and losing.project_id == project)
            if holder != wanted[project, name] and keeps:
                raise ConsumerNameTaken(project, name, holder)

    def given_back(self) -> Counter[tuple[ProviderId, ClassId]]:
        """What those have that are to be replaced, as a change of what is used."""
        given_back: Counter[tuple[ProviderId, ClassId]] = Counter()
        if self._wanted.body.replace:
            for standing in self.standings.values():
                given_back.subtract(standing.used)
        return given_back

    def _identified(self) -> list[ConsumerUUID]:
        consumers = self._wanted.consumers
        named = self._named([_name_of(each) for each in consumers if each.uuid is None])
        uuids = [
            each.uuid or named.get(_name_of(each)) or ConsumerUUID(str(uuid4()))
            for each in consumers
        ]
        if len(set(uuids)) < len(uuids):
            raise refused("/consumers", "names a consumer by its uuid and by its name")
        return uuids

    def _named(self, names: Collection[tuple[str, str]]) -> dict[tuple[str, str], ConsumerUUID]:
        return named_consumers(self._services.database, names) if names else {}


def conflict(
    services: Services,
    code: str,
    message: str,
    hint: str = "",
    *,
    beside: Mapping[str, Any] | None = None,
    **facts: object,
) -> Refused:
    """409, counted in the metrics: the consumers are not placed."""
    services.observer.conflicted(code)
    return Refused(409, message, hint=hint, code=code, facts=facts, beside=beside or {})


def _name_of(consumer: NewConsumer) -> tuple[str, str]:
    return consumer.project_id, str(consumer.name)


def _called(uuid: ConsumerUUID, consumer: NewConsumer) -> str:
    """What the body calls a consumer."""
    return uuid if consumer.name is None else "/".join(_name_of(consumer))


def _is_at_another(
    uuid: ConsumerUUID, consumer: NewConsumer, actual: Generation | None
) -> ConcurrentUpdate:
    """The error of a consumer at another generation than that of the body."""
    if consumer.uuid is not None:
        return ConsumerGenerationConflict(uuid, seen=consumer.consumer_generation, actual=actual)
    project, name = _name_of(consumer)
    if actual is None:
        return ConcurrentUpdate(f"Project {project} has no consumer named {name}.")
    return ConcurrentUpdate(
        f"Consumer {project}/{name} is at generation {actual}, not {consumer.consumer_generation}.",
        "Read it again and retry.",
    )

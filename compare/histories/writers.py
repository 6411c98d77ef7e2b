# SPDX-License-Identifier: Apache-2.0
"""Requests that make sense in the world of a picture: one writer for each route and method.

A writer chooses the microversion among those that have its route, and writes the form that this
microversion asks for; the generations are those that the picture has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import quote

from bench.api import Json
from compare.histories.dice import Dice
from compare.histories.picture import Amounts, Object, Picture, Provider
from compare.script.step import Step, request, uid

Writer = Callable[[Dice, Picture], Step]

SHARES = "MISC_SHARES_VIA_AGGREGATE"
_STANDARD_CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
_STANDARD_TRAITS = ("HW_CPU_X86_AVX2", "STORAGE_DISK_SSD", SHARES)
_CONSUMER_TYPES = ("INSTANCE", "MIGRATION", "UNKNOWN")
_PROVIDERS_MAX = 11
_COLLECTION = "/resource_providers"


def version_text(minor: int) -> str:
    """A microversion as headers have it."""
    return f"1.{minor}"


# What a history can name


def aggregate(dice: Dice, picture: Picture) -> str:
    """The uuid of one of the few aggregates of a history."""
    return uid(f"{picture.token}-aggregate-{dice.between(0, 3)}")


def custom_name(dice: Dice, picture: Picture) -> str:
    """A custom name of a class or trait, made or not."""
    return f"CUSTOM_{picture.token}_{dice.one_of('ABCD')}"


def project(dice: Dice, picture: Picture) -> str:
    """One of the few projects of a history; as good for a user."""
    return f"{picture.token}-project-{dice.between(0, 2)}"


def trait(dice: Dice, picture: Picture) -> str:
    """A trait, now and then one that nobody has made."""
    names = [*picture.traits, *_STANDARD_TRAITS[:2]]
    return custom_name(dice, picture) if dice.chance(0.03) else dice.one_of(names)


def class_name(dice: Dice, picture: Picture) -> str:
    """A resource class, now and then one that nobody has made."""
    if dice.chance(0.03):
        return custom_name(dice, picture)
    in_use = picture.classes_in_use()
    if in_use and dice.chance(0.85):
        return dice.one_of(in_use)
    return dice.one_of([*picture.classes, *_STANDARD_CLASSES])


def provider_uuid(dice: Dice, picture: Picture) -> str:
    """The uuid of a provider, now and then of none."""
    if not picture.providers or dice.chance(0.02):
        return dice.fresh_uuid()
    return dice.one_of(list(picture.providers))


def consumer_uuid(dice: Dice, picture: Picture) -> str:
    """The uuid of a consumer that holds something, or of a new one."""
    if picture.shared and dice.chance(0.2):
        return dice.one_of(picture.shared)
    if picture.consumers and dice.chance(0.5):
        return dice.one_of(list(picture.consumers))
    few = uid(f"{picture.token}-consumer-{dice.between(1, picture.few)}")
    return dice.fresh_uuid() if picture.is_stale(few) else few


def _some_provider(dice: Dice, picture: Picture) -> Provider:
    uuid = provider_uuid(dice, picture)
    return picture.providers.get(uuid) or Provider(uuid, "nobody", None)


def _stocked_provider(dice: Dice, picture: Picture) -> Provider:
    """A provider that has inventory, if there is one, now and then any."""
    stocked = [each for each in picture.providers.values() if each.inventories]
    if not stocked or dice.chance(0.1):
        return _some_provider(dice, picture)
    return dice.one_of(stocked)


# Providers


def create_provider(dice: Dice, picture: Picture) -> Step:
    """POST /resource_providers."""
    if len(picture.providers) >= _PROVIDERS_MAX:
        return delete_provider(dice, picture)
    minor = dice.minor()
    name = f"{picture.token}-provider-{dice.between(0, 99)}"
    body: Object = {"name": name}
    if dice.chance(0.95):
        body["uuid"] = uid(name)
    if minor >= 14 and picture.providers and dice.chance(0.65):
        body["parent_provider_uuid"] = provider_uuid(dice, picture)
    return request("POST", _COLLECTION, version_text(minor), body)


def show_provider(dice: Dice, picture: Picture) -> Step:
    """GET /resource_providers/{uuid}."""
    path = f"{_COLLECTION}/{provider_uuid(dice, picture)}"
    return request("GET", path, version_text(dice.minor()))


def update_provider(dice: Dice, picture: Picture) -> Step:
    """PUT /resource_providers/{uuid}: a new name, a new parent, or neither."""
    provider = _some_provider(dice, picture)
    minor = dice.minor(dice.one_of((0, 14, 37)))
    body: Object = {"name": provider.name}
    if dice.chance(0.4):
        body["name"] = f"{picture.token}-provider-{dice.between(0, 99)}"
    if minor >= 14 and dice.chance(0.7):
        kept = provider.parent if dice.chance(0.3) else None
        other = provider_uuid(dice, picture)
        body["parent_provider_uuid"] = dice.one_of((kept, other, other))
    return request("PUT", f"{_COLLECTION}/{provider.uuid}", version_text(minor), body)


def delete_provider(dice: Dice, picture: Picture) -> Step:
    """DELETE /resource_providers/{uuid}."""
    path = f"{_COLLECTION}/{provider_uuid(dice, picture)}"
    return request("DELETE", path, version_text(dice.minor()))


def list_providers(dice: Dice, picture: Picture) -> Step:
    """GET /resource_providers with some of its filters."""
    minor = dice.minor(dice.one_of((0, 3, 4, 14, 18, 24, 32)))
    filters: list[str] = []
    if dice.chance(0.1):
        filters.append(f"name={_some_provider(dice, picture).name}")
    if dice.chance(0.1):
        filters.append(f"uuid={provider_uuid(dice, picture)}")
    if minor >= 4 and dice.chance(0.4):
        filters.append(f"resources={amounts(dice, picture)}")
    filters += placement_filters(dice, picture, minor, "", since=(3, 14, 18))
    return request("GET", _with_query(_COLLECTION, filters), version_text(minor))


def placement_filters(
    dice: Dice,
    picture: Picture,
    minor: int,
    suffix: str,
    *,
    since: tuple[int, int, int],
    share: float = 0.3,
) -> list[str]:
    """member_of, in_tree and required, each since its microversion and as likely as `share`."""
    member_of_since, in_tree_since, required_since = since
    filters: list[str] = []
    if minor >= member_of_since and dice.chance(share):
        filters.append(f"member_of{suffix}={_memberships(dice, picture, minor)}")
        if minor >= 24 and dice.chance(0.2):
            filters.append(f"member_of{suffix}={_memberships(dice, picture, minor)}")
    if minor >= in_tree_since and dice.chance(share / 2):
        filters.append(f"in_tree{suffix}={provider_uuid(dice, picture)}")
    if minor >= required_since and dice.chance(share):
        filters.append(f"required{suffix}={traits_asked(dice, picture, minor)}")
        if dice.chance(0.15):
            filters.append(f"required{suffix}={traits_asked(dice, picture, minor)}")
    return filters


def amounts(dice: Dice, picture: Picture, classes_max: int = 2) -> str:
    """The value of `resources`."""
    names = [class_name(dice, picture) for _ in range(dice.between(1, classes_max))]
    amount = (1, 2, 3, 4, 9), (12, 5, 2, 1, 1)
    return ",".join(f"{name}:{dice.weighted(*amount)}" for name in names)


def _memberships(dice: Dice, picture: Picture, minor: int) -> str:
    forbidden = "!" if minor >= 32 and dice.chance(0.3) else ""
    if dice.chance(0.5):
        return f"{forbidden}{aggregate(dice, picture)}"
    several = [aggregate(dice, picture) for _ in range(dice.between(1, 3))]
    return f"{forbidden}in:{','.join(several)}"


def traits_asked(dice: Dice, picture: Picture, minor: int) -> str:
    """The value of `required` or `root_required`."""
    names = [trait(dice, picture) for _ in range(dice.weighted((1, 2), (3, 1)))]
    if minor >= 39 and dice.chance(0.3):
        return f"in:{','.join(names)}"
    forbids = minor >= 22
    return ",".join(("!" if forbids and dice.chance(0.3) else "") + name for name in names)


# Inventories


def record(dice: Dice) -> Object:
    """One inventory record, mostly of the defaults."""
    fields: Object = {"total": dice.one_of((1, 4, 8, 16, 16, 32))}
    optional: Mapping[str, tuple[Json, ...]] = {
        "reserved": (0, 1, 2, fields["total"]),
        "min_unit": (1, 2),
        "max_unit": (2, 4, 2147483647),
        "step_size": (1, 2, 3),
        "allocation_ratio": (1.0, 1.5, 2, 0.5, 16.0),
    }
    for name, values in optional.items():
        if dice.chance(0.12):
            fields[name] = dice.one_of(values)
    return fields


def put_inventories(dice: Dice, picture: Picture) -> Step:
    """PUT /resource_providers/{uuid}/inventories, often with most of what there is."""
    provider = _some_provider(dice, picture)
    kept = [name for name in provider.inventories if dice.chance(0.9)]
    added = dice.between(0 if kept else 1, 2 if kept else 3)
    names = [*kept, *(class_name(dice, picture) for _ in range(added))]
    body: Object = {
        "resource_provider_generation": provider.generation,
        "inventories": {name: record(dice) for name in names},
    }
    path = f"{_COLLECTION}/{provider.uuid}/inventories"
    return request("PUT", path, version_text(dice.minor()), body)


def post_inventory(dice: Dice, picture: Picture) -> Step:
    """POST /resource_providers/{uuid}/inventories."""
    provider = _some_provider(dice, picture)
    body: Object = {"resource_class": class_name(dice, picture), **record(dice)}
    if dice.chance(0.3):
        body["resource_provider_generation"] = provider.generation
    path = f"{_COLLECTION}/{provider.uuid}/inventories"
    return request("POST", path, version_text(dice.minor()), body)


def put_inventory(dice: Dice, picture: Picture) -> Step:
    """PUT /resource_providers/{uuid}/inventories/{resource_class}."""
    provider = _stocked_provider(dice, picture)
    name = _class_of(dice, picture, provider)
    body: Object = {"resource_provider_generation": provider.generation, **record(dice)}
    path = f"{_COLLECTION}/{provider.uuid}/inventories/{name}"
    return request("PUT", path, version_text(dice.minor()), body)


def delete_inventory(dice: Dice, picture: Picture) -> Step:
    """DELETE one inventory, now and then all of a provider."""
    provider = _stocked_provider(dice, picture)
    path = f"{_COLLECTION}/{provider.uuid}/inventories"
    if dice.chance(0.7):
        path += f"/{_class_of(dice, picture, provider)}"
    return request("DELETE", path, version_text(dice.minor(dice.one_of((0, 5)))))


def show_inventories(dice: Dice, picture: Picture) -> Step:
    """GET the inventories of a provider, or one of them."""
    provider = _stocked_provider(dice, picture)
    path = f"{_COLLECTION}/{provider.uuid}/inventories"
    if dice.chance(0.4):
        path += f"/{_class_of(dice, picture, provider)}"
    return request("GET", path, version_text(dice.minor()))


def _class_of(dice: Dice, picture: Picture, provider: Provider) -> str:
    if provider.inventories and dice.chance(0.8):
        return dice.one_of(list(provider.inventories))
    return class_name(dice, picture)


def show_part(dice: Dice, picture: Picture) -> Step:
    """GET usages, allocations, aggregates or traits of a provider."""
    part = dice.one_of(("usages", "allocations", "aggregates", "traits"))
    path = f"{_COLLECTION}/{provider_uuid(dice, picture)}/{part}"
    return request("GET", path, version_text(dice.minor()))


# Aggregates and traits of a provider


def put_aggregates(dice: Dice, picture: Picture) -> Step:
    """PUT /resource_providers/{uuid}/aggregates, in the form of the microversion."""
    provider = _some_provider(dice, picture)
    minor = dice.minor(1)
    uuids: Json = list(dict.fromkeys(aggregate(dice, picture) for _ in range(dice.between(0, 3))))
    body = uuids
    if minor >= 19:
        body = {"aggregates": uuids, "resource_provider_generation": provider.generation}
    path = f"{_COLLECTION}/{provider.uuid}/aggregates"
    return request("PUT", path, version_text(minor), body)


def put_traits(dice: Dice, picture: Picture) -> Step:
    """PUT /resource_providers/{uuid}/traits."""
    provider = _some_provider(dice, picture)
    names = [trait(dice, picture) for _ in range(dice.between(0, 3))]
    if dice.chance(0.2):
        names.append(SHARES)
    body: Object = {"traits": names, "resource_provider_generation": provider.generation}
    path = f"{_COLLECTION}/{provider.uuid}/traits"
    return request("PUT", path, version_text(dice.minor(6)), body)


def delete_traits(dice: Dice, picture: Picture) -> Step:
    """DELETE /resource_providers/{uuid}/traits."""
    path = f"{_COLLECTION}/{provider_uuid(dice, picture)}/traits"
    return request("DELETE", path, version_text(dice.minor(6)))


# Traits and classes


def list_traits(dice: Dice, picture: Picture) -> Step:
    """GET /traits with its filters."""
    names = [trait(dice, picture) for _ in range(2)]
    filters = dice.some_of(
        (
            f"name=in:{','.join(names)}",
            f"associated={dice.one_of(('true', 'false', 'True'))}",
        ),
        0,
        2,
    )
    return request("GET", _with_query("/traits", filters), version_text(dice.minor(6)))


def touch_trait(dice: Dice, picture: Picture) -> Step:
    """GET, PUT or DELETE /traits/{name}."""
    method = dice.weighted(("GET", "PUT", "DELETE"), (2, 5, 1))
    name = custom_name(dice, picture) if dice.chance(0.9) else trait(dice, picture)
    return request(method, f"/traits/{name}", version_text(dice.minor(6)))


def touch_class(dice: Dice, picture: Picture) -> Step:
    """Any method of /resource_classes and /resource_classes/{name}."""
    method = dice.weighted(("LIST", "POST", "GET", "PUT", "DELETE"), (1, 2, 2, 5, 1))
    name = custom_name(dice, picture) if dice.chance(0.9) else class_name(dice, picture)
    minor = dice.minor(2)
    if method == "LIST":
        return request("GET", "/resource_classes", version_text(minor))
    if method == "POST":
        return request("POST", "/resource_classes", version_text(minor), {"name": name})
    if method == "PUT" and minor < 7:
        renamed: Object = {"name": custom_name(dice, picture)}
        return request("PUT", f"/resource_classes/{name}", version_text(minor), renamed)
    return request(method, f"/resource_classes/{name}", version_text(minor))


# Claims


def put_allocations(dice: Dice, picture: Picture) -> Step:
    """PUT /allocations/{consumer_uuid}."""
    minor = dice.minor(dice.one_of((0, 12, 28)))
    uuid = consumer_uuid(dice, picture)
    body = claim_body(dice, picture, minor, uuid, amounts=_claimed(dice, picture))
    return request("PUT", f"/allocations/{uuid}", version_text(minor), body)


def post_allocations(dice: Dice, picture: Picture) -> Step:
    """POST /allocations for one to three consumers, sometimes with allocations exchanged."""
    minor = dice.minor(13)
    uuids = list(dict.fromkeys(consumer_uuid(dice, picture) for _ in range(dice.between(1, 3))))
    claims = [_claimed(dice, picture) for _ in uuids]
    if len(uuids) > 1 and dice.chance(0.4):
        now = [
            picture.consumers[uuid].amounts if uuid in picture.consumers else {} for uuid in uuids
        ]
        claims = [*now[1:], now[0]]
    body: Object = {
        uuid: claim_body(dice, picture, minor, uuid, amounts=amounts)
        for uuid, amounts in zip(uuids, claims, strict=True)
    }
    return request("POST", "/allocations", version_text(minor), body)


def claim_body(
    dice: Dice, picture: Picture, minor: int, consumer: str, *, amounts: Amounts
) -> Object:
    """The body of a consumer's new allocations, in the form of a microversion."""
    body: Object = {}
    if minor < 12:
        body["allocations"] = [
            {"resource_provider": {"uuid": uuid}, "resources": resources}
            for uuid, resources in amounts.items()
        ]
    else:
        body["allocations"] = {
            uuid: {"resources": resources} for uuid, resources in amounts.items()
        }
    if minor >= 8:
        body |= {"project_id": project(dice, picture), "user_id": project(dice, picture)}
    if minor >= 28:
        record = picture.consumers.get(consumer)
        body["consumer_generation"] = record.generation if record else None
    if minor >= 34 and amounts and dice.chance(0.3):
        body["mappings"] = {"": list(amounts)}
    if minor >= 38:
        body["consumer_type"] = dice.one_of(_CONSUMER_TYPES)
    return body


def _claimed(dice: Dice, picture: Picture) -> Amounts:
    """What to claim: a candidate, something of one or two providers that have inventory, or
    nothing."""
    stocked = [each for each in picture.providers.values() if each.inventories]
    if not stocked or dice.chance(0.06):
        return {}
    if picture.offers and dice.chance(0.3):
        return dice.one_of(picture.offers)
    amounts: Amounts = {}
    for provider in dice.some_of(stocked, 1, 2):
        names = dice.some_of(list(provider.inventories), 1, 2)
        amounts[provider.uuid] = {name: _amount(dice, provider.inventories[name]) for name in names}
    if dice.chance(0.02):
        amounts[provider_uuid(dice, picture)] = {class_name(dice, picture): 1}
    return amounts


def _amount(dice: Dice, kept: Object) -> int:
    """An amount of an inventory, mostly one that its units allow."""
    if dice.chance(0.1):
        return dice.between(1, 4)
    step = int(kept.get("step_size", 1))
    fewest = max(int(kept.get("min_unit", 1)), step)
    first = -(-fewest // step) * step
    return first + step * dice.between(0, 1)


def touch_allocations(dice: Dice, picture: Picture) -> Step:
    """GET, less often DELETE, /allocations/{consumer_uuid}."""
    method = dice.weighted(("GET", "DELETE"), (3, 1))
    path = f"/allocations/{consumer_uuid(dice, picture)}"
    return request(method, path, version_text(dice.minor()))


def show_usages(dice: Dice, picture: Picture) -> Step:
    """GET /usages."""
    minor = dice.minor(dice.one_of((9, 38)))
    filters = [f"project_id={project(dice, picture)}"]
    if dice.chance(0.4):
        filters.append(f"user_id={project(dice, picture)}")
    if minor >= 38 and dice.chance(0.6):
        filters.append(f"consumer_type={dice.one_of((*_CONSUMER_TYPES, 'all', 'unknown'))}")
    return request("GET", _with_query("/usages", filters), version_text(minor))


def reshape(dice: Dice, picture: Picture) -> Step:
    """POST /reshaper: a class moves, with all its allocations, from a provider to another."""
    minor = dice.minor(30)
    stocked = [each for each in picture.providers.values() if each.inventories]
    if len(picture.providers) < 2 or not stocked:
        return create_provider(dice, picture)
    source = dice.one_of(stocked)
    target = dice.one_of(list(picture.providers.values()))
    name = dice.one_of(list(source.inventories))
    moved = source.inventories[name] if dice.chance(0.8) else record(dice)
    left = {other: kept for other, kept in source.inventories.items() if other != name}
    inventories: Object = {
        source.uuid: _inventories_of(source, left),
        target.uuid: _inventories_of(target, {**target.inventories, name: moved}),
    }
    claims: Object = {}
    for consumer in picture.holders_of(source.uuid):
        if name in consumer.amounts[source.uuid] and dice.chance(0.95):
            amounts = _moved(consumer.amounts, source.uuid, target.uuid, name)
            claims[consumer.uuid] = claim_body(dice, picture, minor, consumer.uuid, amounts=amounts)
    body: Object = {"inventories": inventories, "allocations": claims}
    return request("POST", "/reshaper", version_text(minor), body)


def _inventories_of(provider: Provider, inventories: Object) -> Object:
    """Inventories as the reshaper takes them, without what answers add to a record."""
    return {
        "resource_provider_generation": provider.generation,
        "inventories": {
            name: {
                field: value
                for field, value in kept.items()
                if field != "resource_provider_generation"
            }
            for name, kept in inventories.items()
        },
    }


def _moved(amounts: Amounts, source: str, target: str, name: str) -> Amounts:
    """What a consumer holds once `name` has moved from one provider to another."""
    moved = {uuid: dict(resources) for uuid, resources in amounts.items()}
    amount = moved[source].pop(name)
    target_amounts = moved.setdefault(target, {})
    target_amounts[name] = target_amounts.get(name, 0) + amount
    return {uuid: resources for uuid, resources in moved.items() if resources}


def show_root(dice: Dice, picture: Picture) -> Step:
    """GET /."""
    return request("GET", "/", version_text(dice.minor()))


def _with_query(path: str, parameters: list[str]) -> str:
    query = "&".join(quote(parameter, safe="=:,!&") for parameter in parameters)
    return f"{path}?{query}" if query else path

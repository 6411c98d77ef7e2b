# SPDX-License-Identifier: Apache-2.0
"""A service that has only the fleet of a module, its `FLEET`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tests.api.configured import serve
from tests.client import Client
from tests.world_over_http import built_over_http
from tests.worlds import World, aggregate_uuid, consumer_uuid, provider_uuid


@pytest.fixture(scope="module")
def fleet(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    """A client of a service that has only this fleet."""
    client = serve(tmp_path_factory.mktemp("fleet"))
    with built_over_http(request.module.FLEET, client):
        yield client


@pytest.fixture(scope="module")
def names(request: pytest.FixtureRequest) -> Mapping[str, str]:
    """What the rows of a table call the fleet: its providers, aggregates and traits."""
    world: World = request.module.FLEET
    aggregates = {each: aggregate_uuid(each) for one in world.providers for each in one.aggregates}
    traits = {each: each for each in world.custom_traits}
    consumers = {f"{each.name}.consumer": consumer_uuid(each.name) for each in world.providers}
    providers = {each.name: provider_uuid(each.name) for each in world.providers}
    return providers | aggregates | traits | consumers

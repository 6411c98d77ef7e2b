# SPDX-License-Identifier: Apache-2.0
"""Bodies that are rendered piece by piece."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec
import pytest

from berth.api.answers import LongBody
from berth.api.placement import allocations
from berth.model.ids import ConsumerUUID, Generation
from berth.store.allocations import ProviderAllocations

PIECE = b"resource_providers" * 100


@pytest.mark.parametrize(("count", "is_packed"), [(0, False), (3, False), (4, True), (100, True)])
def test_a_body_is_its_pieces(count: int, is_packed: bool) -> None:
    """With their total length; a long one takes little until it is sent: each piece is compressed
    when it is rendered, and freed when it is sent."""
    body = LongBody((PIECE for _ in range(count)), long=3 * len(PIECE))
    assert (body.length, body.is_packed) == (count * len(PIECE), is_packed)
    sent, sizes = [], []
    for piece in body:
        sent.append(piece)
        sizes.append(sum(map(len, body._pieces)))
    assert sent == [PIECE] * count
    assert sizes == sorted(sizes, reverse=True) and (not sizes or sizes[-1] == 0)
    assert count < 100 or sizes[0] < body.length / 10


def test_what_fails_fails_before_anything_is_sent() -> None:
    """A response that has begun can no longer report an error."""

    def pieces() -> Iterator[bytes]:
        yield PIECE
        yield PIECE
        raise ConnectionError

    with pytest.raises(ConnectionError):
        LongBody(pieces(), long=len(PIECE))


@pytest.mark.parametrize("minor", [27, 28])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4])
def test_allocations_are_one_object_however_many_pieces_they_are(count: int, minor: int) -> None:
    """Nothing is lost or repeated between two pieces."""
    consumers = {
        ConsumerUUID(f"c{number}"): (Generation(number), {"VCPU": number + 1})
        for number in range(count)
    }
    allocations_read = ProviderAllocations(Generation(5), consumers, None)
    body = b"".join(allocations.pieces_of(allocations_read, minor, part=2))
    assert json.loads(body) == {
        "resource_provider_generation": 5,
        "allocations": {
            consumer: {"resources": resources}
            | ({"consumer_generation": generation} if minor >= 28 else {})
            for consumer, (generation, resources) in consumers.items()
        },
    }
    assert body == msgspec.json.encode(json.loads(body))

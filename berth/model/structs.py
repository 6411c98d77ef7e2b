# SPDX-License-Identifier: Apache-2.0
"""Converting what was decoded to structs, from any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import msgspec

T = TypeVar("T")

_reading: Final = threading.Lock()


def read_annotations(kind: object) -> None:
    """Let msgspec read the annotations of a type, and of the structs in it.

    It would do so when a value is first converted, and marks a struct as read before it has
    finished. Another thread that converts to the struct meanwhile uses a null pointer, and the
    process dies (msgspec 0.22).
    """
    with _reading:
        msgspec.json.Decoder(kind)


def converter(kind: type[T]) -> Callable[[object], T]:
    """A function that converts decoded JSON to a type; call this when the module is imported.

    The function raises `msgspec.ValidationError` if the value does not match the type.
    """
    read_annotations(kind)
    return partial(msgspec.convert, type=kind)

# SPDX-License-Identifier: Apache-2.0
"""Quote decoded JSON in a message: whole if it is short, and never above a limit.

A request may be megabytes long. Its `repr` costs more memory than the request itself, and no one
reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

#: Maximum characters of a value in a message.
LENGTH_MAX: Final = 1000

#: Levels of nesting shown.
_DEPTH_MAX: Final = 40

_CUT: Final = "..."


def shortened(value: object, length_max: int = LENGTH_MAX) -> str:
    """The `repr` of a decoded JSON value; its start and `...` if it is above the limit.

    Cost: that of what is shown, for any value.
    """
    pieces = []
    left = length_max
    for piece in _pieces(value, length_max, _DEPTH_MAX):
        pieces.append(piece[:left])
        left -= len(piece)
        if left < 0:
            pieces.append(_CUT)
            break
    return "".join(pieces)


def bounded(value: object) -> object:
    """A value equal to the given one, whose `repr` is `shortened`."""
    as_bounded = _BOUNDED.get(type(value))
    return value if as_bounded is None else as_bounded(value)


def _pieces(value: object, length_max: int, depth_left: int) -> Iterator[str]:
    if isinstance(value, str):
        # One character too many, so that the cut is visible.
        yield repr(str(value[: length_max + 1]))
    elif not isinstance(value, list | dict):
        yield repr(value)
    elif not depth_left:
        yield _CUT
    elif isinstance(value, list):
        yield "["
        for place, item in enumerate(value):
            yield ", " if place else ""
            yield from _pieces(item, length_max, depth_left - 1)
        yield "]"
    else:
        yield "{"
        for place, (key, item) in enumerate(value.items()):
            yield ", " if place else ""
            yield from _pieces(key, length_max, 0)
            yield ": "
            yield from _pieces(item, length_max, depth_left - 1)
        yield "}"


class _Text(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return shortened(self)


class _Array(list[object]):
    __slots__ = ()

    def __repr__(self) -> str:
        return shortened(self)


class _Object(dict[str, object]):
    __slots__ = ()

    def __repr__(self) -> str:
        return shortened(self)


_BOUNDED: Final[Mapping[type, Callable[[Any], object]]] = {
    str: _Text,
    list: _Array,
    dict: _Object,
}

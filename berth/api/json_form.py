# SPDX-License-Identifier: Apache-2.0
"""Estimate the size of a JSON text before decoding it.

Three bytes of text, such as `[],`, decode to an object of sixty. So a text that is small enough to
keep may still be too large to decode.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Final

_STRING: Final = re.compile(rb'"[^"]*"')
_NO_FORM: Final = bytes(set(range(256)) - set(b'"[]{}'))
_STEP: Final = [(byte in b"[{") - (byte in b"]}") for byte in range(256)]


def count_elements(text: bytes | bytearray) -> int:
    """At most how many values and members a text has.

    Each follows a comma or an opening bracket; such characters in strings count too. Cost: a tenth
    of a millisecond for a megabyte.
    """
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def is_deeper(text: bytes, levels_max: int) -> bool:
    """Whether a JSON text nests arrays and objects deeper than `levels_max`.

    For malformed JSON, this covers the text before the first error. Cost: negligible for a text
    with few brackets, else about ten milliseconds for a megabyte.
    """
    if text.count(b"[") + text.count(b"{") <= levels_max:
        return False
    without_escapes = text.replace(rb"\\", b"").replace(rb"\"", b"")
    # Adjacent quotes change nothing for the text around them: this removes most strings, at a
    # tenth of the cost.
    form = without_escapes.translate(None, _NO_FORM).replace(b'""', b"")
    brackets = _STRING.sub(b"", form)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > levels_max

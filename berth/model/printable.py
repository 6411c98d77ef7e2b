# SPDX-License-Identifier: Apache-2.0
"""Makes a client's text safe to show: in the log, in the audit log and on terminals.

A control character in a name could forge a line, a colour or the title of a window, and a mark of
direction could show a name as another. So each character that cannot be seen is shown as an escape.
"""

import json
import re
from typing import Final

#: Characters that no name of berth's own API has, as in a class of a regular expression: controls,
#: marks of direction, ends of lines, and characters without a width.
CONTROLS: Final = (
    r"\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    r"\ufff9-\ufffb"
)

#: The user and the password of a URL.
_PASSWORD: Final = re.compile(r"(://[^/\s:@]*:)[^/\s@]+@")

_control = re.compile(rf"[{CONTROLS}\ud800-\udfff]")


def has_controls(text: str) -> bool:
    """Whether no name of berth's own API may be this text."""
    return _control.search(text) is not None


def without_passwords(text: str) -> str:
    """A text without the passwords of the URLs in it."""
    return _PASSWORD.sub(r"\1***@", text)


def printable(text: str) -> str:
    r"""A text in one line, with escapes such as `\x1b` and `\n` for what cannot be seen."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def printable_json(text: str) -> str:
    r"""JSON that means the same, with escapes such as `\u001b` for what cannot be seen; its line
    breaks stay."""
    return "\n".join(
        line if line.isprintable() else "".join(map(_json_escape, line))
        for line in text.split("\n")
    )


def _json_escape(character: str) -> str:
    if character.isprintable():
        return character
    return f"\\u{ord(character):04x}" if character < "\x80" else json.dumps(character)[1:-1]

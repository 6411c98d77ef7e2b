# SPDX-License-Identifier: Apache-2.0
"""The file of users: lines of htpasswd with bcrypt, and two fields more.

    name:$2y$12$...:project:role,role

Apache reads the same file and ignores what follows the hash. A line that ends with the hash is of
a user without roles, whose project has the user's own name. Blank lines and lines that begin with
`#` are left out. A hash is never quoted, whatever is wrong with its line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import bcrypt

from berth.api.auth.identity import Identity
from berth.api.auth.watched_file import MalformedLine

#: bcrypt looks at no more of a password.
PASSWORD_BYTES_MAX: Final = 72

#: Of new hashes: a quarter of a second on a machine of today.
COST: Final = 12

#: A cost beyond holds a processor for more than some seconds.
_COST_MAX: Final = 16

_NAME_LENGTH_MAX: Final = 255

# The last sign of the salt has two bits, so that not every sign can stand there.
_HASH: Final = re.compile(r"\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{21}[.Oeu][./A-Za-z0-9]{31}")


@dataclass(frozen=True, slots=True)
class User:
    """A line of the file."""

    identity: Identity
    password_hash: str = field(repr=False)

    @property
    def name(self) -> str:
        """By which the user logs in."""
        return self.identity.user

    @property
    def line(self) -> str:
        """The user as a line of the file, without its end."""
        roles = ",".join(self.identity.roles)
        return f"{self.name}:{self.password_hash}:{self.identity.project}:{roles}"


def parse_users(text: str) -> dict[str, User]:
    """The users of a file by their names, in its order.

    Raises:
        MalformedLine: a line is none of a user, or names one a second time.
    """
    users: dict[str, User] = {}
    for number, line in _lines_of_users(text):
        user = _parse_line(number, line)
        if user.name in users:
            raise MalformedLine(number, f"the user {user.name} stands above already")
        users[user.name] = user
    return users


def with_user(text: str, user: User) -> str:
    """The text of a file with this user in the place of the one of that name, or at its end."""
    lines = text.splitlines()
    for number, line in _lines_of_users(text):
        if _name_in(line) == user.name:
            lines[number - 1] = user.line
            return _text_of(lines)
    return _text_of([*lines, user.line])


def without_user(text: str, name: str) -> str:
    """The text of a file without the user of that name."""
    removed = {number for number, line in _lines_of_users(text) if _name_in(line) == name}
    lines = enumerate(text.splitlines(), start=1)
    return _text_of([line for number, line in lines if number not in removed])


def hash_password(password: str) -> str:
    """A new bcrypt hash of a password of 72 bytes at most."""
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(COST)).decode()


def is_password(password: str, password_hash: str) -> bool:
    """Whether this is the password. As slow as the hash's cost, without the interpreter's lock."""
    raw = password.encode()
    # All the work is done for a password that is too long too, so that time tells nothing.
    is_right = bcrypt.checkpw(raw[:PASSWORD_BYTES_MAX], password_hash.encode())
    return is_right and len(raw) <= PASSWORD_BYTES_MAX


def unmatched_hash(users: Mapping[str, User]) -> str:
    """A hash that no password has, as slow to check as those of most users."""
    costs = Counter(int(user.password_hash[4:6]) for user in users.values())
    cost = costs.most_common(1)[0][0] if costs else COST
    return f"$2b${cost:02}${'.' * 53}"


def fault_of_name(name: str) -> str | None:
    """Why this cannot be the name of a user or a project; None if it can."""
    if not name:
        return "a name must not be empty"
    if len(name) > _NAME_LENGTH_MAX:
        return f"a name has {_NAME_LENGTH_MAX} characters at most"
    if ":" in name or not name.isprintable() or name != name.strip() or name.startswith("#"):
        return "a name has no colon, no # or space at its beginning, and nothing invisible"
    return None


def fault_of_role(role: str) -> str | None:
    """Why this cannot be the name of a role; None if it can."""
    if not role or re.search(r"[,:\s]", role) or not role.isprintable():
        return "a role has no comma, no colon and no space"
    return None


def _lines_of_users(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line


def _name_in(line: str) -> str:
    return line.partition(":")[0]


def _text_of(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _parse_line(number: int, line: str) -> User:
    name, *rest = line.rstrip().split(":")
    if not 1 <= len(rest) <= 3:
        raise MalformedLine(number, "this is not name:hash or name:hash:project:role,role")
    password_hash, project, roles = *rest, *("", "", "")[len(rest) :]
    if fault := fault_of_name(name):
        raise MalformedLine(number, fault)
    found = _HASH.fullmatch(password_hash)
    if found is None:
        raise MalformedLine(
            number, f"the hash of {name} is not bcrypt's, as htpasswd -B and `berth user` make it"
        )
    if not 4 <= int(found[1]) <= _COST_MAX:
        raise MalformedLine(
            number, f"the hash of {name} has the cost {found[1]}; 4 to {_COST_MAX} are served"
        )
    if fault := fault_of_name(project or name):
        raise MalformedLine(number, f"the project of {name}: {fault}")
    held = tuple(role.strip() for role in roles.split(",")) if roles.strip() else ()
    if fault := next(filter(None, map(fault_of_role, held)), None):
        raise MalformedLine(number, f"the roles of {name}: {fault}")
    return User(Identity(name, project or name, held), password_hash)

# SPDX-License-Identifier: Apache-2.0
"""The file of users: htpasswd lines with bcrypt hashes and up to three more fields.

    name:$2y$12$...:project:role,role
    name:$2y$12$...:project:agent:host

Apache reads the same file and ignores the fields after the hash. A user whose line ends with the
hash has no roles and a project of the same name. Blank lines and lines that begin with `#` are
ignored. Error messages never quote a hash.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import bcrypt

from berth.edge.auth.identity import Identity, fault_of_host
from berth.edge.auth.watched_file import MalformedLine

#: bcrypt ignores the rest of a longer password.
PASSWORD_BYTES_MAX: Final = 72

#: The cost of new hashes: a quarter of a second on current hardware.
COST: Final = 12

#: A higher cost would keep a CPU busy for several seconds.
_COST_MAX: Final = 16

_NAME_LENGTH_MAX: Final = 255

# The last character of the salt encodes two bits, so only four characters are possible.
_HASH: Final = re.compile(r"\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{21}[.Oeu][./A-Za-z0-9]{31}")


@dataclass(frozen=True, slots=True)
class User:
    """A line of the file."""

    identity: Identity
    password_hash: str = field(repr=False)

    @property
    def name(self) -> str:
        """The name with which the user logs in."""
        return self.identity.user

    @property
    def line(self) -> str:
        """The user as a line of the file, without the newline."""
        roles = ",".join(self.identity.roles)
        host = "" if self.identity.host is None else f":{self.identity.host}"
        return f"{self.name}:{self.password_hash}:{self.identity.project}:{roles}{host}"


def parse_users(text: str) -> dict[str, User]:
    """The users of a file by name, in file order.

    Raises:
        MalformedLine: a line does not describe a user, or repeats a user's name.
    """
    users: dict[str, User] = {}
    for number, line in _lines_of_users(text):
        user = _parse_line(number, line)
        if user.name in users:
            raise MalformedLine(number, f"duplicate user {user.name}")
        users[user.name] = user
    return users


def with_user(text: str, user: User) -> str:
    """The text with this user added, or put in place of the user of the same name."""
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
    """A new bcrypt hash of a password of at most 72 bytes."""
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(COST)).decode()


def is_password(password: str, password_hash: str) -> bool:
    """Whether this is the password. Slow, as the hash's cost demands; releases the GIL."""
    raw = password.encode()
    # A password that is too long takes the same time, so that the timing reveals nothing.
    is_right = bcrypt.checkpw(raw[:PASSWORD_BYTES_MAX], password_hash.encode())
    return is_right and len(raw) <= PASSWORD_BYTES_MAX


def unmatched_hash(users: Mapping[str, User]) -> str:
    """A hash that no password matches, as slow to check as those of most users."""
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
    if not 1 <= len(rest) <= 4:
        raise MalformedLine(number, "expected name:hash or name:hash:project:role,role")
    password_hash, project, roles, host = *rest, *("", "", "", "")[len(rest) :]
    if fault := fault_of_name(name):
        raise MalformedLine(number, fault)
    match = _HASH.fullmatch(password_hash)
    if match is None:
        raise MalformedLine(
            number,
            f"the hash of {name} is not a bcrypt hash; make one with `htpasswd -B` or `berth user`",
        )
    if not 4 <= int(match[1]) <= _COST_MAX:
        raise MalformedLine(
            number, f"the hash of {name} has cost {match[1]}; berth accepts 4 to {_COST_MAX}"
        )
    if fault := fault_of_name(project or name):
        raise MalformedLine(number, f"the project of {name}: {fault}")
    held_roles = tuple(role.strip() for role in roles.split(",")) if roles.strip() else ()
    if fault := next(filter(None, map(fault_of_role, held_roles)), None):
        raise MalformedLine(number, f"the roles of {name}: {fault}")
    if fault := (fault_of_name(host) if host else None) or fault_of_host(host or None, held_roles):
        raise MalformedLine(number, f"the host of {name}: {fault}")
    return User(Identity(name, project or name, held_roles, host or None), password_hash)

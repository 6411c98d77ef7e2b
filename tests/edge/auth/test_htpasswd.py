# SPDX-License-Identifier: Apache-2.0
"""The file of users: which lines are valid, and how the file is changed."""

from __future__ import annotations

import bcrypt
import pytest

from berth.edge.auth.htpasswd import (
    User,
    hash_password,
    is_password,
    parse_users,
    unmatched_hash,
    with_user,
    without_user,
)
from berth.edge.auth.identity import Identity
from berth.edge.auth.watched_file import MalformedLine
from tests.edge.auth.gate import hashed

HASH = hashed("secret")


@pytest.mark.parametrize(
    ("fields", "project", "roles"),
    [
        ("", "alice", ()),
        (":", "alice", ()),
        (":web", "web", ()),
        (":web:", "web", ()),
        (":web:reader", "web", ("reader",)),
        ("::admin, service", "alice", ("admin", "service")),
        (":web:agent:", "web", ("agent",)),
    ],
)
def test_a_line_has_a_name_a_hash_a_project_and_roles(
    fields: str, project: str, roles: tuple[str, ...]
) -> None:
    """Without the last two, the project is the user's name, and there are no roles; the hash is
    not shown, for example in a traceback."""
    users = parse_users(f"# of the office\n\nalice:{HASH}{fields}\n")
    assert users["alice"].identity == Identity("alice", project, roles)
    assert HASH not in repr(users)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("alice", "expected name:hash"),
        (f"alice:{HASH}:p:r:h:more", "expected name:hash"),
        (f"alice:{HASH}:p:reader:gpu02", "the host of alice: a user that is bound to a host has"),
        (f"alice:{HASH}:p::gpu02", "the host of alice: a user that is bound to a host has"),
        (f"alice:{HASH}:p:agent: gpu02", "the host of alice: a name has"),
        (f":{HASH}", "must not be empty"),
        (f"al\tice:{HASH}", "nothing invisible"),
        ("alice:secret", "is not a bcrypt hash"),
        ("alice:$apr1$abcdefgh$0123456789012345678901", "is not a bcrypt hash"),
        ("alice:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=", "is not a bcrypt hash"),
        (f"alice:$2x${HASH[4:]}", "is not a bcrypt hash"),
        (f"alice:{HASH[:-1]}", "is not a bcrypt hash"),
        (f"alice:$2b$31${HASH[7:]}", "cost 31; berth accepts 4 to 16"),
        (f"alice:$2b$03${HASH[7:]}", "cost 03; berth accepts 4 to 16"),
        (f"alice:{HASH}:p:two words", "a role has no"),
        (f"alice:{HASH}:p:admin,,member", "a role has no"),
        (f"alice:{HASH}: web:admin", "the project of alice"),
        (f"bob:{HASH}", "duplicate user bob"),
    ],
)
def test_anything_else_is_refused_with_its_line(line: str, why: str) -> None:
    """The error is one sentence with the line number and without the hash."""
    with pytest.raises(MalformedLine) as caught:
        parse_users(f"bob:{HASH}\n{line}\n")
    said = str(caught.value)
    assert said.startswith("line 2: ") and why in said
    for part in line.split(":")[1:2]:
        assert part not in said


def test_a_change_leaves_the_other_lines_alone() -> None:
    """Comments stay, and so does the order of users."""
    text = f"# the office\nalice:{HASH}\n#alice:old\nbob:{HASH}:web:reader"
    alice = User(Identity("alice", "web", ("admin",)), HASH)
    changed = f"# the office\nalice:{HASH}:web:admin\n#alice:old\nbob:{HASH}:web:reader\n"
    assert with_user(text, alice) == changed
    assert without_user(changed, "alice") == f"# the office\n#alice:old\nbob:{HASH}:web:reader\n"
    carol = User(Identity("carol", "carol", ()), HASH)
    assert with_user(text, carol) == f"{text}\ncarol:{HASH}:carol:\n"
    assert parse_users(with_user("", carol)) == {"carol": carol}


def test_a_password_has_72_bytes_at_most() -> None:
    """bcrypt ignores the rest, so a password with another ending would match too; whatever letter
    htpasswd and other tools write into a hash, it is checked."""
    longest = "ä" * 36
    new = hash_password(longest)
    assert new.startswith("$2b$12$")
    assert is_password(longest, new)
    assert not is_password(longest + "x", new)
    for kind in ("2a", "2b", "2y"):
        assert is_password("secret", parse_users(f"a:${kind}{HASH[3:]}")["a"].password_hash)


def test_for_nobody_a_hash_of_the_usual_cost_is_checked() -> None:
    """So that an unknown user takes as long as most others."""
    costly = bcrypt.hashpw(b"x", bcrypt.gensalt(5)).decode()
    users = parse_users(f"a:{HASH}\nb:{HASH}\nc:{costly}\n")
    assert unmatched_hash(users).startswith("$2b$04$")
    assert unmatched_hash({}).startswith("$2b$12$")
    assert not is_password("", unmatched_hash(users))

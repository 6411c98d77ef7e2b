# SPDX-License-Identifier: Apache-2.0
"""`[api]auth_strategy = http_basic`: callers give a name and a password (RFC 7617).

bcrypt is slow on purpose, and a client sends its password with every request. So credentials that
were right are remembered in this process, and cost the next request some microseconds. All others
are checked by one thread of low priority: a flood of wrong passwords takes what time the requests
leave, and no more of them wait than the bound says.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final
from wsgiref.types import WSGIEnvironment

from berth.api.auth.file_based import Gatekeeper, unavailable, unusable
from berth.api.auth.htpasswd import User, is_password, parse_users, unmatched_hash
from berth.api.auth.identity import Identity
from berth.api.auth.watched_file import CredentialsUnusable, WatchedFile

CHALLENGE: Final = 'Basic realm="placement"'

#: Seconds without use after which credentials that were right are checked again.
REMEMBER_S: Final = 300.0
REMEMBERED_MAX: Final = 1000

#: Different credentials that are being checked, or wait for it. Each keeps a place among the
#: requests that run, so they are fewer than those.
CHECKS_MAX: Final = 8
#: Seconds that a request waits for its check.
CHECK_S_MAX: Final = 30.0

#: How little the thread that checks is preferred: on a busy processor it has a quarter of what a
#: thread has that runs requests.
_NICENESS: Final = 6


class HttpBasic:
    """Who calls, by `Authorization: Basic`.

    Args:
        path: the file of users.
        clock: monotonic seconds.

    Raises:
        CredentialsUnusable: the file cannot be read or understood.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = WatchedFile(path, Directory.parse, clock=clock)
        self._gatekeeper = Gatekeeper(challenge=CHALLENGE, what="user", clock=clock)
        self._clock = clock
        self.checks = Checks(clock)
        #: Under which credentials are remembered: nobody else can make these digests.
        self._key = secrets.token_bytes(32)

    def __call__(self, environ: WSGIEnvironment) -> Identity:
        """Who sends this request.

        Raises:
            Refused: 401, 429, or 503 where it cannot be told now.
        """
        given = _credentials_in(environ.get("HTTP_AUTHORIZATION", ""))
        if given is None:
            raise self._gatekeeper.unauthorized("Send a name and a password, as HTTP Basic does.")
        name, password = given
        try:
            directory = self._file.content()
        except CredentialsUnusable:
            raise unusable() from None
        digest = hmac.digest(self._key, f"{name}:{password}".encode(), "sha256")
        known = directory.remembered.find(digest, now=self._clock())
        if known is not None:
            return known
        caller = self._gatekeeper.caller(environ, name)
        self._gatekeeper.slow_down(caller)
        identity = self.checks.check(directory, digest, name, password)
        if identity is None:
            raise self._gatekeeper.failure(caller, "no such user, or not the password")
        self._gatekeeper.success(caller)
        return identity


class Remembered:
    """Whose credentials were right lately, by their digests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: With the time of the last use; in the order in which they came.
        self._entries: OrderedDict[bytes, tuple[Identity, float]] = OrderedDict()

    def find(self, digest: bytes, *, now: float) -> Identity | None:
        """Whose these are; None where they have to be checked."""
        found = self._entries.get(digest)
        if found is None or now - found[1] > REMEMBER_S:
            return None
        # Unless they are forgotten at this moment; without the lock, which each request would take.
        self._entries[digest] = (found[0], now)
        return found[0]

    def add(self, digest: bytes, identity: Identity, *, now: float) -> None:
        """Remember credentials that were right."""
        with self._lock:
            self._entries[digest] = (identity, now)
            self._entries.move_to_end(digest)
            while len(self._entries) > REMEMBERED_MAX:
                self._entries.popitem(last=False)

    def __len__(self) -> int:
        return len(self._entries)


class Directory:
    """The users of one state of the file, and those who logged in since it is in force."""

    def __init__(self, users: Mapping[str, User]) -> None:
        self.users = users
        self.remembered = Remembered()
        #: Checked for a name that nobody has, so that time does not tell who exists.
        self.unmatched = unmatched_hash(users)

    @classmethod
    def parse(cls, text: str) -> Directory:
        """From the text of the file.

        Raises:
            MalformedLine: a line is none of a user.
        """
        return cls(parse_users(text))

    def authenticate(self, name: str, password: str) -> Identity | None:
        """Whose these credentials are; None for nobody's. Slow."""
        user = self.users.get(name)
        is_right = is_password(password, user.password_hash if user else self.unmatched)
        return user.identity if user is not None and is_right else None


class Checks:
    """The checks of passwords, one after another; who brings the same credentials shares one."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._under_way: dict[tuple[Directory, bytes], Future[Identity | None]] = {}
        self._executor = ThreadPoolExecutor(1, "passwords", initializer=_step_back)

    def __len__(self) -> int:
        """How many are under way."""
        return len(self._under_way)

    def check(
        self, directory: Directory, digest: bytes, name: str, password: str
    ) -> Identity | None:
        """Whose these credentials are, and remember them; None for nobody's.

        Raises:
            Refused: 503, too many others are being checked, or it took too long.
        """

        def verify() -> Identity | None:
            identity = directory.authenticate(name, password)
            if identity is not None:
                directory.remembered.add(digest, identity, now=self._clock())
            return identity

        key = (directory, digest)
        with self._lock:
            verdict = self._under_way.get(key)
            if verdict is None:
                # They may have been found right since the caller looked.
                known = directory.remembered.find(digest, now=self._clock())
                if known is not None:
                    return known
                if len(self._under_way) >= CHECKS_MAX:
                    raise unavailable("Too many passwords are being checked; try again.")
                verdict = self._under_way[key] = self._executor.submit(verify)
                verdict.add_done_callback(lambda _: self._under_way.pop(key, None))
        try:
            return verdict.result(CHECK_S_MAX)
        except TimeoutError:
            raise unavailable("The password could not be checked in time; try again.") from None


def _step_back() -> None:
    """Lower the priority of the calling thread alone, as Linux lets one do.

    Where a sandbox forbids it, passwords are checked all the same.
    """
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)


def _credentials_in(authorization: str) -> tuple[str, str] | None:
    """The name and the password of an Authorization header; None where it has none."""
    scheme, _, encoded = authorization.strip().partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        raw = base64.b64decode(encoded.strip(), validate=True)
    except (binascii.Error, ValueError):
        return None
    try:
        given = raw.decode()
    except UnicodeDecodeError:
        # What clients send that know nothing of UTF-8.
        given = raw.decode("latin-1")
    name, colon, password = given.partition(":")
    return (name, password) if colon else None

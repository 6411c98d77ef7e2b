# SPDX-License-Identifier: Apache-2.0
"""`[api]auth_strategy = http_basic`: callers give a name and a password (RFC 7617).

bcrypt is slow on purpose, and a client sends its password with every request. So credentials that
were right are remembered in this process, and cost the next request some microseconds. All others
are checked by one thread of low priority: a flood of wrong passwords takes what time the requests
leave, and no more of them wait than the bound says. Each address has a fair share of those places.

Where many names have failed at one address, everybody from there who is not remembered is answered
429 at once, and alike. Passwords of users that there are get checked all the same, with nobody
waiting for it; so whoever has the right one is let in at the next attempt, and neither the answer
nor the time that it takes tells which users there are.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import secrets
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from wsgiref.types import WSGIEnvironment

from berth.api.auth.failed_attempts import Caller, source_of
from berth.api.auth.file_based import Gatekeeper, unavailable, unusable
from berth.api.auth.htpasswd import User, is_password, parse_users, unmatched_hash
from berth.api.auth.identity import Identity
from berth.api.auth.watched_file import CredentialsUnusable, WatchedFile
from berth.api.errors import Refused

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
        credentials = Credentials(directory, digest, name, password)
        if self._gatekeeper.is_suspect(caller):
            self._look_later(credentials, caller)
            raise self._gatekeeper.put_off()
        return self._judged(self.checks.check(credentials, source_of(caller.address)), caller)

    def _look_later(self, credentials: Credentials, caller: Caller) -> None:
        """Have credentials checked with nobody waiting for it, if there is such a user and room."""

        def note(verdict: Future[Identity | None]) -> None:
            with suppress(Refused):
                self._judged(verdict.result(), caller)

        if credentials.name in credentials.directory.users:
            with suppress(Refused):
                self.checks.begin(credentials, source_of(caller.address), note)

    def _judged(self, identity: Identity | None, caller: Caller) -> Identity:
        """Whose the credentials are that were checked.

        Raises:
            Refused: 401, nobody's.
        """
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


@dataclass(frozen=True, slots=True)
class Credentials:
    """A name and a password, to be found in one state of the file."""

    directory: Directory
    #: By which they are remembered.
    digest: bytes
    name: str = field(repr=False)
    password: str = field(repr=False)


@dataclass(eq=False, slots=True)
class _Check:
    """Credentials that are being checked, or wait for it."""

    credentials: Credentials
    source: str
    verdict: Future[Identity | None] = field(default_factory=Future)


class Checks:
    """The checks of passwords, one after another; who brings the same credentials shares one.

    Sources take turns. Where all places are taken, one that has the most of them gives its last to
    one that has fewer.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._under_way: dict[tuple[Directory, bytes], _Check] = {}
        #: By source, in the order of their turns; none is empty.
        self._waiting: OrderedDict[str, deque[_Check]] = OrderedDict()
        self._executor = ThreadPoolExecutor(1, "passwords", initializer=_step_back)

    def __len__(self) -> int:
        """How many are under way."""
        return len(self._under_way)

    def check(self, credentials: Credentials, source: str) -> Identity | None:
        """Whose these credentials are, and remember them; None for nobody's.

        Raises:
            Refused: 503, too many others are being checked, or it took too long.
        """
        try:
            return self._begun(credentials, source).result(CHECK_S_MAX)
        except TimeoutError:
            raise unavailable("The password could not be checked in time; try again.") from None

    def begin(
        self, credentials: Credentials, source: str, note: Callable[[Future[Identity | None]], None]
    ) -> None:
        """As `check`, and wait for nothing: `note` is given what comes of it.

        Raises:
            Refused: 503, too many others are being checked.
        """
        self._begun(credentials, source).add_done_callback(note)

    def _begun(self, credentials: Credentials, source: str) -> Future[Identity | None]:
        key = (credentials.directory, credentials.digest)
        with self._lock:
            if (same := self._under_way.get(key)) is not None:
                return same.verdict
            check = _Check(credentials, source)
            # They may have been found right since the caller looked.
            known = credentials.directory.remembered.find(credentials.digest, now=self._clock())
            if known is not None:
                check.verdict.set_result(known)
                return check.verdict
            pushed_out = self._make_room(source) if len(self._under_way) >= CHECKS_MAX else None
            self._under_way[key] = check
            self._waiting.setdefault(source, deque()).append(check)
        if pushed_out is not None:
            pushed_out.verdict.set_exception(_no_room())
        self._executor.submit(self._run_next)
        return check.verdict

    def _make_room(self, source: str) -> _Check:
        """Take a place from another source; who has lost it. Needs the lock.

        Raises:
            Refused: 503, nobody has two places more.
        """
        places = Counter(check.source for check in self._under_way.values())
        greedy = max(self._waiting, key=lambda one: places[one], default=source)
        if places[greedy] < places[source] + 2:
            raise _no_room()
        check = self._waiting[greedy].pop()
        if not self._waiting[greedy]:
            del self._waiting[greedy]
        del self._under_way[check.credentials.directory, check.credentials.digest]
        return check

    def _run_next(self) -> None:
        """Run the check of the source whose turn it is."""
        with self._lock:
            if not self._waiting:
                return  # it was pushed out
            source, waiting = self._waiting.popitem(last=False)
            check = waiting.popleft()
            if waiting:
                self._waiting[source] = waiting
        credentials = check.credentials
        directory = credentials.directory
        try:
            identity = directory.authenticate(credentials.name, credentials.password)
            if identity is not None:
                directory.remembered.add(credentials.digest, identity, now=self._clock())
        except BaseException as error:  # noqa: BLE001 - raised again in the threads that wait for it
            self._end(check)
            check.verdict.set_exception(error)
        else:
            self._end(check)
            check.verdict.set_result(identity)

    def _end(self, check: _Check) -> None:
        with self._lock:
            del self._under_way[check.credentials.directory, check.credentials.digest]


def _no_room() -> Refused:
    return unavailable("Too many passwords are being checked; try again.")


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

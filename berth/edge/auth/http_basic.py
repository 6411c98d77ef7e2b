# SPDX-License-Identifier: Apache-2.0
"""`[api]auth_strategy = http_basic`: callers send a name and a password (RFC 7617).

bcrypt is slow on purpose, and a client sends its password with every request. So this process
remembers valid credentials, which cost the next request a few microseconds. One low-priority thread
checks all others: a flood of wrong passwords gets only the CPU time that requests leave, and at
most `CHECKS_MAX` of them wait. Each address has a fair share of those places.

When many names have failed at one address, every caller there who is not remembered gets the same
429 at once. Passwords of existing users are still checked in the background, so a caller with the
right one succeeds at the next attempt, and neither the answer nor its timing reveals which users
exist.
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

from berth.api.errors import Refused
from berth.edge.auth.file_based import Caller, Gatekeeper, source_of, unavailable, unusable
from berth.edge.auth.htpasswd import User, is_password, parse_users, unmatched_hash
from berth.edge.auth.identity import Identity
from berth.edge.auth.watched_file import CredentialsUnusable, WatchedFile

CHALLENGE: Final = 'Basic realm="placement"'

#: Seconds without use after which valid credentials are checked again.
REMEMBER_S: Final = 300.0
REMEMBERED_MAX: Final = 1000

#: Credentials that are being checked or wait for it. Each occupies the place of a running request,
#: so this must be lower than their number.
CHECKS_MAX: Final = 8
#: Seconds that a request waits for its check.
CHECK_S_MAX: Final = 30.0

#: The niceness of the checking thread: on a busy CPU it gets a quarter of the time of a thread that
#: runs requests.
_NICENESS: Final = 6


class HttpBasic:
    """Authenticates callers by `Authorization: Basic`.

    Args:
        path: the file of users.
        clock: monotonic seconds.

    Raises:
        CredentialsUnusable: the file cannot be read or parsed.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = WatchedFile(path, Directory.parse, clock=clock)
        self._gatekeeper = Gatekeeper(challenge=CHALLENGE, subject="user", clock=clock)
        self._clock = clock
        self.checks = Checks(clock)
        #: The key of the digests under which credentials are remembered; no other process has it.
        self._key = secrets.token_bytes(32)

    def __call__(self, environ: WSGIEnvironment) -> Identity:
        """The caller of a request.

        Raises:
            Refused: 401, 429, or 503 if the credentials cannot be checked now.
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
        identity = directory.remembered.find(digest, now=self._clock())
        if identity is not None:
            return identity
        caller = self._gatekeeper.caller(environ, name)
        self._gatekeeper.slow_down(caller)
        credentials = Credentials(directory, digest, name, password)
        if self._gatekeeper.is_suspect(caller):
            self._look_later(credentials, caller)
            raise self._gatekeeper.put_off()
        return self._judged(self.checks.check(credentials, source_of(caller.address)), caller)

    def still_valid(self, environ: WSGIEnvironment) -> Callable[[], bool]:
        """See `Authenticate`: the line of the file is as it was. No password is checked again."""
        given = _credentials_in(environ.get("HTTP_AUTHORIZATION", ""))
        seen = self._user(given[0]) if given is not None else None
        return lambda: seen is not None and self._user(seen.name) == seen

    def _user(self, name: str) -> User | None:
        """The line of a user; None if there is none, or the file cannot be used."""
        with suppress(CredentialsUnusable):
            return self._file.content().users.get(name)
        return None

    def _look_later(self, credentials: Credentials, caller: Caller) -> None:
        """Check credentials in the background, if the user exists and there is room."""

        def note(verdict: Future[Identity | None]) -> None:
            with suppress(Refused):
                self._judged(verdict.result(), caller)

        if credentials.name in credentials.directory.users:
            with suppress(Refused):
                self.checks.begin(credentials, source_of(caller.address), note)

    def _judged(self, identity: Identity | None, caller: Caller) -> Identity:
        """Record the result of a check; return the identity.

        Raises:
            Refused: 401, the credentials are wrong.
        """
        if identity is None:
            raise self._gatekeeper.failure(caller, "unknown user or wrong password")
        self._gatekeeper.success(caller)
        return identity


class Remembered:
    """The identities of recently validated credentials, by digest."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: With the time of the last use; in insertion order.
        self._entries: OrderedDict[bytes, tuple[Identity, float]] = OrderedDict()

    def find(self, digest: bytes, *, now: float) -> Identity | None:
        """The identity of these credentials; None if they have to be checked."""
        entry = self._entries.get(digest)
        if entry is None or now - entry[1] > REMEMBER_S:
            return None
        # No lock, which every request would take; a concurrent `add` may drop the entry.
        self._entries[digest] = (entry[0], now)
        return entry[0]

    def add(self, digest: bytes, identity: Identity, *, now: float) -> None:
        """Remember valid credentials."""
        with self._lock:
            self._entries[digest] = (identity, now)
            self._entries.move_to_end(digest)
            while len(self._entries) > REMEMBERED_MAX:
                self._entries.popitem(last=False)

    def __len__(self) -> int:
        return len(self._entries)


class Directory:
    """The users of one version of the file, and the credentials validated against it."""

    def __init__(self, users: Mapping[str, User]) -> None:
        self.users = users
        self.remembered = Remembered()
        #: Checked for an unknown name, so that the timing does not reveal which users exist.
        self.unmatched = unmatched_hash(users)

    @classmethod
    def parse(cls, text: str) -> Directory:
        """Parse the text of the file.

        Raises:
            MalformedLine: a line does not describe a user.
        """
        return cls(parse_users(text))

    def authenticate(self, name: str, password: str) -> Identity | None:
        """The identity of these credentials; None if they are wrong. Slow."""
        user = self.users.get(name)
        is_right = is_password(password, user.password_hash if user else self.unmatched)
        return user.identity if user is not None and is_right else None


@dataclass(frozen=True, slots=True)
class Credentials:
    """A name and a password, to be checked against one version of the file."""

    directory: Directory
    #: The key under which they are remembered.
    digest: bytes
    name: str = field(repr=False)
    password: str = field(repr=False)


@dataclass(eq=False, slots=True)
class _Check:
    """Credentials that are being checked, or wait for their check."""

    credentials: Credentials
    source: str
    verdict: Future[Identity | None] = field(default_factory=Future)


class Checks:
    """Checks passwords one after another; requests with the same credentials share a check.

    Sources take turns. When all places are taken, the source with the most of them gives its last
    one to a source with fewer.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._under_way: dict[tuple[Directory, bytes], _Check] = {}
        #: By source, in the order of their turns; none is empty.
        self._waiting: OrderedDict[str, deque[_Check]] = OrderedDict()
        self._executor = ThreadPoolExecutor(1, "passwords", initializer=_step_back)

    def __len__(self) -> int:
        """The number of checks that run or wait."""
        return len(self._under_way)

    def check(self, credentials: Credentials, source: str) -> Identity | None:
        """The identity of these credentials, which is then remembered; None if they are wrong.

        Raises:
            Refused: 503, too many others are being checked, or the check took too long.
        """
        try:
            return self._begun(credentials, source).result(CHECK_S_MAX)
        except TimeoutError:
            raise unavailable("The password could not be checked in time; try again.") from None

    def begin(
        self, credentials: Credentials, source: str, note: Callable[[Future[Identity | None]], None]
    ) -> None:
        """As `check`, but without waiting: `note` is called with the result.

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
            # Another check may have validated them since the caller looked.
            identity = credentials.directory.remembered.find(credentials.digest, now=self._clock())
            if identity is not None:
                check.verdict.set_result(identity)
                return check.verdict
            pushed_out = self._make_room(source) if len(self._under_way) >= CHECKS_MAX else None
            self._under_way[key] = check
            self._waiting.setdefault(source, deque()).append(check)
        if pushed_out is not None:
            pushed_out.verdict.set_exception(_no_room())
        self._executor.submit(self._run_next)
        return check.verdict

    def _make_room(self, source: str) -> _Check:
        """Take a place from another source; return the check that lost it. Needs the lock.

        Raises:
            Refused: 503, no other source has at least two places more.
        """
        places = Counter(check.source for check in self._under_way.values())
        greedy = max(self._waiting, key=places.__getitem__, default=source)
        if places[greedy] < places[source] + 2:
            raise _no_room()
        check = self._waiting[greedy].pop()
        if not self._waiting[greedy]:
            del self._waiting[greedy]
        del self._under_way[check.credentials.directory, check.credentials.digest]
        return check

    def _run_next(self) -> None:
        """Run the next check of the source whose turn it is."""
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
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting threads
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
    """Lower the priority of the calling thread only, as Linux allows.

    If a sandbox forbids it, passwords are checked anyway.
    """
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)


def _credentials_in(authorization: str) -> tuple[str, str] | None:
    """The name and the password of an Authorization header; None if it has none."""
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
        # From clients that do not use UTF-8.
        given = raw.decode("latin-1")
    name, colon, password = given.partition(":")
    return (name, password) if colon else None

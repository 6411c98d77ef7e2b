# SPDX-License-Identifier: Apache-2.0
"""Sweeps expired leases in each worker, in a thread that ends with it.

Source: spec/beyond.md 7.3.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Final

from berth.edge.audit_log import AuditLog
from berth.model.errors import OutcomeUnknown, Unavailable
from berth.store.engine.database import Database
from berth.store.engine.write_record import WriteRecord
from berth.store.lease_sweep import Expired, sweep

LOG = logging.getLogger(__name__)


def sweep_leases(db: Database, period_s: float, audit_log: AuditLog | None) -> None:
    """Sweep a database for as long as this process serves it, also in processes forked from it.

    Args:
        period_s: seconds between two sweeps; 0: never.
        audit_log: of the application that serves it; None if it has none.
    """
    if not period_s:
        return
    alive = weakref.ref(db)
    # It knows the database by way of its index.
    log = (lambda: None) if audit_log is None else weakref.ref(audit_log)

    def start() -> None:
        if alive() is not None:
            threading.Thread(
                target=_run, args=(alive, log, period_s), name="lease-sweeps", daemon=True
            ).start()

    start()
    # A thread does not survive a fork.
    os.register_at_fork(after_in_child=start)


class LeaseSweeper:
    """Sweeps one database; an outage of it is logged once."""

    def __init__(self) -> None:
        self._is_away = False

    def sweep(self, db: Database, audit_log: AuditLog | None) -> None:
        """Sweep once, and log what was taken back; never fails."""
        try:
            _sweep(db, audit_log)
        except Unavailable as error:
            if not self._is_away:
                LOG.warning("Leases cannot be swept until the database is back: %s", error)
            self._is_away = True
        except Exception:
            LOG.exception("Leases could not be swept")
        else:
            self._is_away = False


def _sweep(db: Database, audit_log: AuditLog | None) -> None:
    record = WriteRecord()
    try:
        for expired in sweep(db if audit_log is None else db.recording(record)):
            _report(expired)
            if audit_log:
                audit_log.write_expired(record.taken())
    except OutcomeUnknown:
        if audit_log:
            audit_log.write_expired(record.taken(), is_unknown=True)
        raise


def _report(expired: Iterable[Expired]) -> None:
    for each in expired:
        LOG.info(
            "The lease of consumer %s of project %s has expired; released what it held on %s",
            each.consumer,
            each.project_id,
            ", ".join(each.hosts),
        )


def _run(
    alive: Callable[[], Database | None],
    audit_log: Callable[[], AuditLog | None],
    period_s: float,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Sweep until the database is no longer used.

    The first sweep waits longest: whoever renews leases may have waited for this service to start.
    How much longer is random, so that workers that start together do not sweep together.
    """
    sweeper: Final = LeaseSweeper()
    pause(period_s * (1 + random.random()))
    while (db := alive()) is not None:
        sweeper.sweep(db, audit_log())
        del db
        pause(period_s)

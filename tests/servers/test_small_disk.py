# SPDX-License-Identifier: Apache-2.0
"""Writes to a full disk fail, and succeed again when there is space."""

from __future__ import annotations

import errno

import pytest
from sqlalchemy.exc import OperationalError

from tests.engines import need
from tests.servers.small_disk import fill, small_disk, why_not
from tests.servers.statements import run

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")


def test_a_full_disk_takes_no_byte_more() -> None:
    """Until something is removed."""
    with small_disk(1) as disk:
        ballast = fill(disk)
        with pytest.raises(OSError, match="No space") as full:
            (disk / "more").write_bytes(b"x")
        assert full.value.errno == errno.ENOSPC
        ballast.unlink()
        (disk / "more").write_bytes(b"x")
    assert not disk.exists()


def test_a_server_whose_disk_is_full_refuses_and_goes_on() -> None:
    """PostgreSQL keeps committed rows, and accepts more once there is space."""
    need("postgresql")
    from tests.servers.postgresql import PostgreSQL

    with small_disk(96) as disk, PostgreSQL(data=disk / "data") as server:
        url = server.create_database()
        run(url, "CREATE TABLE kept (text TEXT)", "INSERT INTO kept VALUES ('before')")
        ballast = fill(disk)
        with pytest.raises(OperationalError, match="No space left on device"):
            run(url, "INSERT INTO kept SELECT repeat('x', 999) FROM generate_series(1, 99999)")
        ballast.unlink()
        server.stop()
        server.start()
        run(url, "INSERT INTO kept VALUES ('after')")
        assert run(url, "SELECT text FROM kept") == [("before",), ("after",)]

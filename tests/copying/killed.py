# SPDX-License-Identifier: Apache-2.0
"""A copy that kills itself before one of its writes: `python -m tests.copying.killed FROM TO N`.

It prints `finished` if it ends before its Nth write.
"""

from __future__ import annotations

import os
import signal
import sys
from itertools import count

from sqlalchemy import event

from berth.store.engine.database import Database
from berth.store.engine.opening import open_database
from berth.upkeep.copying import copy_database

#: So small that each table takes several chunks.
CHUNK_ROWS = 2

_READS = ("SELECT", "PRAGMA", "BEGIN", "START", "SET", "SHOW", "DESCRIBE")


def kill_before_write(db: Database, number: int) -> None:
    """Kill this process with SIGKILL before a database's Nth statement that writes."""
    numbers = count(1)

    def listen(_connection: object, _cursor: object, text: str, *_rest: object) -> None:
        if not text.lstrip().upper().startswith(_READS) and next(numbers) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(db.engine, "before_cursor_execute", listen)


def main(source_url: str, target_url: str, number: int) -> None:
    """Copy until it is killed."""
    source, target = open_database(source_url), open_database(target_url)
    kill_before_write(target, number)
    copy_database(source, target, report=lambda *_: None, chunk_rows=CHUNK_ROWS)
    print("finished")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))

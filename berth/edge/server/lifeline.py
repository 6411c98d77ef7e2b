# SPDX-License-Identifier: Apache-2.0
"""Stops the workers when their parent exits, even if it is killed.

Orphaned workers would go on serving without supervision and keep the address in use, so that the
service could not be started again.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Final

#: Seconds between two checks whether the parent is still running. A check is one system call.
_POLL_S: Final = 0.2

#: Seconds that a worker may take to finish its requests: longer than any request takes. A worker
#: that still runs then is waiting for a client that announced a body and does not send it; Granian
#: has no timeout for that, and waits even after the client has disconnected.
STOP_S_MAX: Final = 60.0


#: How many SIGTERMs an orphan gets, and the seconds between them; then it is killed, because a new
#: service needs the address.
_ASKED_TIMES: Final = 3
_ASKED_EACH_S: Final = 5.0


def end_with_parent(
    parent: int, is_stopping: Callable[[], bool], stopping: threading.Event
) -> None:
    """In a worker: stop as on SIGTERM, finishing its requests, once its parent has exited.

    Args:
        parent: the process id that the parent itself passed on: it may have exited already.
        is_stopping: whether the parent stops its workers.
        stopping: set once this worker stops, for requests that wait.
    """
    threading.Thread(
        target=_watch, args=(parent, is_stopping, stopping), name="lifeline", daemon=True
    ).start()


def _watch(parent: int, is_stopping: Callable[[], bool], stopping: threading.Event) -> None:
    while os.getppid() == parent:
        if is_stopping():
            stopping.set()
        time.sleep(_POLL_S)
    stopping.set()
    # More than once: a worker that is just about to serve can lose the first signal. And not often:
    # a second signal while Granian waits for requests to finish blocks the interpreter, and with it
    # those requests.
    for _ in range(_ASKED_TIMES):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_ASKED_EACH_S)
    os.kill(os.getpid(), signal.SIGKILL)

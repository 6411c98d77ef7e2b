# SPDX-License-Identifier: Apache-2.0
"""Workers that end when their parent does, even if it is killed and can tell nobody.

Left alone they would serve on with nobody to watch over them or to stop them, and keep the address,
so that the service could not be started again.
"""

import os
import signal
import threading
import time
from typing import Final

#: Seconds between two looks whether the parent is still there. A look is one system call.
_POLL_S: Final = 0.2

#: Seconds that a worker may take to finish what it has begun: longer than anything that it does.
#: One that still runs then waits for a client which has announced a body and does not send it;
#: Granian waits for that for ever, even after the client has gone.
STOP_S_MAX: Final = 60.0


def end_with_parent(parent: int) -> None:
    """In a worker: stop as on SIGTERM, finishing what was begun, once its parent is gone.

    Args:
        parent: the process id of the parent, as itself has said: it may be gone already.
    """
    threading.Thread(target=_watch, args=(parent,), name="lifeline", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_POLL_S)
    # Again and again: a worker that is just about to serve can lose the first request to stop.
    deadline = time.monotonic() + STOP_S_MAX
    while time.monotonic() < deadline:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_POLL_S)
    os.kill(os.getpid(), signal.SIGKILL)

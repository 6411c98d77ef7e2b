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


#: An orphan is asked to stop so many times, with so long between; then it holds up whoever wants to
#: serve at its address, and has to go.
_ASKED_TIMES: Final = 3
_ASKED_EACH_S: Final = 5.0


def end_with_parent(parent: int) -> None:
    """In a worker: stop as on SIGTERM, finishing what was begun, once its parent is gone.

    Args:
        parent: the process id of the parent, as itself has said: it may be gone already.
    """
    threading.Thread(target=_watch, args=(parent,), name="lifeline", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_POLL_S)
    # More than once: a worker that is just about to serve can lose the first request to stop. And
    # not often: Granian holds the interpreter up, request and all, when it is told a second time
    # while it waits for requests to end.
    for _ in range(_ASKED_TIMES):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_ASKED_EACH_S)
    os.kill(os.getpid(), signal.SIGKILL)

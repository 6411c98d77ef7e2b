# SPDX-License-Identifier: Apache-2.0
"""What stands for a command in `warm_commands`: it has it run, passes signals on, and ends as it.

Run as `python -I -S warm_client.py ADDRESS ARGUMENT...`: it starts in a fiftieth of a second.
"""

import json
import os
import signal
import socket
import sys

SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1)

ignored = [number for number in SIGNALS if signal.getsignal(number) is signal.SIG_IGN]
umask = os.umask(0)
os.umask(umask)
asked = {
    "arguments": sys.argv[2:],
    "folder": os.getcwd(),
    "variables": dict(os.environ),
    "umask": umask,
    "ignored": ignored,
}
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect(sys.argv[1])
    socket.send_fds(server, [json.dumps(asked).encode()], [0, 1, 2])
    # Those that are ignored too: the command may have a handler of its own for them.
    for number in SIGNALS:
        signal.signal(number, lambda number, _: server.send(bytes([number])))
    # The command holds the streams: who reads them sees their end when it ends, or closes them.
    for stream in (0, 1, 2):
        os.close(stream)
    code = int(server.recv(10) or -signal.SIGKILL)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)

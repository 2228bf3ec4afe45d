"""Has the server run a script, and ends as the script does: `python client.py PYTHON SOCKET ARGUMENT ...`.

What the server does not take, PYTHON runs.
"""

import json
import os
import signal
import socket
import sys

python, address, *arguments = sys.argv[1:]


def answers():
    """What the server says: whether it takes the script, then its end."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(address)
        request = {"arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd()}
        socket.send_fds(server, [b"x"], [0, 1, 2])
        server.sendall(json.dumps(request).encode() + b"\n")
        with server.makefile("r") as lines:
            for line in lines:
                yield json.loads(line)


said = answers()
if next(said, None) is not True:
    os.execv(python, [python, *arguments])
status = next(said, None)
if status is None:
    sys.exit("the server with torch died")
if status < 0:
    # As the script did.
    if -status not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)

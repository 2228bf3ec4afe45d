"""Loads torch once, and runs scripts in forks: `python [FLAG ...] server.py SOCKET`. Ends with its standard input.

For the script, all is as if it had been started alone: its arguments, its folder and standard streams, its `__main__`, its
search path, what is printed of its exceptions; the recorder and the torch layer start in the fork. Not so: torch and what
torch imports are loaded before `streamsan` is; numpy's global generator has the same state in all scripts; after the exit
handlers, of which the last closes the trace, Python is not taken down piece by piece (half a second).
"""

import atexit
import builtins
import importlib.machinery
import json
import os
import select
import signal
import socket
import sys
import threading
import types

# Variables that may differ from the server's: of one run, of one test, and of the shell that starts the client. The preloaded
# library reads its own when the recorder starts or the device is first used.
OF_ONE_RUN = {"PWD", "OLDPWD", "COLUMNS", "LINES", "PYTEST_CURRENT_TEST"}
OF_ONE_RUN |= {"STREAMSAN_" + name for name in ("TRACE", "RUN", "DEVICE", "DEVICE_COUNT", "DEVICE_MEMORY")}
OF_ONE_RUN |= {"STREAMSAN_PYTHON", "STREAMSAN_PACKAGE", "STREAMSAN_DELAY_COPIES"}
STARTUP = os.path.join("streamsan", "_startup")


def setting(environment):
    """What of an environment counts before the program starts."""
    kept = {name: value for name, value in environment.items() if name not in OF_ONE_RUN}
    path = [entry for entry in kept.pop("PYTHONPATH", "").split(":") if entry]
    return kept, [entry for entry in path if not entry.endswith(STARTUP)]


def receive(connection):
    """Returns what a client asks for, and its three standard streams."""
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("r") as lines:
        return json.loads(lines.readline()), streams


def takes(request):
    """Whether a script can be run here: it must find the same interpreter."""
    arguments, environment = request["arguments"], request["environment"]
    if setting(environment) != SETTING or arguments[: len(FLAGS)] != FLAGS:
        return False
    words = arguments[len(FLAGS) :]
    return (
        bool(words)
        and not words[0].startswith("-")
        and os.path.isfile(os.path.join(request["folder"], words[0]))
    )


def wait(child, connection):
    """Returns the end of a child, which is killed if its client goes."""
    handle = os.pidfd_open(child)
    ready, _, _ = select.select([handle, connection, sys.stdin], [], [])
    if handle not in ready:
        os.kill(child, signal.SIGKILL)
    os.close(handle)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def become(request, streams):
    """Makes this process, a fork, that of the script, and returns the script's source and names."""
    encoding = sys.stdin.encoding
    sys.stdin.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = open(0, encoding=encoding, closefd=False)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    # The program may start `streamsan` itself.
    os.environ["STREAMSAN_PYTHON"] = sys.executable
    sys.argv[:] = request["arguments"][len(FLAGS) :]
    sys.orig_argv[:] = [sys.executable, *request["arguments"]]
    script = os.path.abspath(sys.argv[0])
    sys.path.insert(0, os.path.dirname(os.path.realpath(script)))
    torch.default_generator.seed()
    if "STREAMSAN_TRACE" in os.environ:
        from streamsan._watch import watch

        watch()
    module = types.ModuleType("__main__")
    module.__dict__.update(
        __file__=script,
        __builtins__=builtins,
        __loader__=importlib.machinery.SourceFileLoader("__main__", script),
        __cached__=None,
    )
    sys.modules["__main__"] = module
    with open(script, "rb") as file:
        return file.read(), module.__dict__


def serve(listener):
    """Returns in each fork what it has to run; in the server, nothing when standard input ends."""
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            return None
        connection, _ = listener.accept()
        with connection:
            request, streams = receive(connection)
            taken = takes(request)
            child = None
            if taken:
                connection.sendall(b"true\n")
                child = os.fork()
                if child == 0:
                    connection.close()
                    listener.close()
                    return request, streams
            for stream in streams:
                os.close(stream)
            if child is not None:
                status = wait(child, connection)
                try:
                    connection.sendall(f"{status}\n".encode())
                except BrokenPipeError:
                    pass


def run(request, streams):
    """Runs a script in this process, a fork, and ends it with the script."""
    status = 0
    try:
        source, names = become(request, streams)
        exec(compile(source, names["__file__"], "exec", dont_inherit=True), names)
    except SystemExit as end:
        status = end.code or 0
        if not isinstance(status, int):
            print(status, file=sys.stderr)
            status = 1
    except BaseException as error:
        # Without the frame of this file.
        error.__traceback__ = error.__traceback__.tb_next
        sys.excepthook(type(error), error, error.__traceback__)
        status = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 0xFF)


if __name__ == "__main__":
    del sys.path[0]
    FLAGS = sys.orig_argv[1 : sys.orig_argv.index(sys.argv[0])]
    SETTING = setting(os.environ)
    import torch

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen()
    print("ready", flush=True)
    work = serve(listener)
    if work is not None:
        run(*work)

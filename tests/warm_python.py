"""A Python that has imported what takes seconds, and runs programs, each in a fork of itself.

As a program it serves at the socket that it is given. `WarmPython` is what asks it: `start` and `run` take the words of
a command whose first is Python, as subprocess.Popen and subprocess.run do. A program is `__main__` and has arguments,
environment, folder and import path of its own. It finds other libraries imported, and imports this project's modules
itself. What the hub's libraries read from the environment when they are imported, such as HF_HOME, is read anew;
what others read then is the server's.

The processes that launchers start, being Python's, are forks as well; everything else of them is as usual.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path

# What takes seconds to import.
LIBRARIES = (
    *("accelerate", "datasets", "evaluate", "pytest", "torch.distributed.run", "transformers.trainer"),
    *(f"transformers.models.{name}" for name in ("auto.tokenization_auto", "bert.modeling_bert", "gpt2.modeling_gpt2")),
    "transformers.models.t5.modeling_t5",
)
PATIENCE = 300  # seconds that a program may take
MESSAGE = 1 << 20  # bytes, at most


class WarmPython:
    """Asks a server to run programs.

    Args:
        environment: of programs, unless they are given one; of the server, if it is started here.
        folder: where the socket goes.
        server: whether to start one; else another process has.
    """

    def __init__(self, environment, folder, server=True):
        self.environment, self.address = environment, str(Path(folder) / "socket")
        command = [sys.executable, __file__, self.address]
        self.server = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE) if server else None

    def start(self, words, cwd=None, env=None):
        """A Program, begun."""
        assert str(words[0]) == sys.executable
        order = {
            "words": list(map(str, words[1:])),
            "cwd": str(cwd or Path.cwd()),
            "env": dict(env or self.environment),
        }
        connection = self._connect()
        outputs = [tempfile.TemporaryFile("w+", encoding="utf-8") for _ in range(2)]  # noqa: SIM115 read at its end
        socket.send_fds(connection, [json.dumps(order).encode()], [output.fileno() for output in outputs])
        return Program(connection, outputs)

    def run(self, words, cwd=None, env=None):
        """A subprocess.CompletedProcess, with what was printed as text."""
        program = self.start(words, cwd, env)
        out, err = program.communicate(PATIENCE)
        return subprocess.CompletedProcess(words, program.returncode, out, err)

    def _connect(self):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                connection.connect(self.address)
            except (FileNotFoundError, ConnectionRefusedError):  # it is still importing
                assert not self.server or self.server.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            else:
                return connection

    def stop(self):
        """End the server that was started here."""
        if self.server:
            self.server.communicate()


class Program:
    """A program that was started, in the manner of subprocess.Popen."""

    def __init__(self, connection, outputs):
        self.connection, self.outputs, self.returncode = connection, outputs, None
        self.pid = int(connection.recv(MESSAGE))

    def wait(self, timeout=None):
        """Its exit status; TimeoutError when that does not come in time."""
        if self.returncode is None:
            self.connection.settimeout(timeout)
            self.returncode = int(self.connection.recv(MESSAGE))
            self.connection.close()
        return self.returncode

    def poll(self):
        """Its exit status; None while it runs."""
        try:
            return self.wait(0)
        except BlockingIOError:
            return None

    def communicate(self, timeout=None):
        """Wait for its end; what it printed: (stdout, stderr)."""
        self.wait(timeout)
        for output in self.outputs:
            output.seek(0)
        return tuple(output.read() for output in self.outputs)

    def send_signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def serve(address):
    """Answer each order with the id of the process that follows it, and then with its exit status."""
    followers = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen()
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:  # it ends with whoever started it
            connection, _ = listener.accept()
            order, outputs, _, _ = socket.recv_fds(connection, MESSAGE, 2)
            followers = [one for one in followers if os.waitpid(one, os.WNOHANG) == (0, 0)]
            followers.append(os.fork())
            if not followers[-1]:
                listener.close()
                follow(connection, json.loads(order), outputs)
            connection.close()
            for output in outputs:
                os.close(output)
    for one in followers:
        os.waitpid(one, 0)


def follow(connection, order, outputs):
    """Run the program, and tell how it ends."""
    out, err = outputs
    words, settings = [sys.executable, *order["words"]], {"cwd": order["cwd"], "env": order["env"]}
    program = Fork(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, **settings)
    connection.send(str(program.pid).encode())
    with suppress(BrokenPipeError):  # whoever asked may have ended
        connection.send(str(program.wait()).encode())
    os._exit(0)


class Fork(subprocess.Popen):
    """subprocess.Popen, but where the program is this Python the process is a fork of this one."""

    def _execute_child(self, words, *others):
        if words[0] != sys.executable:
            super()._execute_child(words, *others)
            return
        settings = dict(zip(SETTINGS, others, strict=False))
        self.pid = os.fork()
        self._child_created = True
        if self.pid:
            self._close_pipe_fds(*(settings[pipe] for pipe in PIPES))
            return
        for stream, pipe in enumerate(("p2cread", "c2pwrite", "errwrite")):
            if settings[pipe] != -1:
                os.dup2(settings[pipe], stream)
        if others[-2] is True:  # start_new_session
            os.setsid()
        os.chdir(settings["cwd"] or ".")
        environment = dict(os.environ if settings["env"] is None else settings["env"])
        before = hub_settings()
        os.environ.clear()
        os.environ.update(environment)
        if hub_settings() != before:
            read_hub_settings()
        signal.alarm(PATIENCE)
        run_and_leave(*words[1:])


# What subprocess.Popen hands on by position.
PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
SETTINGS = ("executable", "preexec_fn", "close_fds", "pass_fds", "cwd", "env", "startupinfo", "creationflags", "shell")
SETTINGS += PIPES


# Modules that hold what the hub's libraries read from the environment.
SETTINGS_OF_THE_HUB = ("huggingface_hub.constants", "datasets.config", "evaluate.config", "transformers.utils.hub")


def hub_settings():
    """What the environment says to the hub's libraries."""
    return {name: value for name, value in os.environ.items() if name.startswith(("HF_", "TRANSFORMERS_"))}


def read_hub_settings():
    """Have the hub's libraries read the environment as if they were imported now."""
    from huggingface_hub import constants, hf_api

    for name in filter(sys.modules.__contains__, SETTINGS_OF_THE_HUB):
        module = sys.modules[name]
        before = dict(vars(module))
        if name == "transformers.utils.hub":  # the one constant there; all else is functions, which are known elsewhere
            module.HF_MODULES_CACHE = os.path.join(constants.HF_HOME, "modules")
        else:
            importlib.reload(module)
        for setting, value in before.items():
            if setting.isupper() and vars(module)[setting] != value:
                for taker in [one for one in sys.modules.values() if vars(one).get(setting) is value]:
                    setattr(taker, setting, vars(module)[setting])
    hf_api.api.endpoint = constants.ENDPOINT


def run_and_leave(*words):
    """A program as Python runs it, and the end of this process: taking down all that was imported takes longer."""
    status = 0
    try:
        run(*words)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else bool(end.code)
        if end.code and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
    except BaseException:
        status = 1
        traceback.print_exc()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def run(first, *others):
    """What `python first *others` does."""
    if first == "-u":
        return run(*others)
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = dict.fromkeys([os.getcwd() if first in ("-m", "-c") else home_of(first), *paths, *sys.path[1:]])
    if first == "-m":
        sys.argv = list(others)
        runpy.run_module(others[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *others[1:]]
        exec(compile(others[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = [first, *others]
        runpy.run_path(first, run_name="__main__")


def home_of(script):
    """The folder that a script's imports are sought in first."""
    return os.path.dirname(os.path.realpath(script))


if __name__ == "__main__":
    subprocess.Popen = Fork  # before launchers take it from there
    for name in LIBRARIES:
        with suppress(ImportError):  # as where the data and the metric are tested alone
            importlib.import_module(name)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    gc.freeze()  # else each fork would copy all of it to count its references
    # What one program compiles of this project serves the next, also where Python is told to leave no bytecode.
    sys.dont_write_bytecode, sys.pycache_prefix = False, os.path.join(os.path.dirname(sys.argv[1]), "pycache")
    serve(sys.argv[1])

"""A Python that has imported what takes seconds, and runs one script after another, each in a fork of itself.

Asked by lines of JSON on its input, [script, *arguments], it answers each with [exit status, what was printed].
"""

import atexit
import gc
import json
import os
import runpy
import signal
import sys
import tempfile
import traceback

PATIENCE = 300  # seconds that a script may take


def run_and_leave(script, arguments):
    """A script as Python runs it, and the end of this process: taking down all that was imported takes longer."""
    sys.argv, sys.path[0], status = [script, *arguments], os.path.dirname(script), 0
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else bool(end.code)
        print(end.code or "", file=sys.stderr)
    except BaseException:
        status = 1
        traceback.print_exc()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(status)


if __name__ == "__main__":
    import accelerate  # noqa: F401
    import datasets  # noqa: F401
    import evaluate  # noqa: F401

    import stereoset_scoring.checkpoints.checkpoint  # noqa: F401

    gc.freeze()  # else each fork would copy all of it to count its references
    for line in sys.stdin:
        script, *arguments = json.loads(line)
        with tempfile.TemporaryFile() as output:
            child = os.fork()
            if not child:
                signal.alarm(PATIENCE)
                for stream in (1, 2):
                    os.dup2(output.fileno(), stream)
                run_and_leave(script, arguments)
            _, status = os.waitpid(child, 0)
            output.seek(0)
            print(json.dumps([os.waitstatus_to_exitcode(status), output.read().decode()]), flush=True)

"""Processes that meet at one store, as those that torchrun starts do, in forks of a Python that has imported torch.

Prints, by name, the status with which each ended and how many seconds it took.
"""

import json
import os
import sys
import time
from datetime import timedelta

from torch.distributed import TCPStore

from stereoset_scoring import place
from stereoset_scoring.processes import team
from stereoset_scoring.processes.interruption import Interrupted


def start(act, rank, run, port):
    """A fork that is a process of a run of two, and acts; its id."""
    child = os.fork()
    if child:
        return child
    status = 1
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_ERROR_FILE": f"/tmp/{run}/attempt_0/{rank}/error.json",
    }
    try:
        act(team.our_team())
        status = 0
    except team.Lost as lost:
        print(f"Lost: {lost}", file=sys.stderr)
    except Interrupted as end:
        status = end.code
    finally:
        os._exit(status)


def exchange(ours):
    """All tell their rank."""
    assert ours.gather(ours.rank) == [0, 1]
    ours.leave()


def be_asked(ours):
    """The second process is asked to end when all are there, and the first waits for it."""
    ours.meet()
    if ours.rank:
        ours.fail(Interrupted())
        raise Interrupted
    ours.gather(None)


def main():
    """A process whose launcher was killed, and which nobody told; and two runs at the port where it waits."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=60))
    place.JOINING = timedelta(seconds=5)
    started, ends = time.monotonic(), {}
    children = {start(exchange, 1, "killed", store.port): "left over"}
    time.sleep(1)
    children |= {start(exchange, rank, "next", store.port): f"next {rank}" for rank in range(2)}
    children |= {start(be_asked, rank, "asked", store.port): f"asked {rank}" for rank in range(2)}
    while children:
        child, status = os.wait()
        ends[children.pop(child)] = os.waitstatus_to_exitcode(status), time.monotonic() - started
    print(json.dumps(ends))


if __name__ == "__main__":
    main()

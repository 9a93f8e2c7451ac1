"""Signs of life of a job's process, for a checker outside: a line every 25 ms, for as long as the process can run.

    python3 signOfLife.py DIRECTORY [SECONDS]      beats on its own
    import signOfLife; signOfLife.begin(DIRECTORY) beats beside what the process does otherwise

A line is `boottime_ms job attempt rank pid`. CLOCK_BOOTTIME is the same in all namespaces of a kernel, no daemon can
set it, and it goes on while a process is frozen: lines of several hosts can be compared. Each process has a file of its
own, and a line is one write, so that nothing of another process's fate shows in it.
"""

import os
import sys
import threading
import time

INTERVAL_S = 0.025


def begin(directory):
    """Beats in a thread until the process ends, however it ends."""
    threading.Thread(target=beat, args=(directory,), daemon=True).start()


def beat(directory, seconds=None):
    job, attempt = os.environ["MUSTER_JOB_ID"], os.environ["MUSTER_ATTEMPT"]
    rank = os.environ.get("RANK", os.environ["MUSTER_NODE_RANK"])
    name = f"{job}.{attempt}.{rank}.{os.uname().nodename}.{os.getpid()}.beats"
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    file = os.open(os.path.join(directory, name), flags, 0o644)
    until = None if seconds is None else boottime() + seconds
    while until is None or boottime() < until:
        os.write(file, f"{boottime() * 1000:.0f} {job} {attempt} {rank} {os.getpid()}\n".encode())
        time.sleep(INTERVAL_S)


def boottime():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


if __name__ == "__main__":
    beat(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else None)

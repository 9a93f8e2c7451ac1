"""A gang that adds numbers up in every step and checks each sum, to be started by torchrun, once per node.

The ranks contribute (rank + 1) * step, so that a missing, doubled or stale peer shows in the result. Beside it every
rank gives signs of life. An attempt numbered up to --endless goes on until something ends it; later ones, and all of
them without the flag, end after --steps.

Exit status of a rank: 0 all sums were right; 3 one was wrong; 1 as asked with --fail-rank; else what torch made of it.
"""

import argparse
import os
import socket
import sys
import time
from datetime import timedelta

import signOfLife

flags = argparse.ArgumentParser()
flags.add_argument("--beats", required=True, help="directory for the signs of life")
flags.add_argument("--steps", type=int, default=20)
flags.add_argument("--step-ms", type=int, default=20)
flags.add_argument("--numbers", type=int, default=1, help="how many numbers a step adds up")
flags.add_argument("--endless", type=int, default=0, help="attempts up to this one do not end by themselves")
flags.add_argument("--fail-rank", type=int, help="this rank exits 1 after --fail-at steps")
flags.add_argument("--fail-at", type=int, default=10)
flags.add_argument("--timeout", type=int, default=60, help="seconds to wait for a silent rank")
flags = flags.parse_args()

signOfLife.begin(flags.beats)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

torch.set_num_threads(1)
dist.init_process_group("gloo", timeout=timedelta(seconds=flags.timeout))
rank, world_size = dist.get_rank(), dist.get_world_size()
print(f"rank {rank} of {world_size} on {socket.gethostname()}", flush=True)

attempt = int(os.environ["MUSTER_ATTEMPT"])
step = 0
while attempt <= flags.endless or step < flags.steps:
    step += 1
    numbers = torch.full((flags.numbers,), float((rank + 1) * step), dtype=torch.float64)
    dist.all_reduce(numbers)
    expected = step * world_size * (world_size + 1) / 2
    if not bool((numbers == expected).all()):
        print(f"step {step}: the sum is {numbers[0].item()}, not {expected}", flush=True)
        os._exit(3)
    if step == 3:
        print("the gang works", flush=True)
    if rank == flags.fail_rank and step == flags.fail_at:
        sys.exit(1)
    time.sleep(flags.step_ms / 1000)

dist.barrier()
print(f"rank {rank}: {step} sums of {world_size} ranks are right", flush=True)

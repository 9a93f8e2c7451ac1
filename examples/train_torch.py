#!/usr/bin/env python3
"""Data-parallel training in PyTorch (1.13 or newer), to be started by torchrun, once per node.

    torchrun examples/train_torch.py --steps 300

Under Muster torchrun needs no flags: the PET_* variables of the task say how many nodes and ranks there are
and where they meet. The rest this program takes from MUSTER_CHECKPOINT_DIR and MUSTER_RESUME_FROM. It uses
the GPUs (NCCL) where there are any and the CPU (gloo) elsewhere.

The result is a pure function of the flags and the world size: a batch depends on (seed, step, rank) alone,
gradients are summed in rank order, and a checkpoint holds everything. A run stopped and resumed any number of
times ends with the very bits of an undisturbed one; the digest in the last line shows it.

Exit status of a rank: 0 training complete; 143 stopped on SIGTERM, work saved; 1 failed; 2 wrong flags.
"""

import argparse
import hashlib
import math
import os
import signal
import struct
import sys
import time
from datetime import timedelta

stop_requested = False


def request_stop(_signal, _frame):
    global stop_requested
    stop_requested = True


# Before torch is imported, which takes seconds, so that a SIGTERM then is agreed on by all ranks like any
# other. torchrun hands the signal on and a supervisor may send it to the whole group too: twice is like once.
signal.signal(signal.SIGTERM, request_stop)
# The CUDA libraries read this when they start; without it their matrix products may differ from run to run.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

STOPPED_STATUS = 143  # 128 + SIGTERM: stopped, which is neither finished nor failed
CHECKPOINT_FORMAT = "muster-example-train-torch/1"
SAMPLE_COUNT = 1024


def say(text):
    """One write per line, or the lines of ranks that share a log end up inside each other."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def at_least(smallest):
    def whole_number(text):
        value = int(text)
        if value < smallest:
            raise argparse.ArgumentTypeError(f"must be at least {smallest}, not {value}")
        return value

    return whole_number


def read_flags():
    parser = argparse.ArgumentParser(description="data-parallel training in PyTorch, for torchrun")

    def add(name, default, smallest, meaning):
        meaning += f" (default {default})"
        parser.add_argument(name, type=at_least(smallest), default=default, help=meaning)

    add("--steps", 300, 1, "updates in all, those of earlier attempts included")
    add("--batch", 32, 1, "samples per rank and step")
    parser.add_argument("--lr", type=float, default=0.3, help="learning rate (default 0.3)")
    add("--hidden", 32, 1, "width of the hidden layer")
    add("--seed", 1, 0, "seed of data, weights and batches")
    add("--save-every", 50, 0, "steps between checkpoints; 0: only on SIGTERM and at the end")
    add("--log-every", 10, 1, "steps between loss lines")
    add("--step-ms", 0, 0, "simulated compute time of a step, in milliseconds")
    add("--timeout", 120, 1, "seconds to wait for ranks to meet, or for a silent one")
    return parser.parse_args()


def random_stream(*seeds):
    """Random numbers that depend on `seeds` alone, on the CPU so that they are the same for every device."""
    digest = hashlib.sha256(repr(seeds).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "little"))


def make_samples(seed):
    """Points on two spirals around each other; the label says on which."""
    random = random_stream(seed, "samples")
    label = torch.arange(SAMPLE_COUNT, dtype=torch.float32) % 2
    radius = 0.15 + 0.85 * torch.rand(SAMPLE_COUNT, generator=random)
    angle = math.pi * (2.5 * radius + label)
    noise = 0.04 * (torch.rand(SAMPLE_COUNT, 2, generator=random) - 0.5)
    points = torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)], dim=1) + noise
    return points, label.unsqueeze(1)


def make_model(hidden, seed):
    model = torch.nn.Sequential(torch.nn.Linear(2, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, 1))
    random = random_stream(seed, "weights")
    with torch.no_grad():
        for parameter, spread in zip(model.parameters(), (3, 2, 1 / math.sqrt(hidden), 0)):
            parameter.copy_(spread * (2 * torch.rand(parameter.shape, generator=random) - 1))
    return model


def average_in_rank_order(world_size, bucket):
    """Averages a bucket of gradients such that the bits depend on nothing but the gradients.

    The usual all-reduce adds in an order that depends on a value's place in its bucket, and
    DistributedDataParallel lays its buckets out anew after the first step of each process: a resumed run
    would add in another order. Gathering costs more bandwidth: leave this hook away if equal bits do not
    matter.
    """
    mine = bucket.buffer()
    parts = [torch.empty_like(mine) for _ in range(world_size)]
    dist.all_gather(parts, mine)
    total = parts[0]
    for part in parts[1:]:
        total += part
    future = torch.futures.Future()
    future.set_result(total / world_size)
    return future


def digest_of(tensors):
    digest = hashlib.sha256()
    for tensor in tensors:
        values = tensor.detach().cpu().flatten().tolist()
        digest.update(struct.pack(f"<{len(values)}f", *values))
    return digest.hexdigest()


def momentum_buffers(model, optimizer):
    """All that the optimizer remembers from step to step, one tensor per parameter."""
    states = [(optimizer.state[parameter], parameter) for parameter in model.parameters()]
    return [state.setdefault("momentum_buffer", torch.zeros_like(parameter)) for state, parameter in states]


def save_checkpoint(directory, step, loss, flags, model, optimizer):
    """All or nothing, also in a power cut: written beside, flushed, renamed, and the rename flushed too."""
    path = os.path.join(directory, f"step-{step:06d}.pt")
    unfinished = f"{path}.tmp-{os.getpid()}"
    content = {
        "format": CHECKPOINT_FORMAT,
        "step": step,
        "loss": torch.tensor(loss, dtype=torch.float64),  # torch 1.13 loads no bare float (weights_only)
        "seed": flags.seed,
        "hidden": flags.hidden,
        "model": model.state_dict(),
        "momentum": momentum_buffers(model, optimizer),
        "sha256": digest_of([*model.state_dict().values(), *momentum_buffers(model, optimizer)]),
    }
    try:
        with open(unfinished, "wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
        raise
    say(f"saving checkpoint to {path}")  # said when it is true: whoever reads this line finds the file


def load_checkpoint(path, flags, model, optimizer):
    """Fills model and optimizer; returns step and loss."""

    def corrupt(what):
        return SystemExit(f"corrupt checkpoint {path}: {what}; resume from an older one")

    if not os.path.isfile(path):
        sys.exit(f"cannot resume: {path} is not a file")
    try:
        # weights_only: a checkpoint is data; unpickling anything else could run code from it.
        content = torch.load(path, map_location="cpu", weights_only=True)
        tensors = [*content["model"].values(), *content["momentum"]]
        intact = content["format"] == CHECKPOINT_FORMAT and content["sha256"] == digest_of(tensors)
    except Exception as error:  # half a dozen kinds, by where in the file the damage is
        raise corrupt(f"{type(error).__name__}: {error}") from None
    if not intact:
        raise corrupt(f"it is not of format {CHECKPOINT_FORMAT}, or its checksum does not match")
    for flag in ("seed", "hidden"):
        then, now = content[flag], getattr(flags, flag)
        if then != now:
            sys.exit(f"cannot resume: {path} has --{flag} {then}, this run has {now}")
    model.load_state_dict(content["model"])
    for buffer, saved in zip(momentum_buffers(model, optimizer), content["momentum"]):
        buffer.copy_(saved)
    return content["step"], content["loss"].item()


def share_progress(step, model, optimizer, device):
    """Gives all ranks the step and the optimizer state of rank 0, which alone needs to see the checkpoint.

    The weights follow by themselves: DistributedDataParallel starts from those of rank 0.
    """
    shared_step = torch.tensor([step], dtype=torch.int64, device=device)
    dist.broadcast(shared_step, src=0)
    if shared_step.item() > 0:
        for buffer in momentum_buffers(model, optimizer):
            dist.broadcast(buffer, src=0)
    return shared_step.item()


def train(flags, device):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    leads = rank == 0
    checkpoint_dir = os.environ.get("MUSTER_CHECKPOINT_DIR")
    resume_from = os.environ.get("MUSTER_RESUME_FROM")
    say(f"rank {rank}/{world_size} on node {os.environ.get('GROUP_RANK', '0')} ready")

    bare_model = make_model(flags.hidden, flags.seed).to(device)
    optimizer = torch.optim.SGD(bare_model.parameters(), lr=flags.lr, momentum=0.9)
    step, loss = 0, 0.0
    if leads and resume_from:
        step, loss = load_checkpoint(resume_from, flags, bare_model, optimizer)
    step = share_progress(step, bare_model, optimizer, device)
    if leads:
        start = f"resuming from {resume_from} at" if resume_from else "starting fresh at"
        address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        say(f"world size {world_size}, peers met at {address}, {start} step {step}")
        if checkpoint_dir:
            os.makedirs(checkpoint_dir, exist_ok=True)
        else:
            say("no checkpoints: MUSTER_CHECKPOINT_DIR is not set")
    model = DistributedDataParallel(bare_model, device_ids=[device.index] if device.type == "cuda" else None)
    model.register_comm_hook(world_size, average_in_rank_order)

    points, labels = (tensor.to(device) for tensor in make_samples(flags.seed))
    loss_of = torch.nn.BCEWithLogitsLoss()

    def save():
        if leads and checkpoint_dir:
            save_checkpoint(checkpoint_dir, step, loss, flags, bare_model, optimizer)

    while step < flags.steps:
        step += 1
        started_at = time.perf_counter()
        random = random_stream(flags.seed, step, rank)
        batch = torch.randint(SAMPLE_COUNT, (flags.batch,), generator=random).to(device)
        optimizer.zero_grad()
        local_loss = loss_of(model(points[batch]), labels[batch])
        local_loss.backward()
        time.sleep(flags.step_ms / 1000)
        optimizer.step()
        # The wish to stop travels with the loss: whoever was asked, all stop after the same step.
        sums = torch.tensor([local_loss.item(), float(stop_requested)], dtype=torch.float64, device=device)
        dist.all_reduce(sums)
        loss, stops = sums[0].item() / world_size, sums[1].item()

        if leads and (step == 1 or step % flags.log_every == 0 or step == flags.steps):
            say(f"iter {step}: loss {loss:.4f}, time {(time.perf_counter() - started_at) * 1000:.2f}ms")
        if step == flags.steps:
            break
        if stops > 0:
            if leads:
                say(f"stopping after step {step}, as asked")
            save()
            dist.barrier()  # no rank leaves before the checkpoint is there
            return STOPPED_STATUS
        if flags.save_every > 0 and step % flags.save_every == 0:
            save()

    save()
    dist.barrier()
    if leads:
        digest = digest_of(bare_model.parameters())
        say(f"training complete: step {step} loss {loss:.4f} weights sha256:{digest}")
    return 0


def main():
    flags = read_flags()
    if "RANK" not in os.environ:
        print(f"RANK is not set: start this program with torchrun {sys.argv[0]}", file=sys.stderr)
        return 2
    torch.manual_seed(flags.seed)
    torch.use_deterministic_algorithms(True)
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(1)  # the sum inside a matrix product depends on how many threads share it
    dist.init_process_group("nccl" if on_gpu else "gloo", timeout=timedelta(seconds=flags.timeout))
    try:
        status = train(flags, device)
    except (RuntimeError, OSError) as error:
        # Most often a lost peer ("Connection closed by peer") or a full disk: a traceback adds nothing.
        sys.exit(f"[rank{dist.get_rank()}]: {error}")
    dist.destroy_process_group()
    return status


if __name__ == "__main__":
    sys.exit(main())

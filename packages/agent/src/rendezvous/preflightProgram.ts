/**
 * The program of the preflight: one process on each node of the gang, in the job's own environment, so that what is
 * measured is what the job will use. Python 3.7 and PyTorch 1.13 or newer.
 *
 *     python3 -c <program> <plan as JSON>
 *
 * Its last word is one line, `MUSTER-PREFLIGHT {…}`: `pairs` and `allReduceBytesPerS`, or `error`; `missing` when there is
 * no PyTorch.
 */

export interface PreflightPlan {
  /** Unique per attempt and round: a program left over from another one does not count as come. */
  readonly id: string;
  readonly rank: number;
  readonly nodes: number;
  /** By rank. */
  readonly names: readonly string[];
  readonly addr: string;
  readonly port: number;
  /** For all nodes to come, and then for each step. */
  readonly joinSeconds: number;
  readonly stepSeconds: number;
}

export const resultMark = 'MUSTER-PREFLIGHT ';

/**
 * Pairs by the circle method: rank 0 stays, the others go round, so that in each round every node has one partner and after
 * n - 1 rounds each pair has met once. A large gang stops after some rounds: time is bounded, and each node has been
 * measured with several others.
 */
export const preflightProgram = `
import datetime, json, os, sys, time

plan = json.loads(sys.argv[1])
rank, nodes, names = plan["rank"], plan["nodes"], plan["names"]

def say(**result):
    print("${resultMark}" + json.dumps(result), flush=True)

try:
    import torch
    import torch.distributed as dist
    if not dist.is_available():
        raise ImportError("torch was built without torch.distributed")
except ImportError as error:
    say(missing=str(error))
    sys.exit(0)

ROUNDS_MAX = 15
MEBIBYTE = 1024 * 1024
BYTES_MIN, BYTES_MAX = 16 * MEBIBYTE, 256 * MEBIBYTE

def seconds(count):
    return datetime.timedelta(seconds=count)

def join():
    """Waits for all nodes by name: the libraries would only say that somebody is missing. The first node decides who is,
    and everybody says the same."""
    wait = plan["joinSeconds"]
    server = dist.TCPStore(plan["addr"], plan["port"], nodes, rank == 0, seconds(wait), False)
    store = dist.PrefixStore(plan["id"], server)
    can_nccl = torch.cuda.is_available() and dist.is_nccl_available()
    store.set("here/%d" % rank, "nccl" if can_nccl else "gloo")
    keys = ["here/%d" % each for each in range(nodes)]
    if rank == 0:
        is_there(store, keys, wait)
        absent = [each for each in range(nodes) if not is_there(store, keys[each : each + 1], 0.1)]
        store.set("absent", json.dumps(absent))
    elif not is_there(store, ["absent"], wait * 1.5):
        raise RuntimeError("%s did not begin the preflight in time" % names[0])
    absent = json.loads(store.get("absent"))
    if absent:
        if rank == 0:
            # The store goes with this process: long enough for the others to have read it.
            time.sleep(1)
        raise RuntimeError("%s did not join the preflight within %d s" % (", ".join(names[each] for each in absent), wait))
    backend = "nccl" if all(store.get(key) == b"nccl" for key in keys) else "gloo"
    dist.init_process_group(
        backend, store=dist.PrefixStore("group", store), rank=rank, world_size=nodes, timeout=seconds(plan["stepSeconds"])
    )
    return store, backend

def is_there(store, keys, patience):
    try:
        store.wait(keys, seconds(patience))
        return True
    except Exception:
        return False

def rounds():
    circle = list(range(nodes)) + ([None] if nodes % 2 else [])
    for _ in range(min(len(circle) - 1, ROUNDS_MAX)):
        half = len(circle) // 2
        yield [(a, b) for a, b in zip(circle[:half], reversed(circle[half:])) if a is not None and b is not None]
        circle = [circle[0], circle[-1]] + circle[1:-1]

def partner_in(pairs):
    return next((b if a == rank else a for a, b in pairs if rank in (a, b)), None)

def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)

def exchange(partner, out, into, device):
    """Both directions at once, as a ring does. Returns seconds."""
    synchronize(device)
    started = time.perf_counter()
    work = dist.batch_isend_irecv([dist.P2POp(dist.isend, out, partner), dist.P2POp(dist.irecv, into, partner)])
    for each in work:
        each.wait()
    synchronize(device)
    return time.perf_counter() - started

def measure(backend):
    device = torch.device("cuda", 0) if backend == "nccl" else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    small = torch.zeros(MEBIBYTE, dtype=torch.uint8, device=device)
    into = torch.empty_like(small)
    # The first exchange makes the connection. The second says how much is worth sending: what the slowest pair moves in a
    # fifth of a second, the same on every node.
    rate = torch.full([1], float("inf"), dtype=torch.float64, device=device)
    for pairs in rounds():
        partner = partner_in(pairs)
        if partner is not None:
            exchange(partner, small, into, device)
            rate = torch.minimum(rate, torch.full_like(rate, MEBIBYTE / exchange(partner, small, into, device)))
    dist.all_reduce(rate, op=dist.ReduceOp.MIN)
    size = int(min(BYTES_MAX, max(BYTES_MIN, rate.item() * 0.2)))
    out = torch.zeros(size, dtype=torch.uint8, device=device)
    into = torch.empty_like(out)
    found = []
    for pairs in rounds():
        dist.barrier()
        partner = partner_in(pairs)
        if partner is not None:
            found.append({"nodeRank": partner, "bytesPerS": int(size / exchange(partner, out, into, device))})
    total = torch.zeros(BYTES_MIN // 4, dtype=torch.float32, device=device)
    dist.all_reduce(total)
    dist.barrier()
    synchronize(device)
    started = time.perf_counter()
    for _ in range(3):
        dist.all_reduce(total)
    synchronize(device)
    return found, int(3 * BYTES_MIN / (time.perf_counter() - started))

try:
    store, backend = join()
    pairs, all_reduce = measure(backend)
    # The store lives in the first node's process: it goes last.
    store.set("done/%d" % rank, "yes")
    if rank == 0:
        store.wait(["done/%d" % each for each in range(nodes)], seconds(plan["stepSeconds"]))
    say(backend=backend, pairs=pairs, allReduceBytesPerS=all_reduce)
except Exception as error:
    say(error=(str(error).strip() or type(error).__name__).splitlines()[0][:300])
# What the libraries do at the end of a process can hang when a peer is gone already.
os._exit(0)
`;

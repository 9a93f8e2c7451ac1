#!/usr/bin/env python3
"""A small language model in PyTorch (1.13 or newer) that trains on a mix of sources, with a learning rate policy.

    python3 examples/curriculum/train_mix.py --until 100 --mix web=0.8,books=0.2 --lr 0.01

The sources are sequences of 24 symbols that follow rules of their own: "web" follows the rules of all three with
much noise, "books" follows clean rules, "domain" follows rules that contradict those of the books. The model, a
GRU, has to find out from the first symbols whose rules hold. --eval names the source whose held-out sequences are
evaluated, once the target is reached: the loss is measured there, on sequences that are never trained on.

Under Muster the rest is in the environment: MUSTER_CHECKPOINT_DIR, MUSTER_RESUME_FROM, and where the phase begins
and ends. It trains up to --until steps in all, those of earlier attempts included, saves and exits with 0.

Exit status: 0 target reached; 143 stopped on SIGTERM, work saved; 1 failed; 2 wrong flags.
"""

import argparse
import hashlib
import json
import math
import os
import signal
import sys
import time

stop_requested = False


def request_stop(_signal, _frame):
    global stop_requested
    stop_requested = True


# Before torch is imported, which takes seconds.
signal.signal(signal.SIGTERM, request_stop)

import torch  # noqa: E402

STOPPED_STATUS = 143  # 128 + SIGTERM
SYMBOLS, LENGTH = 24, 16
SOURCES = ("web", "books", "domain")
NOISE = {"web": 0.4, "books": 0.05, "domain": 0.05}
EVAL_SEQUENCES = 256


def say(values):
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def random_stream(*seeds):
    """Random numbers that depend on `seeds` alone."""
    digest = hashlib.sha256(repr(seeds).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "little"))


def rules_of(source):
    """The symbol that follows each symbol."""
    return torch.randperm(SYMBOLS, generator=random_stream("rules", source))


RULES = {source: rules_of(source) for source in SOURCES}


def sequences(source, count, random):
    """`count` sequences of a source. What is noise is any symbol."""
    # Each sequence of the web follows the rules of one of the three.
    owners = torch.randint(len(SOURCES), (count,), generator=random)
    rules = torch.stack([RULES[each] for each in SOURCES])[owners] if source == "web" else RULES[source].expand(count, -1)
    symbols = [torch.randint(SYMBOLS, (count,), generator=random)]
    for _ in range(LENGTH):
        following = rules.gather(1, symbols[-1].unsqueeze(1)).squeeze(1)
        noise = torch.rand(count, generator=random) < NOISE[source]
        symbols.append(torch.where(noise, torch.randint(SYMBOLS, (count,), generator=random), following))
    return torch.stack(symbols, dim=1)


def batch_of(mix, size, random):
    """Sequences of all sources, as many of each as the mix says."""
    shares = torch.tensor([mix[source] for source in SOURCES])
    owners = torch.multinomial(shares, size, replacement=True, generator=random)
    counts = torch.bincount(owners, minlength=len(SOURCES)).tolist()
    return torch.cat([sequences(source, count, random) for source, count in zip(SOURCES, counts) if count > 0])


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embedding = torch.nn.Embedding(SYMBOLS, width)
        self.gru = torch.nn.GRU(width, width, batch_first=True)
        self.head = torch.nn.Linear(width, SYMBOLS)

    def forward(self, symbols):
        return self.head(self.gru(self.embedding(symbols))[0])


def loss_of(model, batch):
    logits = model(batch[:, :-1])
    return torch.nn.functional.cross_entropy(logits.reshape(-1, SYMBOLS), batch[:, 1:].reshape(-1))


def evaluate(model, source):
    """The loss on sequences of a source that are the same each time, and that no training step sees."""
    with torch.no_grad():
        return loss_of(model, sequences(source, EVAL_SEQUENCES, random_stream("held out", source))).item()


def rate_at(flags, step):
    """The learning rate of a step: as it is, or down to nothing at the end of the phase."""
    part = (step - flags.start) / max(1, flags.until - flags.start)
    if flags.schedule == "linear":
        return flags.lr * max(0.0, 1 - part)
    if flags.schedule == "cosine":
        return flags.lr * 0.5 * (1 + math.cos(math.pi * min(1.0, part)))
    return flags.lr


def save(directory, step, model, optimizer):
    """All or nothing: written beside, flushed, renamed."""
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, f"step-{step:06d}.pt")
    unfinished = f"{path}.tmp-{os.getpid()}"
    with open(unfinished, "wb") as file:
        # Tensors and whole numbers only: what torch 1.13 reads back with weights_only.
        torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()["state"]}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)


def mix_of(text):
    """`web=0.8,books=0.2`"""
    shares = dict.fromkeys(SOURCES, 0.0)
    for part in text.split(","):
        source, _, share = part.partition("=")
        if source not in shares:
            raise argparse.ArgumentTypeError(f"{source} is not a source: {', '.join(SOURCES)}")
        shares[source] = float(share)
    if min(shares.values()) < 0 or sum(shares.values()) <= 0:
        raise argparse.ArgumentTypeError(f"{text} has no share above 0")
    return shares


def read_flags():
    parser = argparse.ArgumentParser(description="a language model on a mix of sources")
    parser.add_argument("--until", type=int, required=True, help="steps in all, those of earlier attempts included")
    parser.add_argument("--start", type=int, default=0, help="the step at which the learning rate policy begins")
    parser.add_argument("--mix", type=mix_of, required=True, help="shares of the sources, such as web=0.8,books=0.2")
    parser.add_argument("--lr", type=float, default=0.01, help="learning rate")
    parser.add_argument("--schedule", choices=["constant", "linear", "cosine"], default="constant")
    parser.add_argument("--eval", choices=SOURCES, default="books", help="the source that is evaluated")
    parser.add_argument("--batch", type=int, default=32, help="sequences of a step")
    parser.add_argument("--width", type=int, default=48, help="width of the model")
    parser.add_argument("--save-every", type=int, default=50, help="steps between checkpoints")
    parser.add_argument("--log-every", type=int, default=10, help="steps between lines of metrics")
    parser.add_argument("--step-ms", type=float, default=0, help="simulated compute time of a step")
    return parser.parse_args()


def main():
    flags = read_flags()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = Model(flags.width)
    optimizer = torch.optim.Adam(model.parameters(), lr=flags.lr)
    directory = os.environ.get("MUSTER_CHECKPOINT_DIR")
    resume_from = os.environ.get("MUSTER_RESUME_FROM")
    step = 0
    if resume_from:
        content = torch.load(resume_from, map_location="cpu", weights_only=True)
        model.load_state_dict(content["model"])
        optimizer.load_state_dict({**optimizer.state_dict(), "state": content["optimizer"]})
        step = content["step"]
    print(f"phase {os.environ.get('MUSTER_PHASE', '-')}: from step {step} to {flags.until}, mix {flags.mix}", flush=True)

    while step < flags.until:
        step += 1
        rate = rate_at(flags, step)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        loss = loss_of(model, batch_of(flags.mix, flags.batch, random_stream("batch", step)))
        loss.backward()
        optimizer.step()
        time.sleep(flags.step_ms / 1000)
        if step % flags.log_every == 0 or step == flags.until:
            say({"step": step, "loss": round(loss.item(), 4), "learning_rate": rate})
        if step == flags.until:
            break
        if stop_requested:
            if directory:
                save(directory, step, model, optimizer)
            return STOPPED_STATUS
        if directory and step % flags.save_every == 0:
            save(directory, step, model, optimizer)

    # Also of an attempt that has found the target reached: what it says last is what the phase is judged by.
    say({"step": step, "eval_loss": round(evaluate(model, flags.eval), 4)})
    if directory:
        save(directory, step, model, optimizer)
    return 0


if __name__ == "__main__":
    sys.exit(main())

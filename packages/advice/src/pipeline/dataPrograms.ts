/** The small Python programs of a designed pipeline that are the same for every framework. They need numpy and pandas. */

/** Reads a table, or a directory of images by class; the other programs import it. */
export const dataHelper = `"""What the programs of this pipeline share: reading data, and scores of predictions."""
import decimal
import json
import os

import numpy as np

IMAGE_SIZE = 32


def read_table(path):
    import pandas as pd
    if path.endswith((".parquet", ".pq")):
        return with_numbers(pd.read_parquet(path))
    return pd.read_csv(path)


def with_numbers(table):
    """Decimals of Parquet as numbers: as they are, each of them would be a text, and a class."""
    import pandas as pd
    for name in table.columns:
        values = table[name].dropna()
        if len(values) > 0 and isinstance(values.iloc[0], decimal.Decimal):
            table[name] = pd.to_numeric(table[name])
    return table


def read_images(path):
    """Directories of classes, as torchvision's ImageFolder has them. Returns pixels from 0 to 1 and class names."""
    from PIL import Image
    pixels, labels = [], []
    for label in sorted(os.listdir(path)):
        folder = os.path.join(path, label)
        if not os.path.isdir(folder):
            continue
        for name in sorted(os.listdir(folder)):
            with Image.open(os.path.join(folder, name)) as image:
                small = image.convert("RGB").resize((IMAGE_SIZE, IMAGE_SIZE))
            pixels.append(np.asarray(small, dtype=np.float32).transpose(2, 0, 1) / 255)
            labels.append(label)
    return np.array(pixels, dtype=np.float32), np.array(labels)


def task_of(target):
    """Texts and a few whole numbers are classes; anything else is a number to predict."""
    if target.dtype.kind not in "iuf":
        return "classification"
    values = target.dropna().unique() if hasattr(target, "dropna") else np.unique(target)
    few = len(values) <= 20 and all(float(value).is_integer() for value in values)
    return "classification" if few else "regression"


def load_split(folder):
    arrays = np.load(os.path.join(folder, "data.npz"))
    with open(os.path.join(folder, "meta.json"), encoding="utf-8") as file:
        return dict(arrays), json.load(file)


def validation_split(X, y, meta, seed, share=0.1):
    """Rows of the training set to stop early by: the last ones of a series in time, else random ones."""
    order = np.arange(len(X)) if meta["ordered"] else np.random.default_rng(seed).permutation(len(X))
    cut = max(1, int(len(X) * (1 - share)))
    return X[order[:cut]], y[order[:cut]], X[order[cut:]], y[order[cut:]]


def loss_of(outputs, y, meta):
    """Cross entropy of probabilities, or the mean squared error."""
    if meta["task"] == "regression":
        return float(np.mean((np.ravel(outputs) - y) ** 2))
    rows = np.clip(outputs[np.arange(len(y)), y.astype(int)], 1e-12, 1)
    return float(-np.mean(np.log(rows)))


def write_json(path, value):
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)
    os.replace(path + ".tmp", path)
`;

export const checkProgram = `"""Refuses data that a training would fail on, before anything is computed."""
import argparse
import os
import sys

from pipeline_data import read_table, task_of, write_json

parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.add_argument("--target", required=True)
parser.add_argument("--min-rows", type=int, default=20)
parser.add_argument("--out", required=True)
given = parser.parse_args()

if not os.path.exists(given.data):
    sys.exit(f"--data: there is no {given.data} on this node")
if os.path.isdir(given.data):
    counts = {name: len(os.listdir(os.path.join(given.data, name)))
              for name in sorted(os.listdir(given.data)) if os.path.isdir(os.path.join(given.data, name))}
    problems = [f"{name} has no images" for name, count in counts.items() if count == 0]
    if len(counts) < 2:
        problems.append(f"{given.data} has {len(counts)} directories of classes; at least 2 are needed")
    report = {"rows": sum(counts.values()), "classes": counts}
else:
    table = read_table(given.data)
    if given.target not in table.columns:
        sys.exit(f"--target: there is no column {given.target!r}; there are {', '.join(map(str, table.columns))}")
    target = table[given.target]
    missing = {str(name): float(share) for name, share in table.isna().mean().items() if share > 0}
    problems = []
    if len(table) < given.min_rows:
        problems.append(f"{len(table)} rows; at least {given.min_rows} are needed")
    if target.isna().any():
        problems.append(f"{int(target.isna().sum())} rows have no {given.target}")
    if target.nunique() < 2:
        problems.append(f"{given.target} has one value only: there is nothing to learn")
    problems += [f"the column {name} is empty" for name, share in missing.items() if share == 1]
    report = {"rows": len(table), "columns": len(table.columns), "task": task_of(target), "missing": missing,
              "duplicates": int(table.duplicated().sum())}
write_json(given.out, {**report, "problems": problems})
for problem in problems:
    print(f"problem: {problem}")
sys.exit(1 if problems else 0)
`;

export const preprocessProgram = `"""Splits the data, and makes numbers of it. What is measured for that is measured on the training rows alone."""
import argparse
import os

import numpy as np

from pipeline_data import read_images, read_table, task_of, write_json

CATEGORIES_MAX = 50
WORDS = 1024

parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.add_argument("--target", required=True)
parser.add_argument("--test-size", type=float, default=0.2)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--ordered", action="store_true", help="rows are a series in time: the last ones are the test set")
parser.add_argument("--text", action="store_true", help="columns of text are words, not categories")
parser.add_argument("--out", required=True)
given = parser.parse_args()


def word_counts(texts):
    """A hash of each word that is the same in every process."""
    import zlib
    counts = np.zeros((len(texts), WORDS), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in str(text).lower().split():
            counts[row, zlib.crc32(word.encode()) % WORDS] += 1
    return np.log1p(counts)


def features_of(table, train):
    parts, names = [], []
    for name in table.columns:
        column = table[name]
        if column.dtype.kind in "biuf":
            values = column.astype(float)
            middle, scale = values[train].median(), values[train].std()
            scale = scale if scale and np.isfinite(scale) else 1.0
            parts.append(((values.fillna(middle) - middle) / scale).to_numpy(np.float32)[:, None])
            names.append(str(name))
        elif given.text:
            parts.append(word_counts(column.fillna("")))
            names += [f"{name}:{index}" for index in range(WORDS)]
        else:
            known = column[train].astype(str).value_counts().index[:CATEGORIES_MAX]
            parts.append(np.stack([(column.astype(str) == value).to_numpy(np.float32) for value in known], axis=1))
            names += [f"{name}={value}" for value in known]
    return np.concatenate(parts, axis=1), names


if os.path.isdir(given.data):
    images, labels = read_images(given.data)
    rows, shape = len(images), list(images.shape[1:])
else:
    table = read_table(given.data).dropna(subset=[given.target])
    rows, shape = len(table), None
order = np.arange(rows) if given.ordered else np.random.default_rng(given.seed).permutation(rows)
cut = rows - max(1, int(rows * given.test_size))
train, test = order[:cut], order[cut:]
if shape is not None:
    X, names, task, raw = images.reshape(rows, -1), [], "classification", labels
else:
    table = table.reset_index(drop=True)
    target = table.pop(given.target)
    X, names = features_of(table, train)
    task, raw = task_of(target), target.to_numpy()
classes = []
if task == "classification":
    classes, y = np.unique(raw.astype(str), return_inverse=True)
else:
    y = raw.astype(np.float32)
os.makedirs(given.out, exist_ok=True)
np.savez(os.path.join(given.out, "data.npz"), X_train=X[train], y_train=y[train], X_test=X[test], y_test=y[test])
write_json(os.path.join(given.out, "meta.json"),
           {"task": task, "classes": [str(each) for each in classes], "features": names, "shape": shape,
            "ordered": given.ordered, "train_rows": len(train), "test_rows": len(test)})
print(f"{len(train)} rows to train on, {len(test)} to test on, {X.shape[1]} features, {task}")
`;

export const evaluateProgram = `"""Scores the model on rows that it never saw, and fails if it is not better than a constant."""
import argparse
import sys

import numpy as np

from model import load_model, predict
from pipeline_data import load_split, loss_of, write_json

parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.add_argument("--model", required=True)
parser.add_argument("--out", required=True)
given = parser.parse_args()

arrays, meta = load_split(given.data)
X, y, known = arrays["X_test"], arrays["y_test"], arrays["y_train"]
outputs = predict(load_model(given.model, meta), X, meta)
loss = loss_of(outputs, y, meta)
if meta["task"] == "classification":
    shares = np.bincount(known.astype(int), minlength=len(meta["classes"])) / len(known)
    baseline = loss_of(np.tile(shares, (len(y), 1)), y, meta)
    found = outputs.argmax(axis=1)
    confusion = np.zeros((len(meta["classes"]),) * 2, dtype=int)
    np.add.at(confusion, (y.astype(int), found), 1)
    scores = {"accuracy": float(np.mean(found == y)), "confusion": confusion.tolist()}
else:
    baseline = loss_of(np.full(len(y), known.mean()), y, meta)
    scores = {"rmse": float(np.sqrt(loss)), "r2": 1 - loss / max(float(np.var(y)), 1e-12)}
write_json(given.out, {"eval_loss": loss, "baseline_loss": baseline, "rows": len(y), **scores})
print({"eval_loss": round(loss, 6), "epoch": 0})
print({name: value for name, value in scores.items() if name != "confusion"})
if loss >= baseline:
    sys.exit(f"the loss of {loss:.4f} is not better than that of a constant, {baseline:.4f}: the model is not registered")
`;

export const registerProgram = `"""Copies the model with its scores into the registry, as the next version. A version is there completely or not at all."""
import argparse
import errno
import json
import os
import shutil
import time

from pipeline_data import write_json

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
parser.add_argument("--metrics", required=True)
parser.add_argument("--data", required=True)
parser.add_argument("--registry", required=True)
given = parser.parse_args()

os.makedirs(given.registry, exist_ok=True)
work = os.path.join(given.registry, f".{os.getpid()}-{time.time_ns()}")
shutil.copytree(given.model, work, ignore=shutil.ignore_patterns("checkpoints"))
with open(given.metrics, encoding="utf-8") as file:
    metrics = json.load(file)
write_json(os.path.join(work, "card.json"),
           {"metrics": metrics, "data": given.data, "job": os.environ.get("MUSTER_JOB_ID"), "at": int(time.time())})
shutil.copy(os.path.join(given.data, "meta.json"), work)
version = 1
while True:
    try:
        # A directory that has something is not replaced: whoever else registers now gets another version.
        os.rename(work, os.path.join(given.registry, str(version)))
        break
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        version += 1
print(f"registered version {version} in {given.registry}")
`;

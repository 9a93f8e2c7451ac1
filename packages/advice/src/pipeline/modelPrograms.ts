/** The Python programs of a designed pipeline that differ by framework: `model.py` and `train.py`. */
import type { TrainingFramework } from '../contextFields.ts';

export interface ModelPrograms {
  readonly model: string;
  readonly train: string;
  /** As pip names them. */
  readonly packages: readonly string[];
}

const boostedTrain = `"""Trains, with early stopping by a validation set, and prints losses as Muster reads them."""
import argparse
import os
import sys

import numpy as np

from model import fit, save_model
from pipeline_data import load_split, validation_split

parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.add_argument("--out", required=True)
parser.add_argument("--learning-rate", type=float, default=0.1)
parser.add_argument("--trees", type=int, default=500)
parser.add_argument("--leaves", type=int, default=31)
parser.add_argument("--seed", type=int, default=1)
given = parser.parse_args()

arrays, meta = load_split(given.data)
X, y, X_valid, y_valid = validation_split(arrays["X_train"], arrays["y_train"], meta, given.seed)
seen = None
if meta["task"] == "classification":
    # Not all classes need be among these rows, and some libraries take them only from 0 on without a gap.
    seen, y = np.unique(y.astype(int), return_inverse=True)
    if len(seen) < 2:
        sys.exit(f"all rows to train on are {meta['classes'][seen[0]]}: there is nothing to learn")
    known = np.isin(y_valid, seen)
    X_valid, y_valid = X_valid[known], np.searchsorted(seen, y_valid[known])
if len(y_valid) == 0:
    X_valid, y_valid = X, y
model = fit((X, y, X_valid, y_valid), meta, given)
model.seen_classes = seen
os.makedirs(given.out, exist_ok=True)
save_model(model, given.out)
`;

const boostedEnd = `

def predict(model, X, meta):
    if meta["task"] == "regression":
        return model.predict(X)
    # A class that no training row has, has no column of its own. While it is trained, a model knows the others by their order.
    outputs = np.zeros((len(X), len(meta["classes"])))
    outputs[:, getattr(model, "seen_classes", model.classes_)] = model.predict_proba(X)
    return outputs


def save_model(model, folder):
    joblib.dump(model, os.path.join(folder, "model.joblib"))


def load_model(folder, meta):
    return joblib.load(os.path.join(folder, "model.joblib"))
`;

const sklearn = `"""Histogram gradient boosting of scikit-learn."""
import os

import joblib
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from pipeline_data import loss_of


def fit(rows, meta, given):
    X, y, X_valid, y_valid = rows
    kind = HistGradientBoostingRegressor if meta["task"] == "regression" else HistGradientBoostingClassifier
    # Trees are added in parts, so that the loss of each part can be read, and none are after it has stopped falling.
    part = max(1, given.trees // 20)
    model = kind(learning_rate=given.learning_rate, max_leaf_nodes=given.leaves, max_iter=part,
                 early_stopping=False, warm_start=True, random_state=given.seed)
    best, best_trees, waits = float("inf"), part, 0
    while model.max_iter <= given.trees and waits < 3:
        model.fit(X, y)
        loss = loss_of(predict(model, X_valid, meta), y_valid, meta)
        print({"eval_loss": round(loss, 6), "step": model.max_iter}, flush=True)
        best, best_trees, waits = (loss, model.max_iter, 0) if loss < best else (best, best_trees, waits + 1)
        model.set_params(max_iter=model.max_iter + part)
    return model.set_params(max_iter=best_trees, warm_start=False).fit(X, y)
${boostedEnd}`;

const xgboost = `"""Boosted trees of XGBoost."""
import os

import joblib
import numpy as np
import xgboost


class Printed(xgboost.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        metrics = evals_log["validation_0"]
        name = next(iter(metrics))
        loss = float(metrics[name][-1])
        if epoch % 10 == 0:
            print({"eval_loss": round(loss ** 2 if name == "rmse" else loss, 6), "step": epoch + 1}, flush=True)
        return False


def fit(rows, meta, given):
    X, y, X_valid, y_valid = rows
    kind = xgboost.XGBRegressor if meta["task"] == "regression" else xgboost.XGBClassifier
    model = kind(learning_rate=given.learning_rate, n_estimators=given.trees, max_leaves=given.leaves,
                 tree_method="hist", grow_policy="lossguide", early_stopping_rounds=50, random_state=given.seed,
                 callbacks=[Printed()])
    model.fit(X, y, eval_set=[(X_valid, y_valid)], verbose=False)
    return model.set_params(callbacks=None)
${boostedEnd}`;

const lightgbm = `"""Boosted trees of LightGBM."""
import os

import joblib
import numpy as np
import lightgbm


def printed(env):
    if env.iteration % 10 == 0:
        print({"eval_loss": round(float(env.evaluation_result_list[0][2]), 6), "step": env.iteration + 1}, flush=True)


def fit(rows, meta, given):
    X, y, X_valid, y_valid = rows
    kind = lightgbm.LGBMRegressor if meta["task"] == "regression" else lightgbm.LGBMClassifier
    model = kind(learning_rate=given.learning_rate, n_estimators=given.trees, num_leaves=given.leaves,
                 random_state=given.seed, verbosity=-1)
    model.fit(X, y, eval_set=[(X_valid, y_valid)], callbacks=[lightgbm.early_stopping(50, verbose=False), printed])
    return model
${boostedEnd}`;

const networkArguments = `parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.add_argument("--out", required=True)
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--batch-size", type=int, default=64, help="of all processes together")
parser.add_argument("--lr", type=float, default=1e-3)
parser.add_argument("--patience", type=int, default=3, help="epochs without a better loss after which it ends")
parser.add_argument("--seed", type=int, default=1)
given = parser.parse_args()
`;

const pytorch = `"""A perceptron for tables and text, a convolutional network for images."""
import os

import numpy as np
import torch
from torch import nn


def build(features, meta):
    outputs = max(1, len(meta["classes"]))
    if meta["shape"] is None:
        return nn.Sequential(nn.Linear(features, 256), nn.ReLU(), nn.Dropout(0.1),
                             nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, outputs))
    channels = meta["shape"][0]
    return nn.Sequential(nn.Unflatten(1, tuple(meta["shape"])),
                         nn.Conv2d(channels, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
                         nn.Flatten(), nn.Linear(64 * 16, outputs))


def loss_function(meta):
    return nn.functional.cross_entropy if meta["task"] == "classification" else (
        lambda outputs, y: nn.functional.mse_loss(outputs.squeeze(1), y))


def targets_of(y, meta):
    return torch.as_tensor(y, dtype=torch.long if meta["task"] == "classification" else torch.float32)


def load_model(folder, meta):
    saved = torch.load(os.path.join(folder, "model.pt"), map_location="cpu")
    network = build(saved["features"], meta)
    network.load_state_dict(saved["model"])
    return network


def predict(network, X, meta):
    network.eval()
    with torch.no_grad():
        parts = [network(part) for part in torch.as_tensor(X, dtype=torch.float32).split(1024)]
    outputs = torch.cat(parts)
    return (outputs.softmax(1) if meta["task"] == "classification" else outputs).numpy().astype(np.float64)
`;

const pytorchTrain = `"""Trains on one GPU, on several under torchrun, or on the CPU. A checkpoint of each epoch is resumed from after an end."""
import argparse
import os

import torch
import torch.distributed as dist

from model import build, loss_function, targets_of
from pipeline_data import load_split, validation_split

${networkArguments}
world, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if torch.cuda.is_available() else torch.device("cpu")
if device.type == "cuda":
    torch.cuda.set_device(device)
if world > 1:
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
torch.manual_seed(given.seed)
arrays, meta = load_split(given.data)
X, y, X_valid, y_valid = validation_split(arrays["X_train"], arrays["y_train"], meta, given.seed)
X, y = torch.as_tensor(X, dtype=torch.float32), targets_of(y, meta)
X_valid, y_valid = torch.as_tensor(X_valid, dtype=torch.float32), targets_of(y_valid, meta)
network = build(X.shape[1], meta).to(device)
optimizer = torch.optim.AdamW(network.parameters(), lr=given.lr)
loss_of = loss_function(meta)
state = {"epoch": 0, "step": 0, "best": float("inf"), "waits": 0}
checkpoints = os.environ.get("MUSTER_CHECKPOINT_DIR") or os.path.join(given.out, "checkpoints")
os.makedirs(checkpoints, exist_ok=True)
resumed = os.environ.get("MUSTER_RESUME_FROM")
if resumed:
    saved = torch.load(resumed, map_location=device)
    network.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    state = saved["state"]
    print(f"Resuming from checkpoint {resumed}", flush=True)
replica = torch.nn.parallel.DistributedDataParallel(network) if world > 1 else network


def save(value, path):
    torch.save(value, path + ".tmp")
    os.replace(path + ".tmp", path)


def validation_loss():
    network.eval()
    total = 0.0
    with torch.no_grad():
        for part, target in zip(X_valid.split(1024), y_valid.split(1024)):
            total += loss_of(network(part.to(device)), target.to(device)).item() * len(part)
    return total / max(1, len(X_valid))


batch = max(1, given.batch_size // world)
while state["epoch"] < given.epochs and state["waits"] < given.patience:
    replica.train()
    # The same order in every process; each takes every world-th row, and as many as the others.
    order = torch.randperm(len(X), generator=torch.Generator().manual_seed(given.seed + state["epoch"]))
    order = order[: max(1, len(order) // world) * world][rank::world] if len(order) >= world else order
    for rows in order.split(batch):
        optimizer.zero_grad()
        loss = loss_of(replica(X[rows].to(device)), y[rows].to(device))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        state["step"] += 1
    state["epoch"] += 1
    # Every process has all rows to validate on, so that all of them stop in the same epoch.
    valid = validation_loss()
    is_better = valid < state["best"]
    state.update(best=min(valid, state["best"]), waits=0 if is_better else state["waits"] + 1)
    if rank == 0:
        print({"loss": round(loss.item(), 6), "eval_loss": round(valid, 6), "step": state["step"], "epoch": state["epoch"]}, flush=True)
        if is_better:
            save({"model": network.state_dict(), "features": X.shape[1]}, os.path.join(given.out, "model.pt"))
        save({"model": network.state_dict(), "optimizer": optimizer.state_dict(), "state": state},
             os.path.join(checkpoints, f"step_{state['step']}.pt"))
if world > 1:
    dist.destroy_process_group()
`;

const tensorflow = `"""A perceptron for tables and text, a convolutional network for images."""
import os

import numpy as np
import tensorflow as tf


def build(features, meta):
    classes = len(meta["classes"])
    layers = [tf.keras.Input((features,))]
    if meta["shape"] is None:
        layers += [tf.keras.layers.Dense(256, "relu"), tf.keras.layers.Dropout(0.1), tf.keras.layers.Dense(128, "relu")]
    else:
        layers += [tf.keras.layers.Reshape(meta["shape"]), tf.keras.layers.Permute((2, 3, 1)),
                   tf.keras.layers.Conv2D(32, 3, padding="same", activation="relu"), tf.keras.layers.MaxPool2D(),
                   tf.keras.layers.Conv2D(64, 3, padding="same", activation="relu"),
                   tf.keras.layers.GlobalAveragePooling2D()]
    layers.append(tf.keras.layers.Dense(classes, "softmax") if classes else tf.keras.layers.Dense(1))
    return tf.keras.Sequential(layers)


def load_model(folder, meta):
    return tf.keras.models.load_model(os.path.join(folder, "model.keras"))


def predict(model, X, meta):
    return np.asarray(model.predict(X, verbose=0), dtype=np.float64)
`;

const tensorflowTrain = `"""Trains on all GPUs of the node, or on the CPU, with early stopping by a validation set."""
import argparse
import os

import tensorflow as tf

from model import build
from pipeline_data import load_split, validation_split

${networkArguments}
tf.keras.utils.set_random_seed(given.seed)
arrays, meta = load_split(given.data)
X, y, X_valid, y_valid = validation_split(arrays["X_train"], arrays["y_train"], meta, given.seed)
os.makedirs(given.out, exist_ok=True)


class Printed(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        values = {"loss": float(logs["loss"]), "eval_loss": float(logs["val_loss"]), "epoch": epoch + 1}
        print({name: round(value, 6) for name, value in values.items()}, flush=True)


with tf.distribute.MirroredStrategy().scope():
    model = build(X.shape[1], meta)
    loss = "sparse_categorical_crossentropy" if meta["task"] == "classification" else "mse"
    model.compile(optimizer=tf.keras.optimizers.AdamW(given.lr, clipnorm=1.0), loss=loss)
saved = os.path.join(given.out, "model.keras")
model.fit(X, y, validation_data=(X_valid, y_valid), epochs=given.epochs, batch_size=given.batch_size, verbose=0,
          callbacks=[Printed(), tf.keras.callbacks.EarlyStopping(patience=given.patience),
                     tf.keras.callbacks.ModelCheckpoint(saved, save_best_only=True)])
`;

export const modelPrograms: Readonly<Record<TrainingFramework, ModelPrograms>> = {
  sklearn: { model: sklearn, train: boostedTrain, packages: ['scikit-learn'] },
  xgboost: { model: xgboost, train: boostedTrain, packages: ['xgboost', 'scikit-learn'] },
  lightgbm: { model: lightgbm, train: boostedTrain, packages: ['lightgbm', 'scikit-learn'] },
  pytorch: { model: pytorch, train: pytorchTrain, packages: ['torch'] },
  tensorflow: { model: tensorflow, train: tensorflowTrain, packages: ['tensorflow'] },
};

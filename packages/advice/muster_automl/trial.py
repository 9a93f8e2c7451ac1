"""One configuration: scored on growing parts of the training rows, then trained on all of them."""

from __future__ import annotations

import hashlib
import json
import pathlib
import time
import warnings
from typing import Any

import joblib
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from . import dataset, metrics
from .errors import InputError, read_json, write_atomically, write_json
from .models import pipeline


def run_trial(options: Any) -> None:
    """Each fold is on disk once it is scored, so a signal ends the program at once, and the
    fit that runs is not waited for.
    """
    # It belongs to the parameters of a trial that it does not converge: its score tells.
    warnings.simplefilter("ignore", ConvergenceWarning)
    run = read_run(options.run)
    params = read_params(options.params)
    out = pathlib.Path(options.out)
    data = dataset.load(run)
    scores = Scores(out, run, params)
    if not scores.state["folds"]:
        # Of another trial that had this directory: its predictions are about to be replaced.
        (out / "result.json").unlink(missing_ok=True)
    for percent in run["split"]["steps"]:
        for fold, (train, validation) in enumerate(dataset.folds_of(run, data)):
            if scores.has(percent, fold):
                continue
            rows = dataset.share_of(run, data, train, percent, fold)
            started = time.monotonic()
            model = fitted(run, params, data, rows, options.cpus)
            predicted = dataset.predicted_by(run, model, data.features.iloc[validation])
            scores.add(percent, fold, validation, predicted, time.monotonic() - started)
        value = scores.value(percent, data.target)
        if percent == 100:
            # Before the sweep reads its last value: a trial that is then stopped early is complete.
            train_on_all(run, params, data, scores, options.cpus)
        line = {"step": percent, "eval_loss": metrics.loss(run["metric"], value)}
        print(json.dumps({**line, run["metric"]: value}), flush=True)


def train_on_all(
    run: dict[str, Any],
    params: dict[str, Any],
    data: dataset.Dataset,
    scores: Scores,
    cpus: int,
) -> None:
    started = time.monotonic()
    model = fitted(run, params, data, data.train, cpus)
    write_atomically(
        scores.out / "model.joblib", lambda path: joblib.dump(model, path, compress=3)
    )
    scores.finish(data.target, time.monotonic() - started)


def read_run(directory: str) -> dict[str, Any]:
    path = pathlib.Path(directory) / "run.json"
    if not path.is_file():
        raise InputError(
            f"{path}: not found on this node; the directory of a run must be one that every node can read"
        )
    return read_json(path)


def read_params(text: str) -> dict[str, Any]:
    try:
        params = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"--params: not JSON: {error}") from error
    if not isinstance(params, dict) or "model" not in params:
        raise InputError(
            '--params: give an object with a model, such as {"model": "linear", "linear_strength": 1}'
        )
    return params


def fitted(
    run: dict[str, Any], params: dict[str, Any], data: dataset.Dataset, rows: np.ndarray, cpus: int
) -> Any:
    """`classes_of_run_` of the model: the classes that it has seen, which are not all in the
    order of time.
    """
    target = data.target[rows]
    seen = None
    if run["task"] == "classification":
        # Some libraries take nothing but classes from 0 on without a gap.
        seen, target = np.unique(target, return_inverse=True)
        if len(seen) == 1:
            params = {"model": "constant"}
    model = pipeline(run, params, data.features, cpus)
    try:
        model.fit(data.features.iloc[rows], target)
        model.classes_of_run_ = seen
        return model
    except KeyError as error:
        raise InputError(f"--params: the model {params['model']} needs {error}") from error


class Scores:
    """What a trial has computed, kept in its directory, so that a restart continues after the
    last complete fold.
    """

    def __init__(self, out: pathlib.Path, run: dict[str, Any], params: dict[str, Any]) -> None:
        self.out, self.run, self.params = out, run, params
        identity = json.dumps(
            [run["digest"], run["metric"], run["seed"], run["columns"], run["split"], params],
            sort_keys=True,
        )
        self.identity = hashlib.sha256(identity.encode()).hexdigest()
        self.state: dict[str, Any] = {"identity": self.identity, "params": params, "folds": {}}
        path = out / "state.json"
        if path.is_file():
            before = read_json(path)
            # The directory of another trial, or of one before the data changed, starts from
            # scratch.
            if before.get("identity") == self.identity:
                self.state = before

    def has(self, percent: int, fold: int) -> bool:
        return f"{percent}/{fold}" in self.state["folds"]

    def add(
        self, percent: int, fold: int, rows: np.ndarray, predicted: np.ndarray, seconds: float
    ) -> None:
        if not bool(np.isfinite(predicted).all()):
            raise InputError(
                "the model predicts values that are not finite; its parameters do not work for this data"
            )

        def save(path: pathlib.Path) -> None:
            with open(path, "wb") as file:
                np.savez_compressed(file, rows=rows, predicted=predicted)

        write_atomically(self.file(percent, fold), save)
        self.state["folds"][f"{percent}/{fold}"] = {"seconds": round(seconds, 3)}
        write_json(self.out / "state.json", self.state)

    def file(self, percent: int, fold: int) -> pathlib.Path:
        return self.out / f"fold-{percent}-{fold}.npz"

    def predictions(self, percent: int) -> tuple[np.ndarray, np.ndarray]:
        """Validation rows of all folds, in order, and what was predicted of them by models
        that have not seen them.
        """
        parts = []
        for fold in range(sum(key.startswith(f"{percent}/") for key in self.state["folds"])):
            with np.load(self.file(percent, fold), allow_pickle=False) as saved:
                parts.append((saved["rows"], saved["predicted"]))
        rows = np.concatenate([each for each, _ in parts])
        predicted = np.concatenate([each for _, each in parts])
        order = np.argsort(rows, kind="stable")
        return rows[order], predicted[order]

    def value(self, percent: int, target: np.ndarray) -> float:
        rows, predicted = self.predictions(percent)
        return metrics.score(
            self.run["metric"], target[rows], predicted, dataset.class_count(self.run)
        )

    def finish(self, target: np.ndarray, fit_seconds: float) -> None:
        rows, predicted = self.predictions(100)
        count = dataset.class_count(self.run)
        result = {
            "identity": self.identity,
            "params": self.params,
            "scores": {
                name: metrics.score(name, target[rows], predicted, count)
                for name in metrics.metrics_of(self.run["task"])
            },
            "curve": [
                [percent, self.value(percent, target)] for percent in self.run["split"]["steps"]
            ],
            "seconds": round(
                sum(each["seconds"] for each in self.state["folds"].values()) + fit_seconds, 3
            ),
        }
        write_json(self.out / "result.json", result)

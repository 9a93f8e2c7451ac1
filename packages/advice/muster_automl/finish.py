"""After the trials: the leaderboard, an ensemble of the best, what they are worth on rows
nobody has seen, and the report.
"""

from __future__ import annotations

import csv
import io
import json
import pathlib
from dataclasses import dataclass
from typing import Any, Callable

import joblib
import numpy as np

from . import dataset, ensemble, metrics
from .errors import InputError, read_json, write_json, write_text
from .report import Findings, write_report
from .table import read_table
from .trial import Scores, read_run

importance_rows_max = 1_000
importance_repeats = 3


@dataclass(frozen=True)
class Entry:
    number: int
    result: dict[str, Any]
    loss: float


def run_finish(options: Any) -> dict[str, Any]:
    run = read_run(options.run)
    data = dataset.load(run)
    entries = leaderboard(run, pathlib.Path(options.run))
    weights = {0: 1.0} if options.single else choose(run, data, entries, options.run)
    best, members = entries[0], [(entries[index], weight) for index, weight in weights.items()]
    write_json(
        pathlib.Path(options.run) / "ensemble.json",
        {"members": [{"trial": entry.number, "weight": weight} for entry, weight in members]},
    )
    test = data.features.iloc[data.test]
    of_best = model_of(options.run, best.number)
    predicted = {
        "best": dataset.predicted_by(run, of_best, test),
        "ensemble": mixed(
            run, options.run, [(entry.number, weight) for entry, weight in members], test
        ),
        "baseline": baseline(run, data),
    }
    count = dataset.class_count(run)
    scores = {
        who: {
            name: metrics.score(name, data.target[data.test], each, count)
            for name in metrics.metrics_of(run["task"])
        }
        for who, each in predicted.items()
    }
    write_text(pathlib.Path(options.run) / "leaderboard.csv", as_csv(run, entries))
    findings = Findings(
        directory=options.run,
        run=run,
        entries=[(entry.number, entry.result) for entry in entries],
        members=[(entry.number, weight) for entry, weight in members],
        scores=scores,
        truth=data.target[data.test],
        predicted=predicted["ensemble"],
        importance=importance(run, of_best, data),
        trained_rows=len(data.train),
    )
    write_report(findings)
    return {
        "trials": len(entries),
        "metric": run["metric"],
        "best": {
            "trial": best.number,
            "params": best.result["params"],
            "validation": best.result["scores"][run["metric"]],
        },
        "members": len(members),
        "test": {who: each[run["metric"]] for who, each in scores.items()},
        "report": str(pathlib.Path(options.run) / "report.html"),
    }


def leaderboard(run: dict[str, Any], directory: pathlib.Path) -> list[Entry]:
    """Complete trials of these data, the best first."""
    entries = []
    for path in sorted((directory / "trials").glob("*/result.json")):
        if not path.parent.name.isdigit():
            continue
        result = read_json(path)
        scores = Scores(path.parent, run, result["params"])
        if result["identity"] == scores.identity and (path.parent / "model.joblib").is_file():
            loss = metrics.loss(run["metric"], result["scores"][run["metric"]])
            entries.append(Entry(int(path.parent.name), result, loss))
    if not entries:
        raise InputError(
            f"{directory}/trials: no trial is complete; look at the output of the trials' jobs"
        )
    return sorted(entries, key=lambda entry: (entry.loss, entry.number))


def choose(
    run: dict[str, Any], data: dataset.Dataset, entries: list[Entry], directory: str
) -> dict[int, float]:
    of_trials = [
        Scores(
            pathlib.Path(directory) / "trials" / str(entry.number), run, entry.result["params"]
        ).predictions(100)
        for entry in entries[: ensemble.candidates_max]
    ]
    rows = of_trials[0][0]
    count = dataset.class_count(run)

    def loss(predicted: np.ndarray) -> float:
        return metrics.loss(
            run["metric"], metrics.score(run["metric"], data.target[rows], predicted, count)
        )

    return ensemble.select([predicted for _, predicted in of_trials], loss)


def model_of(directory: str, number: int) -> Any:
    """Only files that a trial of this run has written are loaded: loading a pickle runs what
    it says.
    """
    path = (pathlib.Path(directory) / "trials" / str(number) / "model.joblib").resolve()
    if pathlib.Path(directory).resolve() not in path.parents:
        raise InputError(f"{path}: outside of the run's directory; it is not loaded")
    return joblib.load(path)


def mixed(
    run: dict[str, Any], directory: str, members: list[tuple[int, float]], features: Any
) -> np.ndarray:
    parts = [
        weight * dataset.predicted_by(run, model_of(directory, number), features)
        for number, weight in members
    ]
    return np.sum(parts, axis=0)


def baseline(run: dict[str, Any], data: dataset.Dataset) -> np.ndarray:
    """What somebody says who has seen the target only: how frequent classes are, or the mean."""
    known = data.target[data.train]
    if run["task"] == "regression":
        return np.full(len(data.test), known.mean())
    shares = np.bincount(known, minlength=dataset.class_count(run)) / len(known)
    return np.tile(shares, (len(data.test), 1))


def importance(run: dict[str, Any], model: Any, data: dataset.Dataset) -> list[tuple[str, float]]:
    """By how much the loss on test rows grows when the values of one column change places."""
    chance = np.random.default_rng([run["seed"], 7])
    rows = chance.permutation(data.test)[:importance_rows_max]
    features, truth = data.features.iloc[rows], data.target[rows]

    def loss(changed: Any) -> float:
        predicted = dataset.predicted_by(run, model, changed)
        return metrics.loss(
            run["metric"], metrics.score(run["metric"], truth, predicted, dataset.class_count(run))
        )

    before = loss(features)
    found = [
        (name, mean_growth(features, name, before, loss, chance)) for name in features.columns
    ]
    return sorted(found, key=lambda each: (-each[1], each[0]))


def mean_growth(
    features: Any,
    name: str,
    before: float,
    loss: Callable[[Any], float],
    chance: np.random.Generator,
) -> float:
    growths = []
    for _ in range(importance_repeats):
        changed = features.copy()
        changed[name] = features[name].to_numpy()[chance.permutation(len(features))]
        growths.append(loss(changed) - before)
    return float(np.mean(growths))


def as_csv(run: dict[str, Any], entries: list[Entry]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    names = metrics.metrics_of(run["task"])
    writer.writerow(["trial", *names, "seconds", "params"])
    for entry in entries:
        scores = [entry.result["scores"][name] for name in names]
        writer.writerow(
            [
                entry.number,
                *scores,
                entry.result["seconds"],
                json.dumps(entry.result["params"], sort_keys=True),
            ]
        )
    return out.getvalue()


def run_predict(options: Any) -> None:
    """Predicts the rows of another table with the ensemble of a run."""
    run = read_run(options.run)
    chosen = pathlib.Path(options.run) / "ensemble.json"
    if not chosen.is_file():
        raise InputError(f"{chosen}: not found; run finish first")
    frame = read_table(options.data, run["encoding"])
    features = dataset.features_of(frame, run)
    members = [(member["trial"], member["weight"]) for member in read_json(chosen)["members"]]
    predicted = mixed(run, options.run, members, features)
    out = io.StringIO()
    writer = csv.writer(out)
    if run["task"] == "regression":
        writer.writerow([run["target"]])
        writer.writerows([value] for value in predicted)
    else:
        writer.writerow([run["target"], *(f"probability of {name}" for name in run["classes"])])
        writer.writerows([run["classes"][row.argmax()], *row] for row in predicted)
    write_text(pathlib.Path(options.out), out.getvalue())

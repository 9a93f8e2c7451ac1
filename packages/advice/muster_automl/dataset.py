"""The rows of a run as every trial sees them: the same features, the same test rows, the same
folds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold, StratifiedKFold, TimeSeriesSplit

from .errors import InputError
from .profile import labels_of, numbers_of
from .table import digest_of, moments, read_table


@dataclass(frozen=True)
class Dataset:
    features: pd.DataFrame
    #: The index of the class, or the number, of each row.
    target: np.ndarray
    #: Rows that models are chosen and trained by, in the order in which they are split.
    train: np.ndarray
    #: Rows that nothing is chosen by.
    test: np.ndarray


def load(run: dict[str, Any]) -> Dataset:
    digest = digest_of(run["data"])
    if digest != run["digest"]:
        raise InputError(
            f"{run['data']}: the file has changed since this run began; start a new run in another --dir"
        )
    frame = read_table(run["data"], run["encoding"])
    frame = frame[frame[run["target"]].notna()]
    if run["time_column"] is not None:
        frame = in_order(frame, run)
    if run["task"] == "classification":
        index = {name: position for position, name in enumerate(run["classes"])}
        target = labels_of(frame[run["target"]]).map(index).to_numpy(dtype=int)
    else:
        target = numbers_of(run["data"], frame[run["target"]], run["target"])
    train, test = set_aside(run, target)
    return Dataset(features_of(frame, run), target, train, test)


def in_order(frame: pd.DataFrame, run: dict[str, Any]) -> pd.DataFrame:
    name = run["time_column"]
    times = frame[name] if pd.api.types.is_numeric_dtype(frame[name]) else moments(frame[name])
    if bool(times.isna().any()):
        raise InputError(
            f'{run["data"]}: {int(times.isna().sum())} rows have no time in "{name}"; remove them'
        )
    return frame.iloc[np.argsort(times.to_numpy(), kind="stable")]


def features_of(frame: pd.DataFrame, run: dict[str, Any]) -> pd.DataFrame:
    """Columns of numbers as floats, of categories as text, of dates as four columns of numbers."""
    features: dict[str, Any] = {}
    for name, column in run["columns"].items():
        if column["kind"] == "dropped":
            continue
        if name not in frame.columns:
            raise InputError(
                f'the table has no column "{name}", which the models of {run["target"]} need'
            )
        if column["kind"] == "number":
            features[name] = pd.to_numeric(frame[name], errors="coerce").astype(float)
        elif column["kind"] == "category":
            values = frame[name]
            features[name] = labels_of(values).astype(object).where(values.notna(), np.nan)
        else:
            at = moments(frame[name])
            features[f"{name} (day)"] = (
                at - pd.Timestamp("1970-01-01", tz="UTC")
            ).dt.total_seconds() / 86_400
            features[f"{name} (month)"] = at.dt.month.astype(float)
            features[f"{name} (weekday)"] = at.dt.dayofweek.astype(float)
            features[f"{name} (hour)"] = at.dt.hour.astype(float)
    return pd.DataFrame(features, index=frame.index)


def is_number(features: pd.DataFrame, name: str) -> bool:
    return pd.api.types.is_float_dtype(features[name])


def set_aside(run: dict[str, Any], target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    split = run["split"]
    count = len(target)
    if split["kind"] == "time":
        # The newest rows are the test: models that are used predict what comes after what they
        # have seen.
        first = count - max(1, round(count * split["test_share"]))
        return np.arange(first), np.arange(first, count)
    test = np.sort(sample(run, target, np.arange(count), split["test_share"], 0))
    return np.setdiff1d(np.arange(count), test), test


def sample(
    run: dict[str, Any],
    target: np.ndarray,
    rows: np.ndarray,
    share: float,
    salt: int,
    least: int = 0,
) -> np.ndarray:
    """A share of the rows, by chance; of each class the same share, and at least so many of it."""
    chance = np.random.default_rng([run["seed"], salt])
    if run["task"] == "regression":
        return chance.permutation(rows)[: max(1, round(len(rows) * share))]
    parts = []
    for each in range(len(run["classes"])):
        mine = chance.permutation(rows[target[rows] == each])
        parts.append(mine[: max(min(least, len(mine)), round(len(mine) * share))])
    return np.concatenate(parts)


def folds_of(run: dict[str, Any], data: Dataset) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training rows and validation rows of each fold."""
    count, seed = run["split"]["folds"], run["seed"]
    rows = data.train
    if run["split"]["kind"] == "time":
        splits = TimeSeriesSplit(max(count, 2)).split(rows)
    elif count == 1:
        held_out = sample(run, data.target, rows, run["split"]["test_share"], 1)
        return [(np.setdiff1d(rows, held_out), np.sort(held_out))]
    elif run["task"] == "classification":
        splits = StratifiedKFold(count, shuffle=True, random_state=seed).split(
            rows, data.target[rows]
        )
    else:
        splits = KFold(count, shuffle=True, random_state=seed).split(rows)
    return [(rows[train], rows[validation]) for train, validation in splits]


def share_of(
    run: dict[str, Any], data: Dataset, rows: np.ndarray, percent: int, fold: int
) -> np.ndarray:
    """What a trial trains on at a step. In the order of time it is the newest part."""
    if percent == 100:
        return rows
    if run["split"]["kind"] == "time":
        return rows[-max(1, round(len(rows) * percent / 100)) :]
    return np.sort(sample(run, data.target, rows, percent / 100, 100 + fold, least=1))


def class_count(run: dict[str, Any]) -> int:
    return len(run["classes"] or [])


def predicted_by(run: dict[str, Any], model: Any, features: pd.DataFrame) -> np.ndarray:
    """Probabilities with a column for every class of the run, also for those that the model
    has never seen.
    """
    if run["task"] == "regression":
        return np.asarray(model.predict(features), dtype=float)
    found = np.zeros((len(features), class_count(run)))
    found[:, model.classes_of_run_] = model.predict_proba(features)
    return found


def feature_kinds(features: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Names of the numbers, and of the categories."""
    numbers = [name for name in features.columns if is_number(features, name)]
    return numbers, [name for name in features.columns if name not in numbers]

"""What is known of the data before anything is trained: types, missing values, classes, leaks,
and how rows are split.
"""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
import platform
from typing import Any, Optional

import numpy as np
import pandas as pd
import sklearn
from pandas.api import types

from . import metrics
from .errors import InputError, read_json, write_json
from .table import digest_of, is_nested, moments, quoted, read_table

rows_min = 20
#: A whole number with more different values than that is a quantity, not a class.
classes_of_numbers_max = 20
classes_max = 200
#: Text with this many values, most of them different, is free text or a key.
values_of_text_max = 1_000
test_share = 0.2
#: The share of the training rows, in percent, at which trials print their metric. Each is three
#: times the one before.
fractions = (11, 33, 100)
rows_of_fraction_min = 40


def make_profile(options: Any) -> dict[str, Any]:
    """Checks the data and writes run.json. The same run may be profiled again; another one in
    its directory is refused.
    """
    frame = read_table(options.data, options.encoding)
    run = {
        "data": options.data,
        "digest": digest_of(options.data),
        "encoding": options.encoding,
        "target": options.target,
        "seed": options.seed,
        "time_column": options.time_column,
        "ignore": sorted(options.ignore),
        "keep": sorted(options.keep),
    }
    profile = {**run, **describe(frame, options)}
    path = pathlib.Path(options.run) / "run.json"
    if path.exists() and any(
        read_json(path).get(name) != profile[name] for name in (*run, "task", "metric")
    ):
        raise InputError(
            f"{options.run}: the directory has another run; give another one with --dir"
        )
    write_json(path, profile)
    return profile


def describe(frame: pd.DataFrame, options: Any) -> dict[str, Any]:
    path, target, time_column = options.data, options.target, options.time_column
    for option, name in [
        ("--target", target),
        ("--time-column", time_column),
        *(("--ignore", n) for n in options.ignore),
    ]:
        if name is not None and name not in frame.columns:
            raise InputError(
                f'{path}: no column "{name}" ({option}); columns: {quoted(list(frame.columns))}'
            )
    notes: list[str] = []
    missing = int(frame[target].isna().sum())
    if missing == len(frame):
        raise InputError(
            f'{path}: the target "{target}" has no value in any row; give another --target'
        )
    if is_nested(frame[target].dropna()):
        raise InputError(
            f'{path}: the target "{target}" has lists or records; give a column with one value in each row'
        )
    if missing:
        notes.append(f'{missing} of {len(frame)} rows have no "{target}" and are not used')
        frame = frame[frame[target].notna()]
    if len(frame) < rows_min:
        raise InputError(
            f"{path}: {len(frame)} rows with a target; at least {rows_min} are needed"
        )
    task = options.task or task_of(frame[target])
    classes = classes_of(path, frame[target], target) if task == "classification" else None
    if task == "regression":
        numbers_of(path, frame[target], target)
    metric = options.metric or metrics.presets[task]
    if metric not in metrics.metrics_of(task):
        raise InputError(
            f"--metric: {metric} is not for {task}; give one of {', '.join(metrics.metrics_of(task))}"
        )
    columns = {
        name: column_of(frame[name], frame[target], name, options)
        for name in frame.columns
        if name not in (target, *options.ignore)
    }
    notes += [
        f'"{name}" is not used: {each["why"]}'
        for name, each in columns.items()
        if each["kind"] == "dropped"
    ]
    if all(each["kind"] == "dropped" for each in columns.values()):
        raise InputError(
            f"{path}: no column is left to learn from: {'; '.join(notes) or 'there is only the target'}"
        )
    found, unusable = libraries()
    notes += unusable
    smallest = min((count for _, count in classes), default=None) if classes else None
    rows = {"rows": len(frame), "missing_target": missing, "columns": columns, "notes": notes}
    return {
        **rows,
        "task": task,
        "metric": metric,
        "classes": [name for name, _ in classes] if classes else None,
        "class_rows": [count for _, count in classes] if classes else None,
        "split": split_of(len(frame), smallest, time_column is not None),
        "libraries": list(found),
        "versions": {
            "python": platform.python_version(),
            "sklearn": sklearn.__version__,
            "pandas": pd.__version__,
            **found,
        },
    }


def libraries() -> tuple[dict[str, str], list[str]]:
    """Versions of the libraries of further models, and notes on those that are there in vain.
    Where they need a library of the system that is missing, every trial with them would fail.
    """
    found: dict[str, str] = {}
    notes: list[str] = []
    for name in ("xgboost", "lightgbm"):
        if importlib.util.find_spec(name) is None:
            continue
        try:
            found[name] = str(importlib.import_module(name).__version__)
        except Exception as error:  # whatever a library raises when it is loaded
            notes.append(f"{name} is not tried: it cannot be loaded: {error}")
    return found, notes


def task_of(target: pd.Series) -> str:
    if not types.is_numeric_dtype(target) or types.is_bool_dtype(target):
        return "classification"
    are_whole = bool((target == target.round()).all())
    return (
        "classification"
        if are_whole and target.nunique() <= classes_of_numbers_max
        else "regression"
    )


def classes_of(path: str, target: pd.Series, name: str) -> list[tuple[str, int]]:
    counts = labels_of(target).value_counts().sort_index()
    if len(counts) < 2:
        raise InputError(
            f'{path}: the target "{name}" has one class, {quoted(list(counts.index))}; two are needed'
        )
    if len(counts) > classes_max:
        raise InputError(
            f'{path}: the target "{name}" has {len(counts)} classes; at most {classes_max}, or --task regression'
        )
    rare = [each for each, count in counts.items() if count < 3]
    if rare:
        raise InputError(
            f'{path}: the class {quoted(rare)} of "{name}" has fewer than 3 rows; remove them or merge classes'
        )
    return [(str(each), int(count)) for each, count in counts.items()]


def labels_of(target: pd.Series) -> pd.Series:
    """Classes as text. A whole number has no fraction, though a column with missing values
    holds it as a float.
    """
    if types.is_float_dtype(target) and bool((target == target.round()).all()):
        return target.astype("int64").astype(str)
    return target.astype(str)


def numbers_of(path: str, target: pd.Series, name: str) -> np.ndarray:
    numbers = pd.to_numeric(target, errors="coerce")
    wrong = target[numbers.isna()]
    if len(wrong):
        # The header is line 1.
        place = f"row {int(wrong.index[0]) + 1} after the header"
        raise InputError(
            f'{path}, {place}: the target "{name}" is "{wrong.iloc[0]}", not a number; give --task classification'
        )
    if numbers.nunique() < 2:
        raise InputError(
            f'{path}: the target "{name}" has one value, {numbers.iloc[0]}; nothing can be learned'
        )
    return numbers.to_numpy(dtype=float)


def column_of(column: pd.Series, target: pd.Series, name: str, options: Any) -> dict[str, Any]:
    values = column.dropna()
    facts = {"missing": int(column.isna().sum()), "values": int(values.astype(str).nunique())}
    kind, why = kind_of(column, values, target, facts["values"])
    usable = facts["values"] > 1 and not is_nested(values)
    if kind == "dropped" and name in options.keep and usable:
        kind, why = ("number" if types.is_numeric_dtype(column) else "category"), None
    return {**facts, "kind": kind, "why": why}


def kind_of(
    column: pd.Series, values: pd.Series, target: pd.Series, count: int
) -> tuple[str, Optional[str]]:
    if len(values) == 0:
        return "dropped", "it has no value in any row"
    if is_nested(values):
        return "dropped", "it has lists or records; give each of their values a column"
    if count == 1:
        return "dropped", "it has one value in all rows"
    if len(values) == len(column) and is_leak(column, target):
        return (
            "dropped",
            "it tells the target exactly, which the rows to predict will not have (--keep uses it)",
        )
    is_number = types.is_numeric_dtype(column)
    if types.is_bool_dtype(column):
        return "category", None
    if is_number:
        are_whole = bool((values == values.round()).all())
        if (
            are_whole
            and count == len(column)
            and bool((values.sort_values().diff().dropna() == 1).all())
        ):
            return "dropped", "it numbers the rows (--keep uses it)"
        return "number", None
    if is_date(values):
        return "date", None
    if count > values_of_text_max or (count > 20 and count > 0.9 * len(values)):
        return (
            "dropped",
            f"{count} different texts in {len(values)} rows are a key or free text (--keep uses it)",
        )
    return "category", None


def is_leak(column: pd.Series, target: pd.Series) -> bool:
    """Whether the column is the target under another name: the same values, or the same ones
    by other names.
    """
    if types.is_numeric_dtype(column) and types.is_numeric_dtype(target):
        if bool((column.astype(float) == target.astype(float)).all()):
            return True
    ours, theirs = pd.factorize(column)[0], pd.factorize(target)[0]
    # Where each value is there once or twice, any two columns have the same pattern.
    return bool((ours == theirs).all()) and int(theirs.max()) + 1 <= len(column) / 5


def is_date(values: pd.Series) -> bool:
    if types.is_datetime64_any_dtype(values):
        return True
    texts = values.astype(str)
    if not bool(texts.head(200).str.match(r"^\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}.*)?$").all()):
        return False
    # Many tables have 9999-12-31 where there is no end.
    years = pd.to_numeric(texts.str.slice(0, 4), errors="coerce")
    usual = texts[years.between(1678, 2261)]
    return len(usual) > 0 and bool(moments(usual).notna().mean() > 0.99)


def split_of(rows: int, smallest_class: Optional[int], by_time: bool) -> dict[str, Any]:
    """Folds by size: many where a score of few rows would be noise, one where a single one is
    exact and folds are dear.
    """
    folds = 5 if rows <= 10_000 else 3 if rows <= 50_000 else 1
    if smallest_class is not None:
        # Of the smallest class some rows go to the test, and each fold needs one of the others.
        folds = max(1, min(folds, int(smallest_class * (1 - test_share))))
        folds = folds if folds >= 2 or rows > 50_000 else 2
    training = rows * (1 - test_share) * (1 - 1 / max(folds, 5))
    steps = [
        each for each in fractions if each == 100 or training * each / 100 >= rows_of_fraction_min
    ]
    return {
        "kind": "time" if by_time else "random",
        "folds": folds,
        "test_share": test_share,
        "steps": steps,
    }

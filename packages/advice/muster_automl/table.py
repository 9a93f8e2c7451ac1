"""Reads a table. Nothing in it is ever executed: CSV is text, and Parquet is read by pyarrow."""

from __future__ import annotations

import csv
import decimal
import hashlib
import importlib.util
import pathlib
from typing import Any, Sequence

import numpy as np
import pandas as pd
from pandas.api import types

from .errors import InputError

separators = ",;\t|"
#: Without it, pandas 2 takes the form of the first date for all others, and drops those that differ.
any_form = {} if pd.__version__.startswith("1.") else {"format": "ISO8601"}


def read_table(path: str, encoding: str) -> pd.DataFrame:
    file = pathlib.Path(path)
    if not file.is_file():
        raise InputError(f"{path}: not a file on this node; give a path that every node can read")
    if file.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty; give a table with a header and rows")
    frame = read_parquet(path) if file.suffix in (".parquet", ".pq") else read_csv(path, encoding)
    if len(frame) == 0:
        raise InputError(f"{path}: the table has columns and no rows; give a table with rows")
    frame.columns = [str(name) for name in frame.columns]
    refuse_duplicates(path, list(frame.columns))
    return pd.DataFrame({name: plain(frame[name]) for name in frame.columns}, index=frame.index)


def plain(column: pd.Series) -> pd.Series:
    """Values that CSV does not have, as those that it has. Infinite numbers become missing ones,
    because no model can use them.
    """
    if types.is_timedelta64_dtype(column):
        return column.dt.total_seconds()
    if types.is_float_dtype(column):
        return column.replace([np.inf, -np.inf], np.nan)
    if not types.is_object_dtype(column):
        return column
    kinds = {type(value) for value in column.dropna()}
    if kinds == {decimal.Decimal}:
        return pd.to_numeric(column)
    if kinds == {bytes}:
        return column.map(lambda value: value.decode("utf-8", "replace"), na_action="ignore")
    return column


def is_nested(values: pd.Series) -> bool:
    """Whether values are lists or records, which Parquet has."""
    return any(isinstance(value, (list, tuple, dict, np.ndarray)) for value in values.head(1))


def moments(column: pd.Series) -> pd.Series:
    """What is not a date is missing, as is one of a year that this pandas does not have."""
    if types.is_datetime64_any_dtype(column):
        return pd.to_datetime(column, utc=True)
    return pd.to_datetime(column.astype("string"), errors="coerce", utc=True, **any_form)


def read_parquet(path: str) -> pd.DataFrame:
    if importlib.util.find_spec("pyarrow") is None:
        raise InputError(
            f"{path}: reading Parquet needs pyarrow, which this Python does not have; "
            "install it (pip install pyarrow), or give the table as CSV"
        )
    try:
        frame = frame_of_parquet(path)
    except Exception as error:  # pyarrow has no common class for what is wrong with a file
        raise InputError(f"{path}: not a readable Parquet file: {error}") from error
    # An index with names has columns of the table, such as its times. One without numbers the rows.
    named = [name for name in frame.index.names if name is not None]
    return frame.reset_index(drop=not named)


def frame_of_parquet(path: str) -> Any:
    import pyarrow
    from pyarrow import parquet

    # The names of directories above a file are not columns of it.
    table = parquet.read_table(path, partitioning=None)
    try:
        return table.to_pandas()
    except pyarrow.ArrowInvalid:
        # Before version 2, pandas holds no times after 2262, such as the 9999-12-31 that stands for "no end".
        return table.to_pandas(timestamp_as_object=True)


def read_csv(path: str, encoding: str) -> pd.DataFrame:
    try:
        # Spreadsheets begin UTF-8 with a mark, which is no part of the first name.
        encoding = "utf-8-sig" if encoding == "utf-8" else encoding
        with open(path, encoding=encoding, newline="") as file:
            header = file.readline()
            separator = max(separators, key=header.count)
            names = next(csv.reader([header], delimiter=separator), [])
            refuse_duplicates(path, names)
            for _ in file:  # the place of a byte that is not text is lost in what pandas reports
                pass
        return pd.read_csv(path, sep=separator, encoding=encoding, low_memory=False)
    except UnicodeDecodeError as error:
        raise InputError(not_text(path, encoding.removesuffix("-sig"))) from error
    except LookupError as error:
        raise InputError(
            f'--encoding: unknown encoding "{encoding}"; give one such as utf-8 or latin-1'
        ) from error
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(f"{path}: not a readable CSV file: {str(error).strip()}") from error


def not_text(path: str, encoding: str) -> str:
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError as error:
                byte = line[error.start]
                return (
                    f"{path}, line {number}: byte 0x{byte:02x} is not {encoding}; "
                    "save the file as UTF-8, or give --encoding, such as --encoding latin-1"
                )
    return f"{path}: not {encoding}; give --encoding"


def refuse_duplicates(path: str, names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"{path}: the column {quoted(twice)} is there more than once; rename one of them"
        )


def quoted(names: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(f'"{name}"' for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def digest_of(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return f"sha256:{digest.hexdigest()}"

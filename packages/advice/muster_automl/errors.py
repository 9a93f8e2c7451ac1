"""Errors for people, and files that are either complete or not there."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any, Callable


class InputError(Exception):
    """Something that a person can change. The message names the thing, the place and the
    remedy.
    """


def write_atomically(path: pathlib.Path, write: Callable[[pathlib.Path], None]) -> None:
    """A program that is killed at any moment leaves the old file or the new one, and none that
    is cut short.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    write(temporary)
    with open(temporary, "rb") as file:
        os.fsync(file.fileno())
    os.replace(temporary, path)


def write_text(path: pathlib.Path, text: str) -> None:
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_json(path: pathlib.Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n")


def read_json(path: pathlib.Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))

"""The report, once as Markdown and once as one HTML file that loads nothing. Everything that
comes from the data is escaped.
"""

from __future__ import annotations

import json
import pathlib
import re
import shlex
import sys
from dataclasses import dataclass, field
from html import escape
from typing import Any, Optional, Sequence

import numpy as np

from . import metrics, svg
from .errors import write_text

shown_trials = 20
shown_columns = 20
shown_curves = 5
#: A larger matrix cannot be read.
shown_classes = 20
shown_points = 1_000


@dataclass(frozen=True)
class Findings:
    directory: str
    run: dict[str, Any]
    #: The best first.
    entries: list[tuple[int, dict[str, Any]]]
    members: list[tuple[int, float]]
    scores: dict[str, dict[str, float]]
    truth: np.ndarray
    predicted: np.ndarray
    importance: list[tuple[str, float]]
    trained_rows: int


@dataclass
class Section:
    title: str
    text: list[str] = field(default_factory=list)
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    plot: Optional[str] = None
    commands: Sequence[str] = ()


def write_report(found: Findings) -> None:
    title = f"AutoML: {found.run['target']}"
    sections = [
        result_of(found),
        data_of(found),
        leaderboard_of(found),
        members_of(found),
        confusion_of(found) if found.run["task"] == "classification" else residuals_of(found),
        importance_of(found),
        curves_of(found),
        reproduction_of(found),
    ]
    directory = pathlib.Path(found.directory)
    write_text(directory / "report.md", markdown(title, sections))
    write_text(directory / "report.html", html(title, sections))


def result_of(found: Findings) -> Section:
    names = metrics.metrics_of(found.run["task"])
    who = {
        "ensemble": "ensemble",
        "best": f"trial {found.entries[0][0]}, the best",
        "baseline": "baseline: no model",
    }
    return Section(
        "Result",
        [
            f"{len(found.entries)} models were compared by {found.run['metric']} in validation. The scores below are of "
            f"{len(found.truth)} test rows, by which nothing was chosen and which no model has seen.",
        ],
        ["", *names],
        [
            [label, *(svg.short(found.scores[key][name]) for name in names)]
            for key, label in who.items()
        ],
    )


def data_of(found: Findings) -> Section:
    run = found.run
    split = run["split"]
    folds = f"{split['folds']} folds" if split["folds"] > 1 else "one validation part"
    order = "in the order of time" if split["kind"] == "time" else "by chance"
    return Section(
        "Data",
        [
            f"{run['data']}: {run['rows']} rows with a target, {run['digest']}. Task: {run['task']} of {run['target']}.",
            f"{found.trained_rows} rows for training, split {order} into {folds}; {len(found.truth)} for the test.",
            *run["notes"],
        ],
        ["column", "used as", "missing", "different values"],
        [
            [
                name,
                each["kind"] if each["why"] is None else "not used",
                str(each["missing"]),
                str(each["values"]),
            ]
            for name, each in list(run["columns"].items())[:200]
        ],
    )


def leaderboard_of(found: Findings) -> Section:
    names = metrics.metrics_of(found.run["task"])
    rows = [
        [
            str(number),
            result["params"]["model"],
            *(svg.short(result["scores"][name]) for name in names),
            f"{result['seconds']:.1f}",
            settings(result["params"]),
        ]
        for number, result in found.entries[:shown_trials]
    ]
    more = len(found.entries) - len(rows)
    text = ["Scores of validation: each row was predicted by a model that has not seen it."]
    return Section(
        "Leaderboard",
        text + ([f"{more} more are in leaderboard.csv."] if more > 0 else []),
        ["trial", "model", *names, "seconds", "parameters"],
        rows,
    )


def settings(params: dict[str, Any]) -> str:
    shown = {
        name: svg.short(value) if isinstance(value, float) else value
        for name, value in params.items()
    }
    return ", ".join(f"{name} {value}" for name, value in sorted(shown.items()) if name != "model")


def members_of(found: Findings) -> Section:
    models = {number: result["params"]["model"] for number, result in found.entries}
    return Section(
        "Ensemble",
        [
            "Models whose weighted mean is best in validation, chosen greedily with replacement (Caruana and others, 2004)."
        ],
        ["trial", "model", "weight"],
        [[str(number), models[number], f"{weight:.2f}"] for number, weight in found.members],
    )


def confusion_of(found: Findings) -> Section:
    classes = found.run["classes"]
    chosen = found.predicted.argmax(axis=1)
    if len(classes) > shown_classes:
        wrong = [
            (int(np.count_nonzero((found.truth == i) & (chosen == j))), i, j)
            for i in range(len(classes))
            for j in range(len(classes))
            if i != j
        ]
        rows = [
            [classes[i], classes[j], str(count)]
            for count, i, j in sorted(wrong, reverse=True)[:20]
            if count > 0
        ]
        return Section(
            "Confusion",
            ["The most frequent mistakes of the ensemble."],
            ["is", "predicted", "rows"],
            rows,
        )
    matrix = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(matrix, (found.truth, chosen), 1)
    counts = [[int(value) for value in row] for row in matrix]
    return Section(
        "Confusion",
        ["Test rows. A row of the table is what is there, a column what the ensemble predicts."],
        ["", *classes],
        [[name, *map(str, row)] for name, row in zip(classes, counts)],
        svg.heat(counts, classes),
    )


def residuals_of(found: Findings) -> Section:
    residuals = found.truth - found.predicted
    quantiles = (0.05, 0.25, 0.5, 0.75, 0.95)
    some = slice(0, shown_points)
    return Section(
        "Residuals",
        ["Target less prediction of the ensemble, on test rows."],
        [f"{share:.0%}" for share in quantiles],
        [[svg.short(float(np.quantile(residuals, share))) for share in quantiles]],
        svg.scatter(
            list(found.predicted[some]), list(residuals[some]), ("prediction", "residual")
        ),
    )


def importance_of(found: Findings) -> Section:
    shown = found.importance[:shown_columns]
    return Section(
        "Importance",
        [
            "By how much the loss of the best trial grows when the values of a column change places among test rows. "
            "Of columns that say the same, each may look unimportant."
        ],
        ["column", "growth of the loss"],
        [[name, svg.short(value)] for name, value in shown],
        svg.bars(shown),
    )


def curves_of(found: Findings) -> Section:
    metric = found.run["metric"]
    best = found.entries[:shown_curves]
    steps = [step for step, _ in best[0][1]["curve"]]
    return Section(
        "Learning curves",
        [
            f"{metric} in validation by the share of the training rows, in percent. What still improves may gain by more rows."
        ],
        ["trial", *(f"{step} %" for step in steps)],
        [
            [str(number), *(svg.short(value) for _, value in result["curve"])]
            for number, result in best
        ],
        svg.lines(
            [
                (f"{number}: {result['params']['model']}", result["curve"])
                for number, result in best
            ],
            ("% of the training rows", metric),
        ),
    )


def reproduction_of(found: Findings) -> Section:
    run, quote = found.run, shlex.quote
    program = quote(str(pathlib.Path(found.directory) / "program"))
    number, result = found.entries[0]
    options = [
        "--data",
        run["data"],
        "--target",
        run["target"],
        "--task",
        run["task"],
        "--metric",
        run["metric"],
    ]
    options += ["--seed", str(run["seed"]), "--encoding", run["encoding"]]
    options += ["--time-column", run["time_column"]] if run["time_column"] is not None else []
    options += [part for name in run["ignore"] for part in ("--ignore", name)]
    options += [part for name in run["keep"] for part in ("--keep", name)]
    versions = ", ".join(f"{name} {version}" for name, version in sorted(run["versions"].items()))
    params = json.dumps(result["params"], sort_keys=True)
    # The one with these versions: what `python3` stands for depends on who reads this.
    python = f"PYTHONPATH={program} {quote(sys.executable)} -m muster_automl"
    return Section(
        "How to reproduce",
        [
            f"With {versions}, seed {run['seed']} and these data, the commands give the same data, the best model and its "
            "scores again. The last one predicts other rows.",
        ],
        commands=[
            f"{python} profile --run again {' '.join(map(quote, options))}",
            f"{python} trial --run again --out again/trials/{number} --params {quote(params)}",
            f"{python} finish --run again",
            f"{python} predict --run {quote(found.directory)} --data new.csv --out predictions.csv",
        ],
    )


def markdown(title: str, sections: Sequence[Section]) -> str:
    lines = [f"# {plain(title)}", ""]
    for section in sections:
        lines += [f"## {section.title}", ""]
        lines += (
            [f"- {plain(each)}" for each in section.text]
            if len(section.text) > 1
            else map(plain, section.text)
        )
        lines.append("")
        if section.rows:
            lines.append(row(section.header))
            lines.append(row(["---"] * len(section.header)))
            lines += [row(each) for each in section.rows]
            lines.append("")
        if section.commands:
            lines += ["```", *section.commands, "```", ""]
    return "\n".join(lines)


def row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(plain(cell) for cell in cells)} |"


def plain(text: str) -> str:
    """Text that is no Markdown: a name of a column must not become a link or end a cell."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", re.sub(r"\s+", " ", text))


style = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
td, th { border: 1px solid #8884; padding: .2rem .6rem; text-align: left; }
pre { background: #8882; overflow-x: auto; padding: .8rem; }
svg { max-width: 42rem; width: 100%; }
"""


def html(title: str, sections: Sequence[Section]) -> str:
    body = "".join(map(section_html, sections))
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><style>{style}</style></head>'
        f"<body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )


def section_html(section: Section) -> str:
    parts = [f"<h2>{section.title}</h2>", *(f"<p>{escape(each)}</p>" for each in section.text)]
    if section.plot is not None:
        parts.append(section.plot)
    if section.rows:
        head = "".join(f"<th>{escape(cell)}</th>" for cell in section.header)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in each)}</tr>"
            for each in section.rows
        )
        parts.append(f"<table><tr>{head}</tr>{body}</table>")
    if section.commands:
        parts.append(f"<pre>{escape(chr(10).join(section.commands))}</pre>")
    return "".join(parts)

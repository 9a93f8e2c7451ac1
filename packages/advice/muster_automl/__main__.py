"""python3 -m muster_automl profile | trial | finish | predict"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any, Optional

missing = "scikit-learn 1.2 or newer and pandas are needed (pip install scikit-learn pandas)"


def parser() -> argparse.ArgumentParser:
    main = argparse.ArgumentParser(prog="muster_automl", description="AutoML for tables.")
    verbs = main.add_subparsers(dest="verb", required=True)
    profile = verbs.add_parser("profile", help="check the data, and write run.json")
    trial = verbs.add_parser("trial", help="score one configuration, and train it")
    finish = verbs.add_parser("finish", help="leaderboard, ensemble and report")
    predict = verbs.add_parser("predict", help="predict the rows of another table")
    for verb in (profile, trial, finish, predict):
        verb.add_argument("--run", required=True, metavar="DIR", help="the directory of the run")
    profile.add_argument("--data", required=True, metavar="FILE", help="CSV or Parquet")
    profile.add_argument("--target", required=True, metavar="COLUMN")
    profile.add_argument("--task", choices=["classification", "regression"])
    profile.add_argument("--metric")
    profile.add_argument("--seed", type=int, default=0)
    profile.add_argument("--encoding", default="utf-8")
    profile.add_argument("--time-column", metavar="COLUMN", help="split rows in its order")
    profile.add_argument("--ignore", action="append", default=[], metavar="COLUMN")
    profile.add_argument("--keep", action="append", default=[], metavar="COLUMN")
    trial.add_argument("--out", required=True, metavar="DIR", help="its own directory")
    trial.add_argument(
        "--params",
        default=os.environ.get("MUSTER_TRIAL_PARAMS"),
        help="JSON; default: MUSTER_TRIAL_PARAMS",
    )
    trial.add_argument("--cpus", type=int, default=1)
    finish.add_argument("--single", action="store_true", help="no ensemble: the best trial alone")
    predict.add_argument("--data", required=True, metavar="FILE")
    predict.add_argument("--out", required=True, metavar="FILE")
    return main


def summary_of(profile: dict[str, Any]) -> dict[str, Any]:
    """What fits into a line of output."""
    kinds = [each["kind"] for each in profile["columns"].values()]
    return {
        **{name: profile[name] for name in ("task", "metric", "rows", "libraries", "split")},
        "columns": {kind: kinds.count(kind) for kind in sorted(set(kinds))},
        "classes": None if profile["classes"] is None else len(profile["classes"]),
        "notes": [note[:200] for note in profile["notes"][:20]],
    }


def main(arguments: Optional[list[str]] = None) -> int:
    options = parser().parse_args(arguments)
    # Read when the libraries are loaded. Threads of several trials on one node would take each
    # other's processors.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, str(getattr(options, "cpus", 1)))
    # Threads that wait otherwise spin, and take the processors from those that they wait for.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        from . import finish, profile, trial
    except ImportError as error:
        print(f"automl: error: {sys.executable} cannot be used: {error}; {missing}", flush=True)
        return 2
    from .errors import InputError

    try:
        if options.verb == "profile":
            print(f"automl profile: {json.dumps(summary_of(profile.make_profile(options)))}")
        elif options.verb == "trial":
            if options.params is None:
                raise InputError(
                    "--params: missing; give the parameters as JSON, or set MUSTER_TRIAL_PARAMS"
                )
            trial.run_trial(options)
        elif options.verb == "finish":
            print(f"automl result: {json.dumps(finish.run_finish(options))}")
        else:
            finish.run_predict(options)
    except InputError as error:
        print(f"automl: error: {error}", flush=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

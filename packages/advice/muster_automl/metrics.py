"""What models are compared by. Each metric also has a loss, of which less is better: that is
what a sweep reads.
"""

from __future__ import annotations

import numpy as np
from sklearn import metrics

classification = ("log_loss", "accuracy", "balanced_accuracy", "f1_macro", "roc_auc")
regression = ("rmse", "mae", "r2")
#: A smooth one finds better models than accuracy, which does not change with most changes of a
#: model.
presets = {"classification": "log_loss", "regression": "rmse"}
#: The larger, the better; at most 1.
rising = {"accuracy", "balanced_accuracy", "f1_macro", "roc_auc", "r2"}


def metrics_of(task: str) -> tuple[str, ...]:
    return classification if task == "classification" else regression


def score(name: str, truth: np.ndarray, predicted: np.ndarray, classes: int) -> float:
    """`predicted`: a column of probabilities for each class, or a number for each row."""
    if name == "rmse":
        return float(np.sqrt(metrics.mean_squared_error(truth, predicted)))
    if name == "mae":
        return float(metrics.mean_absolute_error(truth, predicted))
    if name == "r2":
        return float(metrics.r2_score(truth, predicted))
    labels = np.arange(classes)
    chosen = predicted.argmax(axis=1)
    if name == "accuracy":
        return float(metrics.accuracy_score(truth, chosen))
    if name == "balanced_accuracy":
        return float(metrics.recall_score(truth, chosen, labels=np.unique(truth), average="macro"))
    if name == "f1_macro":
        return float(
            metrics.f1_score(truth, chosen, labels=labels, average="macro", zero_division=0)
        )
    if name == "roc_auc":
        return area(truth, predicted, classes)
    clipped = np.clip(predicted, 1e-15, 1)
    clipped = clipped / clipped.sum(axis=1, keepdims=True)
    return float(-np.mean(np.log(clipped[np.arange(len(truth)), truth])))


def area(truth: np.ndarray, predicted: np.ndarray, classes: int) -> float:
    """The mean over the classes that the rows have, each against all others."""
    areas = [
        metrics.roc_auc_score(truth == each, predicted[:, each])
        for each in range(classes)
        if 0 < np.count_nonzero(truth == each) < len(truth)
    ]
    return float(np.mean(areas)) if areas else 0.5


def loss(name: str, value: float) -> float:
    return 1.0 - value if name in rising else value

"""Greedy selection with replacement, after R. Caruana and others: Ensemble Selection from
Libraries of Models, ICML 2004.
"""

from __future__ import annotations

from typing import Callable, Sequence

import numpy as np

#: Of more models the worst are of no use, and cost time.
candidates_max = 50
rounds_max = 50
#: What an improvement must be at least, relative to the loss: smaller ones are chance.
least_gain = 1e-4


def select(
    predictions: Sequence[np.ndarray], loss: Callable[[np.ndarray], float]
) -> dict[int, float]:
    """`predictions`: those of each model for the same rows, the best model first. Returns the
    weight of each member.
    """
    chosen = [0]
    total = predictions[0].copy()
    best = loss(total)
    for _ in range(rounds_max - 1):
        losses = [
            loss((total + each) / (len(chosen) + 1)) for each in predictions[:candidates_max]
        ]
        following = int(np.argmin(losses))
        if not losses[following] < best - least_gain * abs(best):
            break
        best = losses[following]
        chosen.append(following)
        total = total + predictions[following]
    return {member: chosen.count(member) / len(chosen) for member in sorted(set(chosen))}

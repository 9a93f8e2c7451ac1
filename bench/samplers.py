"""Optuna's side of samplers.ts: reads the job as JSON on stdin, prints the regrets of each function as JSON."""
import json
import sys
from math import cos, e, exp, pi, sin, sqrt

import optuna

optuna.logging.set_verbosity(optuna.logging.ERROR)
import warnings

warnings.simplefilter("ignore")

H_WEIGHTS = [1, 1.2, 3, 3.2]
H3_A = [[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]]
H3_P = [[0.3689, 0.117, 0.2673], [0.4699, 0.4387, 0.747], [0.1091, 0.8732, 0.5547], [0.0381, 0.5743, 0.8828]]
H6_A = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
H6_P = [
    [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
    [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
    [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.665],
    [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
]


def hartmann(a, p):
    return lambda x: -sum(
        w * exp(-sum(aa * (v - pp) ** 2 for v, aa, pp in zip(x, ar, pr))) for w, ar, pr in zip(H_WEIGHTS, a, p)
    )


def ackley(x):
    n = len(x)
    return -20 * exp(-0.2 * sqrt(sum(v * v for v in x) / n)) - exp(sum(cos(2 * pi * v) for v in x) / n) + 20 + e


def levy(x):
    w = [1 + (v - 1) / 4 for v in x]
    middle = sum((v - 1) ** 2 * (1 + 10 * sin(pi * v + 1) ** 2) for v in w[:-1])
    return sin(pi * w[0]) ** 2 + middle + (w[-1] - 1) ** 2 * (1 + sin(2 * pi * w[-1]) ** 2)


def branin(x):
    a, b = x
    return (b - 5.1 * a * a / (4 * pi * pi) + 5 * a / pi - 6) ** 2 + 10 * (1 - 1 / (8 * pi)) * cos(a) + 10


FUNCTIONS = {
    "sphere-5": lambda x: sum(v * v for v in x),
    "rosenbrock-4": lambda x: sum(100 * (n - v * v) ** 2 + (v - 1) ** 2 for v, n in zip(x, x[1:])),
    "branin": branin,
    "six-hump-camel": lambda x: (4 - 2.1 * x[0] ** 2 + x[0] ** 4 / 3) * x[0] ** 2
    + x[0] * x[1]
    + (-4 + 4 * x[1] ** 2) * x[1] ** 2,
    "hartmann-3": hartmann(H3_A, H3_P),
    "hartmann-6": hartmann(H6_A, H6_P),
    "ackley-5": ackley,
    "rastrigin-4": lambda x: 10 * len(x) + sum(v * v - 10 * cos(2 * pi * v) for v in x),
    "levy-4": levy,
    "styblinski-tang-5": lambda x: sum(v**4 - 16 * v * v + 5 * v for v in x) / 2,
}


def regret(function, bounds, optimum, seed, trials, multivariate):
    sampler = optuna.samplers.TPESampler(seed=seed, multivariate=multivariate)
    study = optuna.create_study(sampler=sampler)

    def objective(trial):
        return function([trial.suggest_float(f"x{i}", low, high) for i, (low, high) in enumerate(bounds)])

    study.optimize(objective, n_trials=trials)
    return study.best_value - optimum


job = json.load(sys.stdin)
for target in job["functions"]:
    function = FUNCTIONS[target["name"]]
    answer = {"name": target["name"], "probe": function(target["probe"])}
    for name, multivariate in (("multivariate", True), ("independent", False)):
        answer[name] = [
            regret(function, target["bounds"], target["optimum"], seed, job["trials"], multivariate)
            for seed in job["seeds"]
        ]
    print(json.dumps(answer), flush=True)

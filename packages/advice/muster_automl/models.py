"""Models by name, as pipelines that take the columns as they are in the table."""

from __future__ import annotations

import importlib.util
from typing import Any

import pandas as pd
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from .dataset import feature_kinds
from .errors import InputError

#: Of a category with more values the most frequent have a column each, and all others share one.
values_with_column_max = 40

forests = {
    "forest": (RandomForestClassifier, RandomForestRegressor),
    "extra_trees": (ExtraTreesClassifier, ExtraTreesRegressor),
}


def pipeline(
    run: dict[str, Any], params: dict[str, Any], features: pd.DataFrame, cpus: int
) -> Pipeline:
    name = params.get("model")
    model = estimator(run, params, cpus)
    return Pipeline(
        [("columns", preparation(features, scaled=name in ("linear", "mlp"))), ("model", model)]
    )


def preparation(features: pd.DataFrame, scaled: bool) -> ColumnTransformer:
    numbers, categories = feature_kinds(features)
    steps: list[tuple[str, Any]] = [
        ("missing", SimpleImputer(strategy="median", add_indicator=True))
    ]
    if scaled:
        steps.append(("scale", StandardScaler()))
    encoder = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=values_with_column_max
    )
    filled = SimpleImputer(strategy="constant", fill_value="(missing)")
    return ColumnTransformer(
        [
            ("numbers", Pipeline(steps), numbers),
            ("categories", Pipeline([("missing", filled), ("one_hot", encoder)]), categories),
        ],
        sparse_threshold=0,
    )


def estimator(run: dict[str, Any], params: dict[str, Any], cpus: int) -> Any:
    is_class, seed, name = run["task"] == "classification", run["seed"], params.get("model")
    if name == "linear":
        strength = params["linear_strength"]
        return (
            LogisticRegression(C=1 / strength, max_iter=1_000)
            if is_class
            else Ridge(alpha=strength)
        )
    if name == "tree":
        kind = DecisionTreeClassifier if is_class else DecisionTreeRegressor
        return kind(
            max_depth=params["tree_depth"], min_samples_leaf=params["tree_leaf"], random_state=seed
        )
    if name in forests:
        return forests[name][0 if is_class else 1](
            n_estimators=params["forest_trees"],
            max_features=params["forest_features"],
            min_samples_leaf=params["forest_leaf"],
            n_jobs=cpus,
            random_state=seed,
        )
    if name == "boosting":
        kind = HistGradientBoostingClassifier if is_class else HistGradientBoostingRegressor
        return kind(
            learning_rate=params["boost_rate"],
            max_iter=params["boost_rounds"],
            max_leaf_nodes=params["boost_leaves"],
            l2_regularization=params["boost_l2"],
            early_stopping=False,
            random_state=seed,
        )
    if name in ("xgboost", "lightgbm"):
        return boosted_by(name, is_class, params, seed, cpus)
    if name == "constant":
        return DummyClassifier()
    if name == "mlp":
        return network(is_class, params, seed)
    raise InputError(
        f'unknown model "{name}"; known are linear, tree, forest, extra_trees, boosting, xgboost, lightgbm, mlp'
    )


def boosted_by(library: str, is_class: bool, params: dict[str, Any], seed: int, cpus: int) -> Any:
    if importlib.util.find_spec(library) is None:
        raise InputError(
            f"the Python of this node has no {library}; install it, or leave it out of the models to try"
        )
    common = {
        "learning_rate": params["boost_rate"],
        "n_estimators": params["boost_rounds"],
        "reg_lambda": params["boost_l2"],
        "n_jobs": cpus,
        "random_state": seed,
    }
    if library == "xgboost":
        import xgboost

        kind = xgboost.XGBClassifier if is_class else xgboost.XGBRegressor
        leaves = {"max_leaves": params["boost_leaves"], "max_depth": 0, "grow_policy": "lossguide"}
        return kind(tree_method="hist", verbosity=0, **leaves, **common)
    import lightgbm

    kind = lightgbm.LGBMClassifier if is_class else lightgbm.LGBMRegressor
    return kind(
        num_leaves=params["boost_leaves"],
        verbose=-1,
        deterministic=True,
        force_row_wise=True,
        **common,
    )


def network(is_class: bool, params: dict[str, Any], seed: int) -> Any:
    kind = MLPClassifier if is_class else MLPRegressor
    model = kind(
        hidden_layer_sizes=(params["mlp_width"],) * params["mlp_layers"],
        alpha=params["mlp_alpha"],
        learning_rate_init=params["mlp_rate"],
        max_iter=200,
        random_state=seed,
    )
    # A target of large numbers would let the first steps diverge.
    return model if is_class else TransformedTargetRegressor(model, transformer=StandardScaler())

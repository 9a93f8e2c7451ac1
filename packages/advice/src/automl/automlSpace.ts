/** The space that AutoML searches: the model, and for each model its settings. As the parameters of a sweep file. */
import type { AutomlModel } from './automlFields.ts';

interface RangeFile {
  readonly type: 'float' | 'int';
  readonly min: number;
  readonly max: number;
  readonly log?: true;
  readonly step?: number;
  readonly when: { readonly model: readonly AutomlModel[] };
}

export type SpaceFile = Readonly<Record<string, RangeFile | { readonly values: readonly string[] }>>;

/** People can follow a tree of that depth, and no deeper one. */
const shallowDepth = 4;

/** Ranges in which a model is good on most tables, from the documentation of the libraries. */
const ranges: Readonly<Record<string, Omit<RangeFile, 'when'> & { readonly of: readonly AutomlModel[] }>> = {
  linear_strength: { type: 'float', min: 1e-4, max: 1e3, log: true, of: ['linear'] },
  tree_depth: { type: 'int', min: 2, max: 12, of: ['tree'] },
  tree_leaf: { type: 'int', min: 1, max: 64, log: true, of: ['tree'] },
  forest_trees: { type: 'int', min: 50, max: 400, step: 50, of: ['forest', 'extra_trees'] },
  forest_features: { type: 'float', min: 0.2, max: 1, of: ['forest', 'extra_trees'] },
  forest_leaf: { type: 'int', min: 1, max: 20, log: true, of: ['forest', 'extra_trees'] },
  boost_rate: { type: 'float', min: 0.01, max: 0.3, log: true, of: ['boosting', 'xgboost', 'lightgbm'] },
  boost_rounds: { type: 'int', min: 30, max: 500, log: true, of: ['boosting', 'xgboost', 'lightgbm'] },
  boost_leaves: { type: 'int', min: 4, max: 127, log: true, of: ['boosting', 'xgboost', 'lightgbm'] },
  boost_l2: { type: 'float', min: 1e-6, max: 10, log: true, of: ['boosting', 'xgboost', 'lightgbm'] },
  mlp_width: { type: 'int', min: 16, max: 256, log: true, of: ['mlp'] },
  mlp_layers: { type: 'int', min: 1, max: 3, of: ['mlp'] },
  mlp_alpha: { type: 'float', min: 1e-6, max: 1, log: true, of: ['mlp'] },
  mlp_rate: { type: 'float', min: 1e-4, max: 1e-2, log: true, of: ['mlp'] },
};

/** @param models without repetition */
export function automlParameters(models: readonly AutomlModel[], isInterpretable: boolean): SpaceFile {
  const applying = Object.entries(ranges).flatMap(([name, { of, ...range }]) => {
    const model = of.filter((each) => models.includes(each));
    if (model.length === 0) return [];
    const max = isInterpretable && name === 'tree_depth' ? shallowDepth : range.max;
    return [[name, { ...range, max, when: { model } }] as const];
  });
  return { model: { values: models }, ...Object.fromEntries(applying) };
}

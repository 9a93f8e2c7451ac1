/** Layers and widths of a transformer whose size alone may be known. */
import type { TrainingContext } from './contextFields.ts';

export interface ModelShape {
  readonly parameters: number;
  readonly layers: number;
  readonly hiddenSize: number;
  readonly attentionHeads: number;
  readonly sequenceLength: number;
  /** Whether layers or width were derived from the parameters. */
  readonly isDerived: boolean;
}

/** Hidden size of a layer for each layer: that of models from 7 to 175 billion parameters, within a third. */
const widthPerLayer = 128;
/** Heads of nearly all models have this width, and widths are multiples of it. */
const headWidth = 128;
/** From 16 heads on, their number is a multiple of 8, so that tensor parallelism divides it. */
const wideStep = 8 * headWidth;

/**
 * A transformer has about 12 · layers · hidden_size² parameters (Kaplan and others 2020, table 1). With a hidden size of 128 for each
 * layer, both follow from the parameters. From 16 layers on, their number is a multiple of 8, so that pipelines divide it.
 */
export function shapeOf({ model }: Pick<TrainingContext, 'model'>): ModelShape {
  const { sequenceLength } = model;
  const parameters = parametersOf({ model });
  const layers = model.layers ?? layersOf(parameters, model.hiddenSize);
  const width = Math.sqrt(parameters / (12 * layers));
  const derivedWidth = Math.max(headWidth, toMultiple(width, width < 2 * wideStep ? headWidth : wideStep));
  const hiddenSize = model.hiddenSize ?? derivedWidth;
  const heads = Math.max(1, Math.round(hiddenSize / headWidth));
  return {
    parameters,
    layers,
    hiddenSize,
    attentionHeads: model.attentionHeads ?? heads,
    sequenceLength,
    isDerived: model.layers === null || model.hiddenSize === null,
  };
}

/** @throws {TypeError} the context has not passed the checks of a question that needs them */
export function parametersOf({ model }: Pick<TrainingContext, 'model'>): number {
  if (model.parameters === null) throw new TypeError('not a checked context: no parameters of the model');
  return model.parameters;
}

function layersOf(parameters: number, hiddenSize: number | null): number {
  const exact =
    hiddenSize === null
      ? Math.cbrt(parameters / (12 * widthPerLayer ** 2))
      : parameters / (12 * hiddenSize ** 2);
  return Math.max(1, exact < 16 ? Math.round(exact) : toMultiple(exact, 8));
}

function toMultiple(value: number, step: number): number {
  return Math.round(value / step) * step;
}

/** The texts of a step as pieces, which each target writes in its own way. Pure. */
import { isMapping } from '@muster/common/spec/path';
import type { JobSpec } from '@muster/common/spec/types';
import { checkJobSpec } from '@muster/common/spec/validate';
import type { PipelineSpec, PipelineStep, StepOutput } from '../model.ts';
import { partsOf, substitute } from '../substitute.ts';

export type TextPiece =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'param'; readonly name: string }
  | { readonly kind: 'item' }
  /** The path of what another step has made, or the paths of a step with `for_each`. */
  | {
      readonly kind: 'input';
      readonly name: string;
      readonly source: PipelineStep;
      readonly output: StepOutput;
    }
  | { readonly kind: 'output'; readonly output: StepOutput };

export type PieceText = readonly TextPiece[];

export interface StepTexts {
  /** null: it is a sweep. */
  readonly command: readonly PieceText[] | null;
  /** What a step finds in its environment; what the file sets counts. */
  readonly env: ReadonlyMap<string, PieceText>;
  readonly image: PieceText | null;
  readonly workdir: PieceText | null;
  /** With the defaults of parameters. null: they depend on one without a default. */
  readonly resources: JobSpec['resources'] | null;
}

export function textsOf(spec: PipelineSpec, step: PipelineStep): StepTexts {
  const pieces = (text: string) => piecesOf(spec, step, text);
  const { work } = step;
  const file = work.kind === 'job' ? work.file : work.kind === 'run' ? { command: work.command } : {};
  const own = Object.entries(isMapping(file['env']) ? file['env'] : {});
  const image = typeof file['image'] === 'string' ? pieces(file['image']) : null;
  const workdir =
    typeof file['workdir'] === 'string' ? file['workdir'] : image === null ? spec.workdir : null;
  const parsed = checkJobSpec({ command: file['command'], ...pick(file, 'args') });
  return {
    command: work.kind === 'sweep' || !parsed.ok ? null : parsed.spec.command.map(pieces),
    env: new Map<string, PieceText>([
      ...spec.params.map(({ name }) => [`MUSTER_PARAM_${name}`, [{ kind: 'param', name }]] as const),
      ...step.inputs.map(({ name }) => [`MUSTER_INPUT_${name}`, pieces(`\${inputs.${name}}`)] as const),
      ...step.outputs.map(({ name }) => [`MUSTER_OUTPUT_${name}`, pieces(`\${outputs.${name}}`)] as const),
      ['MUSTER_STEP', pieces(step.name)],
      ...(step.forEach === null ? [] : [['MUSTER_ITEM', [{ kind: 'item' }]] as const]),
      ...Object.entries({ ...spec.env, ...Object.fromEntries(own) }).map(
        ([name, value]) => [name, pieces(String(value))] as const,
      ),
    ]),
    image,
    workdir: workdir === null ? null : pieces(workdir),
    resources: resourcesOf(spec, file),
  };
}

function pick(file: Readonly<Record<string, unknown>>, key: string): Readonly<Record<string, unknown>> {
  return file[key] === undefined ? {} : { [key]: file[key] };
}

function resourcesOf(spec: PipelineSpec, file: Readonly<Record<string, unknown>>): StepTexts['resources'] {
  const params = Object.fromEntries(
    spec.params.flatMap(({ name, default: preset }) => (preset === null ? [] : [[name, preset]])),
  );
  const filled = substitute(file['resources'] ?? {}, { params, inputs: {}, outputs: {}, item: null });
  const checked = checkJobSpec({ command: ['true'], resources: filled });
  return checked.ok ? checked.spec.resources : null;
}

export function piecesOf(spec: PipelineSpec, step: PipelineStep, text: string): PieceText {
  return partsOf(text).flatMap((part): PieceText => {
    if (typeof part === 'string') return [{ kind: 'text', text: part }];
    const { kind, name } = part;
    if (kind === 'item') return [{ kind }];
    if (kind === 'params') return [{ kind: 'param', name }];
    if (kind === 'outputs')
      return step.outputs.filter((each) => each.name === name).map((output) => ({ kind: 'output', output }));
    const input = step.inputs.find((each) => each.name === name);
    if (input === undefined) return [];
    if (input.kind === 'text') return piecesOf(spec, step, input.text);
    const source = spec.steps.find((each) => each.name === input.step);
    const output = source?.outputs.find((each) => each.name === input.output);
    // What is left is the best point of a sweep, whose task never succeeds where it is exported to.
    if (source === undefined || output === undefined) return [];
    return [{ kind: 'input', name, source, output }];
  });
}

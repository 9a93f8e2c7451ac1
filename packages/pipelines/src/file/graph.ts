/** What the steps of a pipeline say of each other: names, inputs, cycles. */
import type { SpecPath } from '@muster/common/spec/path';
import { closest } from '@muster/common/spec/suggest';
import type { FileReader } from '@muster/experiments/file/findings';
import type { PipelineParameter, PipelineStep, StepInput } from '../model.ts';
import { type Reference, referencesIn } from '../substitute.ts';

/** The output that every sweep has. */
export const bestOutput = 'best';

/** @returns the steps of each group in an order in which each comes behind those that it waits for */
export function checkGraph(
  reader: FileReader,
  steps: readonly PipelineStep[],
  params: readonly PipelineParameter[],
): readonly PipelineStep[] {
  const byName = new Map<string, PipelineStep>();
  for (const step of steps) {
    const other = byName.get(step.name);
    if (other === undefined) byName.set(step.name, step);
    else reader.contradiction([step.group, step.name], `${other.group} has a step "${step.name}" too`);
  }
  for (const step of steps) {
    checkNeeds(reader, step, byName);
    checkReferences(reader, step, params);
  }
  return inOrder(reader, steps, byName);
}

/** The steps that a step waits for, each once. */
export function needsOf({ after, inputs }: Pick<PipelineStep, 'after' | 'inputs'>): readonly string[] {
  const sources = inputs.flatMap((input) => (input.kind === 'output' ? [input.step] : []));
  return [...new Set([...after, ...sources])];
}

function checkNeeds(reader: FileReader, step: PipelineStep, byName: ReadonlyMap<string, PipelineStep>): void {
  const path = [step.group, step.name];
  const needed = (place: SpecPath, name: string): PipelineStep | null => {
    const other = byName.get(name);
    if (other !== undefined && other.group === step.group) return other;
    if (other !== undefined) {
      reader.contradiction(place, `"${name}" is one of ${other.group}`, `a step of ${step.group}`);
      return null;
    }
    unknown(reader, place, `there is no step "${name}"`, name, [...byName.keys()]);
    return null;
  };
  const { after } = step;
  for (const [index, name] of after.entries())
    needed(after.length === 1 ? [...path, 'after'] : [...path, 'after', index], name);
  for (const input of step.inputs) {
    if (input.kind !== 'output') continue;
    const place = [...path, 'inputs', input.name];
    const other = needed(place, input.step);
    if (other !== null) checkOutput(reader, place, input, other);
  }
}

function checkOutput(
  reader: FileReader,
  place: SpecPath,
  { output }: Extract<StepInput, { kind: 'output' }>,
  { name, work, outputs }: PipelineStep,
): void {
  const known = work.kind === 'sweep' ? [bestOutput] : outputs.map((each) => each.name);
  if (!known.includes(output))
    unknown(reader, place, `the step "${name}" has no output "${output}"`, output, known);
}

function unknown(
  reader: FileReader,
  path: SpecPath,
  message: string,
  word: string,
  known: readonly string[],
): void {
  const suggestion = closest(word, known);
  const expected = suggestion === null && known.length > 0 ? `one of ${known.join(', ')}` : null;
  reader.findings.push({ path, at: 'value', message, expected, suggestion });
}

function checkReferences(reader: FileReader, step: PipelineStep, params: readonly PipelineParameter[]): void {
  const path = [step.group, step.name];
  const paramNames = params.map(({ name }) => name);
  const known: Readonly<Record<Exclude<Reference['kind'], 'item'>, readonly string[]>> = {
    params: paramNames,
    inputs: step.inputs.map(({ name }) => name),
    outputs: step.outputs.map(({ name }) => name),
  };
  const { work, jobSettings } = step;
  const own = work.kind === 'run' ? { run: work.command } : { [work.kind]: work.file };
  const texts = { ...own, ...jobSettings };
  for (const { kind, name, path: place } of referencesIn(texts)) {
    const at = [...path, ...place];
    if (kind === 'item') {
      if (step.forEach === null) reader.contradiction(at, `\${item} is for steps with for_each`);
    } else if (!known[kind].includes(name)) {
      const what = kind === 'params' ? 'the pipeline' : 'the step';
      unknown(reader, at, `${what} has no ${kind} "${name}"`, name, known[kind]);
    }
  }
  const others = [
    ...step.inputs.flatMap((each) =>
      each.kind === 'text' ? [['inputs', each.name, each.text] as const] : [],
    ),
    ...step.outputs.map((each) => ['outputs', each.name, each.path] as const),
  ];
  for (const [key, member, text] of others) checkParamsOnly(reader, [...path, key, member], text, paramNames);
  const { forEach } = step;
  if (forEach !== null && 'parameter' in forEach) {
    const found = params.find(({ name }) => name === forEach.parameter);
    const place = [...path, 'for_each'];
    if (found === undefined)
      unknown(
        reader,
        place,
        `the pipeline has no params "${forEach.parameter}"`,
        forEach.parameter,
        paramNames,
      );
    else if (found.type !== 'list')
      reader.contradiction(
        place,
        `the parameter "${found.name}" is of type ${found.type}`,
        'one of type list',
      );
  }
}

/** A text in which parameters may stand, and nothing of the step. */
export function checkParamsOnly(
  reader: FileReader,
  path: SpecPath,
  text: string,
  paramNames: readonly string[],
): void {
  for (const { kind, name } of referencesIn(text)) {
    if (kind !== 'params')
      reader.contradiction(
        path,
        `\${${kind === 'item' ? kind : `${kind}.${name}`}} is not known here`,
        `\${params.NAME}`,
      );
    else if (!paramNames.includes(name))
      unknown(reader, path, `the pipeline has no params "${name}"`, name, paramNames);
  }
}

function inOrder(
  reader: FileReader,
  steps: readonly PipelineStep[],
  byName: ReadonlyMap<string, PipelineStep>,
): readonly PipelineStep[] {
  const ordered: PipelineStep[] = [];
  const state = new Map<string, 'open' | 'placed'>();
  let hasCycle = false;
  // With a stack of its own: a chain of a thousand steps is a depth of a thousand.
  for (const start of steps) {
    const stack: { readonly step: PipelineStep; readonly needs: string[] }[] = [];
    const open = (step: PipelineStep) => {
      state.set(step.name, 'open');
      stack.push({ step, needs: [...needsOf(step)].reverse() });
    };
    if (!state.has(start.name)) open(start);
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      const name = top.needs.pop();
      if (name === undefined) {
        state.set(top.step.name, 'placed');
        ordered.push(top.step);
        stack.pop();
        continue;
      }
      const next = byName.get(name);
      if (next === undefined || next.group !== top.step.group) continue;
      if (!state.has(name)) open(next);
      else if (state.get(name) === 'open' && !hasCycle) {
        hasCycle = true;
        reportCycle(
          reader,
          top.step,
          stack.map(({ step }) => step.name),
          name,
        );
      }
    }
  }
  return ordered;
}

/** The first that is found; others are found once it is gone. */
function reportCycle(reader: FileReader, step: PipelineStep, open: readonly string[], name: string): void {
  const cycle = [...open.slice(open.indexOf(name)), name];
  const isAfter = step.after.includes(name);
  const input = step.inputs.find((each) => each.kind === 'output' && each.step === name);
  const key = isAfter ? ['after'] : ['inputs', input?.name ?? ''];
  const path =
    cycle.length === 2 ? 'it waits for itself' : `a cycle, each waits for the next: ${cycle.join(' → ')}`;
  reader.contradiction([step.group, step.name, ...key], path);
}

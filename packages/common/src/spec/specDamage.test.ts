/**
 * Nobody writes the spec that breaks a parser on purpose; everybody writes one by accident. A valid spec is damaged in
 * thousands of ways, reproducibly: whatever comes out is either a spec or problems with words in them.
 */
import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import { seededChance } from '../../../../test/support/chance.ts';
import { trialsOf } from '../../../../test/support/trials.ts';
import { formatProblems } from './format.ts';
import { parseJobSpec } from './parse.ts';
import { encodeJobSpec } from './serialize.ts';
import { validateJobSpec } from './validate.ts';

const valid = `name: llama
image: nvcr.io/nvidia/pytorch:24.01-py3
command: [torchrun, train.py]
args: [--config=config.yaml, 0.10]
env:
  WANDB_PROJECT: demo
  EMPTY: ""
secrets: [ssh-key, WANDB_API_KEY=wandb]
resources: {nodes: {min: 2, max: 4}, gpus: 4, gpu_type: [H100, A100], cpus: 1.5, topology: required}
volumes:
  - /data:/data:ro
  - /checkpoints:/checkpoints
max_runtime: 24h
launcher: torchrun
network: 10.1.0.0/16
preflight: {min_bandwidth_mbps: 10000}
lease: 90s
node_loss: requeue
retry:
  max_attempts: 3
  backoff: {initial: 2s, max: 60s}
  on: [cuda_oom, node_lost]
checkpoint: {dir: "/checkpoints/llama-{array_index}", keep_last: 3}
phases: [{name: a, steps: 10, params: {x: 1}}, {name: b, steps: 5, success: loss < 1, extend: {steps: 2}}]
array: 0-9%4
labels: {type: training}
`;

function seeded(seed: number): (below: number) => number {
  const chance = seededChance(seed);
  return (below) => chance.integer(0, below - 1);
}

const fragments =
  '\n|  |\t|: |- |[|]|{|}|,|"|\'|#|&a |*a|!!str |!x |>|?|~|null|1e999|-1|0x|.nan|__proto__: 1\n|---\n|%a\n|\0|\r|\ufffd|😀'.split(
    '|',
  );

function mutate(text: string, choose: (below: number) => number): string {
  const at = choose(text.length + 1);
  const end = Math.min(text.length, at + 1 + choose(12));
  switch (choose(5)) {
    case 0:
      return text.slice(0, at) + text.slice(end);
    case 1:
      return text.slice(0, at) + (fragments[choose(fragments.length)] ?? '') + text.slice(at);
    case 2:
      return text.slice(0, end) + text.slice(at, end) + text.slice(end);
    case 3:
      return text.slice(0, at) + String.fromCharCode(32 + choose(95)) + text.slice(at + 1);
    default: {
      const lines = text.split('\n');
      const [moved = ''] = lines.splice(choose(lines.length), 1);
      lines.splice(choose(lines.length + 1), 0, moved);
      return lines.join('\n');
    }
  }
}

/** What is wrong with the answer to a text; empty when all is well. */
function problemsIn(text: string, result: ReturnType<typeof parseJobSpec>): readonly string[] {
  if (result.ok) {
    const again = validateJobSpec(JSON.parse(encodeJobSpec(result.spec)));
    return isDeepStrictEqual(again, result) ? [] : ['does not survive serialization'];
  }
  const lineCount = text.split('\n').length;
  const shown = formatProblems(result.problems, { file: 'job.yaml', text });
  return [
    ...(result.problems.length > 0 ? [] : ['refused without a problem']),
    ...(/^job\.yaml:\d+:\d+ {2}\S/.test(shown) ? [] : [`shown as ${shown}`]),
    ...result.problems.flatMap(({ message, expected, line, column }) => [
      ...(/\S/.test(message) ? [] : ['a problem without words']),
      ...(/Invalid|undefined|\[object/.test(`${message} ${expected}`)
        ? [`says ${message}, ${expected}`]
        : []),
      ...(line !== null && line >= 1 && line <= lineCount ? [] : [`line ${line} of ${lineCount}`]),
      ...(column !== null && column >= 1 ? [] : [`column ${column}`]),
    ]),
  ];
}

const trials = trialsOf(2_000, 600);

test(`${trials} damaged specs: each is a spec or has problems in words`, () => {
  const texts = Array.from({ length: trials }, (_, seed) => {
    const choose = seeded(seed);
    return Array.from({ length: 1 + choose(4) }).reduce<string>((text) => mutate(text, choose), valid);
  });
  const results = texts.map((text) => parseJobSpec(text));
  const failures = results.flatMap((result, seed) =>
    problemsIn(texts[seed] ?? '', result).map((problem) => ({ seed, problem, text: texts[seed] })),
  );
  expect(failures).toEqual([]);
  // Both ways out have really been tried.
  const accepted = results.filter(({ ok }) => ok).length;
  expect(accepted).toBeGreaterThan(trials / 20);
  expect(accepted).toBeLessThan(trials - trials / 20);
});

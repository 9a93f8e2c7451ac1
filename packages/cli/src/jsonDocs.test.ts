/** docs/json.md is made from proto/; this compares it, and the exit codes in docs/commands.md, with the CLI. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { exitCodeMeanings } from './exitCodes.ts';
import {
  aCause,
  aCheckpoint,
  aCluster,
  aCondition,
  aJob,
  aNode,
  anAttempt,
  aTask,
} from './testing/fakeCoordinator.ts';

const page = readFileSync(join(import.meta.dirname, '../../../docs/json.md'), 'utf8');

/** Members of a shape, with the name of the shape that each holds. */
function shape(name: string): ReadonlyMap<string, string | null> {
  const section = page.split(`\n### ${name}\n`)[1]?.split('\n### ')[0] ?? '';
  const rows = section.matchAll(/^\| `(\w+)` \| (?:object of )?(?:\[(\w+)\])?/gm);
  return new Map(Array.from(rows, ([, member = '', held]) => [member, held ?? null]));
}

function expectShape(name: string, value: object): void {
  const members = shape(name);
  expect(Object.keys(value).toSorted(), name).toEqual([...members.keys()].toSorted());
  for (const [member, inner] of Object.entries(value)) {
    const [first] = Array.isArray(inner) ? inner : [inner];
    const held = members.get(member);
    if (typeof first === 'object' && first !== null && held != null) expectShape(held, first as object);
  }
}

test('the page shows the members of jobs, nodes and clusters that the CLI prints, and no others', () => {
  const attempt = anAttempt({ cause: aCause('exit_code', 'exit code 3'), tasks: [aTask()] });
  // Only a checkpoint that was saved after a divergence tells so, and only one that is evaluated has an evaluation.
  const evaluation = {
    state: 'failed',
    jobId: 'job_evaluates',
    metrics: { eval_loss: 2.1 },
    cause: 'no_metric',
    message: 'its output shows no finite eval_loss',
    best: false,
  } as const;
  const checkpoints = [
    aCheckpoint({ diverged: true, found: true, saverUnknown: true, fingerprint: '0f', evaluation }),
  ];
  expectShape('Job', aJob({ cause: aCause('exit_code', 'exit code 3'), attempts: [attempt], checkpoints }));
  expectShape('Node', aNode({ conditions: [aCondition()] }));
  expectShape('Cluster', aCluster());
});

test('docs/commands.md shows the exit codes of the code, and no others', () => {
  const commands = readFileSync(join(import.meta.dirname, '../../../docs/commands.md'), 'utf8');
  const rows = commands.matchAll(/^\| (\d+) \| (.*) \|$/gm);
  expect(Object.fromEntries(Array.from(rows, ([, code = '', meaning]) => [code, meaning]))).toEqual(
    exitCodeMeanings,
  );
});

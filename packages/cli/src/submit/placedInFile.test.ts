import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MusterError } from '@muster/common/errors';
import { expect, test } from 'vitest';
import { run, temporaryDir } from '../testing/testContext.ts';

test('a criterion of a phase that the coordinator refuses is shown with its place', async () => {
  const dir = temporaryDir();
  const phases = 'phases:\n  - {name: a, steps: 1}\n  - name: b\n    steps: 2\n    success: los < 1\n';
  writeFileSync(join(dir, 'job.yaml'), `command: [python]\n${phases}`);
  const path = 'phases[1].success';
  const problem = { path, message: 'column 1: unknown name "los"', expected: null, suggestion: null };
  const refuse = () => {
    throw new MusterError('invalid', 'the spec is wrong', { problems: [problem] });
  };
  const args = ['submit', '-f', 'job.yaml', '--priority', '60'];
  const { stderr } = await run(args, { Submit: refuse }, { environment: { workingDir: dir } });
  expect(stderr).toContain('job.yaml:6:14  phases[1].success: column 1: unknown name "los"\n');
});

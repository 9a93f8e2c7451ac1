import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { exitCodes } from '../exitCodes.ts';
import { run, temporaryDir } from '../testing/testContext.ts';

const accepted = {
  Submit: () => ({ jobIds: ['job_0123456789ab'], repeatedRequest: false }),
};
const batch =
  '#!/bin/bash\n#SBATCH --gres=gpu:2\n#SBATCH --time=01:00:00\ntrap "exit: 1" TERM\npython x.py\n';
const unread =
  '#SBATCH lines are not read (--gres=gpu:2 --time=01:00:00); give these settings as flags, see docs/slurm.md';

function withScript(text: string): { environment: { workingDir: string } } {
  const workingDir = temporaryDir();
  writeFileSync(join(workingDir, 'train.sh'), text);
  return { environment: { workingDir } };
}

test('a script in place of a job file is refused with the command that runs it', async () => {
  const { exitCode, stderr, requests } = await run(['submit', '-f', 'train.sh'], accepted, withScript(batch));
  expect({ exitCode, requests }).toEqual({ exitCode: exitCodes.usage, requests: [] });
  expect(stderr).toBe(
    `muster: train.sh is a script, not a job file\nTry: muster submit -- ./train.sh\n${unread}\n`,
  );
  const plain = await run(['submit', '-f', 'train.sh'], accepted, withScript('#!/bin/sh\necho "a: b"\n'));
  expect(plain.stderr).toBe(
    'muster: train.sh is a script, not a job file\nTry: muster submit -- ./train.sh\n',
  );
});

test('a command that is a script with a header for Slurm is submitted, and the header named', async () => {
  for (const command of [['./train.sh'], ['train.sh', '1'], ['bash', 'train.sh']]) {
    const { exitCode, stderr } = await run(['submit', '--', ...command], accepted, withScript(batch));
    expect(exitCode).toBe(exitCodes.ok);
    expect(stderr).toBe(`${command.find((word) => word.includes('train'))}: ${unread}\n`);
  }
});

test('nothing is printed about other commands, and of programs in a container', async () => {
  const options = withScript(batch);
  const silent = async (argv: readonly string[]) =>
    expect((await run(['submit', ...argv], accepted, options)).stderr).toBe('');
  await silent(['--', 'python', 'train.sh']);
  await silent(['--', 'bash', '-c', './train.sh']);
  await silent(['--', 'missing.sh']);
  await silent(['--', '.']);
  await silent(['--image', 'torch', '--', './train.sh']);
});

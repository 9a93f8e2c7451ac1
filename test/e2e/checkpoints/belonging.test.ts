/** Whose the checkpoints in a directory are, whatever the times of their files say. */
import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../../support/cluster.ts';
import { tempDir } from '../../support/services.ts';
import { waitForVerdict } from './waitForVerdict.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ nodes: 2, gpus: 1 });
});

const quick = { initial: '100ms', max: '500ms' };

/** A checkpoint, with the time that its writer gives it. Directories have the layout of Hugging Face. */
const layouts = {
  files: {
    nameOf: (step: number) => `step-${step}.json`,
    write: `writeFileSync(join(dir, '.saving'), text); utimesSync(join(dir, '.saving'), time, time);
      renameSync(join(dir, '.saving'), path);`,
    stepIn: 'resume',
  },
  directories: {
    nameOf: (step: number) => `checkpoint-${step}`,
    write: `mkdirSync(path, { recursive: true }); const file = join(path, 'global_step_' + step + '.json');
      writeFileSync(file, text); writeFileSync(join(path, 'model.safetensors'), tensors(step));
      for (const each of [file, join(path, 'model.safetensors'), path]) utimesSync(each, time, time);`,
    stepIn: `join(resume, 'global_step_' + resume.split('-').at(-1) + '.json')`,
  },
};

function program(layout: keyof typeof layouts, plan: string): string[] {
  const { write, stepIn, nameOf } = layouts[layout];
  const text = `
    const { mkdirSync, readFileSync, renameSync, utimesSync, writeFileSync } = require('node:fs');
    const { join } = require('node:path');
    const { MUSTER_CHECKPOINT_DIR: dir, MUSTER_RESUME_FROM: resume, MUSTER_ATTEMPT } = process.env;
    const attempt = Number(MUSTER_ATTEMPT);
    const tensors = (step) => {
      const header = Buffer.from(JSON.stringify({ w: { dtype: 'U8', shape: [64], data_offsets: [0, 64] } }));
      const length = Buffer.alloc(8);
      length.writeBigUInt64LE(BigInt(header.length));
      return Buffer.concat([length, header, Buffer.alloc(64, step)]);
    };
    const nameOf = ${nameOf.toString()};
    const save = (step, year) => {
      const path = join(dir, nameOf(step));
      const time = new Date(Date.UTC(year, 1, 3));
      const text = JSON.stringify({ step, attempt, state: 'x'.repeat(1000) });
      ${write}
    };
    const settle = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    ${waitForVerdict}
    const from = resume === '' ? 0 : JSON.parse(readFileSync(${stepIn}, 'utf8')).step;
    console.log('attempt ' + attempt + ' from ' + from);
    (async () => { ${plan} })();`;
  return [process.execPath, '-e', text];
}

describe.each(['files', 'directories'] as const)('with %s whose times are decades off', (layout) => {
  const { nameOf } = layouts[layout];

  test('an attempt resumes from what the job has saved, and not from what stood there before', async () => {
    const dir = tempDir(`belonging-${layout}`).path;
    // Somebody else's, one of them from the future.
    for (const step of [3, 900]) {
      const path = join(dir, nameOf(step));
      if (layout === 'files') writeFileSync(path, JSON.stringify({ step, state: 'y' }));
      else {
        mkdirSync(path);
        writeFileSync(join(path, `global_step_${step}.json`), JSON.stringify({ step }));
      }
      const time = new Date(Date.UTC(step === 3 ? 1999 : 2090, 1, 1));
      utimesSync(path, time, time);
    }
    const job = await cluster.run({
      command: program(
        layout,
        `if (attempt === 1) {
          save(2, 2095); await verdictOn(nameOf(2)); save(3, 1971); await verdictOn(nameOf(3)); process.exit(3);
        }`,
      ),
      checkpoint: { dir },
      retry: { on: ['exit_code'], backoff: quick },
    });
    expect(job.state).toBe('succeeded');
    expect(await cluster.output(job.id, { attempt: 2 })).toBe('attempt 2 from 3\n');
    expect(job.checkpoints.map(({ name }) => name)).toEqual([2, 3].map(nameOf));
    const index = JSON.parse(readFileSync(join(dir, 'checkpoints_index.json'), 'utf8'));
    expect(index.before).toMatchObject([{ name: nameOf(900) }]);
  });
});

test('a requeue from an earlier step sets the later ones aside, which may be listed and resumed from by name', async () => {
  const dir = tempDir('aside').path;
  const id = await cluster.submit({
    command: program(
      'files',
      `for (const step of attempt === 1 ? [1, 2, 3] : attempt === 2 ? [2] : []) {
        save(step, 1970 + attempt + step); await verdictOn(nameOf(step));
      }
      console.log('waits'); if (attempt < 3) await settle(600000);`,
    ),
    checkpoint: { dir },
  });
  const hasVerified = (name: string, attempt: number) =>
    cluster.untilJob(id, `has ${name} of attempt ${attempt}`, ({ checkpoints }) =>
      checkpoints.some(
        (each) => each.name === name && each.attempt === attempt && each.verdict === 'verified',
      ),
    );
  await hasVerified('step-3.json', 1);
  expect(await cluster.muster(['requeue', id, '--from', '1', '--force'])).toMatchObject({ exitCode: 0 });
  await hasVerified('step-2.json', 2);
  await hasVerified('step-3.json.attempt-1', 1);
  const names = ['step-1.json', 'step-2.json', 'step-2.json.attempt-1', 'step-3.json.attempt-1'];
  expect(readdirSync(dir).sort()).toEqual(['checkpoints_index.json', ...names]);
  expect(JSON.parse(readFileSync(join(dir, 'step-2.json.attempt-1'), 'utf8'))).toMatchObject({ attempt: 1 });
  const listed = await cluster.muster(['checkpoints', id]);
  for (const name of names) expect(listed.stdout).toContain(name);

  const refused = await cluster.muster(['requeue', id, '--from', 'step-9.json.attempt-1', '--force']);
  expect(refused.stderr).toContain('has no good checkpoint "step-9.json.attempt-1"');
  const taken = await cluster.muster(['requeue', id, '--from', 'step-3.json.attempt-1', '--force']);
  expect(taken).toMatchObject({ exitCode: 0 });
  const job = await cluster.untilEnded(id);
  expect(job.state).toBe('succeeded');
  const starts = [1, 2, 3].map((attempt) => cluster.output(id, { attempt }));
  expect((await Promise.all(starts)).map((text) => text.split('\n')[0])).toEqual([
    'attempt 1 from 0',
    'attempt 2 from 1',
    'attempt 3 from 3',
  ]);
});

test('a marker of a complete training from before does not end a job, and one with an old time does', async () => {
  const dir = tempDir('marker').path;
  writeFileSync(join(dir, 'training_complete.marker'), '');
  const future = new Date(Date.UTC(2090, 1, 1));
  utimesSync(join(dir, 'training_complete.marker'), future, future);
  const job = await cluster.run({
    command: program(
      'files',
      `save(1, 1971); await verdictOn(nameOf(1)); console.log('not over');
      writeFileSync(join(dir, '.marker'), ''); utimesSync(join(dir, '.marker'), 1, 1);
      renameSync(join(dir, '.marker'), join(dir, 'training_complete.marker'));
      await settle(600000);`,
    ),
    checkpoint: { dir },
  });
  expect(job.state).toBe('succeeded');
  expect(await cluster.output(job.id)).toContain('not over');
});

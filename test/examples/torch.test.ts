import { randomInt } from 'node:crypto';
import { readdirSync, readFileSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { parseJobSpec } from '@muster/common/spec/parse';
import { beforeAll, describe, expect, it } from 'vitest';
import { pythonWithTorch, tempDir } from '../support/services.ts';
import {
  deliveries,
  examplesDir,
  gone,
  latestCheckpoint,
  startRun,
  type TrainingRun,
} from './trainingRun.ts';

/** Importing torch takes seconds, and four ranks share two cores. */
const torchTimeoutMs = 300_000;

/** The environment that the example job gives torchrun: tried here, so that it is right there. */
function exampleEnvironment(): NodeJS.ProcessEnv {
  const parsed = parseJobSpec(readFileSync(join(examplesDir, 'torchrun.yaml'), 'utf8'));
  if (!parsed.ok) throw new Error('examples/torchrun.yaml is not a valid job');
  return { ...parsed.spec.env };
}

describe('train_torch.py under torchrun, 2 nodes x 2 ranks on gloo', { timeout: 4 * torchTimeoutMs }, () => {
  let python = '';
  beforeAll(async () => {
    python = await pythonWithTorch();
  });

  const start = (flags: readonly string[], env: NodeJS.ProcessEnv): Promise<TrainingRun> => {
    const torchrun = [python, '-m', 'torch.distributed.run', join(examplesDir, 'train_torch.py')];
    // torchrun makes a folder for logs in there and leaves it behind.
    const temporary = { TMPDIR: tempDir('torchrun').path };
    return startRun({
      command: [...torchrun, ...flags],
      env: { ...exampleEnvironment(), ...temporary, ...env },
    });
  };

  it('brings the loss down and, stopped at random moments and resumed, ends with the same bits', async () => {
    const dir = tempDir('torch').path;
    const undisturbed = await start(['--steps=120', '--save-every=60'], { MUSTER_CHECKPOINT_DIR: dir });
    expect(await undisturbed.ended(torchTimeoutMs), undisturbed.output).toEqual([0, 0]);
    const losses = undisturbed.losses();
    expect(losses).toHaveLength(13);
    expect(losses.at(-1)).toBeLessThan((losses[0] ?? 0) / 2);
    for (let rank = 0; rank < 4; rank += 1) {
      expect(undisturbed.output).toContain(`rank ${rank}/4 on node ${rank < 2 ? 0 : 1} ready\n`);
    }
    expect(readdirSync(dir).sort()).toEqual(['step-000060.pt', 'step-000120.pt']);
    expect(undisturbed.digest()).not.toBeNull();

    const flags = ['--steps=120', '--step-ms=20', '--log-every=1', '--save-every=0'];
    const stoppedDir = tempDir('torch').path;
    let resumeFrom = '';
    let step = 0;
    for (const name of ['every process of every node', 'the launchers only'] as const) {
      const run = await start(flags, { MUSTER_CHECKPOINT_DIR: stoppedDir, MUSTER_RESUME_FROM: resumeFrom });
      step += randomInt(1, 40);
      await run.reached(step);
      await deliveries[name]?.(run);
      // torchrun has one status for all that is not success.
      expect(await run.ended(torchTimeoutMs), `SIGTERM to ${name} after step ${step}`).toEqual([1, 1]);
      resumeFrom = latestCheckpoint(stoppedDir) ?? '';
      const saved = Number(/step-(\d+)/.exec(resumeFrom)?.[1]);
      expect(saved, run.output).toBeGreaterThanOrEqual(step);
      // The launcher may write a warning of its own between the two lines.
      const stopping = `stopping after step ${saved}, as asked\n`;
      const [, afterwards] = run.output.split(stopping, 2);
      expect(afterwards, run.output).toContain(`saving checkpoint to ${resumeFrom}\n`);
      step = saved;
    }
    const last = await start(flags, { MUSTER_RESUME_FROM: resumeFrom });
    expect(await last.ended(torchTimeoutMs), last.output).toEqual([0, 0]);
    expect(last.output).toContain(`resuming from ${resumeFrom} at step ${step}\n`);
    expect(last.digest()).toBe(undisturbed.digest());
    expect(readdirSync(stoppedDir).filter((name) => name.includes('.tmp'))).toEqual([]);

    truncateSync(resumeFrom, 1000);
    const corrupt = await start(flags, { MUSTER_RESUME_FROM: resumeFrom });
    expect(await corrupt.ended(torchTimeoutMs)).toEqual([1, 1]);
    expect(corrupt.output).toContain(`corrupt checkpoint ${resumeFrom}: `);
  });

  it('ends all ranks when one is killed', async () => {
    const run = await start(['--steps=1000000', '--step-ms=5', '--log-every=1'], {});
    await run.reached(2);
    const pids = run.nodes.flatMap((node) => [...node.ranks().values()]);
    expect(pids).toHaveLength(4);
    process.kill(await run.rank(3), 'SIGKILL');
    expect(await run.ended(torchTimeoutMs)).toEqual([1, 1]);
    expect(run.output).toMatch(/^\[rank[0-2]\]: .*Connection (?:closed|reset) by peer/m);
    await gone(pids);
  });
});

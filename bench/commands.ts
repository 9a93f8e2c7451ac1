/**
 * How long each command takes beside a running cluster: 4 nodes with 32 simulated GPUs, 1,000 jobs of which 32 train, 100
 * have ended and the others are queued. Floors of the same run: `muster --version`, and starting Node itself.
 *
 *     node bench/commands.ts [rounds]
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  commandMs,
  musterCommand,
  report,
  reportMachine,
  startCluster,
  summary,
  untilEnded,
} from './support.ts';

const rounds = Number(process.argv[2] ?? 10);
const target = 'max < 300';
const scratch = mkdtempSync(join(tmpdir(), 'muster-bench-commands-'));

/** Two steps a second, for ten seconds to a minute, so that jobs end and begin while the commands are measured. */
const training =
  'i=0; while [ $i -lt $((20 + $$ % 100)) ]; do i=$((i+1)); echo "step: $i loss: 2.$((999 - i))"; sleep 0.5; done';

function timed(command: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  return commandMs(command, args, env, scratch);
}

async function reportTimes(figure: string, measure: (round: number) => Promise<number>): Promise<void> {
  const samples: number[] = [];
  for (let round = 0; round < rounds; round += 1) samples.push(await measure(round));
  const isFloor = figure.startsWith('floor');
  report(figure, { unit: 'ms', ...summary(samples), ...(isFloor ? {} : { target }) });
}

reportMachine();
const cluster = await startCluster(4, 8);
try {
  const { api, env } = cluster;
  const submit = (fields: Readonly<Record<string, unknown>>, arraySize: number, requestId: string) =>
    api.submit({
      specJson: JSON.stringify({ resources: { gpus: 1 }, workdir: scratch, ...fields }),
      requestId: `commands-${process.pid}-${requestId}`,
      arraySize,
    });
  const { lastEventSeq } = await api.getCluster();
  const ended = await submit(
    {
      name: 'ended',
      command: ['sh', '-c', 'echo "step: 1 loss: 2.5"; exit $(($$ % 2))'],
      retry: { max_attempts: 1 },
    },
    100,
    'ended',
  );
  await untilEnded(api, ended.jobIds, lastEventSeq);
  const sweep = await submit({ name: 'sweep', command: ['sh', '-c', training] }, 900, 'sweep');
  const [running = '', ...others] = sweep.jobIds;
  const queued = others.at(-1) ?? '';
  const [old = ''] = ended.jobIds;
  while ((await api.listJobs({ limit: 100, states: ['running'] })).jobs.length < 32) await delay(200);
  await delay(3_000);
  const jobFile = join(scratch, 'job.yaml');
  writeFileSync(jobFile, 'name: filed\ncommand: [sleep, "1"]\n');

  const commands: readonly (readonly string[])[] = [
    ['jobs'],
    ['jobs', '--all'],
    ['jobs', '--state', 'failed'],
    ['jobs', '--array', 'sweep', '--all', '--metrics', 'train_loss'],
    ['jobs', '--name', 'ended', '--wide'],
    ['job', running],
    ['job', queued],
    ['job', old],
    ['job', 'sweep[0]'],
    ['explain', running],
    ['explain', queued],
    ['explain', old],
    ['logs', running],
    ['logs', old],
    ['metrics', running],
    ['metrics', running, 'train_loss', '--plot'],
    ['checkpoints', running],
    ['diagnose', old],
    ['nodes'],
    ['node', 'node-1'],
    ['events'],
    ['token', 'list'],
    ['submit', '--gpus', '1', '--', 'true'],
    ['submit', '-f', 'job.yaml'],
  ];
  for (const command of commands) {
    const named = command.map(
      (part) => ({ [running]: 'RUNNING', [queued]: 'QUEUED', [old]: 'ENDED' })[part] ?? part,
    );
    await reportTimes(`muster ${named.join(' ')}`, () => timed(musterCommand, command, env));
  }
  await reportTimes('muster requeue ENDED', (round) =>
    timed(musterCommand, ['requeue', ended.jobIds[round] ?? ''], env),
  );
  await reportTimes('muster stop QUEUED', (round) =>
    timed(musterCommand, ['stop', others.at(-2 - round) ?? ''], env),
  );
  const stoppedMs = await timed(musterCommand, ['stop', 'sweep'], env);
  report('muster stop ARRAY, about 900 jobs', { unit: 'ms', n: 1, max: stoppedMs, target });
  await reportTimes('floor: muster --version', () => timed(musterCommand, ['--version'], env));
  await reportTimes('floor: node -e 0', () => timed(process.execPath, ['-e', '0'], env));
} finally {
  await cluster.stop();
  rmSync(scratch, { recursive: true, force: true });
}

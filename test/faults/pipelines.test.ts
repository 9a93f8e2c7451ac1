/**
 * kill -9 of the coordinator during a pipeline with a sweep, a step for each of several items, and triggers: no step and no trial is
 * started twice, no output is lost, the digests and the best trial are those of the same pipeline without kills, and each delivery and
 * each time starts one run. With MUSTER_TEST_TRIALS=full there are 30 kills.
 */
import { createHmac } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFailed, test } from 'vitest';
import { seededChance } from '../support/chance.ts';
import { startCluster } from '../support/cluster.ts';
import { stablePort } from '../support/places.ts';
import { waitFor } from '../support/services.ts';
import { trialsOf } from '../support/trials.ts';

const kills = trialsOf(30, 3);
const items = ['one', 'two', 'three'];

/** Its loss follows from the parameters alone. */
const trial = [
  'awk',
  'BEGIN { x = {x}; printf "iter 1: loss %.6f, time 440.71ms, mfu 48.31%%\\n", (x - 0.3) ^ 2 + 0.01 }',
];

/** Each step notes that it has started, and what it makes follows from what it gets. */
function pipelineIn(workDir: string) {
  const noted = (what: string) => `echo ${what} >> \${params.log}`;
  return {
    name: 'letters',
    artifacts: join(workDir, 'artifacts'),
    params: { log: { type: 'string' } },
    steps: {
      prepare: {
        run: `${noted('prepare')}; printf ab > $MUSTER_OUTPUT_data`,
        outputs: { data: { type: 'file' } },
      },
      tune: {
        sweep: {
          name: 'tune',
          trials: 6 + kills,
          parallel: 1,
          seed: 7,
          objective: { metric: 'train_loss' },
          parameters: { x: { type: 'float', min: 0, max: 1 } },
          job: { command: trial },
        },
        after: 'prepare',
      },
      train: {
        for_each: items,
        run: `${noted('train-$MUSTER_ITEM')}; sleep 1; (cat \${inputs.data}; echo $MUSTER_ITEM) > $MUSTER_OUTPUT_model`,
        inputs: { data: 'prepare.data' },
        outputs: { model: { type: 'file' } },
      },
      join: {
        run: `${noted('join')}; (cat \${inputs.models}; echo "\${inputs.best}") > $MUSTER_OUTPUT_all`,
        inputs: { models: 'train.model', best: 'tune.best' },
        outputs: { all: { type: 'file' } },
      },
    },
  };
}

test(`a pipeline and triggers do the same over ${kills} kills of the coordinator`, async () => {
  const chance = seededChance();
  onTestFailed(() => {
    process.stderr.write(`MUSTER_TEST_SEED=${chance.seed}\n`);
  });
  const api = `127.0.0.1:${await stablePort()}`;
  const cluster = await startCluster({
    gpus: 1,
    coordinatorFlags: ['--heartbeat', '5s', '--lease', '2m', '--api', api],
  });
  const { workDir } = cluster;
  const fileOf = (name: string, content: object) => {
    const file = join(workDir, `${name}.json`);
    writeFileSync(file, JSON.stringify(content));
    return file;
  };
  const linesOf = (name: string) => {
    const path = join(workDir, name);
    return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : [];
  };
  const pipeline = fileOf('pipeline', pipelineIn(workDir));
  const start = async (log: string) =>
    (
      await cluster.muster(['pipeline', 'run', '-f', pipeline, '--param', `log=${join(workDir, log)}`])
    ).stdout.trim();
  const ended = (id: string) =>
    waitFor(
      `${id} has ended`,
      async () => (await cluster.api.getPipeline(id).catch(() => null))?.endedAtMs != null,
      { timeoutMs: 600_000 },
    );
  const undisturbed = await start('undisturbed');
  await ended(undisturbed);

  const small = (text: string) => ({
    name: 'small',
    params: { text: '' },
    steps: { note: { run: `echo \${params.text} >> ${join(workDir, text)}` } },
  });
  const trigger = async (name: string, ...flags: readonly string[]) =>
    (
      await cluster.muster([
        'trigger',
        'create',
        name,
        '-f',
        fileOf(name, small(name)),
        '--overlap',
        'allow',
        ...flags,
      ])
    ).stdout.trim();
  const secret = await trigger('pushed', '--webhook', '--param', 'text=${trigger.body.text}');
  await trigger('each-minute', '--cron', '* * * * *', '--param', 'text=${trigger.time}');

  /** Sends a delivery until it is answered, as senders do. */
  async function deliver(id: string): Promise<string | null> {
    const body = JSON.stringify({ text: id });
    const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
    const answered = async () => {
      const timestamp = String(Math.floor(Date.now() / 1_000));
      const mac = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
      const headers = {
        'content-type': 'application/json',
        'webhook-id': id,
        'webhook-timestamp': timestamp,
        'webhook-signature': `v1,${mac}`,
      };
      const url = `http://${api}/api/v1/triggers/pushed/deliveries`;
      const answer = await fetch(url, { method: 'POST', headers, body }).catch(() => null);
      if (answer === null || answer.status === 503) return null;
      expect(answer.status).toBe(200);
      return (await answer.json().catch(() => null)) as { run: string | null } | null;
    };
    const answer = await waitFor(`${id} is answered`, answered);
    return answer?.run ?? null;
  }

  const disturbed = await start('disturbed');
  const tuned = async (id: string) => {
    const { steps } = await cluster.api.getPipeline(id);
    return steps.find(({ step }) => step === 'tune')?.sweepId ?? '';
  };
  const runs: (string | null)[] = [];
  for (let round = 0; round < kills; round += 1) {
    await waitFor(`trial ${round + 1} is there`, async () => {
      const sweep = await tuned(disturbed);
      return sweep !== '' && (await cluster.api.listTrials(sweep)).length > round;
    });
    const delivered = deliver(`msg-${round}`);
    // A moment of a trial, of a step, and of the delivery.
    await delay(chance.integer(0, 500));
    await cluster.coordinator.kill();
    await cluster.coordinator.start();
    const run = await delivered;
    expect(await deliver(`msg-${round}`)).toBe(run);
    runs.push(run);
  }
  await ended(disturbed);
  // What has been due by now is what is compared.
  await cluster.muster(['trigger', 'pause', 'each-minute']);
  for (const { id } of (await cluster.api.listPipelines({ active: true })).runs) await ended(id);

  expect(linesOf('disturbed').sort()).toEqual(
    ['join', 'prepare', ...items.map((item) => `train-${item}`)].sort(),
  );
  const found = async (id: string) => {
    const { state, steps } = await cluster.api.getPipeline(id);
    const shown = steps.map(({ step, item, state: of, tries, outputs }) => ({
      step,
      item,
      state: of,
      tries,
      digests: outputs.map(({ digest, bytes }) => ({ digest, bytes })),
    }));
    return { state, steps: shown };
  };
  expect((await found(disturbed)).state).toBe('succeeded');
  expect(await found(disturbed)).toEqual(await found(undisturbed));
  const trials = async (id: string) => {
    const listed = await cluster.api.listTrials(await tuned(id));
    return listed.map(({ number, state, params, value }) => ({ number, state, params, value }));
  };
  expect(await trials(disturbed)).toEqual(await trials(undisturbed));
  const best = async (id: string) => (await cluster.api.getSweep(await tuned(id))).best?.number;
  expect(await best(disturbed)).toBe(await best(undisturbed));

  const ids = Array.from({ length: kills }, (_, round) => `msg-${round}`);
  expect(linesOf('pushed').sort()).toEqual([...ids].sort());
  expect(new Set(runs).size).toBe(kills);
  const { runs: listed } = await cluster.api.listPipelines({ limit: 1_000 });
  const startedBy = (name: string) => listed.filter((run) => run.trigger === name);
  expect(startedBy('pushed')).toHaveLength(kills);
  // Each minute once, and no minute is missing.
  const minutes = startedBy('each-minute')
    .map(({ params }) => Date.parse(String(params['text'])) / 60_000)
    .sort((a, b) => a - b);
  expect(minutes).toEqual(minutes.map((_, index) => (minutes[0] ?? 0) + index));
  expect(linesOf('each-minute')).toHaveLength(minutes.length);
});

/**
 * A pipeline whose nodes share no directory: its artifacts are in an S3-compatible server, and agents and the coordinator are killed
 * while files are moved.
 */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openArtifactStore, storeKeyOf } from '@muster/agent/artifacts/store';
import type { PipelineRunView } from '@muster/common/pipelines';
import type { JobView } from '@muster/common/views';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { ensureTestImage } from '../support/images.ts';
import { type S3Server, s3Bucket, s3Key, startS3Server } from '../support/s3Server.ts';
import { waitFor } from '../support/services.ts';

const isRoot = process.geteuid?.() === 0;
let server: S3Server;
let cluster: Cluster;
beforeAll(async () => {
  server = await startS3Server();
  // As root, one of the nodes runs tasks as another account, which has to pass through to their directories.
  const flags = isRoot ? ['--account', '*=nobody'] : [];
  cluster = await startCluster({ nodes: 1, gpus: 1, agentFlags: (name) => (name === 'node-2' ? flags : []) });
  chmodSync(cluster.workDir, 0o711);
  await cluster.addAgent('node-2').start();
  await cluster.untilOnline();
  const set = await cluster.muster(['secret', 'set', 's3'], { stdin: `${s3Key}\n` });
  expect(set.exitCode).toBe(0);
});
afterAll(() => server.close());

const data = [
  'mkdir -p "$MUSTER_OUTPUT_data/tief ö/leer"',
  'printf ab > "$MUSTER_OUTPUT_data/tief ö/zwei buchstaben"',
  ': > $MUSTER_OUTPUT_data/empty',
  'head -c 20000000 /dev/zero > $MUSTER_OUTPUT_data/large',
].join(' && ');
const train = [
  'cat "$MUSTER_INPUT_data/tief ö/zwei buchstaben" > $MUSTER_OUTPUT_model',
  'wc -c < $MUSTER_INPUT_data/large >> $MUSTER_OUTPUT_model',
  'printf $MUSTER_ITEM >> $MUSTER_OUTPUT_model',
  'echo "sees: $(env)"',
  'if (: > $MUSTER_INPUT_data/empty; : > $MUSTER_INPUT_data/more) 2> /dev/null; then echo written; else echo kept; fi',
  'echo "account $(id -un)"',
].join(' && ');

function pipelineFile(changes: Readonly<Record<string, unknown>> = {}): string {
  const pipeline = {
    name: 'letters',
    artifacts: {
      url: `s3://${s3Bucket}/\${params.team}`,
      endpoint: server.endpoint,
      secret: 's3',
      ...changes,
    },
    params: { team: 'vision' },
    steps: {
      prepare: { run: data, outputs: { data: { type: 'directory' } }, cache: true },
      train: {
        for_each: ['one', 'two'],
        job: { command: train, resources: { gpus: 1 } },
        inputs: { data: 'prepare.data' },
        outputs: { model: { type: 'file', path: 'models/model.pt' } },
        cache: true,
      },
      join: {
        run: `cat \${inputs.models}`,
        inputs: { models: 'train.model' },
        when: "steps.train == 'succeeded' || steps.train == 'cached'",
      },
    },
  };
  const file = join(cluster.workDir, 'pipeline.json');
  writeFileSync(file, JSON.stringify(pipeline, null, 1));
  return file;
}

async function start(...flags: readonly string[]): Promise<string> {
  const started = await cluster.muster(['pipeline', 'run', '-f', pipelineFile(), ...flags]);
  expect(started.stderr).toBe('');
  return started.stdout.trim();
}

function ended(id: string): Promise<PipelineRunView> {
  return waitFor(`${id} has ended`, () => cluster.api.getPipeline(id).catch(() => null), {
    until: (run) => run?.endedAtMs != null,
  }) as Promise<PipelineRunView>;
}

const digestsOf = ({ steps }: PipelineRunView) =>
  steps.map(({ step, item, state, tries, outputs }) => [
    step,
    item,
    state,
    tries,
    outputs.map(({ name, bytes, digest }) => ({ name, bytes, digest })),
  ]);

test('agents move artifacts over kills, with the digests of an undisturbed run', async () => {
  const undisturbed = await ended(await start());
  expect(undisturbed.state, undisturbed.reason ?? '').toBe('succeeded');
  const [prepare, one, two, joined] = undisturbed.steps;
  expect(prepare?.outputs[0]).toMatchObject({ type: 'directory', bytes: 20_000_002 });
  expect(prepare?.outputs[0]?.path).toBe(
    `s3://${s3Bucket}/vision/${undisturbed.id}/prepare-1/${prepare?.jobId}-1/data`,
  );
  const jobs = await Promise.all([one, two].map((step) => cluster.api.getJob(step?.jobId ?? '')));
  const nodeOf = ({ attempts }: JobView) => attempts[0]?.tasks[0]?.node;
  expect(new Set(jobs.map(nodeOf)).size).toBe(2);
  const onSecond = await cluster.output(jobs.find((job) => nodeOf(job) === 'node-2')?.id ?? '');
  expect(onSecond).toContain('kept\n');
  if (isRoot) expect(onSecond).toContain('account nobody\n');
  expect(await cluster.output(joined?.jobId ?? '')).toBe('ab20000000\noneab20000000\ntwo');
  const seen = await cluster.output(one?.jobId ?? '');
  expect(seen).toContain('sees: ');
  expect(seen).not.toContain('S3RVER');

  // Downloads of the one, uploads of the other: while they are refused, both daemons are killed.
  let refused = 0;
  server.intercept((method, url) => {
    if (!(method === 'PUT' && url.includes('model.pt')) || refused < 0) return 'serve';
    refused += 1;
    return 'drop';
  });
  const disturbed = await start('--no-cache');
  await waitFor('an output is on its way', () => refused > 0);
  const [first, second] = cluster.agents;
  await first?.kill();
  await cluster.coordinator.kill();
  await first?.start();
  await cluster.coordinator.start();
  await second?.kill();
  await second?.start();
  refused = -1;
  const again = await ended(disturbed);
  expect(again.state, again.reason ?? '').toBe('succeeded');
  expect(digestsOf(again)).toEqual(digestsOf(undisturbed));

  // What was made before is taken; it is found by where it is; another run begins at a step.
  const cached = await ended(await start());
  expect(cached.steps.map(({ state }) => state)).toEqual(['cached', 'cached', 'cached', 'succeeded']);
  const model = again.steps[1]?.outputs[0];
  const lineage = await cluster.muster(['lineage', model?.path ?? '']);
  expect(lineage.stdout).toContain('prepare');
  const rerun = await cluster.muster(['pipeline', 'rerun', disturbed, '--from', 'join']);
  expect((await ended(rerun.stdout.trim())).state).toBe('succeeded');

  // The agents compare what they fetch with what was reported.
  const spec = {
    url: `s3://${s3Bucket}`,
    endpoint: server.endpoint,
    region: 'us-east-1',
    pathStyle: true,
    secret: 's3',
  };
  const store = await openArtifactStore(spec, storeKeyOf(Buffer.from(s3Key), spec));
  const key = (model?.path ?? '').slice(`s3://${s3Bucket}/`.length);
  await store.put(key, Buffer.from('changed'), new AbortController().signal);
  store.close();
  const broken = await cluster.muster(['pipeline', 'rerun', disturbed, '--from', 'join']);
  const failed = await ended(broken.stdout.trim());
  expect(failed.reason).toContain(`input models: ${model?.path} has changed since its step has made it`);
});

test('what can be known before is told with its place', async () => {
  const problems = async (changes: Readonly<Record<string, unknown>>) => {
    const file = pipelineFile(changes);
    return (await cluster.muster(['pipeline', 'run', '-f', file, '--dry-run'])).stderr;
  };
  const refusedSecret = await problems({ secret: 'absent' });
  expect(refusedSecret).toContain(
    'project default has no secret absent; to store it: muster secret set absent',
  );
  expect(refusedSecret).toMatch(/pipeline\.json:6/);
  expect(await problems({ url: 's3:/models' })).toMatch(/pipeline\.json:4:.*expected s3:\/\/BUCKET\/PREFIX/s);
  expect(await problems({ endpoint: 'example' })).toMatch(/pipeline\.json:5:.*an http or https URL/s);

  // What only the store knows ends the step with a cause.
  const missing = pipelineFile({ url: 's3://elsewhere' });
  const id = (await cluster.muster(['pipeline', 'run', '-f', missing])).stdout.trim();
  const run = await ended(id);
  expect(run.reason).toMatch(
    /output data: the store at .* has no bucket elsewhere: create it, or correct url under artifacts/,
  );
  const job = await cluster.api.getJob(run.steps[0]?.jobId ?? '');
  expect(job.cause?.kind).toBe('artifact_refused');
});

test('containers have them as mounts, of which inputs are read-only', async () => {
  const image = await ensureTestImage();
  const file = join(cluster.workDir, 'containers.json');
  const use =
    'cat $MUSTER_INPUT_data/x > $MUSTER_OUTPUT_model; echo y > $MUSTER_INPUT_data/x || echo kept; env';
  const pipeline = {
    name: 'containers',
    artifacts: { url: `s3://${s3Bucket}/containers`, endpoint: server.endpoint, secret: 's3' },
    steps: {
      make: {
        job: { image, command: 'printf in-container > $MUSTER_OUTPUT_data/x' },
        outputs: { data: { type: 'directory' } },
      },
      use: {
        job: { image, command: use },
        inputs: { data: 'make.data' },
        outputs: { model: { type: 'file' } },
      },
    },
  };
  writeFileSync(file, JSON.stringify(pipeline));
  const run = await ended((await cluster.muster(['pipeline', 'run', '-f', file])).stdout.trim());
  expect(run.state, run.reason ?? '').toBe('succeeded');
  expect(run.steps[1]?.outputs[0]).toMatchObject({ bytes: 'in-container'.length });
  const output = await cluster.output(run.steps[1]?.jobId ?? '');
  expect(output).toContain('kept');
  expect(output).toContain('MUSTER_INPUT_data=/.muster/artifacts/inputs/data/0/data');
  expect(output).not.toContain('S3RVER');
});

/** The tools for AI agents, with the official client, against a real cluster with simulated GPUs. */
import { randomUUID } from 'node:crypto';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { musterProgram } from '../support/command.ts';
import { waitFor } from '../support/services.ts';

let cluster: Cluster;
const clients: Client[] = [];

beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => Promise.all(clients.splice(0).map((client) => client.close())));

/** As a client that starts a program does it. */
async function overStdio(): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  clients.push(client);
  const transport = new StdioClientTransport({
    command: musterProgram,
    args: ['mcp', '--data', cluster.dataDir],
    env: { PATH: process.env.PATH ?? '' },
    stderr: 'pipe',
  });
  await client.connect(transport);
  return client;
}

async function call(client: Client, name: string, given: Record<string, unknown>) {
  const { content, structuredContent, isError } = await client.callTool({ name, arguments: given });
  const text = content.map((part) => (part.type === 'text' ? part.text : '')).join('');
  return { data: (structuredContent ?? {}) as Record<string, never>, text, isError: isError ?? false };
}

async function done(client: Client, name: string, given: Record<string, unknown>) {
  const { data, text, isError } = await call(client, name, given);
  expect(isError, `${name}: ${text}`).toBe(false);
  return data;
}

/** Follows events of a job from the beginning until one of this kind, as an agent does. */
async function untilEvent(client: Client, subject: string, kind: string): Promise<readonly string[]> {
  const kinds: string[] = [];
  let sinceSeq = 0;
  await waitFor(
    `${kind} of ${subject}`,
    async () => {
      const data = await done(client, 'events_since', { subject, sinceSeq, waitSeconds: 1 });
      sinceSeq = data['nextSeq'] ?? 0;
      kinds.push(
        ...(data['events'] as unknown as readonly { readonly kind: string }[]).map(({ kind: each }) => each),
      );
      return kinds;
    },
    { until: (seen) => seen.includes(kind) },
  );
  return kinds;
}

test('a session: validate, submit, alert, watch, failure, diagnose, requeue', async () => {
  const client = await overStdio();
  const never = await done(client, 'requirements_validate', { gpus: 8 });
  expect(never).toMatchObject({ verdict: 'never_fits' });
  const fits = await done(client, 'requirements_validate', { gpus: 1, model_size: '7B' });
  expect(fits).toMatchObject({
    verdict: 'fits_now',
    startsOn: ['node-1'],
    belowAdvice: true,
    advice: { gpusMin: 4, gpusMax: 8, gpuType: 'A100-80G' },
  });

  const program =
    'echo "loss is 3"; echo "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB" >&2; exit 1';
  const workload = {
    name: 'finetune',
    gpus: 1,
    command: program,
    labels: { type: 'training' },
    maxRuntimeSeconds: 600,
    retry: { maxAttempts: 1 },
    requestId: randomUUID(),
  };
  expect(await done(client, 'workload_submit', { ...workload, dryRun: true })).toMatchObject({
    workloadId: null,
    startsNow: true,
  });
  expect(await done(client, 'workload_list', {})).toMatchObject({ workloads: [] });
  const { workloadId } = await done(client, 'workload_submit', workload);
  const again = await done(client, 'workload_submit', workload);
  expect(again).toMatchObject({ workloadId, repeatedRequest: true });

  const alert = {
    name: `training-failed-${workloadId}`,
    severity: 'critical',
    condition: "workload_state == 'failed'",
    message: `Training job ${workloadId} failed`,
  };
  expect(await done(client, 'alert_create', { ...alert, dryRun: true })).toMatchObject({ dryRun: true });
  const mistyped = { ...alert, condition: "workload_stat == 'failed'", dryRun: true };
  expect(await call(client, 'alert_create', mistyped)).toMatchObject({
    isError: true,
    text: expect.stringMatching(/^error invalid: condition: column 1: .*workload_state/),
  });
  expect(await done(client, 'alert_create', { ...alert, workloadId })).toMatchObject({ alert });

  const kinds = await untilEvent(client, workloadId ?? '', 'job.failed');
  expect(kinds).toEqual(expect.arrayContaining(['job.submitted', 'attempt.allocated', 'job.failed']));
  const fires = await waitFor(
    'the alert fires',
    async () => {
      const { alerts } = await done(client, 'alert_list', { firing: true });
      const named: readonly { readonly name: string }[] = alerts ?? [];
      return named.filter(({ name }) => name === alert.name);
    },
    { until: ({ length }) => length > 0 },
  );
  expect(fires).toMatchObject([{ firing: [{ subject: workloadId, message: alert.message }] }]);
  expect(await done(client, 'workload_get', { workloadId })).toMatchObject({
    state: 'failed',
    cause: { kind: 'cuda_oom' },
    attempts: 1,
  });
  expect(await done(client, 'workload_diagnose', { workload_id: workloadId })).toMatchObject({
    findings: [{ kind: 'cuda_oom', attempt: 1, evidence: expect.stringContaining('out of memory') }],
  });
  expect(await done(client, 'workload_logs', { workloadId, grep: 'LOSS*3' })).toMatchObject({
    lines: [{ rank: 0, text: 'loss is 3' }],
    complete: true,
  });
  expect(await done(client, 'workload_explain', { workloadId })).toMatchObject({ state: 'failed' });

  expect(await done(client, 'workload_requeue', { workloadId, dryRun: true })).toMatchObject({
    dryRun: true,
    newWorkload: true,
  });
  const requeued = await done(client, 'workload_requeue', { workloadId, requestId: randomUUID() });
  expect(requeued).toMatchObject({ newWorkload: true, resumesFrom: null });
  const second = String(requeued['workloadId']);
  expect(second).not.toBe(workloadId);
  await untilEvent(client, second, 'job.failed');
  expect(await done(client, 'alert_delete', { name: alert.name })).toMatchObject({ alert });
});

test('a running workload: more time, its page, and its stop', async () => {
  const client = await overStdio();
  const given = { command: 'sleep 600', gpus: 1, maxRuntimeSeconds: 300, stopGraceSeconds: 0 };
  const { workloadId } = await done(client, 'workload_submit', given);
  await untilEvent(client, workloadId ?? '', 'attempt.running');
  expect(await done(client, 'workload_extend', { workloadId, seconds: 60, dryRun: true })).toMatchObject({
    maxRuntimeSeconds: 360,
  });
  expect(await done(client, 'workload_extend', { workloadId, seconds: 100 })).toMatchObject({
    maxRuntimeSeconds: 400,
  });
  const refused = await call(client, 'workload_requeue', { workloadId });
  expect(refused).toMatchObject({
    isError: true,
    text: expect.stringMatching(/^error failed_precondition: .*force/s),
  });
  const status = await client.readResource({ uri: `muster://workloads/${workloadId}/status` });
  expect(status.contents[0]).toMatchObject({ text: expect.stringContaining('running') });
  expect(await done(client, 'workload_stop', { workloadId, dryRun: true })).toMatchObject({ total: 1 });
  expect(await done(client, 'workload_get', { workloadId })).toMatchObject({ state: 'running' });
  expect(await done(client, 'workload_stop', { workloadId, reason: 'tried' })).toMatchObject({ total: 1 });
  await untilEvent(client, workloadId ?? '', 'job.cancelled');
  expect(await done(client, 'node_list', { onlyFree: true })).toMatchObject({
    gpus: 2,
    nodes: [{ name: 'node-1' }],
  });
});

import { causeOf } from '@muster/common/cause';
import { MusterError } from '@muster/common/errors';
import type { SubmitResult } from '@muster/common/submitResult';
import type { MusterApi } from '@muster/common/wire/client';
import { describe, expect, test } from 'vitest';
import { answerBytesMax, jsonBytes } from './size.ts';
import { aJob, aNode, fakeApi, openSession, someMs } from './testing/session.ts';
import { toolTable } from './toolTable.ts';

const submitted: SubmitResult = {
  jobIds: ['job_000000000001'],
  arrayId: null,
  repeatedRequest: false,
  wouldWait: null,
  waits: null,
  wouldStartOn: [],
  arraySize: 0,
  jobsAhead: 0,
};

/** Remembers what was submitted. */
function submits(): { readonly api: MusterApi; readonly requests: Parameters<MusterApi['submit']>[0][] } {
  const requests: Parameters<MusterApi['submit']>[0][] = [];
  const api = fakeApi({
    submit: (request) => {
      requests.push(request);
      return Promise.resolve(submitted);
    },
  });
  return { api, requests };
}

describe('what a client is offered', () => {
  test('every tool has both schemas, all annotations, and a name that is unique', async () => {
    const { client } = await openSession(fakeApi({}));
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(toolTable.map(({ name }) => name));
    for (const { name, inputSchema, outputSchema, annotations, description } of tools) {
      expect(inputSchema.type, name).toBe('object');
      expect(outputSchema?.type, name).toBe('object');
      expect(description, name).toMatch(/\.$/);
      expect(annotations, name).toMatchObject({
        readOnlyHint: expect.any(Boolean),
        destructiveHint: expect.any(Boolean),
        idempotentHint: expect.any(Boolean),
        openWorldHint: false,
      });
    }
    expect(new Set(tools.map(({ name }) => name)).size).toBe(tools.length);
  });

  test('what changes something has dryRun', () => {
    const without = toolTable.filter(({ effect, input }) => effect !== 'read' && !('dryRun' in input.shape));
    expect(without.map(({ name }) => name)).toEqual([]);
  });

  test('a token is offered what it may call, and nothing else', async () => {
    const { client } = await openSession(fakeApi({}), ['read']);
    const names = (await client.listTools()).tools.map(({ name }) => name);
    expect(names).toContain('workload_get');
    expect(names).not.toContain('workload_submit');
    expect(names).not.toContain('workload_stop');
    const { text, isError } = await (await openSession(fakeApi({}), ['read']))
      .call('workload_stop', { workloadId: 'x' })
      .catch((error: Error) => ({ text: error.message, isError: true }));
    expect(isError).toBe(true);
    expect(text).toContain('workload_stop');
  });

  test('prompts name tools that exist', async () => {
    const { client } = await openSession(fakeApi({}));
    const { prompts } = await client.listPrompts();
    expect(prompts.map(({ name }) => name)).toEqual(['submit-and-watch', 'diagnose-a-failure']);
    const names = new Set(toolTable.map(({ name }) => name));
    for (const { name, arguments: parameters = [] } of prompts) {
      const given = Object.fromEntries(parameters.map((each) => [each.name, 'x']));
      const { messages } = await client.getPrompt({ name, arguments: given });
      const [content] = messages.map((message) => message.content);
      const mentioned = content?.type === 'text' ? (content.text.match(/[a-z]+_[a-z]+/g) ?? []) : [];
      expect(mentioned.length).toBeGreaterThan(3);
      expect(mentioned.filter((each) => !names.has(each))).toEqual([]);
    }
  });
});

describe('submitting', () => {
  /** As agents call it today. */
  const usual = {
    name: '7b-finetune-20240201',
    image: 'nvcr.io/nvidia/pytorch:24.01-py3',
    gpus: 4,
    gpuMemoryMb: 81920,
    env: { WORLD_SIZE: '4', MASTER_ADDR: 'localhost', CHECKPOINT_DIR: '/checkpoints' },
    command: ['python', '-m', 'torch.distributed.launch'],
    args: ['--nproc_per_node=4', 'train.py', '--config=config.yaml'],
    labels: { type: 'training', model: '7b-finetune', experiment: 'e1' },
    preemptible: false,
    maxRuntimeSeconds: 28800,
  };
  const usualSpec = {
    name: usual.name,
    image: usual.image,
    command: usual.command,
    args: usual.args,
    env: usual.env,
    labels: usual.labels,
    preemptible: false,
    max_runtime: '28800s',
    resources: { gpus: 4, gpu_memory_mb: 81920 },
  };

  test('takes the usual call as it stands, and answers with the id and the latest end', async () => {
    const { api, requests } = submits();
    const { data, text } = await (await openSession(api)).call('workload_submit', usual);
    expect(JSON.parse(requests[0]?.specJson ?? '')).toEqual(usualSpec);
    expect(data).toMatchObject({
      workloadId: 'job_000000000001',
      startsNow: true,
      endsBy: '2026-01-02T11:04:05Z',
    });
    expect(text).toBe(
      'Submitted job_000000000001; it starts now. Follow it with workload_get and events_since.',
    );
  });

  test('takes snake_case too', async () => {
    const { api, requests } = submits();
    const { gpuMemoryMb, maxRuntimeSeconds, ...rest } = usual;
    const snake = {
      ...rest,
      gpu_memory_mb: gpuMemoryMb,
      max_runtime_seconds: maxRuntimeSeconds,
      dry_run: true,
    };
    const { data } = await (await openSession(api)).call('workload_submit', snake);
    expect(JSON.parse(requests[0]?.specJson ?? '')).toEqual(usualSpec);
    expect(requests[0]?.dryRun).toBe(true);
    expect(data).toMatchObject({ workloadId: null, dryRun: true });
  });

  test('settings of the job file count where no parameter says otherwise', async () => {
    const { api, requests } = submits();
    const settings = { launcher: 'env', priority: 10, resources: { gpus: 1, topology: 'required' } };
    await (await openSession(api)).call('workload_submit', {
      command: 'true',
      priority: 20,
      nodes: 2,
      settings,
    });
    expect(JSON.parse(requests[0]?.specJson ?? '')).toEqual({
      command: 'true',
      launcher: 'env',
      priority: 20,
      resources: { gpus: 1, nodes: 2, topology: 'required' },
    });
  });

  test('an id of the request reaches the coordinator; without one each call has its own', async () => {
    const { api, requests } = submits();
    const session = await openSession(api);
    await session.call('workload_submit', { command: 'true', requestId: 'mine' });
    await session.call('workload_submit', { command: 'true' });
    await session.call('workload_submit', { command: 'true' });
    expect(requests.map(({ requestId }) => requestId)).toEqual(['mine', 'request-1', 'request-2']);
  });
});

describe('errors', () => {
  test('a wrong parameter is named, with what was meant', async () => {
    const { api, requests } = submits();
    const given = { command: 'true', gpu: 2, gpuMemoryMb: -1 };
    const { text, isError } = await (await openSession(api)).call('workload_submit', given);
    expect(isError).toBe(true);
    expect(text).toMatch(/^error invalid: workload_submit was called with wrong parameters/);
    expect(text).toContain('- gpu: is not a parameter');
    expect(text).toContain('did you mean gpus?');
    expect(text).toContain('- gpuMemoryMb: ');
    expect(text).toContain('Next: Correct the parameters');
    expect(requests).toEqual([]);
  });

  test('problems of a job file are told as parameters', async () => {
    const problems = [
      { path: 'resources.gpu_memory_mb', message: 'got 1', expected: 'at least 16', suggestion: null },
    ];
    const api = fakeApi({
      submit: () => Promise.reject(new MusterError('invalid', 'the job has 1 problem', { problems })),
    });
    const { text } = await (await openSession(api)).call('workload_submit', { command: 'true' });
    expect(text).toContain('- gpuMemoryMb: got 1; expected at least 16');
  });

  test('each code says what to do next', async () => {
    for (const [code, next] of [
      ['unavailable', 'same requestId'],
      ['permission_denied', 'Do not retry'],
      ['resource_exhausted', 'Ask for less'],
      ['not_found', 'workload_list'],
    ] as const) {
      const api = fakeApi({ getJob: () => Promise.reject(new MusterError(code, 'as it is')) });
      const { text } = await (await openSession(api)).call('workload_get', { workloadId: 'job_1' });
      expect(text).toMatch(new RegExp(`^error ${code}: as it is\nNext: .*${next}`));
    }
  });

  test('a bug is reported here, and nothing of it is told', async () => {
    const session = await openSession(fakeApi({}));
    const { text, isError } = await session.call('workload_get', { workloadId: 'job_1' });
    expect(isError).toBe(true);
    expect(text).toMatch(/^error internal: /);
    expect(text).not.toMatch(/getJob|\bat /);
    expect(session.bugs).toEqual(['workload_get: the test gave no answer to getJob']);
  });
});

describe('answers are small, and pages lead to everything', () => {
  const long = 'x'.repeat(3_000);
  const jobs = Array.from({ length: 300 }, (_, index) =>
    aJob(300 - index, {
      name: `train-${'n'.repeat(50)}`,
      cause: { ...causeOf('exit_code', long), evidence: { line: 1, text: long, rank: 0 } },
      state: 'failed',
      endedAtMs: someMs,
      spec: {
        command: [long],
        image: long,
        labels: Object.fromEntries(Array.from({ length: 100 }, (_x, i) => [`label-${i}`, long.slice(0, 60)])),
        resources: { nodes: 1, gpus: 2 },
      },
    }),
  );
  const nodes = Array.from({ length: 300 }, (_, index) => aNode(`node-${index}-${'n'.repeat(40)}`));
  const api = fakeApi({
    getJob: () => Promise.resolve(jobs[0] ?? aJob(1)),
    listJobs: ({ limit = 100, beforeSubmitSeq = 1_000 } = {}) => {
      const from = jobs.filter(({ submitSeq }) => submitSeq < beforeSubmitSeq);
      return Promise.resolve({ jobs: from.slice(0, limit), more: from.length > limit, notStored: 0 });
    },
    explainJob: () =>
      Promise.resolve({
        job: jobs[0] ?? aJob(1),
        summary: long,
        details: Array.from({ length: 500 }, () => long),
        nextSteps: Array.from({ length: 50 }, () => long),
      }),
    stopJobs: () => Promise.resolve({ jobs, total: jobs.length }),
    listNodes: () => Promise.resolve(nodes),
    listTelemetry: () => Promise.resolve([]),
    readLogs: async function* () {
      yield {
        attempt: 1,
        nodeRank: 0,
        offset: 0,
        data: Buffer.from(`${long}\n`.repeat(2_000)),
        complete: false,
        missing: null,
      };
    },
  });

  test('of the largest jobs and clusters too', async () => {
    const session = await openSession(api);
    for (const [name, given] of [
      ['workload_get', { workloadId: 'x' }],
      ['workload_list', { limit: 50 }],
      ['workload_explain', { workloadId: 'x' }],
      ['workload_diagnose', { workloadId: 'x' }],
      ['workload_stop', { workloadId: 'x' }],
      ['workload_logs', { workloadId: 'x', tail: 1_000 }],
      ['node_list', { limit: 100 }],
      ['checkpoint_list', { workloadId: 'x' }],
    ] as const) {
      const { data, text, isError } = await session.call(name, given);
      expect(isError, `${name}: ${text}`).toBe(false);
      expect(jsonBytes(data) + Buffer.byteLength(text), name).toBeLessThan(answerBytesMax);
    }
  });

  test('a list is read to its end by its cursors', async () => {
    const session = await openSession(api);
    for (const [name, key, total] of [
      ['workload_list', 'workloads', jobs.length],
      ['node_list', 'nodes', nodes.length],
    ] as const) {
      const seen: string[] = [];
      let cursor: string | null = null;
      do {
        const answer = await session.call(name, { limit: 50, ...(cursor === null ? {} : { cursor }) });
        const data: Record<string, unknown> = answer.data;
        const items = data[key] as readonly { readonly workloadId?: string; readonly name: string }[];
        seen.push(...items.map((item) => item.workloadId ?? item.name));
        cursor = data['nextCursor'] as string | null;
      } while (cursor !== null);
      expect(new Set(seen).size, name).toBe(total);
      expect(seen.length, name).toBe(total);
    }
  });
});

describe('output', () => {
  const api = fakeApi({
    getJob: () => Promise.resolve(aJob(1, { attempts: [] })),
    readLogs: async function* () {
      const piece = { attempt: 1, nodeRank: 0, offset: 0, complete: false, missing: null };
      yield { ...piece, data: Buffer.from('step 1 Loss 2.0\nstep 2 lo') };
      yield { ...piece, nodeRank: 1, data: Buffer.from('other rank\n') };
      yield { ...piece, data: Buffer.from('ss NaN\r\nbar 1\rbar 2\nthe end') };
    },
  });

  test('lines are whole, whatever the pieces are', async () => {
    const { data } = await (await openSession(api)).call('workload_logs', { workloadId: 'x' });
    expect(data).toMatchObject({
      lines: [
        { rank: 0, text: 'step 1 Loss 2.0' },
        { rank: 1, text: 'other rank' },
        { rank: 0, text: 'step 2 loss NaN' },
        { rank: 0, text: 'bar 1' },
        { rank: 0, text: 'bar 2' },
        { rank: 0, text: 'the end' },
      ],
      cut: false,
    });
  });

  test('are searched in any case, with * for anything', async () => {
    const session = await openSession(api);
    const { data } = await session.call('workload_logs', { workloadId: 'x', grep: 'loss*nan' });
    expect(data).toMatchObject({ lines: [{ rank: 0, text: 'step 2 loss NaN' }], matched: 1 });
    const { text, isError } = await session.call('workload_logs', { workloadId: 'x', grep: '***' });
    expect(isError).toBe(true);
    expect(text).toContain('grep: got "***"');
  });
});

test('resources: the page of a workload, and what is wrong with a node', async () => {
  const api = fakeApi({
    listJobs: () => Promise.resolve({ jobs: [aJob(1)], more: false, notStored: 0 }),
    listNodes: () => Promise.resolve([aNode('gpu-1')]),
    getTrainingStatus: (id) => Promise.resolve(`# ${id}`),
    getNode: (name) =>
      name === 'gpu-1'
        ? Promise.resolve(aNode(name))
        : Promise.reject(new MusterError('not_found', `no node ${name}`)),
  });
  const { client } = await openSession(api);
  const { resources } = await client.listResources();
  expect(resources.map(({ uri }) => uri)).toEqual([
    'muster://workloads/job_000000000001/status',
    'muster://nodes/gpu-1/conditions',
  ]);
  const page = await client.readResource({ uri: 'muster://workloads/job_7/status' });
  expect(page.contents).toEqual([
    { uri: 'muster://workloads/job_7/status', mimeType: 'text/markdown', text: '# job_7' },
  ]);
  const node = await client.readResource({ uri: 'muster://nodes/gpu-1/conditions' });
  expect(node.contents[0]).toMatchObject({
    mimeType: 'application/json',
    text: expect.stringContaining('"gpu-1"'),
  });
  await expect(client.readResource({ uri: 'muster://nodes/none/conditions' })).rejects.toThrow(
    'no node none',
  );
});

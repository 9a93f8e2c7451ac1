/**
 * How long a tool for AI agents takes beyond the calls of the API that it makes, over standard input and output and with the official
 * client, and how large its usual answer is: its structured content and its text.
 *
 *     node bench/mcp.ts [rounds]
 */
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import type { MusterApi } from '@muster/common/wire/client';
import {
  musterCommand,
  quietMachine,
  report,
  reportMachine,
  rounded,
  startCluster,
  summary,
  untilEnded,
} from './support.ts';

const rounds = Number(process.argv[2] ?? 100);

/** Enough for every list to have more than one page. */
const jobCount = 60;

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

async function drained(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const each of stream) void each;
}

const specJson = JSON.stringify({ command: ['true'], resources: { gpus: 1 } });

/** A tool, its parameters, and the calls that it makes. */
type Case = readonly [tool: string, given: Record<string, unknown>, calls: () => Promise<unknown>];

function casesFor(api: MusterApi, jobId: string): readonly Case[] {
  return [
    [
      'requirements_validate',
      { gpus: 1, modelSize: '7B' },
      () =>
        Promise.all([
          api.submit({ specJson, requestId: 'x', dryRun: true }),
          api.listJobs({ states: ['running', 'starting'], limit: 200 }),
        ]),
    ],
    [
      'workload_submit',
      { command: ['true'], gpus: 1, dryRun: true },
      () => api.submit({ specJson, requestId: 'x', dryRun: true }),
    ],
    ['workload_get', { workloadId: jobId }, () => api.getJob(jobId)],
    ['workload_list', {}, () => api.listJobs({ limit: 20, brief: true })],
    [
      'workload_logs',
      { workloadId: jobId },
      () => Promise.all([drained(api.readLogs({ jobId, tailLines: 50 })), api.getJob(jobId)]),
    ],
    ['workload_explain', { workloadId: jobId }, () => api.explainJob(jobId)],
    ['workload_diagnose', { workloadId: jobId }, () => api.getJob(jobId)],
    ['checkpoint_list', { workloadId: jobId }, () => api.getJob(jobId)],
    [
      'metrics_query',
      { metric: 'gpu_utilization', workloadId: jobId },
      () => api.queryMetrics({ name: 'gpu_utilization', jobId, startTime: '-30m' }),
    ],
    ['node_list', {}, () => Promise.all([api.listNodes(), api.listTelemetry()])],
    [
      'events_since',
      {},
      async () => {
        const { lastEventSeq } = await api.getCluster();
        await drained(api.watchEvents({ sinceSeq: Math.max(0, lastEventSeq - 20), follow: false }));
      },
    ],
  ];
}

reportMachine();
const cluster = await startCluster(2, 4);
const { api, env } = cluster;
const client = new Client({ name: 'bench', version: '1' });
try {
  const { lastEventSeq } = await api.getCluster();
  const program = 'for i in $(seq 200); do echo "step $i loss 2.$i"; done; exit 3';
  const retry = { max_attempts: 1 };
  const ids: string[] = [];
  for (let number = 0; number < jobCount; number += 1) {
    const spec = { name: `train-${number}`, command: program, resources: { gpus: 1 }, retry };
    const { jobIds } = await api.submit({ specJson: JSON.stringify(spec), requestId: `bench-${number}` });
    ids.push(...jobIds);
  }
  await untilEnded(api, ids, lastEventSeq);
  const busy = await quietMachine();
  const started = await timed(() =>
    client.connect(
      new StdioClientTransport({
        command: musterCommand,
        args: ['mcp'],
        env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, value ?? ''])),
      }),
    ),
  );
  report('mcp: start of muster mcp, up to the first answer', { ms: rounded(started), busyPercent: busy });
  for (const [name, given, calls] of casesFor(api, ids.at(-1) ?? '')) {
    const answers: number[] = [];
    const floors: number[] = [];
    let bytes = 0;
    for (let round = 0; round < rounds; round += 1) {
      floors.push(await timed(calls));
      answers.push(
        await timed(async () => {
          const { structuredContent, content, isError } = await client.callTool({ name, arguments: given });
          if (isError === true) throw new Error(`${name}: ${JSON.stringify(content)}`);
          const text = content.map((part) => (part.type === 'text' ? part.text : '')).join('');
          bytes = Buffer.byteLength(JSON.stringify(structuredContent)) + Buffer.byteLength(text);
        }),
      );
    }
    const [answer, floor] = [summary(answers), summary(floors)];
    report(`mcp: ${name}`, {
      answer,
      calls: floor,
      p50BeyondCallsMs: rounded((answer['p50'] ?? 0) - (floor['p50'] ?? 0)),
      answerBytes: bytes,
    });
  }
} finally {
  await client.close();
  await cluster.stop();
}

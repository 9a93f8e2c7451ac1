/** What the log of an agent says of trainings, as programs read it. */
import type { LogFacts } from '@muster/common/logFields';
import { jsonLogger } from '@muster/common/pinoLogger';
import { expect, test, vi } from 'vitest';
import { emptySample } from '../gpus/gpuSource.ts';
import { aTask } from '../tasks/managerFixture.ts';
import { Node } from './taskTrainingFixture.ts';

const about = { node: 'node-1', job_id: aTask.jobId, attempt: aTask.attempt, node_rank: aTask.nodeRank };

const row = (step: number, loss: number) => `{"epoch": 1.5, "step": ${step}, "loss": ${loss}}\n`;

function logged() {
  const lines: Record<string, unknown>[] = [];
  const facts: { -readonly [Name in keyof LogFacts]: LogFacts[Name] } = {
    node: 'node-1',
    trainingOf: () => null,
  };
  const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>);
  const log = jsonLogger(
    'agent',
    'info',
    { node: facts.node, trainingOf: (of) => facts.trainingOf(of) },
    { write },
  );
  return { lines, log, facts };
}

test('a line about a training says where it is, and what its GPUs hold; there is one a minute', async () => {
  const node = new Node();
  const { lines, log, facts } = logged();
  node.log = log;
  const agent = await node.agent();
  facts.trainingOf = (task) => agent.logFieldsOf(task);
  node.run(aTask, {}, ['GPU-1', 'GPU-2']);
  node.write(row(1, 2.5));
  await vi.waitFor(() => expect(lines).toHaveLength(1));
  expect(lines[0]).toMatchObject({
    ...about,
    msg: 'a task trains',
    step: 1,
    loss: 2.5,
    gpu_memory_used: null,
  });
  const holders = new Map(['GPU-1', 'GPU-2'].map((uuid) => [uuid, aTask]));
  const samples = new Map([
    ['GPU-1', { ...emptySample('GPU-1'), memoryUsedMb: 1_000 }],
    ['GPU-2', { ...emptySample('GPU-2'), memoryUsedMb: 500 }],
  ]);
  agent.observe({ samples, holders });
  node.write(row(4, 2));
  await vi.waitFor(() => expect(agent.progress(aTask)?.latest.step).toBe(4));
  expect(lines).toHaveLength(1);
  node.nowMs += 60_000;
  node.write(row(6, 1.25));
  await vi.waitFor(() => expect(lines).toHaveLength(2));
  expect(lines[1]).toMatchObject({ ...about, epoch: 1.5, step: 6, loss: 1.25, gpu_memory_used: 1_500 });
});

test('a task that trains nothing is told from others by its job, attempt and node alone', async () => {
  const node = new Node();
  const { lines, log, facts } = logged();
  const agent = await node.agent();
  facts.trainingOf = (task) => agent.logFieldsOf(task);
  log.warn({ task: `${aTask.jobId}.${aTask.attempt}.${aTask.nodeRank}` }, 'something');
  expect(lines).toMatchObject([about]);
  expect(lines[0]).not.toHaveProperty('step');
});

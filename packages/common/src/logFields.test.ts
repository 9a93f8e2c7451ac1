import { expect, test } from 'vitest';
import { logFieldsOf, noLogFacts } from './logFields.ts';

const task = 'job_0123456789ab.2.1';
const training = { epoch: 3, step: 40, loss: 1.5, gpu_memory_used: 30_000 };
const ofTask = { job_id: 'job_0123456789ab', attempt: 2, node_rank: 1 };

test('a line about a task of a training has all fields', () => {
  const facts = { node: 'node-1', trainingOf: () => training };
  expect(logFieldsOf({ task, error: 'x' }, facts)).toEqual({
    task,
    error: 'x',
    node: 'node-1',
    ...ofTask,
    ...training,
  });
});

test('a task that trains nothing has none of a training, and what is not known of one is null', () => {
  expect(logFieldsOf({ task }, noLogFacts)).toEqual({ task, ...ofTask });
  const unknown = { epoch: null, step: 40, loss: null, gpu_memory_used: null };
  expect(logFieldsOf({ task }, { node: null, trainingOf: () => unknown })).toMatchObject(unknown);
});

test('a line about a job has its id under the same name, and its own node', () => {
  const facts = { node: 'node-1', trainingOf: () => training };
  expect(logFieldsOf({ jobId: 'job_1', node: 'node-2' }, facts)).toEqual({ job_id: 'job_1', node: 'node-2' });
});

test.each([{}, { tasks: 3 }, { task: 7 }, { task: 'load the model' }])('%j is about no task', (fields) => {
  expect(logFieldsOf(fields, { ...noLogFacts, trainingOf: () => training })).toEqual(fields);
});

import { expect, test } from 'vitest';
import { causeOf } from './cause.ts';
import { causeFacts } from './causeFacts.ts';
import { adviceOn, causeInBrackets, causeInShort, causeOfMany, shortened } from './causeText.ts';

const place = { nodeRank: 0, node: 'node-1' };

test('a cause that its name tells is named with its rank, any other by its message', () => {
  const evidence = { line: 13, text: 'CUDA out of memory', rank: 1 };
  const oom = causeOf('cuda_oom', 'rank 1 on node-1 exited with code 1: CUDA out of memory', place, evidence);
  expect([causeInShort(oom), causeInBrackets(oom)]).toEqual(['CUDA OOM on rank 1', 'CUDA OOM (rank 1)']);
  expect(causeInShort({ ...oom, evidence: null })).toBe('CUDA OOM on rank 0');
  expect(causeInBrackets(causeOf('cuda_oom', 'somewhere'))).toBe('CUDA OOM');
  const crash = causeOf('exit_code', `rank 0 on node-1 exited with code 3: ${'x'.repeat(200)}`, place);
  expect(causeInShort(crash)).toMatch(/^rank 0 on node-1 exited with code 3: x+…$/);
  expect(causeInShort(crash)).toHaveLength(160);
  expect(causeOfMany(oom)).toBe('CUDA OOM');
  expect(causeOfMany(crash)).toBe(causeInShort(crash));
});

test('a long text is cut between characters and stays on one line', () => {
  expect(shortened('a\n  b\tc')).toBe('a b c');
  expect(shortened('😀'.repeat(5), 3)).toBe('😀😀…');
});

test('of a long message what the node has added stays, and comes first in the advice', () => {
  const long = `rank 0 on node-1 exited with code 2: python: can't open file '/${'d'.repeat(400)}/trian.py'`;
  const cause = causeOf('python_exception', `${long} (did you mean train.py?)`, place);
  expect(causeInShort(cause)).toMatch(/^rank 0 on node-1 exited .*d… \(did you mean train\.py\?\)$/);
  expect(causeInShort(cause)).toHaveLength(160);
  expect(adviceOn(cause)).toMatch(/^Did you mean train\.py\? The script is not there: /);
  expect(adviceOn(causeOf('python_exception', long, place))).toMatch(/^The script is not there: /);
  expect(shortened(`${'x'.repeat(200)} (interpreter /usr/bin/python3)`)).toMatch(
    /x… \(interpreter \/usr\/bin\/python3\)$/,
  );
});

test('a node that refuses to start a task has reported what to do about it', () => {
  const refused =
    'rank 0 on node-1 did not start: the checkpoint directory /ckpt cannot be created on this node';
  expect(adviceOn(causeOf('unknown', refused, place))).toMatch(/^Its node refused to start it: /);
  const directory =
    'rank 0 on node-1 did not start: the working directory /root may not be entered by alice: choose another one with --workdir';
  expect(adviceOn(causeOf('exit_code', directory, place))).toMatch(/^Its node refused to start it: /);
  expect(adviceOn(causeOf('unknown', 'rank 0 on node-1 ended', place))).toBe(causeFacts.unknown.advice);
});

test.each([
  ['SIGKILL', /memory runs out .*kill -9/],
  ['SIGSEGV', /native code: set PYTHONFAULTHANDLER=1/],
  ['SIGBUS', /resources\.shm_mb/],
  ['SIGABRT', /program aborted,/],
])('%s has advice of its own, which names the usual causes', (signal, advice) => {
  expect(adviceOn(causeOf('exit_code', `rank 0 on node-1 was ended by ${signal}`, place))).toMatch(advice);
  const evidence = { line: null, text: signal, rank: null };
  expect(adviceOn(causeOf('exit_code', 'rank 0 on node-1 ended', place, evidence))).toMatch(advice);
  expect(adviceOn(causeOf('cuda_oom', `was ended by ${signal}`, place)), 'a better-known cause').toBe(
    causeFacts.cuda_oom.advice,
  );
});

test('any other end has the advice of its kind', () => {
  expect(adviceOn(causeOf('exit_code', 'rank 0 on node-1 exited with code 3', place))).toBe(
    causeFacts.exit_code.advice,
  );
});

import type { JobId } from '@muster/common/ids';
import { describe, expect, test } from 'vitest';
import {
  type Asked,
  formatAnswer,
  formatQuestion,
  parseAnswer,
  parseQuestion,
  pathLineBytesMax,
} from './pathProtocol.ts';

const task = { jobId: 'job_0123456789ab' as JobId, attempt: 999_999_999, nodeRank: 1_023 };

test.each<Asked['question']>([{ kind: 'here' }, { kind: 'preflight' }, { kind: 'load', bytes: 67_108_864 }])(
  'the question $kind arrives as it was asked, within the length of a line',
  (question) => {
    const line = formatQuestion({ task, from: 0, question });
    expect(line.length).toBeLessThan(pathLineBytesMax);
    expect(parseQuestion(line.trimEnd())).toEqual({ task, from: 0, question });
  },
);

test('answers arrive as they were given', () => {
  for (const answer of [{ kind: 'here', task, number: 20_001 }, { kind: 'not_a_peer' }] as const) {
    expect(parseAnswer(formatAnswer(answer).trimEnd())).toEqual(answer);
  }
});

describe('nothing else is a question', () => {
  test.each([
    '',
    'GET / HTTP/1.1',
    'muster-path/2 here job_0123456789ab 1 0 1',
    'muster-path/1 here job_0123456789ab 1 0',
    'muster-path/1 here job_0123456789ab 1 0 1 5',
    'muster-path/1 here job_0123456789ab 1 0 1 ',
    'muster-path/1 here job_ 1 0 1',
    'muster-path/1 here job_0123456789ab -1 0 1',
    'muster-path/1 here job_0123456789ab 1e3 0 1',
    'muster-path/1 load job_0123456789ab 1 0 1',
    'muster-path/1 load job_0123456789ab 1 0 1 0',
    'muster-path/1 load job_0123456789ab 1 0 1 67108865',
    'muster-path/1 constructor job_0123456789ab 1 0 1',
  ])('%j', (line) => expect(parseQuestion(line)).toBeNull());
});

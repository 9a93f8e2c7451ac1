import { expect, test } from 'vitest';
import { describeSilence, type SilentNode, silenceInShort, silenceRemedies } from './silence.ts';

const silent: SilentNode = {
  node: 'node-1',
  silentForMs: 9_000,
  fence: { frozenInMs: 51_000, fencedInMs: 61_000 },
  isHeld: false,
  onExpiry: 'freeze',
};

test.each<[string, Partial<SilentNode>, boolean, string]>([
  [
    'before its lease has ended',
    {},
    false,
    'node node-1 has been silent for 9 s: its task may be running, and is frozen when its lease ends, in 51 s at the ' +
      'latest; in 61 s the attempt ends as lost unless the node responds before',
  ],
  [
    'of a job that is killed instead, long before T2',
    { fence: { frozenInMs: 7_195_000, fencedInMs: 7_205_000 }, onExpiry: 'kill' },
    false,
    'node node-1 has been silent for 9 s: its task may be running, and is killed when its lease ends, in 119 min 55 s at ' +
      'the latest; in 120 min 5 s the attempt ends as lost unless the node responds before',
  ],
  [
    'within the margin',
    { fence: { frozenInMs: 0, fencedInMs: 4_000 } },
    false,
    'node node-1 has been silent for 9 s: its lease has ended, and its task is frozen by now; in 4 s the attempt ends as ' +
      'lost unless the node responds before',
  ],
  [
    'after T2',
    { fence: { frozenInMs: 0, fencedInMs: 0 } },
    false,
    'node node-1 has been silent for 9 s: its lease has ended, and its task is frozen by now; the attempt ends as lost ' +
      'unless the node responds before',
  ],
  [
    'while nothing is rescheduled',
    { fence: { frozenInMs: 0, fencedInMs: 0 } },
    true,
    'node node-1 has been silent for 9 s: its lease has ended, and its task is frozen by now; for now the attempt is not ' +
      'ended',
  ],
  [
    'that is held',
    { silentForMs: null, fence: null, isHeld: true },
    false,
    'node node-1 has not responded since the coordinator started: its task may be running, and the job waits for it ' +
      '(node_loss: hold) until the node responds or a user confirms that the node is dead',
  ],
  [
    'on the machine of the coordinator',
    { fence: null },
    false,
    'node node-1 has been silent for 9 s: its task may be running, and the job waits for it (on one machine its task has ' +
      'no lease) until the node responds or a user confirms that the node is dead',
  ],
])('a silent node %s', (_, given, paused, expected) => {
  expect(describeSilence({ ...silent, ...given }, paused)).toBe(expected);
});

test('a line about the job names its silent node, or counts them', () => {
  expect(silenceInShort([])).toBe('');
  expect(silenceInShort([silent])).toBe('node-1 has been silent for 9 s');
  expect(silenceInShort([silent, { ...silent, node: 'node-2' }])).toBe('2 of its nodes are silent');
});

test('a person can look after it, or say that it is dead', () => {
  expect(silenceRemedies([])).toEqual([]);
  expect(silenceRemedies([silent])).toEqual([
    expect.stringMatching(/^check node-1: .*systemctl status muster-agent/),
    'if node-1 is certainly off, do not wait: muster node confirm-dead node-1',
  ]);
  const [check, ...confirm] = silenceRemedies([silent, { node: 'node-2' }]);
  expect(check).toMatch(/^check the silent nodes: /);
  expect(confirm).toHaveLength(2);
});

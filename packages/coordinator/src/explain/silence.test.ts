import { expect, test } from 'vitest';
import { describeSilence, type SilentNode, silenceRemedy } from './silence.ts';

const silent: SilentNode = { node: 'node-1', silentForMs: 9_000, fencedInMs: 61_000, onExpiry: 'freeze' };

test.each<[string, Partial<SilentNode>, boolean, string]>([
  [
    'before T2',
    {},
    false,
    'node node-1 has been silent for 9 s: its task may be running, and is frozen automatically unless the node comes ' +
      'back; in 61 s the attempt ends as lost',
  ],
  [
    'of a job that is killed instead, long before T2',
    { fencedInMs: 7_205_000, onExpiry: 'kill' },
    false,
    'node node-1 has been silent for 9 s: its task may be running, and is killed automatically unless the node comes ' +
      'back; in 120 min 5 s the attempt ends as lost',
  ],
  [
    'after T2',
    { fencedInMs: 0 },
    false,
    'node node-1 has been silent for 9 s: its task is frozen automatically by now; the attempt ends as lost',
  ],
  [
    'while nothing is rescheduled',
    { fencedInMs: 0 },
    true,
    'node node-1 has been silent for 9 s: its task is frozen automatically by now; for now the ' +
      'attempt is not ended',
  ],
  [
    'that is held',
    { silentForMs: null, fencedInMs: null },
    false,
    'node node-1 has not responded since the coordinator started: its task may be running, and the job waits for it ' +
      '(node_loss: hold) until a user confirms that the node is dead',
  ],
])('a silent node %s', (_, given, paused, expected) => {
  expect(describeSilence({ ...silent, ...given }, paused)).toBe(expected);
});

test('a person can say that it is dead', () => {
  expect(silenceRemedy(silent)).toContain('muster node confirm-dead node-1');
});

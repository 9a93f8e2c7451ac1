/** Conditions of the node itself: its clock and its file systems. */
import type { JobId } from '@muster/common/ids';
import { expect, test } from 'vitest';
import type { HealthInput } from './evaluate.ts';
import type { FileSystemFact } from './fileSystems.ts';
import { HealthNode } from './healthFixture.ts';
import type { HelperState } from './helpers.ts';

const minute = 60_000;

test('a clock that is off is a condition until it is right for a minute', () => {
  const skew = (skewMs: number | null): HealthInput => ({ kind: 'clock_skew', skewMs });
  const node = new HealthNode().takes(skew(1_999)).takes(skew(null));
  expect(node.kinds).toEqual([]);
  node.takes(skew(-4_200));
  expect(node.conditions).toMatchObject([{ kind: 'clock_skew', gpuUuid: null, action: 'note' }]);
  expect(node.conditions[0]?.evidence).toContain('4200 ms behind');
  node.takes(skew(10)).after(minute).takes(skew(null));
  expect(node.kinds).toEqual([]);
});

test('a checkpoint directory that cannot be watched is a condition that names the job', () => {
  const task = { jobId: 'job_0123456789ab' as JobId, attempt: 1, nodeRank: 0 };
  const problem = { task, directory: '/data/run', problem: 'is a symbolic link' };
  const node = new HealthNode().takes({ kind: 'checkpoint_directory', problem });
  expect(node.conditions).toMatchObject([
    {
      kind: 'checkpoint_directory',
      severity: 'warning',
      action: 'note',
      gpuUuid: null,
      task,
      message: expect.stringContaining('/data/run is a symbolic link'),
      evidence: 'job_0123456789ab: /data/run is a symbolic link',
    },
  ]);
  const over: HealthInput = { kind: 'checkpoint_directory', problem: null };
  node.takes(over).after(minute).takes(over);
  expect(node.kinds).toEqual([]);
});

test.each([
  ['guard_silent', 'drain_node', 'pid 7'],
  ['engine_silent', 'note', '/run/docker.sock'],
])('%s is a condition from the fifth second of silence until an answer', (kind, action, named) => {
  const facts = (state: HelperState): HealthInput => ({
    kind: 'helpers',
    facts: {
      guard: { state: kind === 'guard_silent' ? state : 'answers', detail: 'pid 7' },
      engine: { state: kind === 'engine_silent' ? state : 'absent', detail: '/run/docker.sock' },
    },
  });
  const node = new HealthNode().takes(facts('silent')).after(4_000).takes(facts('silent'));
  expect(node.kinds).toEqual([]);
  node.takes(facts('answers')).after(2_000).takes(facts('silent')).after(4_000).takes(facts('silent'));
  expect(node.kinds).toEqual([]);
  node.after(1_000).takes(facts('silent'));
  expect(node.conditions).toMatchObject([{ kind, action, message: expect.stringContaining(named) }]);
  // One that is gone is another matter: the next request starts a guard, and a node needs no engine.
  node.takes(facts('absent'));
  expect(node.kinds).toEqual([]);
});

const gb = 1024 ** 3;
const roomy = { sizeBytes: 1000 * gb, availableBytes: 500 * gb, files: 1_000_000, availableFiles: 900_000 };

function aFact(values: Partial<FileSystemFact> = {}): FileSystemFact {
  return {
    path: '/var/lib/muster',
    isDataDir: true,
    space: roomy,
    readOnly: false,
    failure: null,
    ...values,
  };
}

test.each<[string, Partial<FileSystemFact>, string | null]>([
  ['well', {}, null],
  ['full', { space: { ...roomy, availableBytes: gb - 1 } }, 'disk_full'],
  ['small and not full', { space: { ...roomy, sizeBytes: gb, availableBytes: 0.06 * gb } }, null],
  ['small and full', { space: { ...roomy, sizeBytes: gb, availableBytes: 0.04 * gb } }, 'disk_full'],
  ['out of inodes', { space: { ...roomy, availableFiles: 9_999 } }, 'disk_full'],
  ['without inodes to count', { space: { ...roomy, files: null, availableFiles: null } }, null],
  ['without blocks to count', { space: null }, null],
  ['read-only', { readOnly: true }, 'disk_read_only'],
  ['silent', { space: null, readOnly: null, failure: 'no answer within 10 s' }, 'disk_unreachable'],
  ['not asked', { space: null, readOnly: null, failure: undefined }, null],
])("the agent's disk: %s", (_, values, kind) => {
  const node = new HealthNode().takes({ kind: 'file_systems', facts: [aFact(values)] });
  const expected = kind === null ? [] : [{ kind, action: 'drain_node', gpuUuid: null }];
  expect(node.conditions).toMatchObject(expected);
  node.takes({ kind: 'file_systems', facts: [aFact()] }).after(minute);
  expect(node.takes({ kind: 'tick' }).kinds).toEqual([]);
});

test('other file systems are noted together, and read-only ones only when they were not before', () => {
  const data = (values: Partial<FileSystemFact>) => aFact({ path: '/data', isDataDir: false, ...values });
  const sets = (values: Partial<FileSystemFact>) => aFact({ path: '/sets', isDataDir: false, ...values });
  const node = new HealthNode().takes({ kind: 'file_systems', facts: [data({}), sets({ readOnly: true })] });
  expect(node.kinds).toEqual([]);
  const full = { ...roomy, availableBytes: 0 };
  node.takes({
    kind: 'file_systems',
    facts: [data({ readOnly: true, space: full }), sets({ readOnly: true, space: full })],
  });
  expect(node.conditions.map(({ kind, action, evidence }) => [kind, action, evidence])).toEqual([
    ['mount_full', 'note', '/data: 0 MiB of 1024000 MiB are free; /sets: 0 MiB of 1024000 MiB are free'],
    ['mount_read_only', 'note', '/data: mounted read-only'],
  ]);
});

import type { UpkeepView } from '@muster/common/upkeep';
import { expect, test } from 'vitest';
import { upkeepChecks } from './upkeepChecks.ts';

const nowMs = 1_800_000_000_000;
const dayMs = 24 * 60 * 60_000;
const gibibyte = 1024 ** 3;
const nothing: UpkeepView = { certificates: [], parts: [], fileSystems: [] };

/** `state name: message`, with the remedy on another line. */
function linesOf(upkeep: Partial<UpkeepView>): readonly string[] {
  return upkeepChecks({ ...nothing, ...upkeep }, nowMs, 'muster').flatMap(
    ({ state, name, message, remedy }) => [
      `${state} ${name}: ${message}`,
      ...(remedy === null ? [] : [remedy]),
    ],
  );
}

test('certificates: what is good is one line, what has expired names the way out', () => {
  const node = (name: string, days: number) =>
    ({ kind: 'node', node: name, expiresAtMs: nowMs + days * dayMs }) as const;
  const certificates = [
    { kind: 'ca', node: null, expiresAtMs: nowMs + 3_000 * dayMs },
    { kind: 'server', node: null, expiresAtMs: nowMs + 89 * dayMs },
    node('gpu-1', 7),
    node('gpu-2', 3),
    node('gpu-3', 1),
    node('gpu-4', -14),
  ] as const;
  expect(linesOf({ certificates })).toEqual([
    'ok CA: it expires in 3000 d',
    'ok server: it expires in 89 d',
    'warning gpu-3: it expires in 1 d',
    'Its agent renews it once it is connected; after the end it joins again with a token.',
    'problem gpu-4: it expired 14 d ago',
    '`muster token create gpu-4 --replace`, and start its agent with that token; or `muster node remove gpu-4`.',
    'ok nodes: 2 valid for at least 2 d',
  ]);
});

test('the CA is reported half a year before its end, the server when it was not renewed', () => {
  const [ca = '', , server = ''] = linesOf({
    certificates: [
      { kind: 'ca', node: null, expiresAtMs: nowMs + 179 * dayMs },
      { kind: 'server', node: null, expiresAtMs: nowMs - dayMs },
    ],
  });
  expect(ca).toBe('warning CA: it expires in 179 d');
  expect(server).toBe('problem server: it expired 1 d ago');
});

test.each([
  [100, 'ok', '100 GiB of 1000 GiB free, 1 GiB kept in reserve'],
  [19, 'warning', '19 GiB of 1000 GiB free, 1 GiB kept in reserve'],
  [0.5, 'problem', '512 MiB of 1000 GiB free, 1 GiB kept in reserve'],
])('a disk with %d GiB free is %s', (free, state, message) => {
  const [line, remedy] = linesOf({
    fileSystems: [
      {
        path: '/var/lib/muster',
        sizeBytes: 1_000 * gibibyte,
        availableBytes: free * gibibyte,
        reserveBytes: gibibyte,
      },
    ],
  });
  expect(line).toBe(`${state} /var/lib/muster: ${message}`);
  if (state === 'problem') expect(remedy).toBe('Free at least 512 MiB: no jobs are taken until then.');
});

test('what is kept is shown with its limits', () => {
  expect(
    linesOf({
      parts: [
        { part: 'store', usedBytes: 3 * gibibyte, limitBytes: null },
        { part: 'events', usedBytes: gibibyte, limitBytes: 5 * gibibyte },
        { part: 'backups', usedBytes: 0, limitBytes: null },
      ],
    }),
  ).toEqual(['ok disk: store 3 GiB; events in it about 1 GiB of 5 GiB; copies of earlier stores 0 B']);
});

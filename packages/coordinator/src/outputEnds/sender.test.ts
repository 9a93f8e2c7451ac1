import { causeOf, nothingRan } from '@muster/common/cause';
import { expect, test } from 'vitest';
import { anExit } from '../modelFixture.ts';
import type { RowsHere } from '../rows/knownRows.ts';
import { logState, rowsState, type SenderNode, type SenderState } from './sender.ts';

const node: SenderNode = { isMember: true, isSilent: false, hold: 'held' };
const gone: SenderNode = { isMember: false, isSilent: true, hold: 'unknown' };
const none: RowsHere = { position: 0, step: null, mark: null };
const at = (position: number, mark: RowsHere['mark'] = null): RowsHere => ({ position, step: 1, mark });
const verdict = { ...nothingRan, statusLost: true, startError: causeOf('node_lost', 'node-1 is lost') };

/** What happens to a task that prints rows up to 10 and ends. */
interface World {
  readonly position: number;
  readonly isReported: boolean;
  readonly mark: RowsHere['mark'];
  readonly node: SenderNode;
}
const happenings: Readonly<Record<string, (world: World) => World>> = {
  rows: (world) => ({ ...world, position: 10 }),
  report: (world) => ({ ...world, isReported: true }),
  // It travels behind the rows, so that it can't come before them.
  mark: (world) => (world.position === 10 ? { ...world, mark: 'complete' } : world),
  // The coordinator restarts: it has heard no agent yet.
  restart: (world) => ({ ...world, node: { ...world.node, hold: 'unknown', isSilent: false } }),
  silent: (world) => ({ ...world, node: { ...world.node, hold: 'unknown', isSilent: true } }),
  removed: (world) => ({ ...world, node: gone }),
};

function ordersOf<T>(items: readonly T[]): readonly (readonly T[])[] {
  if (items.length === 0) return [[]];
  return items.flatMap((item, index) =>
    ordersOf(items.toSpliced(index, 1)).map((rest): readonly T[] => [item, ...rest]),
  );
}

test.each(['report with the end of its rows', 'report of an agent that could not read on'])(
  'in every order of its rows, their end, restarts and losses, complete is said only of all rows: %s',
  (kind) => {
    const hasEnd = kind === 'report with the end of its rows';
    const exit = hasEnd ? anExit({ rowsEnd: 10 }) : anExit();
    for (const order of ordersOf(Object.keys(happenings))) {
      let world: World = { position: 5, isReported: false, mark: null, node };
      let before: SenderState['kind'] = 'awaited';
      for (const name of order) {
        world = happenings[name]?.(world) ?? world;
        const rows = at(world.position, world.mark);
        const { kind: now } = rowsState(world.isReported ? exit : null, rows, world.node);
        const isEndKnown = world.mark !== null || (hasEnd && world.isReported);
        const isComplete = isEndKnown && world.position === 10;
        const expected = isComplete ? 'complete' : world.node.isMember ? 'awaited' : 'lost';
        expect(now, order.join(', ')).toBe(expected);
        if (before === 'complete') expect(now, order.join(', ')).toBe('complete');
        before = now;
      }
    }
  },
);

test.each<[string, SenderState['kind'], Parameters<typeof rowsState>]>([
  ['nothing of the task ran', 'complete', [nothingRan, none, gone]],
  ['the report says that it has no rows', 'complete', [anExit({ rowsEnd: 0 }), none, gone]],
  ['its node is silent, however long', 'awaited', [anExit(), at(5), { ...node, isSilent: true }]],
  ['its node is lost', 'lost', [verdict, at(5), { ...node, isSilent: true, hold: 'unknown' }]],
  ['its lost node is back, and has it', 'awaited', [verdict, at(5), node]],
  ['its lost node is back, and has sent all', 'complete', [verdict, at(5, 'complete'), node]],
  ['its lost node is back, without it', 'lost', [verdict, at(5), { ...node, hold: 'dropped' }]],
  ['its agent could not read it', 'lost', [anExit(), at(5, 'lost'), node]],
  ['its agent has dropped it', 'lost', [anExit({ rowsEnd: 10 }), at(5), { ...node, hold: 'dropped' }]],
  ['an older agent has dropped it', 'complete', [anExit(), at(5), { ...node, hold: 'dropped_unmarked' }]],
  ['an older agent has not sent all', 'awaited', [anExit(), at(5), node]],
])('%s: %s', (_title, expected, parts) => {
  expect(rowsState(...parts).kind).toBe(expected);
});

test.each<[string, SenderState['kind'], Parameters<typeof logState>]>([
  ['all bytes are here', 'complete', [anExit({ logBytes: 7 }), 7, gone]],
  ['a byte lacks', 'awaited', [anExit({ logBytes: 7 }), 6, node]],
  ['a byte lacks, and the node was removed', 'lost', [anExit({ logBytes: 7 }), 6, gone]],
  [
    'an older agent no longer has it',
    'lost',
    [anExit({ logBytes: 7 }), 6, { ...node, hold: 'dropped_unmarked' }],
  ],
  ['its node is lost, and how much there is nobody knows', 'lost', [verdict, 6, { ...node, isSilent: true }]],
])('an output of which %s: %s', (_title, expected, parts) => {
  expect(logState(...parts).kind).toBe(expected);
});

import { type TrainingMetricName, type TrainingRow, trainingMetricNames } from '@muster/common/training';
import { ValueTally } from '@muster/common/valueCounts';
import { array, assert, constantFrom, dictionary, integer, nat, option, property } from 'fast-check';
import { expect, test } from 'vitest';
import { type PrintedValues, WaitingRows } from './waitingRows.ts';

/** A line: for some metrics a value of few, so that extremes tie, or none that is finite. */
const line = dictionary(
  constantFrom(...trainingMetricNames),
  option(integer({ min: -3, max: 3 }), { freq: 6 }),
  {
    maxKeys: 4,
  },
);

function rowOf(values: Readonly<Record<string, number | null>>, at: number): TrainingRow {
  const finite = Object.entries(values).filter(([, value]) => value !== null);
  const others = trainingMetricNames.filter((name) => values[name] === null && name !== 'train_loss');
  return {
    position: (at + 1) * 10,
    atMs: at,
    values: Object.fromEntries(finite),
    lossNotFinite: values.train_loss === null,
    ...(others.length === 0 ? {} : { alsoNotFinite: others }),
  };
}

function countOf(rows: readonly TrainingRow[]) {
  const tally = new ValueTally();
  for (const row of rows) tally.addRow(row);
  return tally.counts;
}

/** A coordinator: keeps rows by their positions, once, and what it was told of the output up to the last. */
class Receiver {
  readonly rows: TrainingRow[] = [];
  received: PrintedValues = { printed: {}, unreadBytes: 0 };

  get position(): number {
    return this.rows.at(-1)?.position ?? 0;
  }

  take({ rows, printed, unreadBytes }: ReturnType<WaitingRows['batch']>): void {
    for (const row of rows) if (row.position > this.position) this.rows.push(row);
    this.received = { printed, unreadBytes };
  }
}

/** What may happen between two lines of the output. */
type Happening = 'send' | 'lostAck' | 'thin' | 'thinOlder' | 'restart' | 'restartBehind' | 'refuse';
const happening = constantFrom<Happening>(
  'send',
  'lostAck',
  'thin',
  'thinOlder',
  'restart',
  'restartBehind',
  'refuse',
);

test('whatever is dropped, lost, repeated or read again: ends, extremes and the first NaN arrive, and counts add up', () => {
  assert(
    property(
      array(line, { minLength: 1, maxLength: 120 }),
      array(
        integer({ min: 0, max: 3 }).chain((count) =>
          array(happening, { minLength: count, maxLength: count }),
        ),
        {
          minLength: 1,
          maxLength: 40,
        },
      ),
      nat(8),
      (lines, happenings, rowsMax) => {
        const rows = lines.map(rowOf);
        const receiver = new Receiver();
        let waiting = new WaitingRows();
        let isKnown = false;
        const know = () => {
          if (!isKnown) waiting.acknowledged(receiver.position, receiver.received);
          isKnown = true;
        };
        const send = () => {
          know();
          receiver.take(waiting.batch(5));
        };
        const happen = (what: Happening, read: number) => {
          if (what === 'thin') waiting.thin(rowsMax, 0);
          else if (what === 'thinOlder') waiting.thin(rowsMax, 3);
          else if (what === 'send') {
            send();
            waiting.acknowledged(receiver.position, receiver.received);
          } else if (what === 'lostAck') {
            send();
            isKnown = false;
          } else if (what === 'refuse') {
            know();
            waiting.batch(5);
            waiting.refused();
            waiting.thin(rowsMax, 0);
          } else {
            // Another agent reads the output from its beginning, and asks at once, or only when it has dropped rows of it.
            waiting = new WaitingRows();
            isKnown = false;
            if (what === 'restart') know();
            for (const row of rows.slice(0, read)) waiting.add(row);
            if (what === 'restartBehind') waiting.thin(rowsMax, 0);
          }
        };
        for (const [at, row] of rows.entries()) {
          waiting.add(row);
          for (const what of happenings[at % happenings.length] ?? []) happen(what, at + 1);
        }
        do happen('send', rows.length);
        while (waiting.length > 0);

        expect(receiver.received.printed).toEqual(countOf(rows));
        for (const name of trainingMetricNames) expectEnds(name, rows, receiver.rows);
      },
    ),
    { numRuns: 1_500 },
  );
});

/** The first, last, least and greatest row and the first NaN of a metric are the same. */
function expectEnds(
  name: TrainingMetricName,
  all: readonly TrainingRow[],
  arrived: readonly TrainingRow[],
): void {
  const endsOf = (rows: readonly TrainingRow[]) => {
    const own = rows.flatMap(({ position, values, lossNotFinite, alsoNotFinite = [] }) => {
      const isNaN = name === 'train_loss' ? lossNotFinite : alsoNotFinite.includes(name);
      return values[name] === undefined && !isNaN ? [] : [{ position, value: values[name] ?? null }];
    });
    const finite = own.flatMap(({ value }) => value ?? []);
    const firstWith = (wanted: number | null) => own.find(({ value }) => value === wanted);
    return [
      own[0],
      own.at(-1),
      firstWith(Math.min(...finite)),
      firstWith(Math.max(...finite)),
      firstWith(null),
    ];
  };
  expect(endsOf(arrived), name).toEqual(endsOf(all));
}

test('what nobody has read is counted in bytes, and what another agent had read is not', () => {
  const rows = Array.from({ length: 10 }, (_, at) => rowOf({ train_loss: at }, at));
  const first = new WaitingRows();
  for (const row of rows.slice(0, 3)) first.add(row);
  first.skipped(20);
  first.add(rows[5] as TrainingRow);
  const { printed, unreadBytes } = first.batch(10);
  expect([printed, unreadBytes]).toEqual([{ train_loss: { rows: 4, notFinite: 0 } }, 20]);
  // The next agent skips from row 2 to row 7, of which the coordinator lacks what follows row 6, at position 60.
  const second = new WaitingRows();
  for (const row of rows.slice(0, 2)) second.add(row);
  second.skipped(50);
  for (const row of rows.slice(7)) second.add(row);
  second.acknowledged(60, { printed, unreadBytes });
  expect(second.batch(10)).toMatchObject({
    printed: { train_loss: { rows: 7, notFinite: 0 } },
    unreadBytes: 40,
    isLast: true,
  });
});

test('rows that are left are spread over the output, and the newest stay', () => {
  const waiting = new WaitingRows();
  for (let at = 0; at < 1_000; at += 1) waiting.add(rowOf({ train_loss: 1 }, at));
  expect(waiting.thin(50, 100)).toBeGreaterThan(840);
  const positions = waiting.batch(1_000).rows.map(({ position }) => position);
  expect(positions.length).toBeLessThanOrEqual(150);
  expect(positions.slice(-100)).toEqual(Array.from({ length: 100 }, (_, at) => 9_010 + at * 10));
  const gaps = positions.slice(1).map((position, at) => position - (positions[at] ?? 0));
  expect(Math.max(...gaps)).toBeLessThanOrEqual(300);
});

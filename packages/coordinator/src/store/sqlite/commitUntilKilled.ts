/**
 * A program for the tests: opens the store of the data directory in its first argument and commits one job after the
 * other, numbered from its second. It prints each number on stdout once the commit is done. It runs until it is killed.
 */
import { writeSync } from 'node:fs';
import { aJob } from '../../modelFixture.ts';
import { emptyBatch } from '../store.ts';
import { openSqliteStore } from './sqliteStore.ts';

const [dataDir = '', first = '1'] = process.argv.slice(2);
const store = openSqliteStore(dataDir, () => 'c0ffee');
for (let number = Number(first); ; number += 1) {
  const job = aJob(number);
  await store.commit({
    ...emptyBatch,
    newJobs: [job],
    events: [
      {
        seq: number,
        id: `c0ffee-${number}`,
        kind: 'job.submitted',
        subject: job.id,
        subjectSeq: 1,
        timeMs: 0,
        data: {},
        by: 'admin',
        peer: '',
      },
    ],
  });
  writeSync(1, `${number}\n`);
}

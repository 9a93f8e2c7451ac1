import {
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { tempDir } from '../../../../../test/support/services.ts';
import { trialsOf } from '../../../../../test/support/trials.ts';
import { seededRandom } from '../../modelFixture.ts';
import { StoreError } from '../store.ts';
import {
  flipBit,
  jobsBySqliteAlone,
  type KilledStore,
  lostIn,
  type Shown,
  shownBy,
  storeHistory,
} from './damageFixture.ts';
import { openSqliteStore } from './sqliteStore.ts';

const trials = trialsOf(100);
const seed = 20_261_122;
const jobsMax = 1_100;

let directory: string;
let moments: readonly KilledStore[];
beforeAll(async () => {
  directory = tempDir('damage').path;
  moments = await storeHistory(directory, seed);
});

type Random = () => number;
interface Trial {
  readonly dataDir: string;
  /** Which of the moments it was copied from. */
  readonly moment: number;
  readonly random: Random;
}
/** Damages a store; false where there is nothing to damage in that way. */
type Damage = (trial: Trial) => boolean;

const chosen = <T>(values: readonly T[], random: Random): T =>
  values[Math.floor(random() * values.length)] as T;

const log = 'muster.db-wal';
const database = 'muster.db';

const damages: readonly (readonly [what: string, damage: Damage])[] = [
  [
    'the log is cut',
    ({ dataDir, random }) => {
      const path = join(dataDir, log);
      if (!existsSync(path)) return false;
      truncateSync(path, Math.floor(random() * statSync(path).size));
      return true;
    },
  ],
  ['a bit of the log is flipped', ({ dataDir, random }) => flipBit(join(dataDir, log), random)],
  ['a bit of the database is flipped', ({ dataDir, random }) => flipBit(join(dataDir, database), random)],
  [
    'a bit of any file is flipped',
    ({ dataDir, random }) => flipBit(join(dataDir, chosen(readdirSync(dataDir), random)), random),
  ],
  [
    'a file is removed',
    ({ dataDir, random }) => {
      rmSync(join(dataDir, chosen(readdirSync(dataDir), random)));
      return true;
    },
  ],
  [
    'the database and the file that names its cluster are removed',
    ({ dataDir, random }) => {
      for (const name of [database, 'cluster.json']) rmSync(join(dataDir, name));
      if (random() < 0.5) rmSync(join(dataDir, log), { force: true });
      return true;
    },
  ],
  [
    'one file is an older one',
    (trial) => older(trial, [chosen([database, log, 'muster.witness', 'muster.sums'], trial.random)]),
  ],
  ['the database and its log are older ones', (trial) => older(trial, [database, log])],
];

/** Puts files of an earlier moment in the place of those of this one. */
function older({ dataDir, moment, random }: Trial, names: readonly string[]): boolean {
  if (moment === 0) return false;
  const earlier = moments[Math.floor(random() * moment)]?.dataDir ?? '';
  for (const name of names) {
    rmSync(join(dataDir, name), { force: true });
    if (existsSync(join(earlier, name))) cpSync(join(earlier, name), join(dataDir, name));
  }
  return true;
}

/** What is lost without a word; null: the store says that it is damaged. */
async function silentlyLost(dataDir: string, acknowledged: Shown): Promise<readonly string[] | null> {
  let store: ReturnType<typeof openSqliteStore>;
  try {
    store = openSqliteStore(dataDir, () => 'another');
  } catch (error) {
    expect(error).toBeInstanceOf(StoreError);
    expect((error as StoreError).kind).toBeOneOf(['damaged', 'behind', 'missing', 'unknown_schema']);
    return null;
  }
  try {
    await store.load();
    return lostIn(acknowledged, await shownBy(store, jobsMax));
  } finally {
    await store.close();
  }
}

describe('a store that was killed', () => {
  it('shows everything that it had acknowledged, and is not taken for damaged', async () => {
    for (const { dataDir, shown } of moments) {
      const copy = join(directory, 'undamaged', basename(dataDir));
      cpSync(dataDir, copy, { recursive: true });
      expect(await silentlyLost(copy, shown)).toEqual([]);
      // Neither is it the second time.
      expect(await silentlyLost(copy, shown)).toEqual([]);
    }
  });

  it('is not taken for damaged when the power failed before the newest note of its witness was on disk', async () => {
    for (const { dataDir, shown } of moments) {
      for (const lost of [[2], [2, 0], [2, 1]]) {
        const copy = join(directory, 'power', `${basename(dataDir)}-${lost.join('')}`);
        cpSync(dataDir, copy, { recursive: true });
        const path = join(copy, 'muster.witness');
        const records = readFileSync(path);
        const serial = (slot: number) =>
          Number(/"serial":(\d+)/.exec(records.toString('latin1', slot * 4_096))?.[1]);
        // Of the two synced ones only the older can be under way.
        if (lost.length === 2 && serial(lost[1] ?? 0) > serial(1 - (lost[1] ?? 0))) continue;
        for (const slot of lost) records.fill(0, slot * 4_096, (slot + 1) * 4_096);
        writeFileSync(path, records);
        expect(await silentlyLost(copy, shown)).toEqual([]);
      }
    }
  });

  it.each(damages)(
    `when %s, loses nothing without a word, ${trials} times over`,
    async (what, damage) => {
      const random = seededRandom(seed + what.length);
      let refused = 0;
      let lostBySqlite = 0;
      for (let trial = 0; trial < trials; ) {
        const moment = Math.floor(random() * moments.length);
        const { dataDir: from, shown } = moments[moment] as KilledStore;
        const dataDir = join(directory, `trial-${what.length}-${trial}`);
        cpSync(from, dataDir, { recursive: true });
        if (!damage({ dataDir, moment, random })) {
          rmSync(dataDir, { recursive: true });
          continue;
        }
        const asSqlite = `${dataDir}-sqlite`;
        cpSync(dataDir, asSqlite, { recursive: true });

        const lost = await silentlyLost(dataDir, shown);
        expect(lost ?? [], `trial ${trial}, moment ${moment}, in ${dataDir}`).toEqual([]);

        if (lost === null) refused += 1;
        const jobs = [...shown.keys()].filter((name) => name.startsWith('listed ')).length;
        if (jobsBySqliteAlone(asSqlite) < jobs) lostBySqlite += 1;
        rmSync(dataDir, { recursive: true });
        rmSync(asSqlite, { recursive: true });
        trial += 1;
      }
      expect(refused).toBeGreaterThan(0);
      // The trials are worth something where SQLite by itself shows less than was acknowledged.
      if (what.includes('log is cut')) expect(lostBySqlite).toBeGreaterThan(trials / 2);
    },
    600_000,
  );
});

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@muster/common/log';
import { expect, onTestFinished, test } from 'vitest';
import type { Lease, TaskName } from '../taskFacts/execution.ts';
import { Fences } from './fences.ts';
import { LeaseFiles } from './leaseFiles.ts';

const key = 'job_000000000001.1.0' as TaskName;
const lease: Lease = { deadlineBoottimeMs: 1_000, bootId: 'this-boot', onExpiry: 'freeze' };

test('a lease whose file cannot be removed is forgotten anyway, and that is logged', () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-fences-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const logged: object[] = [];
  const fences = new Fences({
    files: new LeaseFiles(directory),
    bootId: lease.bootId,
    boottimeMs: () => 0,
    log: { ...silentLogger, error: (fields) => void logged.push(fields) },
    ownTask: () => null,
  });
  const location = { key, directory };
  fences.renew(location, lease, ['/sys/fs/cgroup/nowhere']);
  expect(fences.isHolding).toBe(true);
  // As little to be removed as from a disk that is read-only now.
  const file = join(directory, 'leases', `${key}.json`);
  rmSync(file);
  mkdirSync(file);
  fences.renew(location, null, []);
  expect(logged).toEqual([{ task: key, error: expect.stringContaining('EISDIR') }]);
  expect(fences.isHolding).toBe(false);
});

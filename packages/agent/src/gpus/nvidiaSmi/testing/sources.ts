/** Sources over programs that play nvidia-smi, in a folder of their own for each test. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import {
  changeFakeNvidiaSmi,
  type FakeNvidiaSmi,
  writeFakeNvidiaSmi,
} from '../../../../../../test/support/fakeNvidiaSmi.ts';
import type { GpuSource } from '../../gpuSource.ts';
import { createNvidiaSmiSource, type NvidiaSmiOptions } from '../source.ts';

export interface Workshop {
  /** Of the running test; gone after it. */
  readonly dir: string;
  /** A source that is closed after the test. */
  aSource(path: string, options?: Partial<NvidiaSmiOptions>): GpuSource;
  /** A node with a fake nvidia-smi, which may become another one. */
  aNode(
    behaviour?: Partial<FakeNvidiaSmi>,
    options?: Partial<NvidiaSmiOptions>,
  ): { readonly source: GpuSource; readonly becomes: (next: Partial<FakeNvidiaSmi>) => void };
  /** A shell script in the place of nvidia-smi. */
  aScript(script: string, options?: Partial<NvidiaSmiOptions>): GpuSource;
}

const neverMissedMs = 15_000;

export function useWorkshop(): Workshop {
  let dir = '';
  let opened: GpuSource[] = [];
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'muster-nvidia-smi-'));
    opened = [];
  });
  afterEach(async () => {
    for (const source of opened) await source.close();
    rmSync(dir, { recursive: true, force: true });
  });

  const workshop: Workshop = {
    get dir() {
      return dir;
    },
    aSource(path, options = {}) {
      const source = createNvidiaSmiSource({
        path,
        environment: { PATH: '/usr/bin:/bin' },
        deadlineMs: neverMissedMs,
        inventoryDeadlineMs: neverMissedMs,
        // Starts are always cheap.
        nowMs: () => 0,
        ...options,
      });
      opened.push(source);
      return source;
    },
    aNode(behaviour = {}, options = {}) {
      const path = writeFakeNvidiaSmi(dir, behaviour);
      return {
        source: workshop.aSource(path, options),
        becomes: (next) => changeFakeNvidiaSmi(path, next),
      };
    },
    aScript(script, options = {}) {
      const path = join(dir, 'script');
      writeFileSync(path, `#!/bin/sh\n${script}\n`);
      chmodSync(path, 0o755);
      return workshop.aSource(path, options);
    },
  };
  return workshop;
}

/** A real reader process on a fake library, for the tests beside this file. */
import { fileURLToPath } from 'node:url';
import { systemClock } from '@muster/common/clock';
import { silentLogger } from '@muster/common/log';
import {
  buildFakeNvml,
  type FakeNvml,
  type FakeNvmlOptions,
} from '../../../../../test/support/fakeNvml/fakeNvml.ts';
import { tempDir } from '../../../../../test/support/services.ts';
import type { GpuSample, GpuSampling } from '../gpuSource.ts';
import { nvmlReaderCommand } from './command.ts';
import { createNvmlSource, type NvmlDeadlines, type NvmlSource } from './source.ts';

const readerScript = fileURLToPath(new URL('main.ts', import.meta.url));

/** Far longer than anything takes here, also on a busy machine: a deadline that passes is always one of a test. */
const patient: NvmlDeadlines = {
  listMs: 15_000,
  sampleMs: 15_000,
  avoidMs: 1e9,
  avoidMaxMs: 1e9,
  restartMs: 1,
  restartMaxMs: 1,
  refreshMs: 0,
};

export interface NvmlFixture extends AsyncDisposable {
  readonly fake: FakeNvml;
  readonly source: NvmlSource;
  /** The only sample of this device; fails where there is none. */
  sampleOf(uuid: string): Promise<GpuSample>;
}

export interface NvmlFixtureOptions extends FakeNvmlOptions {
  readonly gpm?: boolean;
  readonly deadlines?: Partial<NvmlDeadlines>;
  /** Another library than the fake one. */
  readonly library?: string;
}

export async function nvmlFixture(options: NvmlFixtureOptions = {}): Promise<NvmlFixture> {
  const dir = tempDir('nvml');
  const fake = await buildFakeNvml(dir.path, options);
  const source = createNvmlSource({
    library: options.library ?? fake.path,
    command: nvmlReaderCommand(process.execPath, readerScript),
    gpm: options.gpm ?? false,
    log: silentLogger,
    clock: systemClock,
    deadlines: { ...patient, ...options.deadlines },
  });
  return {
    fake,
    source,
    sampleOf: async (uuid) => sampleIn(await source.sample(), uuid),
    async [Symbol.asyncDispose]() {
      await source.close();
      fake.close();
      await dir.remove();
    },
  };
}

export function sampleIn({ samples, problems }: GpuSampling, uuid: string): GpuSample {
  const found = samples.filter((sample) => sample.uuid === uuid);
  if (found.length === 1 && found[0] !== undefined) return found[0];
  throw new Error(`${found.length} samples of ${uuid}; problems: ${JSON.stringify(problems)}`);
}

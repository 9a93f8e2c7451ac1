/** Output that was captured on real machines, where a checkout has it beside it. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { DmonParser, parseDiscovery } from './dmonOutput.ts';
import { parseExporterPage } from './exporterText.ts';

const captures = fileURLToPath(new URL('../../../../../../shared/fixtures/nvidia', import.meta.url));
const read = (name: string) => readFileSync(`${captures}/${name}`, 'utf8');

function rowsOf(name: string) {
  const parser = new DmonParser();
  return read(name)
    .split('\n')
    .map((line) => parser.line(line))
    .flatMap((line) => (line.kind === 'row' ? [line.row] : []));
}

describe.runIf(existsSync(captures))('captured output', () => {
  test('dcgm-exporter: 8 cards', () => {
    const { readings } = parseExporterPage(read('dcgm-exporter/gen-8x-h100.prom'));
    expect(readings).toHaveLength(8);
    for (const { activity } of readings) expect(activity.tensorActive).toBeGreaterThan(0);
  });

  test('dcgm-exporter: MIG instances', () => {
    const { readings } = parseExporterPage(read('dcgm-exporter/gen-h100-mig.prom'));
    expect(readings.map(({ gpuInstanceId, activity }) => [gpuInstanceId, activity.graphicsActive])).toEqual([
      [1, 0.913],
      [3, 0],
      [9, 0],
      [10, 0],
    ]);
  });

  test('dcgm-exporter: pages without profiling values', () => {
    for (const name of ['4x-t4-r535-with-comments.prom', 'gen-old-spaces-and-blank-sentinel.prom']) {
      const { readings, seriesCount } = parseExporterPage(read(`dcgm-exporter/${name}`));
      expect([name, readings, seriesCount > 0]).toEqual([name, [], true]);
    }
  });

  test('dmon: a T4 under load', () => {
    const rows = rowsOf('dcgmi/dmon-t4-gract-tenso-drama.txt');
    expect(rows.length).toBeGreaterThan(10);
    expect(rows[2]).toMatchObject({
      gpuId: 0,
      activity: { graphicsActive: 0.998, tensorActive: 0.885, dramActive: 0.305, smActive: null },
    });
  });

  test('dmon: a card that turns to N/A, and a header in between', () => {
    const rows = rowsOf('dcgmi/gen-dmon-4gpu-na.txt');
    expect(rows).toHaveLength(16);
    expect(rows.filter(({ gpuId }) => gpuId === 2).map(({ activity }) => activity.smActive)).toEqual([
      0.912,
      0.913,
      null,
      null,
    ]);
  });

  test('discovery: a T4', () => {
    expect([...parseDiscovery(read('dcgmi/discovery-t4.txt'))]).toEqual([
      [0, expect.stringMatching(/^GPU-[0-9a-f-]{36}$/)],
    ]);
  });
});

/** dcgm-exporter's own list of counters and one of its pages, where a checkout has them beside it. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { gpuFamilies } from './gpuPage.ts';
import { aCard, anObservation, gpuParts } from './testing/parts.ts';
import { renderFamilies } from './textFormat.ts';

const captures = fileURLToPath(
  new URL('../../../../../shared/fixtures/nvidia/dcgm-exporter', import.meta.url),
);
const read = (name: string) => readFileSync(`${captures}/${name}`, 'utf8');

/** Ours that the exporter's list does not mention, not even as an example; DCGM has the fields. */
const notListed = [
  'DCGM_FI_DEV_CLOCKS_EVENT_REASONS',
  'DCGM_FI_DEV_ENFORCED_POWER_LIMIT',
  'DCGM_FI_DEV_FB_TOTAL',
  'DCGM_FI_DEV_ROW_REMAP_PENDING',
  'DCGM_FI_PROF_NVLINK_RX_BYTES',
  'DCGM_FI_PROF_NVLINK_TX_BYTES',
];
/** On by default there; nothing that the agent reads tells them. */
const notReported = ['DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL', 'DCGM_FI_DEV_VGPU_LICENSE_STATUS'];

interface Counter {
  readonly name: string;
  readonly text: string;
  readonly isDefault: boolean;
}

function listedCounters(): readonly Counter[] {
  return [...read('default-counters.csv').matchAll(/^(# ?)?(DCGM_FI_\w+) *, *(gauge|counter), *(.+)$/gm)].map(
    ([, comment, name = '', type = '', help = '']) => ({
      name,
      text: `${type} ${help.trim()}`,
      isDefault: comment === undefined,
    }),
  );
}

describe.runIf(existsSync(captures))('compared with dcgm-exporter', () => {
  const families = gpuFamilies(gpuParts(anObservation([aCard(0)]))).filter(({ name }) =>
    name.startsWith('DCGM_'),
  );

  test('names, types and help texts are those of its list', () => {
    const listed = listedCounters();
    const linesOf = (name: string) =>
      listed.filter((counter) => counter.name === name).map(({ text }) => text);
    const differing = families
      .filter(({ name, type, help }) => !linesOf(name).includes(`${type} ${help}`))
      .map(({ name }) => name);
    expect(differing.sort()).toEqual(notListed);
  });

  test('everything that is on by default there is here', () => {
    const ours = new Set(families.map(({ name }) => name));
    const missing = listedCounters().filter(({ name, isDefault }) => isDefault && !ours.has(name));
    expect(missing.map(({ name }) => name)).toEqual(notReported);
  });

  test('lines have the same labels in the same order, and numbers are written alike', () => {
    const shapes = (text: string) =>
      new Map(
        [...text.matchAll(/^(DCGM_\w+)\{(.*)\} (\S+)$/gm)].map(([, name = '', labels = '', value = '']) => [
          name,
          {
            labels: [...labels.matchAll(/(\w+)="/g)].map(([, label]) => label),
            number: value.replace(/\d+(?=\.|$)/, 'n').replace(/\d/g, 'd'),
          },
        ]),
      );
    const theirs = shapes(read('gen-8x-h100.prom'));
    const ours = shapes(renderFamilies(families));
    expect(theirs.size).toBeGreaterThan(5);
    expect(new Map([...ours].filter(([name]) => theirs.has(name)))).toEqual(theirs);
  });
});

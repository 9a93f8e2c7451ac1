/** docs/metrics.md names every series of Prometheus that the code exports, but those of dcgm-exporter. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { productFiles, root } from './source.ts';

/** Files whose families are written with a short name, and what stands before and behind it. */
const prefixes: Readonly<Record<string, string>> = {
  'packages/agent/src/metrics/agentPage.ts': 'muster_agent_',
  'packages/agent/src/metrics/page.ts': 'muster_host_',
};

function exported(): readonly string[] {
  const files = productFiles().filter(({ path }) =>
    /^packages\/(?:agent|coordinator)\/src\/metrics\//.test(path),
  );
  return files.flatMap(({ path, text }) => {
    const full = Array.from(text.matchAll(/\bname: '([a-z][a-z0-9_]+)'/g), ([, name = '']) => name);
    const added = Array.from(text.matchAll(/\baddMetric\(\s*'([a-z_]+)'/g), ([, name = '']) => name);
    const prefix = prefixes[path];
    const short = prefix === undefined ? [] : [...text.matchAll(/\b(gauge|counter)\(\s*'([a-z0-9_]+)'/g)];
    return [
      ...full,
      ...added,
      ...short.map(([, type, name = '']) => `${prefix}${name}${type === 'counter' ? '_total' : ''}`),
    ];
  });
}

test('docs/metrics.md lists the series of the code, and no others', () => {
  const page = readFileSync(join(root, 'docs/metrics.md'), 'utf8');
  const cells = Array.from(page.matchAll(/^\| (`[^|]*`) \|/gm), ([, cell = '']) => cell);
  const listed = cells.flatMap((cell) => Array.from(cell.matchAll(/`([^`…]+)`/g), ([, name = '']) => name));
  expect([...new Set(listed)].toSorted()).toEqual([...new Set(exported())].toSorted());
});

test('the names in docs/metrics.md are those of the code', () => {
  execFileSync(process.execPath, [join(root, 'scripts/generate-metric-docs.mjs'), '--check']);
});

test('the dashboards are those of the script', () => {
  execFileSync(process.execPath, [join(root, 'scripts/generate-dashboards.mjs'), '--check']);
});

// Writes the table of names at the end of docs/metrics.md from packages/common/src/metricNames.ts; what stands above it in the page is
// written by hand. `--check` compares instead of writing and fails when they differ.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { metricAliases, namedMetrics } from '../packages/common/src/metricNames.ts';

const path = join(fileURLToPath(new URL('..', import.meta.url)), 'docs/metrics.md');
const mark =
  '<!-- Made by scripts/generate-metric-docs.mjs; do not edit below. `npm run generate` writes it. -->';

const subjects = { gpu: 'GPUs of jobs', host: 'nodes', training: 'output of jobs', cluster: 'cluster' };

const rows = Array.from(namedMetrics.values(), ({ name, subject, unit, prometheus, what }) => {
  const aliases = Object.entries(metricAliases)
    .filter(([, meant]) => meant === name)
    .map(([alias]) => `\`${alias}\``);
  const also = aliases.length === 0 ? '' : `, also ${aliases.join(', ')}`;
  const source = prometheus === null ? '' : `\`${prometheus}\``;
  return `| ${subjects[subject]} | \`${name}\`${also} | ${unit} | ${what} | ${source} |`;
});

const page = readFileSync(path, 'utf8');
const [written] = page.split(mark);
const table = ['| of | name | unit | what it is | in Prometheus |', '|---|---|---|---|---|', ...rows].join(
  '\n',
);
const text = `${written}${mark}\n\n${table}\n`;
if (process.argv.includes('--check')) {
  if (page !== text) {
    process.stderr.write('docs/metrics.md is not what metricNames.ts says: run `npm run generate`.\n');
    process.exitCode = 1;
  }
} else {
  writeFileSync(path, text);
}

// Writes the tables of docs/events.md from packages/common/src/eventKinds.ts; what stands above them in the page is written by hand.
// `--check` compares instead of writing and fails when they differ.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventKinds } from '../packages/common/src/eventKinds.ts';

const path = join(fileURLToPath(new URL('..', import.meta.url)), 'docs/events.md');
const mark =
  '<!-- Made by scripts/generate-event-docs.mjs; do not edit below. `npm run generate` writes it. -->';

const headings = {
  job: ['The subject is a job:', 'data besides `name`'],
  output: ['The subject is the job whose output it is, or `cluster` once the job has ended:', 'data'],
  node: ['The subject is a node:', 'data'],
  cluster: ['The subject is `cluster`:', 'data'],
};

/** @param {readonly string[]} data */
function members(data) {
  const always = data.filter((name) => !name.endsWith('?')).map((name) => `\`${name}\``);
  const sometimes = data.filter((name) => name.endsWith('?')).map((name) => `\`${name.slice(0, -1)}\``);
  const first = always.join(', ');
  if (sometimes.length === 0) return first;
  return `${first}${first === '' ? '' : '; '}where it applies ${sometimes.join(', ')}`;
}

const tables = Object.entries(headings).map(([subject, [heading, dataTitle]]) => {
  const rows = Object.entries(eventKinds)
    .filter(([, rule]) => rule.subject === subject)
    .map(
      ([kind, { when, data }]) =>
        `| \`${kind}\` | ${when} |${data.length === 0 ? '' : ` ${members(data)}`} |`,
    );
  return [heading, '', `| type | when | ${dataTitle} |`, '|---|---|---|', ...rows].join('\n');
});

const page = readFileSync(path, 'utf8');
const [written] = page.split(mark);
const text = `${written}${mark}\n\n${tables.join('\n\n')}\n`;
if (process.argv.includes('--check')) {
  if (page !== text) {
    process.stderr.write('docs/events.md is not what eventKinds.ts says: run `npm run generate`.\n');
    process.exitCode = 1;
  }
} else {
  writeFileSync(path, text);
}

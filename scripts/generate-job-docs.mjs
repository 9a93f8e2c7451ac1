// Writes the tables of docs/job-file.md from the table of settings; what stands above them in the page is written by hand.
// `--check` compares instead of writing and fails when they differ.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { specPlaces } from '../packages/common/src/spec/fields.ts';
import { shownDefault } from '../packages/common/src/spec/kinds.ts';

const path = join(fileURLToPath(new URL('..', import.meta.url)), 'docs/job-file.md');
const mark =
  '<!-- Made by scripts/generate-job-docs.mjs; do not edit below. `npm run generate` writes it. -->';

const mappings = new Set(specPlaces.map((place) => place.path.slice(0, -1).join('.')));

/** @param {string} text */
function cell(text) {
  return text.replaceAll(/[|*]/g, String.raw`\$&`);
}

/** @param {import('../packages/common/src/spec/kinds.ts').AnyField} field */
function defaultCell(field) {
  const value = shownDefault(field);
  if (value === undefined || typeof value === 'object') return '';
  return `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;
}

/** @param {string} mapping the path of one, empty for the whole file */
function table(mapping) {
  const rows = specPlaces
    .filter((place) => place.path.slice(0, -1).join('.') === mapping)
    .map(({ path: [...keys], field }) => {
      const inner = keys.join('.');
      const link = mappings.has(inner) ? ` ([its settings](#${inner.replaceAll('.', '')}))` : '';
      const flag = field.flag === undefined ? '' : `\`${field.flag.replace(/^-\w, /, '')}\``;
      const cells = [
        `\`${field.key}\``,
        cell(field.form),
        defaultCell(field),
        flag,
        `${cell(field.about)}${link}`,
      ];
      return `| ${cells.join(' | ')} |`;
    });
  const heading = mapping === '' ? [] : [`### ${mapping}`, ''];
  return [...heading, '| key | value | default | flag | meaning |', '|---|---|---|---|---|', ...rows].join(
    '\n',
  );
}

const page = readFileSync(path, 'utf8');
const [written] = page.split(mark);
const text = `${written}${mark}\n\n${Array.from(mappings, table).join('\n\n')}\n`;
if (process.argv.includes('--check')) {
  if (page !== text) {
    process.stderr.write(
      'docs/job-file.md is not what the table of settings says: run `npm run generate`.\n',
    );
    process.exitCode = 1;
  }
} else {
  writeFileSync(path, text);
}

// Writes the tables and examples of docs/events.md, and docs/events.schema.json, from packages/common/src/eventKinds.ts; what stands
// above them in the page is written by hand. `--check` compares instead of writing and fails when they differ.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventKinds } from '../packages/common/src/eventKinds.ts';
import { exampleOf, kindsOfEvents, schemaOfEvents } from '../packages/common/src/eventSchema.ts';

const docs = join(fileURLToPath(new URL('..', import.meta.url)), 'docs');
const path = join(docs, 'events.md');
const schemaPath = join(docs, 'events.schema.json');
const mark =
  '<!-- Made by scripts/generate-event-docs.mjs; do not edit below. `npm run generate` writes it. -->';

const headings = {
  job: ['The subject is a job:', 'data besides `name`'],
  output: ['The subject is the job whose output it is, or `cluster` once the job has ended:', 'data'],
  node: ['The subject is a node:', 'data'],
  cluster: ['The subject is `cluster`:', 'data'],
};

/** @param {import('../packages/common/src/jsonShapes.ts').Members} data */
function members(data) {
  const listed = Object.entries(data).map(([name, { type }]) => ({
    isOptional: name.endsWith('?'),
    text: `\`${name.replace('?', '')}\` ${typeof type === 'string' ? type : type.join(' or ')}`,
  }));
  const textOf = (/** @type {boolean} */ isOptional) =>
    listed
      .filter((each) => each.isOptional === isOptional)
      .map(({ text }) => text)
      .join(', ');
  const sometimes = textOf(true);
  return [textOf(false), sometimes === '' ? '' : `where it applies ${sometimes}`].filter(Boolean).join('; ');
}

const columnsMax = 130;

/** JSON with a new line before a member where the line would be too long. @param {unknown} value */
function wrapped(value) {
  const lines = [''];
  for (const piece of JSON.stringify(value).split(/(?<=,)(?=")/)) {
    if ((lines.at(-1) ?? '').length + piece.length > columnsMax) lines.push(' ');
    lines.push(`${lines.pop()}${piece}`);
  }
  return lines.join('\n');
}

const tables = Object.entries(headings).flatMap(([subject, [heading, dataTitle]]) => {
  const kinds = kindsOfEvents.filter((kind) => eventKinds[kind].subject === subject);
  const rows = kinds.map((kind) => {
    const { when, data } = eventKinds[kind];
    const text = members(data);
    return `| \`${kind}\` | ${when} |${text === '' ? '' : ` ${text}`} |`;
  });
  const examples = kinds.map((kind) => wrapped(exampleOf(kind)));
  return [
    [heading, '', `| type | when | ${dataTitle} |`, '|---|---|---|', ...rows].join('\n'),
    ['```json', ...examples, '```'].join('\n'),
  ];
});

const page = readFileSync(path, 'utf8');
const [written] = page.split(mark);
const text = `${written}${mark}\n\n${tables.join('\n\n')}\n`;
const schema = `${JSON.stringify(schemaOfEvents())}\n`;
if (process.argv.includes('--check')) {
  if (page !== text || readFileSync(schemaPath, 'utf8') !== schema) {
    process.stderr.write(
      'docs/events.md or docs/events.schema.json is not what eventKinds.ts says: run `npm run generate`.\n',
    );
    process.exitCode = 1;
  }
} else {
  writeFileSync(path, text);
  writeFileSync(schemaPath, schema);
}

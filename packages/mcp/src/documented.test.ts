import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { ToolEffect } from './tool.ts';
import { toolTable } from './toolTable.ts';

const page = readFileSync(new URL('../../../docs/mcp.md', import.meta.url), 'utf8');

const changes: Readonly<Record<ToolEffect, string>> = {
  read: 'nothing',
  change: 'adds, may be undone',
  destroy: 'ends what was there',
};

test('docs/mcp.md lists every tool as it is', () => {
  const rows = toolTable.map(
    ({ name, title, effect, verb }) => `| \`${name}\` | ${title} | ${changes[effect]} | ${verb} |`,
  );
  expect(page.split('\n').filter((line) => /^\| `\w+_\w+` /.test(line))).toEqual(rows);
});

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseJobSpec } from '@muster/common/spec/parse';
import { describe, expect, it } from 'vitest';
import { examplesDir } from './trainingRun.ts';

describe.each(readdirSync(examplesDir).filter((name) => name.endsWith('.yaml')))('examples/%s', (name) => {
  const text = readFileSync(join(examplesDir, name), 'utf8');

  it('is a valid job', () => {
    expect(parseJobSpec(text)).toMatchObject({ ok: true });
  });

  it('names a program that is there, from the root of the repository', () => {
    const paths = text.match(/examples\/[\w.]+\.(?:mjs|py|yaml)/g) ?? [];
    expect(paths.length).toBeGreaterThan(0);
    for (const path of paths) expect(existsSync(join(examplesDir, '..', path)), path).toBe(true);
  });

  it('is listed in the README', () => {
    expect(readFileSync(join(examplesDir, 'README.md'), 'utf8')).toContain(`\`${name}\``);
  });
});

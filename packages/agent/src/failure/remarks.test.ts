import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TaskFailure } from '@muster/common/gangs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { withRemark } from './remarks.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'muster-remarks-'));
  mkdirSync(join(dir, 'bin'));
  program('python3', '');
});
afterEach(() => rmSync(dir, { recursive: true }));

function program(name: string, text: string): void {
  writeFileSync(join(dir, 'bin', name), text);
  chmodSync(join(dir, 'bin', name), 0o755);
}

function messageOf(command: readonly string[], failure: Partial<TaskFailure>): string {
  const given = { message: 'it says so', ...failure } as TaskFailure;
  return withRemark(given, { command, path: `/nowhere:${join(dir, 'bin')}`, workdir: dir }).message;
}

test('a missing module names the Python that ran', () => {
  const python = join(dir, 'bin/python3');
  program('torchrun', `#!${python} -u\n`);
  program('accelerate', '#!/usr/bin/env python3\n');
  program('tool', '#!/bin/sh\n');
  const missing = { kind: 'import_error', message: "No module named 'torch'" } as const;
  const named = `No module named 'torch' (interpreter ${python})`;
  expect(messageOf(['python3', 'x.py'], missing)).toBe(named);
  expect(messageOf(['bin/python3', 'x.py'], missing)).toBe(named);
  expect(messageOf(['torchrun', 'x.py'], missing)).toBe(named);
  expect(messageOf(['accelerate', 'launch'], missing)).toBe(named);
  expect(messageOf(['/bin/sh', '-c', 'exec python3 x.py | tee log'], missing)).toBe(named);
  for (const command of [['tool'], ['gone'], ['sh', '-c', 'cd x && python3 y.py']])
    expect(messageOf(command, missing)).toBe(missing.message);
});

test('a script that is not there names the one that is', () => {
  writeFileSync(join(dir, 'train.py'), '');
  const missing = {
    kind: 'python_exception',
    message: `python: can't open file '${dir}/trian.py': [Errno 2]`,
  } as const;
  expect(messageOf(['python', 'trian.py'], missing)).toBe(`${missing.message} (did you mean train.py?)`);
  const other = { ...missing, message: `python: can't open file '${dir}/evaluate.py': [Errno 2]` };
  expect(messageOf(['python', 'evaluate.py'], other)).toBe(other.message);
  expect(messageOf(['python'], { kind: 'python_exception' })).toBe('it says so');
});

test('a remark is never cut: the message before it is', () => {
  writeFileSync(join(dir, 'train.py'), '');
  const message = `${'x'.repeat(450)} can't open file '${dir}/trian.py': [Errno 2] No such file`;
  const text = messageOf(['python', 'trian.py'], { kind: 'python_exception', message });
  expect(text).toHaveLength(500);
  expect(text).toMatch(/… \(did you mean train\.py\?\)$/);
});

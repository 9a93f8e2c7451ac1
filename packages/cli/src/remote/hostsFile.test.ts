import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { writeContexts } from '../contexts.ts';
import { newCall } from '../testing/testContext.ts';
import { contextKey, hostsOf, hostsPath, noteHost } from './hostsFile.ts';

test('hosts are kept by context and node, for their owner alone', () => {
  const { environment } = newCall(null).context;
  expect(hostsOf('local', environment)).toEqual({});
  noteHost('local', 'gpu-1', { ssh: 'root@gpu-1', tunnel: false }, environment);
  noteHost('lab', 'gpu-1', { ssh: 'other', tunnel: true }, environment);
  noteHost('local', 'gpu-2', { ssh: 'gpu-2', tunnel: false }, environment);
  noteHost('local', 'gpu-1', null, environment);
  expect(JSON.parse(readFileSync(hostsPath(environment), 'utf8'))).toEqual({
    local: { 'gpu-2': { ssh: 'gpu-2', tunnel: false } },
    lab: { 'gpu-1': { ssh: 'other', tunnel: true } },
  });
  expect(statSync(hostsPath(environment)).mode & 0o777).toBe(0o600);
  expect(hostsPath(environment)).toBe(join(dirname(environment.contextsPath), 'hosts.json'));
});

test.each(['{', '[1]', '{"local":{"a":{"ssh":1,"tunnel":false}}}', '{"local":{"a":null}}'])(
  'a file with %s is damaged, with the remedy',
  (text) => {
    const { environment } = newCall(null).context;
    mkdirSync(dirname(hostsPath(environment)), { recursive: true });
    writeFileSync(hostsPath(environment), text);
    expect(() => hostsOf('local', environment)).toThrow('hosts.json is damaged');
  },
);

test('the context is the login in use, the one of an address, or the coordinator of this machine', () => {
  const { environment: fresh } = newCall(null).context;
  const environment = { ...fresh, contextName: null, address: null, dataDir: null };
  expect(contextKey({}, environment)).toBe('local');
  const lab = { address: 'lab:7070', token: 't', ca: null, user: 'a' };
  writeContexts(environment, { current: 'lab', contexts: { lab } });
  expect(contextKey({}, environment)).toBe('lab');
  expect(contextKey({ context: 'local' }, environment)).toBe('local');
  expect(contextKey({ data: '/srv/head' }, environment)).toBe('local');
  expect(contextKey({}, { ...environment, address: 'lab:7070' })).toBe('lab');
  expect(contextKey({ addr: '10.0.0.1:7070' }, environment)).toBe('10.0.0.1:7070');
});

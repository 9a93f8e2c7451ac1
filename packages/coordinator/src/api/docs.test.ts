/** Runs the lines of docs/http.md as they stand, against a coordinator as `muster up` leaves it. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Validator } from '@seriousme/openapi-schema-validator';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import openapi from './openapi.json' with { type: 'json' };

const page = readFileSync(join(import.meta.dirname, '../../../../docs/http.md'), 'utf8');
const [setUp = '', ...blocks] = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, lines = '']) => lines);
const lines = blocks.flatMap((block) => block.trim().split('\n'));

let coordinator: TestCoordinator;
let home: string;
beforeAll(async () => {
  coordinator = await startTestCoordinator({ api: {} });
  home = mkdtempSync(join(tmpdir(), 'muster-http-docs-'));
  const data = join(home, '.local/share/muster');
  mkdirSync(data, { recursive: true });
  writeFileSync(
    join(data, 'connection.json'),
    `${JSON.stringify({ addr: coordinator.address, api: coordinator.apiUrl })}\n`,
  );
  writeFileSync(join(data, 'admin.token'), `${coordinator.adminToken}\n`);
});
afterAll(async () => {
  await coordinator.close();
  rmSync(home, { recursive: true });
});

test('every line of docs/http.md works as it stands, one after the other', async () => {
  expect(lines.length).toBeGreaterThan(10);
  for (const line of lines) {
    const { stdout } = await promisify(execFile)('sh', ['-euc', `${setUp}\n${line}`], {
      env: { HOME: home, PATH: process.env['PATH'] },
    });
    if (!line.includes('/stream')) expect([line, typeof JSON.parse(stdout)]).toEqual([line, 'object']);
    else expect(stdout).toMatch(/event: end\ndata: \{\}\n\n$/);
  }
  const [requeued, stopped] = await coordinator.api.listJobs().then(({ jobs }) => jobs);
  expect([requeued?.state, stopped?.state]).toEqual(['queued', 'cancelled']);
});

test('the document of OpenAPI is valid, and the coordinator answers with it', async () => {
  const { valid, errors } = await new Validator().validate(structuredClone(openapi));
  expect(errors).toBeUndefined();
  expect(valid).toBe(true);
  const answer = await fetch(`${coordinator.apiUrl}/api/v1/openapi.json`);
  expect(await answer.json()).toEqual(openapi);
});

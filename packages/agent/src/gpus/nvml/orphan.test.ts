import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { buildFakeNvml } from '../../../../../test/support/fakeNvml/fakeNvml.ts';
import { tempDir, waitFor } from '../../../../../test/support/services.ts';
import { nvmlReaderCommand } from './command.ts';

const readerScript = fileURLToPath(new URL('main.ts', import.meta.url));

/** What an agent does, without the agent: starts a reader, has it list the GPUs, and tells its pid. */
const parentScript = `
  const { spawn } = require('node:child_process');
  const [program, ...args] = process.argv.slice(1);
  const reader = spawn(program, args, { stdio: ['pipe', 'ignore', 'inherit'] });
  reader.stdin.write(JSON.stringify({ id: 1, kind: 'list', avoid: [] }) + '\\n');
  process.stdout.write(String(reader.pid) + '\\n');
  setInterval(() => {}, 1000);
`;

test('a reader that hangs does not outlive an agent that is killed', async () => {
  const dir = tempDir('orphan');
  const fake = await buildFakeNvml(dir.path);
  fake.behave('nvmlDeviceGetUUID', 1, 'hang');
  const command = nvmlReaderCommand(process.execPath, readerScript);
  const parent = spawn(process.execPath, ['-e', parentScript, ...command, fake.path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [firstLine] = (await once(parent.stdout, 'data')) as [Buffer];
  const readerPid = Number(firstLine.toString());
  await waitFor('the reader hangs in the library', () => fake.callsOf('nvmlDeviceGetUUID') === 2);
  expect(existsSync(`/proc/${readerPid}`)).toBe(true);
  parent.kill('SIGKILL');
  await waitFor('the reader is gone', () => !existsSync(`/proc/${readerPid}`));
  fake.close();
});

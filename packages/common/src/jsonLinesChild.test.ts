import { expect, test } from 'vitest';
import { type ChildEnd, JsonLinesChild } from './jsonLinesChild.ts';

/** @param script gets lines on stdin, as `line`, and answers by console.log */
function start(script: string, lineLengthMax = 100) {
  const received: unknown[] = [];
  const child = new JsonLinesChild<{ readonly id: number }>({
    command: [
      process.execPath,
      '-e',
      `require('node:readline').createInterface(process.stdin).on('line', (line) => { ${script} })`,
    ],
    lineLengthMax,
    onMessage: (message) => received.push(message),
  });
  return { child, received };
}

test('it receives and sends objects', async () => {
  const { child, received } = start('console.log(line)');
  child.send({ id: 1 });
  child.send({ id: 2, text: 'ü\n' });
  await expect.poll(() => received).toEqual([{ id: 1 }, { id: 2, text: 'ü\n' }]);
  child.kill();
  expect(await child.gone).toEqual({ exitCode: null, description: 'signal SIGKILL' } satisfies ChildEnd);
});

test.each([
  [
    'what it printed last',
    `console.error('one'); console.error('two'); process.exitCode = 3; process.stdin.destroy()`,
    3,
    'exit status 3: two',
  ],
  [
    'a line that is not JSON',
    `console.log('no'); `,
    null,
    /^signal SIGKILL: it sent an invalid message: .*JSON/,
  ],
  [
    'a line that does not end',
    `process.stdout.write('x'.repeat(1000))`,
    null,
    /^signal SIGKILL: .* a line that does not end$/,
  ],
])('its end names %s', async (_name, script, exitCode, description) => {
  const { child, received } = start(script);
  child.send({ id: 1 });
  const end = await child.gone;
  expect(end.exitCode).toBe(exitCode);
  expect(end.description).toMatch(description);
  expect(received).toEqual([]);
  // Anyone who still tells it something is not hurt.
  child.send({ id: 2 });
});

test('a program that is not there is an end too', async () => {
  const child = new JsonLinesChild({ command: ['/no/such/program'], lineLengthMax: 1, onMessage: () => {} });
  const end = await child.gone;
  expect([child.pid, end.exitCode]).toEqual([null, null]);
  expect(end.description).toContain('ENOENT');
});

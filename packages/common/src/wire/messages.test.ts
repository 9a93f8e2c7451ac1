/** The functions that the bundle of short commands has for messages, compared with those that are made while a process runs. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { expect, test } from 'vitest';
import { messagesPrepared } from '../../../../scripts/bundle.mjs';
import * as messages from './messages.ts';
import { messageType } from './messageTypes.ts';
import { chanceMessage, chances } from './wireFixture.ts';

async function preparedMessages(): Promise<typeof messages> {
  const dir = mkdtempSync(join(tmpdir(), 'muster-messages-'));
  const outfile = join(dir, 'messages.mjs');
  await build({
    entryPoints: [new URL('messages.ts', import.meta.url).pathname],
    bundle: true,
    outfile,
    platform: 'node',
    format: 'esm',
    plugins: [messagesPrepared],
  });
  try {
    return (await import(outfile)) as typeof messages;
  } finally {
    rmSync(dir, { recursive: true });
  }
}

const prepared = await preparedMessages();
const methods = messages.serviceMethods('Muster');

test('has the same methods', () => {
  expect(prepared.serviceMethods('Muster')).toEqual(methods);
  expect(methods.length).toBeGreaterThan(30);
});

test('knows the same fields of every message', () => {
  const left = methods.flatMap(({ requestType, responseType }) => [requestType, responseType]);
  const seen = new Set(left);
  for (const name of seen) {
    const fields = prepared.wireFields(name);
    expect(fields, name).toEqual(messages.wireFields(name));
    for (const { message } of fields) if (message !== null) seen.add(message);
  }
});

test.each([...new Set(methods.map(({ requestType }) => requestType))])('%s has the same bytes', (name) => {
  for (let seed = 0; seed < 30; seed += 1) {
    const value = chanceMessage(messageType(name), chances(seed));
    const bytes = prepared.messageCodec(name).encode(value);
    expect(bytes, `seed ${seed}`).toEqual(messages.messageCodec(name).encode(value));
  }
});

const read = [...new Set([...methods.map(({ responseType }) => responseType), 'SpecProblems'])];
test.each(read)('%s is read the same', (name) => {
  for (let seed = 0; seed < 30; seed += 1) {
    const bytes = messages.messageCodec(name).encode(chanceMessage(messageType(name), chances(seed)));
    expect(prepared.messageCodec(name).decode(bytes), `seed ${seed}`).toEqual(
      messages.messageCodec(name).decode(bytes),
    );
  }
});

test('bytes that are no message are refused', () => {
  expect(() => prepared.messageCodec('Job').decode(Buffer.from([0x0a, 0xff]))).toThrow(RangeError);
});

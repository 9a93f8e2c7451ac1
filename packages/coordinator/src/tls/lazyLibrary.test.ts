/** In a process of its own: what the tests of a process have loaded stays loaded. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { capture } from '../../../../scripts/processes.mjs';
import { tempDir } from '../../../../test/support/services.ts';

/** The library that writes certificates comes with a polyfill, which shows. */
const program = (dataDir: string) => `
  import { silentLogger } from '@muster/common/log';
  import '${join(import.meta.dirname, '../main.ts')}';
  import { openServerTls } from '${join(import.meta.dirname, 'serverTls.ts')}';

  for (const host of ['127.0.0.1', '0.0.0.0']) {
    const tls = await openServerTls({
      dataDir: ${JSON.stringify(dataDir)},
      clusterId: 'c0ffee',
      host,
      advertise: [],
      random: (count) => crypto.getRandomValues(Buffer.alloc(count)),
      wallMs: Date.now,
      log: silentLogger,
    });
    tls?.close();
    console.log(host, 'getMetadata' in Reflect);
  }
`;

test('a coordinator on loopback does not load the library that writes certificates', async () => {
  const args = ['--input-type=module', '--eval', program(tempDir('lazy-library').path)];
  const ended = await capture(process.execPath, args, { cwd: import.meta.dirname });
  expect(ended).toEqual({ code: 0, output: '127.0.0.1 false\n0.0.0.0 true\n' });
});

import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Directory, withDirectory } from '@muster/checkpoints/directories';
import type { OutputSpec, StoreSpec } from '@muster/common/spec/artifactFields';
import type { StoredArtifact } from '@muster/common/views';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { patienceMs } from '../../../../test/support/patience.ts';
import { type S3Server, s3Bucket, s3Key, startS3Server } from '../../../../test/support/s3Server.ts';
import { downloadInput } from './download.ts';
import { readFileList } from './fileList.ts';
import { Patience } from './patience.ts';
import {
  type ArtifactStore,
  ArtifactStoreError,
  objectPlaceOf,
  openArtifactStore,
  storeKeyOf,
} from './store.ts';
import { type TransferParts, uploadOutput } from './upload.ts';

let server: S3Server;
let store: ArtifactStore;
let root: string;
let outputs: string;
beforeAll(async () => {
  server = await startS3Server();
  store = await openArtifactStore(settings(), storeKeyOf(Buffer.from(s3Key), settings()));
});
afterAll(async () => {
  store.close();
  await server.close();
});
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'transfer-'));
  outputs = join(root, 'outputs');
  mkdirSync(outputs);
});
afterEach(() => {
  server.intercept(null);
  execFileSync('chmod', ['-R', 'u+w', root]);
  rmSync(root, { recursive: true });
});

function settings(changes: Partial<StoreSpec> = {}): StoreSpec {
  return {
    url: `s3://${s3Bucket}/runs`,
    endpoint: server.endpoint,
    region: 'us-east-1',
    pathStyle: true,
    secret: 's3',
    ...changes,
  };
}

function parts(changes: Partial<TransferParts> = {}): TransferParts {
  const patience = new Patience(
    patienceMs,
    () => performance.now(),
    () => {},
  );
  return { store, patience, abort: new AbortController().signal, ...changes };
}

function upload(
  output: OutputSpec,
  key: string,
  changes: Partial<TransferParts> = {},
): Promise<StoredArtifact> {
  return Directory.open(outputs).then((base) =>
    withDirectory(base, (directory) => uploadOutput(parts(changes), directory, output, key)),
  );
}

let inputs = 0;
/** @returns where it was put */
async function download(type: 'directory' | 'file', key: string, digest: string): Promise<string> {
  inputs += 1;
  const path = `data/${inputs}`;
  await downloadInput(parts(), root, { name: 'data', type, url: `s3://${s3Bucket}/${key}`, digest, path });
  return join(root, path);
}

const sha256 = (content: Uint8Array) => `sha256:${createHash('sha256').update(content).digest('hex')}`;

/** As the script of steps whose nodes share a directory computes it. */
function digestOfDirectory(path: string): string {
  const script =
    'find -L . -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum | sha256sum | cut -c1-64';
  return `sha256:${execFileSync('sh', ['-c', script], { cwd: path, encoding: 'utf8' }).trim()}`;
}

describe('a file', () => {
  test.each([0, 1, 1024 * 1024, 1024 * 1024 + 1, 3 * 1024 * 1024 + 7])(
    'of %i bytes comes back',
    async (size) => {
      const content = randomBytes(size);
      writeFileSync(join(outputs, 'ä model.pt'), content);
      const stored = await upload({ name: 'model', type: 'file', path: 'ä model.pt' }, `f/${size}`, {
        partBytes: 1024 * 1024,
      });
      expect(stored).toEqual({ name: 'model', bytes: size, digest: sha256(content) });
      const found = await download('file', `f/${size}`, stored.digest);
      expect(readFileSync(found).equals(content)).toBe(true);
      expect(statSync(found).mode & 0o777).toBe(0o444);
    },
  );

  test('is read from where a connection broke, and sent again where it was lost', async () => {
    const content = randomBytes(3 * 1024 * 1024);
    writeFileSync(join(outputs, 'model'), content);
    let lost = 0;
    server.intercept((method, url) => {
      if (!url.includes('flaky') || method === 'HEAD') return 'serve';
      lost += 1;
      return lost % 2 === 1 ? 'drop' : 'serve';
    });
    const output = { name: 'model', type: 'file', path: 'model' } as const;
    const stored = await upload(output, 'flaky', { partBytes: 1024 * 1024 });
    const found = await download('file', 'flaky', stored.digest);
    expect(readFileSync(found).equals(content)).toBe(true);
    expect(lost).toBeGreaterThan(5);

    server.intercept(null);
    const ranges: number[] = [];
    const breaking: ArtifactStore = {
      ...store,
      async get(key, from, abort) {
        ranges.push(from);
        const body = await store.get(key, from, abort);
        return (async function* () {
          for await (const piece of body) {
            yield piece;
            if (ranges.length < 3) {
              throw new ArtifactStoreError('unreachable', 'the connection broke');
            }
          }
        })();
      },
    };
    const target = {
      name: 'data',
      type: 'file',
      url: `s3://${s3Bucket}/flaky`,
      digest: stored.digest,
      path: 'resumed',
    } as const;
    await downloadInput(parts({ store: breaking }), root, target);
    expect(readFileSync(join(root, 'resumed')).equals(content)).toBe(true);
    expect(ranges).toHaveLength(3);
    expect(ranges[1]).toBeGreaterThan(0);
    expect(ranges[2]).toBeGreaterThan(ranges[1] ?? 0);
  });

  test('is in the store when the answer about its parts was lost', async () => {
    const content = randomBytes(2 * 1024 * 1024 + 1);
    writeFileSync(join(outputs, 'model'), content);
    let completions = 0;
    server.intercept((method, url) => {
      if (method !== 'POST' || !url.includes('uploadId=')) return 'serve';
      completions += 1;
      return completions === 1 ? 'lose' : 'serve';
    });
    const output = { name: 'model', type: 'file', path: 'model' } as const;
    const stored = await upload(output, 'completed', { partBytes: 1024 * 1024 });
    expect(completions).toBe(1);
    const found = await download('file', 'completed', stored.digest);
    expect(readFileSync(found).equals(content)).toBe(true);
  });

  test('that has changed or vanished is named', async () => {
    writeFileSync(join(outputs, 'model'), 'one');
    const { digest } = await upload({ name: 'model', type: 'file', path: 'model' }, 'changed');
    await store.put('changed', Buffer.from('two'), new AbortController().signal);
    await expect(download('file', 'changed', digest)).rejects.toThrow(
      `s3://${s3Bucket}/changed has changed since its step has made it; its digest is not ${digest}`,
    );
    await expect(download('file', 'gone', digest)).rejects.toThrow(
      `s3://${s3Bucket}/gone is not in the store; it has vanished since its step has made it`,
    );
  });

  test('that is not there, or something else, is named', async () => {
    mkdirSync(join(outputs, 'dir'));
    symlinkSync('/etc/passwd', join(outputs, 'link'));
    const sent = (path: string) => upload({ name: 'model', type: 'file', path }, 'never');
    await expect(sent('absent')).rejects.toThrow('there is no file absent after the program has ended');
    await expect(sent('dir')).rejects.toThrow('dir is not a regular file');
    await expect(sent('link')).rejects.toThrow('link is not a regular file');
    await expect(sent('link/x')).rejects.toThrow('link/x is not a directory after the program has ended');
  });

  test.runIf(process.getuid?.() === 0)(
    'that is another name of a file of somebody else is refused',
    async () => {
      const own = join(root, 'own');
      writeFileSync(own, 'secret');
      linkSync(own, join(outputs, 'taken'));
      execFileSync('chown', ['12345', outputs]);
      await expect(upload({ name: 'model', type: 'file', path: 'taken' }, 'never')).rejects.toThrow(
        'taken is another name of a file of another user',
      );
    },
  );
});

describe('a directory', () => {
  const output = { name: 'data', type: 'directory', path: 'data' } as const;
  const at = (...path: string[]) => join(outputs, 'data', ...path);

  test('comes back with nested, empty and strange names, and has the digest of a shared directory', async () => {
    mkdirSync(at('deep', 'er ö'), { recursive: true });
    mkdirSync(at('empty'));
    const names = [
      'empty.txt',
      'deep/er ö/straße (1).txt',
      'deep/a+b&c%20d#e?.txt',
      "deep/it's",
      'deep/back\\slash',
      'Z',
      'a',
      '日本',
      'line\u2028separator',
    ];
    for (const name of names) writeFileSync(at(name), name === 'empty.txt' ? '' : `content of ${name}`);
    symlinkSync('../Z', at('deep', 'link'));
    symlinkSync('deep', at('whole'));
    const stored = await upload(output, 'tree');
    expect(stored.digest).toBe(digestOfDirectory(at()));
    const found = await download('directory', 'tree', stored.digest);
    expect(digestOfDirectory(found)).toBe(stored.digest);
    expect(readFileSync(join(found, 'whole', 'link'), 'utf8')).toBe('content of Z');
    expect(existsSync(join(found, 'empty'))).toBe(false);
  });

  test.each([
    [
      'to a place outside',
      (link: string) => symlinkSync('/etc', link),
      'deep/l is a link that leads out of it',
    ],
    ['up and out', (link: string) => symlinkSync('../../..', link), 'deep/l is a link that leads out of it'],
    [
      'to nowhere',
      (link: string) => symlinkSync('absent', link),
      'deep/l is a link to something that does not exist',
    ],
    ['to itself', (link: string) => symlinkSync('l', link), 'deep/l is a link that leads out of it'],
    [
      'to a directory that it is in',
      (link: string) => symlinkSync('.', link),
      'deep/l is a link to a directory that it is in',
    ],
  ])('with a link %s is refused', async (_what, make, message) => {
    mkdirSync(at('deep'), { recursive: true });
    make(at('deep', 'l'));
    await expect(upload(output, 'never')).rejects.toThrow(message);
  });

  test.runIf(process.getuid?.() === 0)(
    'with another name of a file of somebody else is refused',
    async () => {
      mkdirSync(at(), { recursive: true });
      const own = join(root, 'own');
      writeFileSync(own, 'secret');
      linkSync(own, at('taken'));
      execFileSync('chown', ['12345', at()]);
      await expect(upload(output, 'never')).rejects.toThrow(
        'taken is another name of a file of another user',
      );
    },
  );

  test('that is empty, or has names that a store cannot have, is refused', async () => {
    mkdirSync(at());
    await expect(upload(output, 'never')).rejects.toThrow(
      'the directory data is empty after the program has ended',
    );
    writeFileSync(at('a\nb'), '');
    await expect(upload(output, 'never')).rejects.toThrow('the name "a\\nb" has control characters');
  });

  test('is not there before all of it is, and one changed file is named', async () => {
    mkdirSync(at());
    for (const name of ['a', 'b', 'c']) writeFileSync(at(name), name);
    server.intercept((method, url) => (method === 'PUT' && url.includes('/half/b?') ? 'drop' : 'serve'));
    const patience = new Patience(
      0,
      () => performance.now(),
      () => {},
    );
    await expect(upload(output, 'half', { patience })).rejects.toThrow(/cannot be used .*check endpoint/);
    await expect(download('directory', 'half', sha256(Buffer.from('')))).rejects.toThrow(
      `s3://${s3Bucket}/half.sha256 is not in the store`,
    );
    server.intercept(null);
    const { digest } = await upload(output, 'half');
    await store.put('half/c', Buffer.from('d'), new AbortController().signal);
    await expect(download('directory', 'half', digest)).rejects.toThrow(
      `s3://${s3Bucket}/half/c has changed`,
    );
  });
});

test('a list that names another place is none', () => {
  const hash = 'a'.repeat(64);
  const bad = ['../x', '/x', 'a/../../x', 'a//b', './x', ''];
  for (const path of bad) expect(readFileList(Buffer.from(`${hash}  ./${path}\n`))).toBe(null);
  expect(readFileList(Buffer.from(`${hash}  ./x\n${hash}  ./x\n`))).toBe(null);
});

test.each([
  [
    'a wrong key',
    {},
    'NOBODY:S3RVER',
    /does not accept the key in secret s3 \(InvalidAccessKeyId, HTTP 403\): set the secret again/,
  ],
  [
    'a wrong secret',
    {},
    'S3RVER:wrong',
    /does not accept the key in secret s3 \(SignatureDoesNotMatch, HTTP 403\)/,
  ],
  [
    'a wrong bucket',
    { url: 's3://elsewhere' },
    s3Key,
    /has no bucket elsewhere: create it, or correct url under artifacts/,
  ],
  [
    'a dead port',
    { endpoint: 'http://127.0.0.1:1' },
    s3Key,
    /127\.0\.0\.1:1 cannot be used \(ECONNREFUSED\): check endpoint/,
  ],
  [
    'an unknown host',
    { endpoint: 'http://store.invalid' },
    s3Key,
    /store\.invalid cannot be used \((ENOTFOUND|EAI_AGAIN)\)/,
  ],
])('%s is told apart', async (_what, changes: Partial<StoreSpec>, key, message) => {
  const spec = settings(changes);
  const other = await openArtifactStore(spec, storeKeyOf(Buffer.from(key), spec));
  const { signal } = new AbortController();
  await expect(other.put(objectPlaceOf(`${spec.url}/x`).key, Buffer.from('x'), signal)).rejects.toThrow(
    message,
  );
  await expect(other.get('x', 0, signal)).rejects.toThrow(message);
  other.close();
});

test('a secret of another form is named, and its value is not', () => {
  expect(() => storeKeyOf(Buffer.from('hunter2'), settings())).toThrow(
    'secret s3 is not a key of a store: set it again with ACCESS_KEY_ID:SECRET_ACCESS_KEY as its value',
  );
});

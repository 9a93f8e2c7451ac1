/**
 * Container images for tests, made on the spot from the machine's static busybox: nothing is ever pulled. An image is
 * imported once per content and found again by a label.
 */
import { execFileSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dockerSocket, staticBusybox } from './services.ts';

export interface TestImage {
  /** `name:tag`. */
  readonly tag: string;
  /** false: everything but /bin/sh. */
  readonly hasShell?: boolean;
  /** More Dockerfile instructions, such as `ENTRYPOINT ["/bin/env"]`. */
  readonly changes?: readonly string[];
  /** Text of the image's /etc/group, and where it is if that is a link. Default: root and nogroup. */
  readonly groups?: { readonly text: string; readonly at?: string };
  /** Default: the machine's engine. */
  readonly socketPath?: string;
}

const digestLabel = 'muster-test.digest';

/**
 * All commands of busybox in /bin, users root and nobody, a /tmp for everyone.
 * @returns the tag to use as a job's image
 * @throws {MissingServiceError} when busybox or Docker is missing, with the remedy
 */
export async function ensureTestImage(
  image: TestImage = { tag: 'muster-test/busybox:1', hasShell: true },
): Promise<string> {
  const { tag, hasShell = true, groups = usualGroups, socketPath = await dockerSocket() } = image;
  const archive = rootArchive(hasShell, groups);
  const changes = ['ENV PATH=/bin', ...(image.changes ?? [])];
  const digest = createHash('sha256').update(archive).update(changes.join('\n')).digest('hex');
  if ((await digestOf(socketPath, tag)) === digest) return tag;

  const [repo = tag, version = 'latest'] = tag.split(':');
  const query = new URLSearchParams({ fromSrc: '-', repo, tag: version });
  for (const change of [...changes, `LABEL ${digestLabel}=${digest}`]) query.append('changes', change);
  const answer = await call(socketPath, 'POST', `/images/create?${query.toString()}`, archive);
  // The engine answers 200 and reports a failure as one of the lines of the answer.
  if (answer.status !== 200 || answer.body.includes('"error"')) {
    throw new Error(`the container engine did not import ${tag}: ${answer.body.trim()}`);
  }
  return tag;
}

async function digestOf(socketPath: string, tag: string): Promise<string | null> {
  const { status, body } = await call(socketPath, 'GET', `/images/${tag}/json`);
  if (status !== 200) return null;
  const image = JSON.parse(body) as { Config?: { Labels?: Record<string, string> | null } };
  return image.Config?.Labels?.[digestLabel] ?? null;
}

function call(
  socketPath: string,
  method: string,
  path: string,
  body?: Buffer,
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const headers = body === undefined ? {} : { 'content-type': 'application/x-tar' };
    const outgoing = request({ socketPath, method, path, agent: false, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('error', reject).on('end', () => resolve({ status: response.statusCode ?? 0, body: text }));
    });
    outgoing.on('error', reject).end(body);
  });
}

// ---- A registry

export interface ServedImage {
  /** `127.0.0.1:<port>/…`: engines speak plain HTTP with registries on the loopback. */
  readonly image: string;
  /** Transfers of its layer that have begun and not ended. */
  readonly openTransfers: () => number;
  /** Ends the registry and deletes what the engine pulled from it. */
  remove(): Promise<void>;
}

/**
 * An image like the one of {@link ensureTestImage} that no engine has yet: a registry of our own serves it.
 * @param isSlow its layer takes hours
 */
export async function serveTestImage({ isSlow = false } = {}): Promise<ServedImage> {
  // A layer that some engine has already would not be asked for.
  const layer = isSlow ? Buffer.from(randomUUID().repeat(10_000)) : rootArchive(true, usualGroups);
  const config = Buffer.from(
    JSON.stringify({
      architecture: { x64: 'amd64' }[process.arch as string] ?? process.arch,
      os: 'linux',
      config: { Env: ['PATH=/bin'] },
      rootfs: { type: 'layers', diff_ids: [digestName(layer)] },
      history: [{ created_by: 'test' }],
    }),
  );
  const manifestType = 'application/vnd.docker.distribution.manifest.v2+json';
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: manifestType,
      config: described('application/vnd.docker.container.image.v1+json', config),
      layers: [described('application/vnd.docker.image.rootfs.diff.tar.gzip', layer)],
    }),
  );
  const files: Record<string, Buffer> = {
    '/v2/': Buffer.from('{}'),
    '/v2/team/trainer/manifests/1': manifest,
    [`/v2/team/trainer/manifests/${digestName(manifest)}`]: manifest,
    [`/v2/team/trainer/blobs/${digestName(config)}`]: config,
    [`/v2/team/trainer/blobs/${digestName(layer)}`]: layer,
  };
  let openTransfers = 0;
  const server = createServer((incoming, response) => {
    const file = files[incoming.url ?? ''];
    if (file === undefined) return response.writeHead(404).end('{}');
    response.writeHead(200, { 'content-type': manifestType, 'content-length': file.length });
    if (incoming.method === 'HEAD') return response.end();
    if (file !== layer) return response.end(file);
    openTransfers += 1;
    response.once('close', () => {
      openTransfers -= 1;
    });
    if (!isSlow) return response.end(file);
    let sent = 0;
    const trickle = setInterval(() => response.write(file.subarray(sent, ++sent)), 20);
    return response.once('close', () => clearInterval(trickle));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const image = `127.0.0.1:${(server.address() as AddressInfo).port}/team/trainer:1`;
  return {
    image,
    openTransfers: () => openTransfers,
    remove: async () => {
      server.closeAllConnections();
      server.close();
      await call(await dockerSocket(), 'DELETE', `/images/${image}`);
    },
  };
}

function described(mediaType: string, content: Buffer): object {
  return { mediaType, size: content.length, digest: digestName(content) };
}

function digestName(content: Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}

// ---- The root file system

const usualGroups = { text: 'root:x:0:\nnogroup:x:65534:\n' };

function rootArchive(
  hasShell: boolean,
  { text, at = 'etc/group' }: NonNullable<TestImage['groups']>,
): Buffer {
  const busybox = staticBusybox();
  const commands = execFileSync(busybox, ['--list'], { encoding: 'utf8' }).trim().split('\n');
  return Buffer.concat([
    entry('bin/', { mode: 0o755 }),
    entry('etc/', { mode: 0o755 }),
    entry('tmp/', { mode: 0o1777 }),
    entry('etc/passwd', { content: 'root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n' }),
    ...(at === 'etc/group' ? [] : [entry('etc/group', { link: `/${at}` })]),
    entry(at, { content: text }),
    entry('bin/busybox', { content: readFileSync(busybox), mode: 0o755 }),
    ...commands
      .filter((name) => name !== 'busybox' && (hasShell || name !== 'sh'))
      .map((name) => entry(`bin/${name}`, { link: 'busybox' })),
    Buffer.alloc(2 * blockBytes),
  ]);
}

const blockBytes = 512;

interface Entry {
  readonly content?: string | Buffer;
  readonly link?: string;
  readonly mode?: number;
}

/** One member of a tar archive (ustar). A name that ends in a slash is a folder. */
function entry(name: string, { content = '', link, mode = 0o644 }: Entry): Buffer {
  const body = Buffer.from(content);
  const header = Buffer.alloc(blockBytes);
  const octal = (value: number, at: number, digits: number) =>
    header.write(`${value.toString(8).padStart(digits, '0')}\0`, at);
  header.write(name, 0);
  octal(mode, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(body.length, 124, 11);
  octal(0, 136, 11);
  header.fill(' ', 148, 156);
  header.write(link !== undefined ? '2' : name.endsWith('/') ? '5' : '0', 156);
  header.write(link ?? '', 157);
  header.write('ustar\x0000', 257);
  octal(
    header.reduce((sum, byte) => sum + byte, 0),
    148,
    6,
  );
  const padding = (blockBytes - (body.length % blockBytes)) % blockBytes;
  return Buffer.concat([header, body, Buffer.alloc(padding)]);
}

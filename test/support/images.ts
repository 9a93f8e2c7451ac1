/**
 * Container images for tests, made on the spot from the machine's static busybox: nothing is ever pulled. An image is
 * imported once per content and found again by a label.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { dockerSocket, staticBusybox } from './services.ts';

export interface TestImage {
  /** `name:tag`. */
  readonly tag: string;
  /** false: everything but /bin/sh. */
  readonly hasShell?: boolean;
  /** More Dockerfile instructions, such as `ENTRYPOINT ["/bin/env"]`. */
  readonly changes?: readonly string[];
  /** Default: the machine's engine. */
  readonly socketPath?: string;
}

const DIGEST_LABEL = 'muster-test.digest';

/**
 * All commands of busybox in /bin, users root and nobody, a /tmp for everyone.
 * @returns the tag to use as a job's image
 * @throws {MissingServiceError} when busybox or Docker is missing, with the remedy
 */
export async function ensureTestImage(
  image: TestImage = { tag: 'muster-test/busybox:1', hasShell: true },
): Promise<string> {
  const { tag, hasShell = true, socketPath = await dockerSocket() } = image;
  const archive = rootArchive(hasShell);
  const changes = ['ENV PATH=/bin', ...(image.changes ?? [])];
  const digest = createHash('sha256').update(archive).update(changes.join('\n')).digest('hex');
  if ((await digestOf(socketPath, tag)) === digest) return tag;

  const [repo = tag, version = 'latest'] = tag.split(':');
  const query = new URLSearchParams({ fromSrc: '-', repo, tag: version });
  for (const change of [...changes, `LABEL ${DIGEST_LABEL}=${digest}`]) query.append('changes', change);
  const answer = await call(socketPath, 'POST', `/images/create?${query}`, archive);
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
  return image.Config?.Labels?.[DIGEST_LABEL] ?? null;
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

// ---- The root file system

function rootArchive(hasShell: boolean): Buffer {
  const busybox = staticBusybox();
  const commands = execFileSync(busybox, ['--list'], { encoding: 'utf8' }).trim().split('\n');
  return Buffer.concat([
    entry('bin/', { mode: 0o755 }),
    entry('etc/', { mode: 0o755 }),
    entry('tmp/', { mode: 0o1777 }),
    entry('etc/passwd', { content: 'root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n' }),
    entry('etc/group', { content: 'root:x:0:\nnogroup:x:65534:\n' }),
    entry('bin/busybox', { content: readFileSync(busybox), mode: 0o755 }),
    ...commands
      .filter((name) => name !== 'busybox' && (hasShell || name !== 'sh'))
      .map((name) => entry(`bin/${name}`, { link: 'busybox' })),
    Buffer.alloc(2 * BLOCK_BYTES),
  ]);
}

const BLOCK_BYTES = 512;

interface Entry {
  readonly content?: string | Buffer;
  readonly link?: string;
  readonly mode?: number;
}

/** One member of a tar archive (ustar). A name that ends in a slash is a folder. */
function entry(name: string, { content = '', link, mode = 0o644 }: Entry): Buffer {
  const body = Buffer.from(content);
  const header = Buffer.alloc(BLOCK_BYTES);
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
  const padding = (BLOCK_BYTES - (body.length % BLOCK_BYTES)) % BLOCK_BYTES;
  return Buffer.concat([header, body, Buffer.alloc(padding)]);
}

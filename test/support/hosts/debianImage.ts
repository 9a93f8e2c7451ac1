/**
 * An image for hosts, made from the Debian packages that are installed here: nothing is downloaded. It holds the files of
 * the packages below and every library that these load, which is Python, PyTorch and what an agent calls; no package
 * manager, no documentation, no headers. Some 600 MB, in less than ten seconds; imported once per set of packages and
 * found again by a label.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { MissingServiceError } from '../services.ts';
import { engine } from './engine.ts';
import { runProgram } from './programs.ts';

const tag = 'muster-test/debian-host:1';
const digestLabel = 'muster-test.packages';

/** A shell and its tools, networks, mounts, and PyTorch with what it imports. Python's own names carry its version. */
const packages = [
  'base-files',
  'libc6',
  'libc-bin',
  'dash',
  'coreutils',
  'util-linux',
  'mount',
  'iproute2',

  'grep',
  'sed',
  'hostname',
  'busybox-static',
  'media-types',
  'python3-minimal',
  'python3-torch',
  'python3-numpy',
  'python3-typing-extensions',
  'python3-yaml',
];
const notNeeded =
  /^\/usr\/(?:share\/(?:doc|man|locale|info|lintian)|include)\/|\/torch\/(?:include|test)\/|\/torch\/bin\/(?!torch_shm_manager)/;
/** The engine brings these itself, or they are links that only a whole system has. */
const mountPoints = new Set(['/', '/dev', '/proc', '/sys', '/tmp', '/run']);
/** In a merged system the first four are links into /usr; the others belong to no package. */
const unowned = ['/bin', '/sbin', '/lib', '/lib64', '/etc/passwd', '/etc/group', '/etc/nsswitch.conf'];

interface EngineImage {
  readonly Id: string;
  readonly Config: { readonly Labels: Readonly<Record<string, string>> | null };
}

/**
 * @returns the tag to make containers of
 * @throws {MissingServiceError} when a package is not installed, or this is no Debian
 */
export async function ensureDebianImage(): Promise<string> {
  const digest = digestOfPackages();
  const image = await engine<EngineImage>('GET', `/images/${tag}/json`, { accept: [404] });
  if (image?.Config.Labels?.[digestLabel] === digest) return tag;

  const [repo = '', version = ''] = tag.split(':');
  const query = new URLSearchParams({ fromSrc: '-', repo, tag: version });
  query.append('changes', `LABEL ${digestLabel}=${digest}`);
  const files = await filesOfHost();
  const tar = spawn('tar', ['-C', '/', '--create', '--no-recursion', '--null', '--files-from=-'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const ended = new Promise<number | null>((done) => tar.on('close', done));
  tar.stdin.end(files.map((path) => `.${path}`).join('\0'));
  await engine('POST', `/images/create?${query.toString()}`, { archive: tar.stdout });
  if ((await ended) !== 0) throw new Error(`tar could not read all ${files.length} files of the image`);
  // What it replaces has lost its name, and would take up the disk for ever.
  if (image !== null) await engine('DELETE', `/images/${image.Id}`, { accept: [404, 409] });
  return tag;
}

/** What is installed decides what is in the image, and so does this file. */
function digestOfPackages(): string {
  const hash = createHash('sha256');
  try {
    hash.update(readFileSync('/var/lib/dpkg/status'));
  } catch (error) {
    throw new MissingServiceError('hosts in containers are made of Debian packages, and here is no dpkg', {
      cause: error,
    });
  }
  return hash.update(readFileSync(import.meta.filename)).digest('hex');
}

/** Files, links and folders, by absolute path, sorted. */
async function filesOfHost(): Promise<readonly string[]> {
  const python = basename(realpathSync('/usr/bin/python3'));
  const all = [...packages, `${python}-minimal`, `lib${python}-minimal`, `lib${python}-stdlib`];
  const { exitCode, stdout, stderr } = await runProgram(['dpkg', '-L', ...all]);
  if (exitCode !== 0) {
    throw new MissingServiceError(`not all Debian packages of the image are installed: ${stderr.trim()}`);
  }
  const own = stdout.split('\n').filter((path) => path.startsWith('/') && !notNeeded.test(path));
  const found = new Set<string>(unowned.filter((path) => existsSync(path)));
  for (const path of [...own, ...own.flatMap(compiledBy), ...(await librariesOf(own))])
    addWithTargets(found, path);
  return [...found].filter((path) => !mountPoints.has(path)).sort();
}

/**
 * What Python made of its modules when they were installed. No package lists it; without it every host would spend its
 * first ten seconds on compiling PyTorch.
 */
function compiledBy(path: string): readonly string[] {
  if (!path.endsWith('.py')) return [];
  const folder = join(dirname(path), '__pycache__');
  if (!existsSync(folder)) return [];
  const module = `${basename(path, '.py')}.cpython-`;
  return readdirSync(folder)
    .filter((name) => name.startsWith(module))
    .map((name) => join(folder, name));
}

/** Everything that the loader finds for the programs and libraries among these files. */
async function librariesOf(files: readonly string[]): Promise<readonly string[]> {
  const binaries = files.filter((path) => /\/s?bin\/|\.so(?:\.|$)/.test(path) && isFile(path));
  // It fails for scripts among them, and says the libraries of all others.
  const { stdout } = await runProgram(['ldd', ...binaries]);
  return [...stdout.matchAll(/(?:=> |^\t)(\/\S+) \(/gm)].map(([, path = '']) => path);
}

/** A path with links in it is one and the same file under two names; an archive must hold it once. */
function addWithTargets(found: Set<string>, path: string): void {
  // A package may list what an administrator has taken away, such as translations.
  if (!existsSync(dirname(path))) return;
  const real = join(realpathSync(dirname(path)), basename(path));
  const status = lstatSync(real, { throwIfNoEntry: false });
  if (status === undefined || found.has(real)) return;
  found.add(real);
  if (status.isSymbolicLink()) addWithTargets(found, resolve(dirname(real), readlinkSync(real)));
}

function isFile(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

/**
 * The file system of hosts in containers: the programs of this machine, Python and PyTorch among them, read-only and in
 * place, and an image with the little that lies outside of their folders. Nothing is downloaded, and nothing large copied.
 */
import { spawn } from 'node:child_process';
import { existsSync, lstatSync } from 'node:fs';
import { engine } from './engine.ts';

const tag = 'muster-test/host:2';

const programFolders = ['/usr', '/bin', '/sbin', '/lib', '/lib64'];
/** What the loader and the C library read, and the folders that programs expect on any system. */
const outsideOfThem = [
  '/etc',
  '/etc/group',
  '/etc/ld.so.cache',
  '/etc/mime.types',
  '/etc/nsswitch.conf',
  '/etc/passwd',
  '/home',
  '/mnt',
  '/opt',
  '/root',
  '/tmp',
  '/var',
  '/var/lib',
  '/var/tmp',
];

const isLink = (path: string) => lstatSync(path).isSymbolicLink();

/** Folders of this machine that a host has, as the engine takes them. In a merged system all but /usr are links into it. */
export function bindsOfPrograms(): readonly string[] {
  return [...programFolders, '/etc/alternatives']
    .filter((path) => existsSync(path) && !isLink(path))
    .map((path) => `${path}:${path}:ro`);
}

/** @returns the tag to make containers of, with {@link bindsOfPrograms} */
export async function importHostImage(): Promise<string> {
  const before = await engine<{ readonly Id: string }>('GET', `/images/${tag}/json`, { accept: [404] });
  const [repo = '', version = ''] = tag.split(':');
  const query = new URLSearchParams({ fromSrc: '-', repo, tag: version });
  const paths = [...programFolders, ...outsideOfThem].filter((path) => existsSync(path));
  const tar = spawn('tar', ['-C', '/', '--create', '--no-recursion', ...paths.map((path) => `.${path}`)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<number | null>((done) => tar.on('close', done));
  await engine('POST', `/images/create?${query.toString()}`, { archive: tar.stdout });
  if ((await ended) !== 0) throw new Error(`tar could not read all of ${paths.join(' ')}`);
  // What it replaces has lost its name, and would take up the disk for ever.
  if (before !== null) await engine('DELETE', `/images/${before.Id}`, { accept: [404, 409] });
  return tag;
}

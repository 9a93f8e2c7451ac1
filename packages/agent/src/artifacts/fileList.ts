/**
 * The list of the files of a directory, as `sha256sum` writes it, in the order of the bytes of their paths. Its own digest is that of
 * the directory: the same that a step's job computes where all nodes share the directory. Pure.
 */
import { createHash } from 'node:crypto';

export interface HashedFile {
  /** Below the directory, with `/`. */
  readonly path: string;
  /** SHA-256, 64 hexadecimal digits. */
  readonly hash: string;
}

export function fileList(files: readonly HashedFile[]): Buffer {
  const entries = files.map(({ path, hash }) => ({ hash, name: Buffer.from(`./${path}`) }));
  entries.sort((a, b) => Buffer.compare(a.name, b.name));
  const lines = entries.map(({ hash, name }) => {
    const text = name.toString();
    return text.includes('\\') ? `\\${hash}  ${text.replaceAll('\\', '\\\\')}\n` : `${hash}  ${text}\n`;
  });
  return Buffer.from(lines.join(''));
}

/** @returns null: it is no such list, or names a place outside of the directory */
export function readFileList(list: Buffer): readonly HashedFile[] | null {
  const files: HashedFile[] = [];
  const seen = new Set<string>();
  for (const line of list.toString().split('\n').slice(0, -1)) {
    const [, escaped = '', hash = '', name = ''] = /^(\\?)([0-9a-f]{64}) {2}\.\/(.+)$/s.exec(line) ?? [];
    const path = escaped === '' ? name : name.replaceAll('\\\\', '\\');
    const isInside = path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
    if (hash === '' || !isInside || seen.has(path)) return null;
    seen.add(path);
    files.push({ path, hash });
  }
  return files;
}

export function digestOfBytes(content: Uint8Array): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}

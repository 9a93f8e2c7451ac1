/**
 * Files beside the store that a coordinator on another machine needs, and that nobody can make again: its CA, the keys of its
 * secrets, its admin token. A backup has them, and the settings that the coordinator was started with, for the reader.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** In a data directory, with `/`. */
export const authorityFiles = ['tls/ca.key', 'tls/ca.pem'] as const;
export const secretKeysName = 'secrets.key';
const adminTokenName = 'admin.token';
export const keyFiles: readonly string[] = [...authorityFiles, secretKeysName, adminTokenName];
/** What `--config` named; a restore puts it there under this name, and no program reads it. */
export const settingsName = 'restored-coordinator.yaml';

/** Of the record at the end of a backup. The files lie before it, in this order. */
export interface Attached {
  readonly name: string;
  readonly bytes: number;
  /** Hexadecimal. */
  readonly sha256: string;
}

export interface AttachedFile {
  readonly name: string;
  readonly content: Buffer;
}

/**
 * Reads synchronously, so that the files belong to the commit after which it runs.
 * @param dataDir absolute
 * @param settingsPath absolute; null: the coordinator has no file of settings
 * @throws {NodeJS.ErrnoException} when one is there and cannot be read
 */
export function readAttached(dataDir: string, settingsPath: string | null): readonly AttachedFile[] {
  const places = keyFiles.map((name) => ({ name, path: join(dataDir, name) }));
  if (settingsPath !== null) places.push({ name: settingsName, path: settingsPath });
  return places
    .filter(({ path }) => existsSync(path))
    .map(({ name, path }) => ({ name, content: readFileSync(path) }));
}

export function attachedOf({ name, content }: AttachedFile): Attached {
  return { name, bytes: content.length, sha256: createHash('sha256').update(content).digest('hex') };
}

/** Whether this may be put into a data directory under its name: a backup may come from anywhere. */
export function isAttachedName(name: string): boolean {
  return name === settingsName || keyFiles.includes(name);
}

/** The keys of both, those of the data directory first: the newest is what is encrypted with from now on. */
export function mergedKeys(own: string, ofBackup: string): string {
  const lines = `${own}\n${ofBackup}`.split('\n').filter((line) => line !== '');
  return [...new Set(lines)].map((line) => `${line}\n`).join('');
}

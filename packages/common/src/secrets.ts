/** What a secret may be called, how large it may be, and what a task finds of it. */

/** Bytes. What is shorter could not be masked in output without masking much else. */
export const secretBytesMin = 8;
export const secretBytesMax = 64 * 1024;

const pattern = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;

export const secretNameForm =
  '1 to 63 letters, digits, "_", "-" and ".", with a letter or digit at both ends';

/** A DNS label, as the names of nodes are. */
export function isProjectName(name: string): boolean {
  return /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(name);
}

/** The secrets that a job names, each once. */
export function secretNames({
  secrets,
  artifacts,
}: {
  readonly secrets: readonly { readonly name: string }[];
  /** null: it moves no files. The secret of their store is for the agent alone. */
  readonly artifacts: { readonly secret: string } | null;
}): readonly string[] {
  const ofStore = artifacts === null ? [] : [artifacts.secret];
  return [...new Set([...secrets.map(({ name }) => name), ...ofStore])];
}

export function isSecretName(name: string): boolean {
  return pattern.test(name);
}

/** A secret of a project, without its value. */
export interface SecretView {
  readonly project: string;
  readonly name: string;
  readonly createdAtMs: number;
  /** When its value was last set. */
  readonly changedAtMs: number;
  /** Who set it last, as events name a caller. */
  readonly changedBy: string;
}

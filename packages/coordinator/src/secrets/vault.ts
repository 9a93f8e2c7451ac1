/**
 * The secrets of projects: encrypted before they are stored, decrypted for the tasks that name them, and shown to nobody.
 *
 * Changes run one after the other, so that none is encrypted with a key that a rotation is discarding.
 */
import { MusterError } from '@muster/common/errors';
import type { RandomBytes } from '@muster/common/ids';
import {
  isSecretName,
  secretBytesMax,
  secretBytesMin,
  secretNameForm,
  secretNames,
} from '@muster/common/secrets';
import type { JobSpec } from '@muster/common/spec/types';
import { type Caller, callerName } from '../caller.ts';
import { removeSecret, replaceSecretKey, setSecret } from '../commands/secrets.ts';
import type { Loop } from '../loop.ts';
import { type StoredSecret, secretId } from '../store/secrets.ts';
import type { Store } from '../store/store.ts';
import type { SecretKeys } from './keyFile.ts';
import { keyBytes, keyIdOf, nonceBytes, seal, unseal } from './sealing.ts';

/** Of one project: more than any has, and a rotation still takes seconds at most. */
const secretsMax = 1_000;

export interface VaultParts {
  readonly store: Pick<Store, 'secrets'>;
  readonly keys: SecretKeys;
  readonly loop: Pick<Loop, 'run'>;
  readonly random: RandomBytes;
}

export class SecretVault {
  private readonly parts: VaultParts;
  private last: Promise<unknown> = Promise.resolve();

  constructor(parts: VaultParts) {
    this.parts = parts;
  }

  /** @throws {MusterError} `invalid`, or `resource_exhausted` when the project has too many */
  set(by: Caller, project: string, name: string, value: Uint8Array): Promise<StoredSecret> {
    return this.inTurn(async () => {
      if (!isSecretName(name)) {
        throw new MusterError('invalid', `"${name}": a secret's name has ${secretNameForm}`);
      }
      if (value.length < secretBytesMin || value.length > secretBytesMax) {
        throw new MusterError(
          'invalid',
          `the value of ${name} has ${value.length} bytes; a secret has ${secretBytesMin} to ${secretBytesMax}`,
        );
      }
      const { store, loop } = this.parts;
      const before = await store.secrets.read(project, name);
      if (before === null && (await store.secrets.list(project)).length >= secretsMax) {
        throw new MusterError(
          'resource_exhausted',
          `project ${project} has ${secretsMax} secrets; remove one first: muster secret remove NAME --project ${project}`,
        );
      }
      const key = this.newestKey();
      return loop.run(by, (draft, nowMs) => {
        const secret = {
          ...this.sealed(key, { project, name }, value),
          createdAtMs: before?.createdAtMs ?? nowMs,
          // A clock that has not advanced, or was set back, must not make a replaced secret look new.
          changedAtMs: before === null ? nowMs : Math.max(nowMs, before.createdAtMs + 1),
          changedBy: callerName(by).by,
        };
        setSecret(draft, secret, nowMs);
        return secret;
      });
    });
  }

  /** By project and name. @param project null: every project */
  list(project: string | null): Promise<readonly StoredSecret[]> {
    return this.parts.store.secrets.list(project);
  }

  /** @returns what was removed @throws {MusterError} `not_found` */
  remove(by: Caller, project: string, name: string): Promise<StoredSecret> {
    return this.inTurn(async () => {
      const secret = await this.find(project, name);
      await this.parts.loop.run(by, (draft, nowMs) => removeSecret(draft, secret, nowMs));
      return secret;
    });
  }

  /**
   * Encrypts every secret with another key, and discards the earlier ones. Where it fails or is killed, the file has both keys,
   * and no secret is lost.
   * @returns how many secrets there are
   * @throws {MusterError} `failed_precondition` when one cannot be decrypted
   */
  rotateKey(by: Caller): Promise<number> {
    return this.inTurn(async () => {
      const { store, keys, loop, random } = this.parts;
      const secrets = await store.secrets.list(null);
      const values = secrets.map((secret) => this.open(secret));
      const key = random(keyBytes);
      keys.write([key, ...keys.read()]);
      const sealed = secrets.map((secret, index) => ({
        ...secret,
        ...this.sealed(key, secret, values[index] as Uint8Array),
      }));
      await loop.run(by, (draft, nowMs) => replaceSecretKey(draft, sealed, nowMs));
      keys.write([key]);
      return secrets.length;
    });
  }

  /** @throws {MusterError} `not_found`; `failed_precondition` when one cannot be decrypted */
  async read(
    project: string,
    names: readonly string[],
  ): Promise<readonly { readonly name: string; readonly value: Uint8Array }[]> {
    const secrets = await Promise.all(names.map((name) => this.find(project, name)));
    return secrets.map((secret) => ({ name: secret.name, value: this.open(secret) }));
  }

  /** @throws {MusterError} `not_found` when the project of a job has no secret of a name that the job uses */
  async require(spec: JobSpec): Promise<void> {
    for (const name of secretNames(spec)) await this.find(spec.project, name);
  }

  private async find(project: string, name: string): Promise<StoredSecret> {
    const secret = await this.parts.store.secrets.read(project, name);
    if (secret !== null) return secret;
    throw new MusterError(
      'not_found',
      `project ${project} has no secret ${name}; to store it: muster secret set ${name} --project ${project} < FILE`,
    );
  }

  private open(secret: StoredSecret): Uint8Array {
    const { project, name, keyId, sealed } = secret;
    const key = this.parts.keys.read().find((each) => keyIdOf(each) === keyId);
    try {
      if (key !== undefined) return unseal(key, secretId(secret), sealed);
    } catch {
      // Below.
    }
    throw new MusterError(
      'failed_precondition',
      `secret ${name} of project ${project} cannot be decrypted: its key is not in secrets.key of the coordinator's data ` +
        `directory; restore that file, or set the secret again: muster secret set ${name} --project ${project} < FILE`,
    );
  }

  private newestKey(): Uint8Array {
    const { keys, random } = this.parts;
    const [known] = keys.read();
    if (known !== undefined) return known;
    const key = random(keyBytes);
    keys.write([key]);
    return key;
  }

  private sealed(key: Uint8Array, of: Pick<StoredSecret, 'project' | 'name'>, value: Uint8Array) {
    const { project, name } = of;
    const sealed = seal(key, this.parts.random(nonceBytes), secretId(of), value);
    return { project, name, keyId: keyIdOf(key), sealed };
  }

  private inTurn<T>(change: () => Promise<T>): Promise<T> {
    const result = this.last.then(change);
    this.last = result.catch(() => {});
    return result;
  }
}

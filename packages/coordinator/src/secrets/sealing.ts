/** Encrypts values with AES-256-GCM, each bound to the project and the name that it belongs to. */
import { createCipheriv, createDecipheriv, createHash } from 'node:crypto';

export const keyBytes = 32;
export const nonceBytes = 12;
const tagBytes = 16;
const algorithm = 'aes-256-gcm';

/** Names a key, and tells nothing of it: it is random, and this is a part of its SHA-256. */
export function keyIdOf(key: Uint8Array): string {
  return createHash('sha256').update(key).digest('hex').slice(0, 16);
}

/** @param nonce random, of `nonceBytes` @param owner what the value belongs to; it opens for nothing else */
export function seal(key: Uint8Array, nonce: Uint8Array, owner: string, value: Uint8Array): Uint8Array {
  const cipher = createCipheriv(algorithm, key, nonce).setAAD(Buffer.from(owner));
  return Buffer.concat([nonce, cipher.update(value), cipher.final(), cipher.getAuthTag()]);
}

/** @throws {Error} when it was sealed with another key, for another owner, or was changed */
export function unseal(key: Uint8Array, owner: string, sealed: Uint8Array): Uint8Array {
  const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, nonceBytes), {
    authTagLength: tagBytes,
  });
  decipher.setAAD(Buffer.from(owner)).setAuthTag(sealed.subarray(-tagBytes));
  return Buffer.concat([decipher.update(sealed.subarray(nonceBytes, -tagBytes)), decipher.final()]);
}

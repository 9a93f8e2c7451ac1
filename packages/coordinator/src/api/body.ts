/** Bodies of calls that are JSON, whichever way they come. Pure. */
import { MusterError } from '@muster/common/errors';

/** A spec of 256 KiB, and what a request has beside it. */
export const bodyBytesMax = 320 * 1024;

export const bodyTooLarge = `the body has more than ${bodyBytesMax} bytes`;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * @returns null for an empty one
 * @throws {MusterError} `invalid` when it is not UTF-8
 */
export function textOfBody(body: Uint8Array): string | null {
  if (body.length === 0) return null;
  try {
    return utf8.decode(body);
  } catch (error) {
    throw new MusterError('invalid', 'the body is not UTF-8', { cause: error });
  }
}

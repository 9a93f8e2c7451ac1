/** The token that a login is exchanged for. */
import { createHash, randomBytes } from 'node:crypto';

export function newUserToken(): string {
  return `muster_user_${randomBytes(32).toString('base64url')}`;
}

/** The id that the coordinator gives a token of a user. */
export function idOfToken(user: string, token: string): string {
  return `user:${user}:${createHash('sha256').update(token).digest('hex').slice(0, 16)}`;
}

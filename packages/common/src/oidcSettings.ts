/** Which issuer of OpenID Connect users may log in at, and what its claims mean here. */
import type { Role } from './people.ts';

/** What members of a group of the issuer may do. */
export interface GroupRule {
  readonly group: string;
  readonly role: Role;
  /** Empty: `default`. */
  readonly projects: readonly string[];
}

/** The issuer whose ID tokens are accepted, and what their claims mean. */
export interface OidcSettings {
  /** As the issuer writes it in its tokens: an https URL, or http on loopback. */
  readonly issuer: string;
  /** A public client, which has no secret. */
  readonly clientId: string;
  /** What clients ask the issuer for, with spaces in between. */
  readonly scope: string;
  /** The claim that is the name of the user. */
  readonly userClaim: string;
  /** Names end in `@` and this domain, which is removed. null: names are taken as they are. */
  readonly userDomain: string | null;
  readonly groupsClaim: string;
  /** Empty: roles and projects are those that an admin has given. Otherwise groups decide at each login. */
  readonly groups: readonly GroupRule[];
  /** The role of users that nobody has added, unless a group gives another. null: they are refused. */
  readonly createRole: Role | null;
}

/** Whether an issuer may be at this URL: keys that somebody in between can replace prove nothing. */
export function isTrustworthyUrl(text: string): boolean {
  const { protocol, hostname } = URL.parse(text) ?? {};
  return (
    protocol === 'https:' ||
    (protocol === 'http:' && /^(?:127(?:\.\d{1,3}){3}|localhost|\[::1\])$/.test(hostname ?? ''))
  );
}

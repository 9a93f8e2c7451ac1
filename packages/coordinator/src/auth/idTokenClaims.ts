/** What an ID token says about a person, and what that means here. Pure functions; `idTokens.ts` has verified the token before. */
import { MusterError } from '@muster/common/errors';
import type { OidcSettings } from '@muster/common/oidcSettings';
import { defaultProject, isUserName, roles, type User, userNameForm } from '@muster/common/people';

/** Who has logged in at the issuer. */
export interface Person {
  readonly name: string;
  /** What their groups give them. null: groups decide nothing. */
  readonly access: Pick<User, 'role' | 'projects'> | null;
}

export type IdTokenClaims = Readonly<Record<string, unknown>>;

/** @throws {MusterError} `permission_denied`: the claims name no user, or one in no group that may log in */
export function personOf(claims: IdTokenClaims, settings: OidcSettings): Person {
  const name = nameOf(claims, settings);
  return { name, access: accessOf(name, claims, settings) };
}

function nameOf(claims: IdTokenClaims, { userClaim, userDomain }: OidcSettings): string {
  const value = Object.hasOwn(claims, userClaim) ? claims[userClaim] : undefined;
  if (typeof value !== 'string')
    throw refused(
      `the ID token has no claim "${userClaim}" with the name of the user: ask the issuer's admin for it, or have the coordinator read ` +
        'another with --oidc-user-claim',
    );
  if (userClaim === 'email' && claims['email_verified'] !== true)
    throw refused('the issuer has not verified the email address in the ID token');
  const name = userDomain === null ? value : withoutDomain(value, userDomain);
  if (isUserName(name)) return name;
  throw refused(`the claim "${userClaim}" of the ID token is "${value.slice(0, 100)}": ${userNameForm}`);
}

/** Names of mail addresses differ only in the case of their letters for nobody. */
function withoutDomain(value: string, domain: string): string {
  const lower = value.toLowerCase();
  const end = `@${domain.toLowerCase()}`;
  if (lower.endsWith(end)) return lower.slice(0, -end.length);
  throw refused(
    `"${value.slice(0, 100)}" of the ID token does not end in ${end}, as users of this cluster do`,
  );
}

function accessOf(
  name: string,
  claims: IdTokenClaims,
  { groups, groupsClaim, createRole }: OidcSettings,
): Person['access'] {
  if (groups.length === 0) return null;
  const value = Object.hasOwn(claims, groupsClaim) ? claims[groupsClaim] : [];
  const memberOf = new Set(Array.isArray(value) ? value : [value]);
  const rules = groups.filter(({ group }) => memberOf.has(group));
  if (rules.length > 0) {
    const role = roles.findLast((each) => rules.some((rule) => rule.role === each)) ?? 'viewer';
    const projects = [...new Set(rules.flatMap((rule) => rule.projects))].sort();
    return { role, projects: projects.length === 0 ? [defaultProject] : projects };
  }
  if (createRole !== null) return { role: createRole, projects: [defaultProject] };
  const known = groups.map(({ group }) => group).join(', ');
  throw refused(`${name} is in none of the groups that may log in (${known}), by the claim "${groupsClaim}"`);
}

function refused(message: string): MusterError {
  return new MusterError('permission_denied', message);
}

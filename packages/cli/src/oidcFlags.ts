/** The flags of `muster coordinator` about an issuer of OpenID Connect. */
import { type GroupRule, isTrustworthyUrl, type OidcSettings } from '@muster/common/oidcSettings';
import { roles } from '@muster/common/people';
import { labelForm, labelPattern } from '@muster/common/spec/forms';
import type { Command } from 'commander';
import { usageError } from './errors.ts';

export interface OidcFlags {
  readonly oidcIssuer?: string;
  readonly oidcClientId?: string;
  readonly oidcScope?: string;
  readonly oidcUserClaim?: string;
  readonly oidcUserDomain?: string;
  readonly oidcGroupsClaim?: string;
  readonly oidcGroup?: readonly GroupRule[];
  readonly oidcCreateRole?: OidcSettings['createRole'];
}

const defaults = { scope: 'openid profile', userClaim: 'preferred_username', groupsClaim: 'groups' } as const;

export function withOidcFlags(sub: Command): void {
  sub
    .option('--oidc-issuer <url>', 'issuer of OpenID Connect by which users log in with a browser', issuerUrl)
    .option('--oidc-client-id <id>', 'public client with the device flow that the issuer has for Muster')
    .option('--oidc-scope <scope>', `what to ask the issuer for; default: ${defaults.scope}`)
    .option(
      '--oidc-user-claim <claim>',
      `claim that is the name of the user, and that users cannot change; default: ${defaults.userClaim}`,
    )
    .option('--oidc-user-domain <domain>', 'names end in @ and this domain, which is removed')
    .option(
      '--oidc-groups-claim <claim>',
      `claim with the groups of the user; default: ${defaults.groupsClaim}`,
    )
    .option(
      '--oidc-group <group=role:project,...>',
      'role, and projects if not default, of members of a group, set at each login; may be repeated; others are then refused',
      groupRules,
    )
    .addOption(
      sub
        .createOption(
          '--oidc-create-role <role>',
          'role of users that the cluster does not know yet; default: they are refused',
        )
        .choices(roles.filter((role) => role !== 'disabled')),
    );
}

/** @throws {CliError} for an issuer without a client, or flags about an issuer without one */
export function oidcSettings(flags: OidcFlags): OidcSettings | null {
  const { oidcIssuer: issuer, oidcClientId: clientId } = flags;
  if (issuer === undefined || clientId === undefined) {
    const given = Object.entries(flags).find(
      ([name, value]) => name.startsWith('oidc') && value !== undefined,
    );
    if (given === undefined) return null;
    throw usageError(
      '--oidc-issuer and --oidc-client-id are needed for a login by OpenID Connect: one of them is missing',
    );
  }
  return {
    issuer,
    clientId,
    scope: flags.oidcScope ?? defaults.scope,
    userClaim: flags.oidcUserClaim ?? defaults.userClaim,
    userDomain: flags.oidcUserDomain ?? null,
    groupsClaim: flags.oidcGroupsClaim ?? defaults.groupsClaim,
    groups: flags.oidcGroup ?? [],
    createRole: flags.oidcCreateRole ?? null,
  };
}

function issuerUrl(typed: string): string {
  if (isTrustworthyUrl(typed)) return typed;
  throw usageError(`--oidc-issuer takes an https URL, or an http URL on loopback; got "${typed}"`);
}

function groupRules(typed: string, earlier: readonly GroupRule[] = []): readonly GroupRule[] {
  const [, group, roleText, projectsText] = /^(.+)=(\w+)(?::(.*))?$/.exec(typed) ?? [];
  const role = roles.find((each) => each === roleText);
  if (group === undefined || role === undefined)
    throw usageError(
      `--oidc-group takes GROUP=ROLE or GROUP=ROLE:PROJECT,PROJECT, with a role of ${roles.join(', ')}; got "${typed}"`,
    );
  const projects = projectsText === undefined ? [] : projectsText.split(',');
  const wrong = projects.find((name) => !labelPattern.test(name));
  if (wrong !== undefined)
    throw usageError(`--oidc-group: "${wrong}" in "${typed}": a project name has ${labelForm}`);
  return [...earlier, { group, role, projects }];
}

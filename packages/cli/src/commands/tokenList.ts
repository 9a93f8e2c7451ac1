import type { CredentialView } from '@muster/common/views';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { Context, Subcommand } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { coloursFor } from '../output/colours.ts';
import { writeJson } from '../output/json.ts';
import { type Column, formatTable } from '../output/table.ts';
import { agoText, durationText } from '../output/times.ts';
import { withSession } from '../session.ts';

type ListFlags = ConnectionFlags & OutputFlags;

export const tokenList: Subcommand = {
  name: 'list',
  summary: 'list credentials and join tokens, without their secrets',
  define(sub) {
    withConnection(withOutput(sub));
  },
  run: (context: Context, flags: ListFlags) => listTokens(context, flags),
};

export async function listTokens(context: Context, flags: ListFlags): Promise<ExitCode> {
  const { io, environment, clock } = context;
  const credentials = await withSession(context, flags, ({ api }) => api.listCredentials());
  if (flags.output === 'json') {
    await writeJson(io.stdout, { credentials });
    return exitCodes.ok;
  }
  const colours = coloursFor(io.stdout, environment);
  const table = formatTable(credentials, columns(clock.wallMs()), { width: io.stdout.columns(), colours });
  await io.stdout.write(table);
  return exitCodes.ok;
}

function columns(nowMs: number): readonly Column<CredentialView>[] {
  return [
    { header: 'ID', cell: ({ id }) => id },
    { header: 'KIND', cell: kindText },
    { header: 'NODE', cell: ({ node }) => node ?? '', narrow: { cutTo: 8 } },
    { header: 'CREATED', cell: ({ createdAtMs }) => agoText(createdAtMs, nowMs), narrow: 'drop' },
    { header: 'LAST USED', cell: (credential) => lastUseText(credential, nowMs) },
    { header: 'EXPIRES', cell: (credential) => expiryText(credential, nowMs) },
  ];
}

function kindText({ kind, used, replaces }: CredentialView): string {
  if (kind !== 'join') return kind;
  return used ? 'join, used' : replaces ? 'join, replaces' : 'join';
}

function lastUseText({ openCalls, lastUsedAtMs }: CredentialView, nowMs: number): string {
  if (openCalls > 0) return 'now';
  return lastUsedAtMs === null ? 'never' : agoText(lastUsedAtMs, nowMs);
}

function expiryText({ expiresAtMs }: CredentialView, nowMs: number): string {
  if (expiresAtMs === null) return 'never';
  return expiresAtMs <= nowMs ? 'expired' : `in ${durationText(expiresAtMs - nowMs)}`;
}

import type { MusterApi } from '@muster/common/wire/client';
import { type ForceFlag, requireConsent } from '../confirm.ts';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { Context, Subcommand } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { writeJson } from '../output/json.ts';
import { withSession } from '../session.ts';

type RevokeFlags = ConnectionFlags & OutputFlags & ForceFlag;

export const tokenRevoke: Subcommand = {
  name: 'revoke',
  summary: 'revoke a credential or join token at once, and close its open connections',
  define(sub) {
    sub.argument('<name>', 'id, unique beginning of one, or a node for all of its credentials');
    sub.option('--force', 'do not ask, though jobs run on its node');
    withConnection(withOutput(sub));
    sub.addHelpText(
      'after',
      '\nTasks of the node keep running until their leases expire, and are then fenced like those of any silent ' +
        'node.\n`muster token create NODE --replace` lets its agent join again.',
    );
  },
  run: revoke,
};

async function revoke(context: Context, name: string, flags: RevokeFlags): Promise<ExitCode> {
  const { io } = context;
  const ids = await withSession(context, flags, async ({ api }) => {
    const isAgreed = flags.force === true || (await askAboutJobs(api, name, context));
    return api.revokeCredential(name, isAgreed);
  });
  if (flags.output === 'json') {
    await writeJson(io.stdout, { ids });
    return exitCodes.ok;
  }
  for (const id of ids) await io.stdout.write(`${id} is revoked.\n`);
  return exitCodes.ok;
}

const namedMax = 3;

/**
 * What runs on a node whose agent may not come back ends with its lease.
 * @returns whether a person has agreed to that; false: nothing runs there, and the coordinator refuses if something does by then
 */
async function askAboutJobs(api: MusterApi, name: string, context: Context): Promise<boolean> {
  const agents = (await api.listCredentials()).filter(
    ({ id, kind, node }) => kind === 'agent' && (node === name || id.startsWith(name)),
  );
  const nodes = new Set(agents.map(({ node }) => node));
  if (nodes.size === 0) return false;
  const { jobs } = await api.listJobs({ states: ['starting', 'running', 'stopping'], limit: 1_000 });
  const ids = jobs
    .filter(({ attempts }) =>
      attempts.at(-1)?.tasks.some(({ node, state }) => nodes.has(node) && state !== 'ended'),
    )
    .map(({ id }) => id);
  if (ids.length === 0) return false;
  const more = ids.length > namedMax ? ` and ${ids.length - namedMax} more` : '';
  await requireConsent(
    context,
    `${[...nodes].join(', ')} runs ${ids.slice(0, namedMax).join(', ')}${more}, which end there with their leases`,
    `${context.environment.programName} token revoke ${name} --force`,
  );
  return true;
}

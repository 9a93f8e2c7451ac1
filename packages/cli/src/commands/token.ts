import { messageOf } from '@muster/common/errors';
import { isNodeName } from '@muster/common/ids';
import { type BudgetUse, type TokenBudget, type Verb, verbs } from '@muster/common/people';
import type { CredentialView } from '@muster/common/views';
import type { MusterApi } from '@muster/common/wire/client';
import { addressForOthers } from '../connection.ts';
import type { CommandModule, Context, Subcommand } from '../context.ts';
import { contextWithToken, readContexts, replaceToken } from '../contexts.ts';
import { CliError, usageError } from '../errors.ts';
import type { ExitCode } from '../exitCodes.ts';
import { collect, durationMs, wholeNumberFlag } from '../flags.ts';
import { type Column, formatTable } from '../output/table.ts';
import { agoText, durationText, validityText } from '../output/times.ts';
import { ask, type ForceFlag, print, type QueryFlags, requireConsent, withQuery } from '../query.ts';
import { withSession } from '../session.ts';

interface CreateFlags extends QueryFlags {
  readonly replace?: boolean;
}

type RevokeFlags = QueryFlags & ForceFlag;

interface RotateFlags extends QueryFlags {
  /** Milliseconds. */
  readonly keep?: number;
}

const create: Subcommand = {
  name: 'create',
  summary: 'create a single-use token with which the agent of one node joins',
  define(sub) {
    sub
      .argument('<node>', 'name of the node whose agent will use the token')
      .option(
        '--replace',
        'for a reinstalled machine: the old credential of the node ends when this token is used',
      );
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nThe agent reads the token once, from --join-token-file (- is standard input) or MUSTER_JOIN_TOKEN. The token ' +
        'also identifies\nthe coordinator to trust, so protect it like a password.',
    );
  },
  run: createToken,
};

interface IssueFlags extends QueryFlags {
  readonly user?: string;
  readonly project?: readonly string[];
  readonly allow?: readonly Verb[];
  readonly expires?: number;
  readonly gpuHours?: number;
  readonly maxGpus?: number;
  readonly maxJobs?: number;
  readonly maxTotalJobs?: number;
  readonly maxPriority?: number;
}

const dayMs = 24 * 60 * 60_000;

const issue: Subcommand = {
  name: 'issue',
  summary: 'create a token of a user for a program, limited as you say',
  define(sub) {
    sub
      .argument('<label>', 'what it is for, shown in lists')
      .option('--user <name>', 'whose token; default: yours')
      .option('--project <project>', 'only of use for this project; several times for several', collect)
      .option('--allow <verbs>', `only ${verbs.join(', ')}; with commas between them`, verbsFlag)
      .option(
        '--expires <duration>',
        'such as 30d; default: 90d',
        durationMs('--expires', 60_000, 366 * dayMs),
      )
      .optionsGroup('A budget, for all jobs that are submitted with it:')
      .option(
        '--gpu-hours <hours>',
        'GPUs × hours in all; its jobs are stopped when they are used up',
        gpuHoursFlag,
      )
      .option(
        '--max-gpus <count>',
        'GPUs of its jobs that have not ended',
        wholeNumberFlag('--max-gpus', 0, 100_000),
      )
      .option('--max-jobs <count>', 'jobs that have not ended', wholeNumberFlag('--max-jobs', 0, 1_000_000))
      .option(
        '--max-total-jobs <count>',
        'jobs in all',
        wholeNumberFlag('--max-total-jobs', 0, 1_000_000_000),
      )
      .option(
        '--max-priority <0..100>',
        'highest priority of a job',
        wholeNumberFlag('--max-priority', 0, 100),
      );
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nThe program reads it from MUSTER_TOKEN, or from a file named by --token-file. What a user may not do, no token of theirs ' +
        'allows.\nA token with a budget allows read, submit and change at most. `muster token rotate` keeps what was used of it.',
    );
  },
  run: (context: Context, label: string, { user, project, allow, expires, ...rest }: IssueFlags) => {
    const { budget, flags } = budgetFlags(rest);
    return ask(
      context,
      flags,
      (api) =>
        api.createUserToken({
          budget,
          label,
          projects: project ?? [],
          verbs: allow ?? [],
          ...(user === undefined ? {} : { user }),
          ...(expires === undefined ? {} : { lifetimeMs: expires }),
        }),
      ({ token }) => `${token}\n`,
      ({ id, expiresAtMs }, { nowMs, programName }) =>
        `Valid for ${validityText(expiresAtMs, nowMs)}. To end it: ${programName} token revoke ${id}\n`,
    );
  },
};

function budgetFlags({
  gpuHours,
  maxGpus,
  maxJobs,
  maxTotalJobs,
  maxPriority,
  ...flags
}: Omit<IssueFlags, 'user' | 'project' | 'allow' | 'expires'>) {
  const budget: TokenBudget = {
    gpuHours: gpuHours ?? null,
    gpus: maxGpus ?? null,
    jobs: maxJobs ?? null,
    jobsTotal: maxTotalJobs ?? null,
    priority: maxPriority ?? null,
  };
  const isLimited = Object.values(budget).some((limit) => limit !== null);
  return { budget: isLimited ? budget : null, flags };
}

function gpuHoursFlag(typed: string): number {
  const hours = /^\d{1,9}(?:\.\d{1,6})?$/.test(typed) ? Number(typed) : Number.NaN;
  if (Number.isFinite(hours)) return hours;
  throw usageError(`--gpu-hours takes a number of hours such as 100 or 0.5; got "${typed}"`);
}

function verbsFlag(typed: string): readonly Verb[] {
  return typed.split(',').map((word) => {
    const verb = verbs.find((each) => each === word);
    if (verb !== undefined) return verb;
    throw usageError(`--allow takes ${verbs.join(', ')}; got "${word}"`);
  });
}

const show: Subcommand = {
  name: 'show',
  summary: 'show whose token you use, what it allows, and what is left of its budget',
  define: withQuery,
  run: (context: Context, flags: QueryFlags) =>
    ask(
      context,
      flags,
      (api) => api.getCaller(),
      ({ id, user, role, verbs: allowed, budget, used }) =>
        [
          `${id}, of ${user} (${role})`,
          `allows ${allowed.join(', ')}`,
          budget === null ? 'no budget: not limited' : `left of its budget: ${leftText(budget, used)}`,
        ]
          .map((line) => `${line}\n`)
          .join(''),
    ),
};

const list: Subcommand = {
  name: 'list',
  summary: 'list credentials and join tokens, without their secrets',
  define: withQuery,
  run: listTokens,
};

const revoke: Subcommand = {
  name: 'revoke',
  summary: 'revoke a credential or join token at once, and close its open connections',
  define(sub) {
    sub.argument('<name>', 'id, unique beginning of one, a node for all of its credentials, or user:NAME');
    sub.option('--force', 'do not ask, though jobs run on its node');
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nTasks of the node keep running until their leases expire, and are then fenced like those of any silent ' +
        'node.\n`muster token create NODE --replace` lets its agent join again.',
    );
  },
  run: (context: Context, name: string, flags: RevokeFlags) =>
    ask(
      context,
      flags,
      async (api) => {
        const isAgreed = flags.force === true || (await askAboutJobs(api, name, context));
        return { ids: await api.revokeCredential(name, isAgreed) };
      },
      ({ ids }) => ids.map((id) => `${id} is revoked.\n`).join(''),
    ),
};

const rotate: Subcommand = {
  name: 'rotate',
  summary:
    'replace a token by another with the same limits; the current one ends, at once or with --keep later',
  define(sub) {
    sub.argument('[id]', 'id of a token of a user, or unique beginning; default: the token that you use');
    sub.option(
      '--keep <duration>',
      'so long the current one stays valid, until every program has the new one; default: it ends at once',
      durationMs('--keep', 1_000, 30 * dayMs),
    );
    withQuery(sub);
    sub.addHelpText(
      'after',
      "\nThe coordinator's admin.token holds the new admin token; copy it to other machines. A login that is in use keeps the new " +
        'token.\nOpen watches of the old token end.',
    );
  },
  run: rotateToken,
};

export const command: CommandModule = {
  define(sub) {
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nWithout a subcommand it lists credentials and join tokens, without the secrets.',
    );
  },
  run: listTokens,
  subcommands: [create, issue, show, list, revoke, rotate],
};

async function rotateToken(context: Context, id: string | undefined, flags: RotateFlags): Promise<ExitCode> {
  const { environment } = context;
  const { keep } = flags;
  // Read before the token ends: a file that cannot be read must not cost the user their token.
  const saved = readContexts(environment);
  const { answer, used } = await withSession(context, flags, async (session) => {
    const isAdminToken = id === undefined && !session.endpoint.token.startsWith('muster_user_');
    if (isAdminToken && keep !== undefined)
      throw usageError(
        '--keep is for tokens of users; the admin token ends at once, and commands on its machine read the new one',
      );
    return {
      answer: isAdminToken
        ? { token: await session.api.rotateAdminToken() }
        : await session.api.rotateUserToken(id, keep),
      used: session.endpoint.token,
    };
  });
  const name = id === undefined ? contextWithToken(saved, used) : null;
  let unsaved: unknown = null;
  try {
    if (name !== null) replaceToken(environment, saved, name, answer.token);
  } catch (error) {
    unsaved = error;
  }
  const earlier = keep === undefined ? 'no longer valid' : `valid for another ${durationText(keep)} at most`;
  const exitCode = await print(
    context,
    flags,
    answer,
    ({ token }) => `${token}\n`,
    () =>
      'id' in answer
        ? `The earlier token is ${earlier}.${name !== null && unsaved === null ? ` The context ${name} has the new one.` : ''}\n`
        : 'The earlier admin token is no longer valid; commands on its machine use the new one.\n',
  );
  // Only now: the token that is printed above is all that its user has of it.
  if (unsaved !== null)
    throw new CliError(`the context ${name} still has the earlier token: ${messageOf(unsaved)}`, {
      hints: [`Make room, and log in again: ${environment.programName} login`],
    });
  return exitCode;
}

async function createToken(context: Context, node: string, flags: CreateFlags): Promise<ExitCode> {
  if (!isNodeName(node)) {
    throw usageError(
      `invalid node name "${node}": expected 1 to 63 lower-case letters, digits and "-", with a letter or digit at both ends`,
    );
  }
  const { answer, endpoint } = await withSession(context, flags, async (session) => ({
    answer: await session.api.createJoinToken(node, flags.replace),
    endpoint: session.endpoint,
  }));
  const outside = addressForOthers(endpoint, flags, context.environment);
  const where =
    outside === null ? 'on this machine: the coordinator serves on loopback only' : 'on its machine';
  return print(
    context,
    flags,
    answer,
    ({ token }) => `${token}\n`,
    ({ expiresAtMs }, { nowMs }) =>
      `For one agent named ${node}, valid for ${validityText(expiresAtMs, nowMs)}, ${where}; it reads the token from its standard input:\n` +
      `  ${joinCommand(node, outside ?? endpoint.address)}\n`,
  );
}

/** Without the token: arguments are visible to every user of a machine, and shells keep what was typed. */
function joinCommand(node: string, coordinator: string): string {
  const place = `--data muster-${node} --name ${node} --coordinator ${coordinator}`;
  return `muster agent ${place} --join-token-file -`;
}

function listTokens(context: Context, flags: QueryFlags): Promise<ExitCode> {
  return ask(
    context,
    flags,
    async (api) => ({ credentials: await api.listCredentials() }),
    ({ credentials }, view) => formatTable(credentials, columns(view.nowMs), view),
  );
}

function columns(nowMs: number): readonly Column<CredentialView>[] {
  return [
    { header: 'ID', cell: ({ id }) => id },
    { header: 'KIND', cell: kindText },
    { header: 'OF', cell: ({ node, user }) => node ?? user ?? '', narrow: { cutTo: 8 } },
    { header: 'LIMITS', cell: limitsText, narrow: 'drop' },
    { header: 'CREATED', cell: ({ createdAtMs }) => agoText(createdAtMs, nowMs), narrow: 'drop' },
    { header: 'LAST USED', cell: (credential) => lastUseText(credential, nowMs) },
    { header: 'EXPIRES', cell: (credential) => expiryText(credential, nowMs) },
  ];
}

function kindText({ kind, used, replaces }: CredentialView): string {
  if (kind !== 'join') return kind;
  return used ? 'join, used' : replaces ? 'join, replaces' : 'join';
}

function limitsText({ label, projects, verbs: allowed, budget, usedBudget }: CredentialView): string {
  const left = budget === null ? '' : `left: ${leftText(budget, usedBudget)}`;
  return [label, projects.join(','), allowed.join(','), left].filter((text) => text !== '').join('; ');
}

function lastUseText({ openCalls, lastUsedAtMs }: CredentialView, nowMs: number): string {
  if (openCalls > 0) return 'now';
  return lastUsedAtMs === null ? 'never' : agoText(lastUsedAtMs, nowMs);
}

/** `3.5 of 10 GPU-hours, 2 of 4 GPUs, priority up to 50` */
function leftText(budget: TokenBudget, used: BudgetUse | null): string {
  const parts: readonly (readonly [string, number | null, number])[] = [
    ['GPU-hours', budget.gpuHours, used?.gpuHours ?? 0],
    ['GPUs', budget.gpus, used?.gpus ?? 0],
    ['jobs', budget.jobs, used?.jobs ?? 0],
    ['jobs in all', budget.jobsTotal, used?.jobsTotal ?? 0],
  ];
  const left = parts.flatMap(([what, limit, spent]) => {
    if (limit === null) return [];
    return [`${Math.round(Math.max(0, limit - spent) * 100) / 100} of ${limit} ${what}`];
  });
  return [...left, ...(budget.priority === null ? [] : [`priority up to ${budget.priority}`])].join(', ');
}

function expiryText({ expiresAtMs }: CredentialView, nowMs: number): string {
  if (expiresAtMs === null) return 'never';
  return expiresAtMs <= nowMs ? 'expired' : `in ${validityText(expiresAtMs, nowMs)}`;
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

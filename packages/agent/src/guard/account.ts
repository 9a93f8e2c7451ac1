/**
 * What a session of a Unix account has on this node: its ids from the user database, its limits from PAM, its umask from both. They are
 * asked through the node's own programs, so that directories (LDAP, SSSD) and `limits.conf` count as they do at a login.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { messageOf } from '@muster/common/errors';
import type { AccountIds, TaskAccount } from '../taskFacts/account.ts';
import { DriverError } from '../taskFacts/errors.ts';

export interface Account extends AccountIds {
  readonly name: string;
  readonly home: string;
  readonly shell: string;
  readonly umask: number;
  /** By the name that `prlimit` gives the resource, such as `NOFILE`. */
  readonly limits: ReadonlyMap<string, ResourceLimit>;
}

/** null: unlimited. */
export interface ResourceLimit {
  readonly soft: bigint | null;
  readonly hard: bigint | null;
}

/** Accounts below it are the system's: `UID_MIN` of Debian and most others. */
const firstPersonUid = 1000;
/** A change of groups or limits counts after this time at the latest. */
const keptMs = 60_000;
/** A directory service that does not answer. */
const answerMs = 30_000;

const run = promisify(execFile);
const options = {
  cwd: '/',
  timeout: answerMs,
  // Nothing of a job is in it: these programs run as root.
  env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C.UTF-8' },
};
const idsScript = 'getent passwd -- "$1" && id -G -- "$1"';
const limitsScript = 'umask && prlimit --noheadings --raw --output RESOURCE,SOFT,HARD';

export class Accounts {
  private readonly known = new Map<
    string,
    { readonly account: Promise<Account>; readonly untilMs: number }
  >();
  private readonly monotonicMs: () => number;

  constructor(monotonicMs: () => number) {
    this.monotonicMs = monotonicMs;
  }

  /** @throws {DriverError} when the node has no such account, or no task may run as it */
  async find({ name, isRule }: TaskAccount): Promise<Account> {
    const nowMs = this.monotonicMs();
    let known = this.known.get(name);
    if (known === undefined || known.untilMs <= nowMs) {
      known = { account: readAccount(name), untilMs: nowMs + keptMs };
      this.known.set(name, known);
      known.account.catch(() => this.known.delete(name));
    }
    const account = await known.account;
    if (isRule || account.uid >= firstPersonUid) return account;
    throw new DriverError(
      'unknown',
      `the account ${name} is one of the system (uid ${account.uid}), and no task runs as it on this node without a rule: ` +
        `give its agent \`--account user:${name}=ACCOUNT\`, or \`--root-tasks allow\` where everybody who submits may be root on this node`,
    );
  }
}

async function readAccount(name: string): Promise<Account> {
  const ids = await run('sh', ['-c', idsScript, 'sh', name], options).catch((error: unknown) => {
    throw unknownAccount(name, error);
  });
  const limits = await run('runuser', ['-u', name, '--', 'sh', '-c', limitsScript], options).catch(
    (error: unknown) => {
      throw closedAccount(name, error);
    },
  );
  const { umask, ...own } = parseIds(name, ids.stdout);
  const session = parseLimits(limits.stdout);
  // Each may take bits away that the other leaves.
  return { name, ...own, ...session, umask: umask | session.umask };
}

function unknownAccount(name: string, cause: unknown): DriverError {
  // `getent` exits with 2 where no database has the name.
  const isAbsent = (cause as { code?: unknown }).code === 2;
  const message = isAbsent
    ? `this node has no account ${name}: create it, or give its agent \`--account user:${name}=ACCOUNT\`, or ` +
      '`--root-tasks allow` where everybody who submits may be root on this node'
    : `the account ${name} cannot be looked up on this node: ${reasonOf(cause)}`;
  return new DriverError('unknown', message, { cause });
}

function closedAccount(name: string, cause: unknown): DriverError {
  return new DriverError('unknown', `no session of ${name} can be opened on this node: ${reasonOf(cause)}`, {
    cause,
  });
}

/** What the program wrote, which names the reason; otherwise how it ended. */
function reasonOf(error: unknown): string {
  const { stderr } = error as { stderr?: unknown };
  const line = typeof stderr === 'string' ? stderr.trim().split('\n').at(-1) : undefined;
  return line === undefined || line === '' ? messageOf(error) : line;
}

/** The line of `getent passwd`, then the numbers of `id -G`. But for names of people, only root has written them. */
function parseIds(name: string, text: string): Omit<Account, 'name' | 'limits'> {
  const [entry = '', groups = ''] = text.trim().split('\n');
  const [, , uid = '', gid = '', gecos = '', home = '', shell = ''] = entry.split(':');
  const ids = [uid, gid, ...groups.split(' ')];
  if (!ids.every((id) => /^\d+$/.test(id)))
    throw new DriverError(
      'unknown',
      `the user database of this node has no usable entry for ${name}: ${entry}`,
    );
  const [own = 0, group = 0, ...all] = ids.map(Number);
  const shellOrUsual = shell || '/bin/sh';
  return { uid: own, gid: group, groups: all, home: home || '/', shell: shellOrUsual, umask: umaskIn(gecos) };
}

/**
 * `umask=027` among the fields about the person, where pam_umask looks for it at a login. Sessions of `runuser` leave that module
 * out in most distributions.
 */
function umaskIn(gecos: string): number {
  const [, digits = '0'] = /(?:^|,)umask=(0?[0-7]{1,3})(?:,|$)/.exec(gecos) ?? [];
  return Number.parseInt(digits, 8);
}

/**
 * The mask, then a line per resource. The account itself has written them and may have written anything, so they may only
 * restrict (`asAccount.ts` sees to that).
 */
function parseLimits(text: string): Pick<Account, 'umask' | 'limits'> {
  const [mask = '', ...lines] = text.trim().split('\n');
  const limits = new Map<string, ResourceLimit>();
  for (const line of lines) {
    const [resource = '', soft = '', hard = ''] = line.split(' ');
    limits.set(resource, { soft: limitOf(soft), hard: limitOf(hard) });
  }
  return { umask: Number.parseInt(mask, 8) & 0o777, limits };
}

function limitOf(text: string): bigint | null {
  return /^\d{1,19}$/.test(text) ? BigInt(text) : null;
}

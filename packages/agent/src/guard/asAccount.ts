/**
 * Acts on this node as another account, within one call.
 *
 * The kernel keeps credentials per thread. libc changes those of all threads at once; the calls here change only this
 * one, which is the thread that forks. So the guard needs no program between itself and a task that would run as root with
 * the task's environment, and the kernel's answer to a start is what comes back.
 *
 * Only what counts for files changes, and groups. The real and the effective user stay root until the new process takes the
 * account's: otherwise other processes of the account could send signals to the guard meanwhile.
 */
import { messageOf } from '@muster/common/errors';
import type { Account, ResourceLimit } from './account.ts';

/** What libc offers only for all threads of a process. */
const systemCalls: Readonly<Record<string, { readonly setgroups: number; readonly setresgid: number }>> = {
  x64: { setgroups: 116, setresgid: 119 },
  arm64: { setgroups: 159, setresgid: 149 },
};
/** By the names that `prlimit` prints. */
const resources: Readonly<Record<string, number>> = {
  CPU: 0,
  FSIZE: 1,
  DATA: 2,
  STACK: 3,
  CORE: 4,
  RSS: 5,
  NPROC: 6,
  NOFILE: 7,
  MEMLOCK: 8,
  AS: 9,
  LOCKS: 10,
  SIGPENDING: 11,
  MSGQUEUE: 12,
  NICE: 13,
  RTPRIO: 14,
  RTTIME: 15,
};
const unlimited = 0xffff_ffff_ffff_ffffn;
const noNewPrivileges = 38;
/** `_LINUX_CAPABILITY_VERSION_3`, of this thread. */
const capabilityHeader = Buffer.from(new Uint32Array([0x20080522, 0]).buffer);
const capabilityBytes = 24;
const setgidCapability = 1 << 6;

type Koffi = typeof import('koffi').default;

interface Kernel {
  setGroups(groups: readonly number[]): void;
  setGid(gid: number): void;
  setFileUser(uid: number): void;
  capabilities(): Buffer;
  setCapabilities(capabilities: Buffer): void;
  /** Of this process. */
  ownLimit(resource: number): ResourceLimit;
}

let opened: Kernel | null = null;

/**
 * To be called before anything else here. Only now the library is loaded that calls libc: it needs 10 MB, which a guard
 * whose tasks run as itself does not spend.
 * @throws {Error} on a machine whose system calls are not known here
 */
export async function openAccounts(): Promise<void> {
  opened ??= openKernel((await import('koffi')).default);
}

function kernelOf(): Kernel {
  if (opened === null) throw new Error('no account can be acted as before openAccounts');
  return opened;
}

/**
 * Runs `act` with the account's rights to files, its group and its groups. A process that it spawns with the account's uid has
 * exactly these, and no capability. Nothing in `act` may wait.
 * @throws {Error} when this process is not root, or what `act` throws; `openAccounts` comes first
 */
export function asAccount<T>({ uid, gid, groups }: Account, act: () => T): T {
  const kernel = kernelOf();
  const ownGroups = process.getgroups?.() ?? [];
  const ownGid = process.getegid?.() ?? 0;
  const capabilities = kernel.capabilities();
  // A process that may not do this may do nothing of what follows, and nothing has changed.
  kernel.setGroups(groups);
  try {
    kernel.setGid(gid);
    // Node drops all groups of a process that it starts as another user, as far as it may.
    kernel.setCapabilities(without(capabilities, setgidCapability));
    kernel.setFileUser(uid);
    return act();
  } finally {
    try {
      kernel.setFileUser(0);
      kernel.setCapabilities(capabilities);
      kernel.setGid(ownGid);
      kernel.setGroups(ownGroups);
    } catch (error) {
      // A guard with the rights of an account cannot fence the tasks of others. Tasks outlive it, and the next one is root.
      process.stderr.write(`the guard cannot become root again: ${messageOf(error)}\n`);
      process.exit(1);
    }
  }
}

/**
 * What a command line begins with, so that the program has the limits of its account, as far as they are below those of this
 * process. The program that sets them runs as the account. Empty: they are the same.
 */
export function limitingCommand(limits: Account['limits']): readonly string[] {
  const kernel = kernelOf();
  const options: string[] = [];
  for (const [name, { soft, hard }] of limits) {
    const resource = resources[name];
    if (resource === undefined) continue;
    const own = kernel.ownLimit(resource);
    const most = lower(hard, own.hard);
    const usual = lower(soft, most);
    if (most === own.hard && usual === own.soft) continue;
    options.push(`--${name.toLowerCase()}=${usual ?? 'unlimited'}:${most ?? 'unlimited'}`);
  }
  return options.length === 0 ? [] : ['/usr/bin/prlimit', ...options];
}

function lower(one: bigint | null, other: bigint | null): bigint | null {
  if (one === null || other === null) return one ?? other;
  return one < other ? one : other;
}

function without(capabilities: Buffer, bit: number): Buffer {
  const rest = Buffer.from(capabilities);
  rest.writeUInt32LE((rest.readUInt32LE(0) & ~bit) >>> 0, 0);
  return rest;
}

function openKernel(koffi: Koffi): Kernel {
  const numbers = systemCalls[process.arch];
  if (numbers === undefined) throw new Error(`tasks cannot have accounts of their own on ${process.arch}`);
  const done = (call: string, result: unknown) => {
    if (Number(result) < 0) throw new Error(`${call} has failed with error ${koffi.errno()}`);
  };
  const libc = koffi.load(null);
  const groupCall = libc.func('syscall', 'long', ['long', 'long', 'void *']);
  const gidCall = libc.func('syscall', 'long', ['long', 'long', 'long', 'long']);
  const setfsuid = libc.func('setfsuid', 'int', ['uint32']);
  const capget = libc.func('capget', 'int', ['void *', 'void *']);
  const capset = libc.func('capset', 'int', ['void *', 'void *']);
  const getrlimit = libc.func('getrlimit64', 'int', ['int', 'void *']);
  const prctl = libc.func('prctl', 'int', ['int', 'ulong', 'ulong', 'ulong', 'ulong']);
  // For good: anyone who starts tasks as accounts wants none of them to become another one, root least of all.
  done('prctl', prctl(noNewPrivileges, 1, 0, 0, 0));
  return {
    setGroups(groups) {
      const list = Buffer.from(new Uint32Array(groups).buffer);
      done('setgroups', groupCall(numbers.setgroups, groups.length, list));
    },
    setGid: (gid) => done('setresgid', gidCall(numbers.setresgid, gid, gid, gid)),
    setFileUser(uid) {
      setfsuid(uid);
      // It reports no failure, and returns the one before: asked for a user that cannot be, it changes nothing.
      if (setfsuid(0xffff_ffff) !== uid) throw new Error(`setfsuid(${uid}) has failed`);
    },
    capabilities() {
      const found = Buffer.alloc(capabilityBytes);
      done('capget', capget(capabilityHeader, found));
      return found;
    },
    setCapabilities: (capabilities) => done('capset', capset(capabilityHeader, capabilities)),
    ownLimit(resource) {
      const found = Buffer.alloc(16);
      done('getrlimit', getrlimit(resource, found));
      return { soft: decoded(found.readBigUInt64LE(0)), hard: decoded(found.readBigUInt64LE(8)) };
    },
  };
}

function decoded(value: bigint): bigint | null {
  return value === unlimited ? null : value;
}

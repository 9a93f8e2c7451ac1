/** The flags by which a node's owner says what containers may do there. */
import { resolve } from 'node:path';
import {
  type ContainerPolicy,
  containerDefaults as defaults,
  type MountRoot,
} from '@muster/agent/drivers/docker/containerPolicy';
import type { Command } from 'commander';
import { usageError } from './errors.ts';
import { collect } from './flags.ts';

export interface ContainerFlags {
  readonly mountRoot?: readonly string[];
  readonly mountDeny?: readonly string[];
  readonly containerUser?: string;
  readonly containerCap?: readonly string[];
  readonly containerNetwork?: ContainerPolicy['network'];
  readonly containerReadOnly?: boolean;
}

export function withContainerFlags(command: Command): Command {
  command.optionsGroup('What containers may do on this node:');
  return command
    .option(
      '--mount-root <dir[:ro]>',
      'allow jobs to mount this directory and everything below; may be repeated; default: only the checkpoint roots',
      collect,
    )
    .option('--mount-deny <dir>', 'do not allow this directory below a mount root; may be repeated', collect)
    .option(
      '--container-user <uid:gid>',
      'user of containers: account: the account that the job without an image would have, if it has one, else ' +
        '65532:65532; UID:GID: that user, unless the image names the number of another one; image: the user that each ' +
        `image names, including root; default ${defaults.user}`,
      containerUser,
    )
    .option(
      '--container-cap <name>',
      'capability that containers keep; may be repeated; default: none',
      collect,
    )
    .addOption(
      command
        .createOption(
          '--container-network <which>',
          `network of jobs on a single node: bridge, separate from the node's, or host; default ${defaults.network}`,
        )
        .choices(['bridge', 'host']),
    )
    .option('--container-read-only', 'make images read-only, except for /tmp, which is in memory');
}

/** @throws {CliError} for what is no directory or no capability */
export function containerPolicy(
  flags: ContainerFlags,
  checkpointRoots: readonly string[],
  workingDir: string,
): ContainerPolicy {
  const roots = (flags.mountRoot ?? []).map((text) => mountRoot(text, workingDir));
  return {
    mountRoots: [...roots, ...checkpointRoots.map((path) => ({ path, readOnly: false }))],
    mountDenied: (flags.mountDeny ?? []).map((path) => resolve(workingDir, path)),
    user: flags.containerUser ?? defaults.user,
    capabilities: (flags.containerCap ?? []).map(capability),
    network: flags.containerNetwork ?? defaults.network,
    readOnlyRoot: flags.containerReadOnly ?? defaults.readOnlyRoot,
  };
}

function mountRoot(text: string, workingDir: string): MountRoot {
  const match = /^([^:]+?)(:ro)?$/.exec(text);
  const [, path, readOnly] = match ?? [];
  if (path === undefined) throw usageError(`--mount-root takes a directory, or DIR:ro; got "${text}"`);
  return { path: resolve(workingDir, path), readOnly: readOnly !== undefined };
}

function containerUser(text: string): string {
  if (text === 'account' || text === 'image' || /^\d{1,10}:\d{1,10}$/.test(text)) return text;
  throw usageError(`--container-user takes account, UID:GID or image; got "${text}"`);
}

function capability(text: string): string {
  const name = text.toUpperCase().replace(/^CAP_/, '');
  if (/^[A-Z_]{3,40}$/.test(name) && name !== 'ALL') return name;
  throw usageError(`--container-cap takes the name of one capability, such as IPC_LOCK; got "${text}"`);
}

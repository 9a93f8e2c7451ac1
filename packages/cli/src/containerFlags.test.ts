import { containerDefaults } from '@muster/agent/drivers/docker/containerPolicy';
import { Command } from 'commander';
import { expect, test } from 'vitest';
import { type ContainerFlags, containerPolicy, withContainerFlags } from './containerFlags.ts';

function policy(...args: string[]) {
  const command = withContainerFlags(new Command().exitOverride());
  command.configureOutput({ writeErr: () => {} }).parse(args, { from: 'user' });
  return containerPolicy(command.opts<ContainerFlags>(), ['/shared/checkpoints'], '/started/here');
}

test('containers may do nothing but what their node says; checkpoint roots can be mounted', () => {
  const mountRoots = [{ path: '/shared/checkpoints', readOnly: false }];
  expect(policy()).toEqual({ ...containerDefaults, mountRoots });
});

test('each flag is one permission', () => {
  const roots = ['--mount-root', '/data:ro', '--mount-root', 'scratch', '--mount-deny', 'scratch/private'];
  expect(policy(...roots)).toMatchObject({
    mountRoots: [
      { path: '/data', readOnly: true },
      { path: '/started/here/scratch', readOnly: false },
      { path: '/shared/checkpoints', readOnly: false },
    ],
    mountDenied: ['/started/here/scratch/private'],
  });
  const caps = ['--container-cap', 'cap_ipc_lock', '--container-cap', 'SYS_PTRACE'];
  expect(policy(...caps).capabilities).toEqual(['IPC_LOCK', 'SYS_PTRACE']);
  const rest = ['--container-user', '1000:100', '--container-network', 'host', '--container-read-only'];
  expect(policy(...rest)).toMatchObject({ user: '1000:100', network: 'host', readOnlyRoot: true });
  expect(policy('--container-user', 'image').user).toBe('image');
});

test.each([
  [['--container-user', 'alice'], '--container-user takes account, UID:GID or image; got "alice"'],
  [
    ['--container-cap', 'all'],
    '--container-cap takes the name of one capability, such as IPC_LOCK; got "all"',
  ],
  [['--mount-root', '/a:rw'], '--mount-root takes a directory, or DIR:ro; got "/a:rw"'],
])('%j is refused', (args, message) => {
  expect(() => policy(...args)).toThrow(message);
});

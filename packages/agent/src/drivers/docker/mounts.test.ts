import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tempDirOnDisk } from '../../../../../test/support/services.ts';
import { realPaths } from '../../probes/realPaths.ts';
import { DriverError } from '../../taskFacts/errors.ts';
import { type ContainerPolicy, containerDefaults } from './containerPolicy.ts';
import { allowedVolumes, type MountRules } from './mounts.ts';

/** A node on whose disk are data, scratch space, an agent and the socket of an engine. */
function aNode() {
  const root = tempDirOnDisk('mounts').path;
  const paths = {
    root,
    data: join(root, 'data'),
    scratch: join(root, 'scratch'),
    agent: join(root, 'agent'),
    home: join(root, 'home'),
  };
  for (const path of Object.values(paths)) mkdirSync(join(path, 'inside'), { recursive: true });
  const socket = join(root, 'docker.sock');
  writeFileSync(socket, '');
  return { ...paths, socket };
}

function rulesOf(node: ReturnType<typeof aNode>, policy: Partial<ContainerPolicy>): MountRules {
  return {
    policy: { ...containerDefaults, ...policy },
    dataDir: node.agent,
    dockerSocket: node.socket,
    fence: { realPaths },
  };
}

async function answer(
  node: ReturnType<typeof aNode>,
  policy: Partial<ContainerPolicy>,
  source: string,
  readOnly = false,
): Promise<string> {
  try {
    const volumes = [{ source, target: '/data', readOnly }];
    const [volume] = await allowedVolumes({ volumes, ownVolumes: [] }, rulesOf(node, policy));
    return `mounts ${volume?.source}`;
  } catch (error) {
    if (error instanceof DriverError) return error.message;
    throw error;
  }
}

const writable = (path: string) => ({ path, readOnly: false });

test('what is below a root is mounted, by its real name', async () => {
  const node = aNode();
  const mountRoots = [writable(node.data)];
  expect(await answer(node, { mountRoots }, node.data)).toBe(`mounts ${node.data}`);
  expect(await answer(node, { mountRoots }, `${node.data}/inside/`)).toBe(`mounts ${node.data}/inside`);
  symlinkSync(node.data, join(node.home, 'link'));
  expect(await answer(node, { mountRoots }, join(node.home, 'link/inside'))).toBe(
    `mounts ${node.data}/inside`,
  );
  // Also where the root itself is a link, as /scratch often is.
  const linked = [writable(join(node.home, 'link'))];
  expect(await answer(node, { mountRoots: linked }, join(node.data, 'inside'))).toContain('mounts ');
});

test('what is not, is named with the setting; also a link that leads away, and a name that only begins alike', async () => {
  const node = aNode();
  const mountRoots = [writable(node.data)];
  const refused = `this node does not let jobs mount`;
  expect(await answer(node, { mountRoots }, node.home)).toBe(
    `${refused} ${node.home} (allowed: ${node.data}): use one of these, or let its agent allow it with \`--mount-root ${node.home}\``,
  );
  symlinkSync(node.home, join(node.data, 'link'));
  expect(await answer(node, { mountRoots }, join(node.data, 'link/inside'))).toContain(
    `${refused} ${node.data}/link/inside, which is ${node.home}/inside,`,
  );
  mkdirSync(`${node.data}-of-others`);
  expect(await answer(node, { mountRoots }, `${node.data}-of-others`)).toContain(refused);
  expect(await answer(node, {}, node.data)).toContain('(allowed: none)');
  expect(await answer(node, { mountRoots }, '/etc/shadow', true)).toContain(refused);
});

test('a root that is read-only is mounted read-only', async () => {
  const node = aNode();
  const mountRoots = [{ path: node.data, readOnly: true }];
  expect(await answer(node, { mountRoots }, node.data, true)).toBe(`mounts ${node.data}`);
  expect(await answer(node, { mountRoots }, node.data)).toContain('read-only: add `:ro` to the volume');
  // The widest permission counts.
  const both = [...mountRoots, writable(join(node.data, 'inside'))];
  expect(await answer(node, { mountRoots: both }, join(node.data, 'inside'))).toContain('mounts ');
});

test('nobody mounts the agent, the engine, the kernel or what is denied, nor what is above them', async () => {
  const node = aNode();
  const policy = { mountRoots: [writable('/')], mountDenied: [node.home] };
  const places = [
    node.agent,
    join(node.agent, 'inside'),
    node.socket,
    node.root,
    '/',
    node.home,
    join(node.home, 'inside'),
  ];
  // The last is refused whether this machine has Docker or not.
  for (const place of [...places, '/proc', '/sys/fs/cgroup', '/dev', '/run/docker.sock']) {
    expect(await answer(node, policy, place, true), place).toContain('no job on this node may mount');
  }
  // As /var/run is a link to /run.
  symlinkSync(node.root, join(node.data, 'run'));
  expect(await answer(node, policy, join(node.data, 'run/docker.sock'))).toContain(
    `because of ${node.socket}`,
  );
  symlinkSync(node.agent, join(node.data, 'link'));
  expect(await answer(node, policy, join(node.data, 'link'))).toContain(`because of ${node.agent}`);
  expect(await answer(node, policy, node.data)).toBe(`mounts ${node.data}`);
});

test('what the agent itself shows to a task needs no permission', async () => {
  const node = aNode();
  const own = { source: '/dev/shm/x', target: '/.muster/secrets', readOnly: true };
  expect(await allowedVolumes({ volumes: [], ownVolumes: [own] }, rulesOf(node, {}))).toEqual([own]);
});

/**
 * A job of one user against everything of another user's jobs and of the node, as a process and in a container. The node runs jobs
 * as the accounts of their users, which only an agent that is root can. Each attempt is a line of the hostile job's output.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, chownSync, lstatSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, type Spec, startCluster } from '../support/cluster.ts';
import { ensureTestImage } from '../support/images.ts';
import { dockerSocketPath, tempDir } from '../support/services.ts';

const accounts = { alice: `muster-ea${process.pid}`, bob: `muster-eb${process.pid}` };
const canary = 'canary-of-alice-5d0e7c';
const idle = 'while :; do { sleep 1 & wait $!; } 2>/dev/null; done';

let cluster: Cluster;
/** What containers may mount; each user has a directory there. */
let shared = '';

/** Runs a command of a user who has logged in. */
async function muster(user: keyof typeof accounts, args: readonly string[], stdin = ''): Promise<string> {
  const env = { HOME: homeOf(user), XDG_CONFIG_HOME: '', MUSTER_DATA: '', MUSTER_ADDR: '', MUSTER_TOKEN: '' };
  const { stdout, stderr, exitCode } = await cluster.muster(args, { env, stdin });
  expect(exitCode, stderr).toBe(0);
  return stdout;
}

const homeOf = (user: string) => join(cluster.workDir, `home-of-${user}`);

async function submit(user: keyof typeof accounts, spec: Spec): Promise<string> {
  return (await muster(user, ['submit', '-f', '-', '--export', 'none'], JSON.stringify(spec))).trim();
}

const idOf = (user: keyof typeof accounts) => lstatSync(join(shared, user)).uid;

describe.runIf(process.geteuid?.() === 0)('on a node that runs jobs as the accounts of their users', () => {
  /** Of alice: as a process and in a container. */
  let victims: readonly string[];
  let containerPid = 0;

  beforeAll(async () => {
    shared = tempDir('shared').path;
    chmodSync(shared, 0o711);
    for (const [user, account] of Object.entries(accounts)) {
      execFileSync('useradd', ['-M', '-d', '/', account]);
      const path = join(shared, user);
      mkdirSync(path, { mode: 0o700 });
      const [uid = 0, gid = 0] = ['-u', '-g'].map((flag) =>
        Number(execFileSync('id', [flag, account], { encoding: 'utf8' })),
      );
      chownSync(path, uid, gid);
    }
    const rules = Object.entries(accounts).flatMap(([user, account]) => [
      '--account',
      `user:${user}=${account}`,
    ]);
    cluster = await startCluster({ nodes: 0, agentFlags: () => [...rules, '--mount-root', shared] });
    // Their parents are for this test alone, and accounts have to pass through.
    chmodSync(cluster.workDir, 0o711);
    await cluster.addAgent('node-1').start();
    await cluster.untilOnline();
    for (const user of ['alice', 'bob'] as const) {
      mkdirSync(homeOf(user));
      const added = await cluster.muster(['user', 'add', user]);
      writeFileSync(join(homeOf(user), 'code'), added.stdout, { mode: 0o600 });
      await muster(user, ['login', cluster.address, '--code-file', join(homeOf(user), 'code')]);
    }
    expect(await cluster.muster(['secret', 'set', 'key'], { stdin: canary })).toMatchObject({ exitCode: 0 });
    const command =
      'echo "$KEY" > "$MUSTER_CHECKPOINT_DIR/step_1.txt"; cp "$MUSTER_SECRETS_DIR/key" "$MUSTER_CHECKPOINT_DIR/step_2.txt"; ' +
      `id -u; echo ready; ${idle}`;
    const spec = { command, secrets: ['key', 'KEY=key'] };
    victims = [
      await submit('alice', spec),
      await submit('alice', {
        ...spec,
        image: await ensureTestImage(),
        volumes: [`${join(shared, 'alice')}:/work`],
        checkpoint: { dir: '/work' },
      }),
    ];
    for (const id of victims)
      expect(await cluster.untilOutput(id, 'ready\n')).toBe(`${idOf('alice')}\nready\n`);
    const inspected = ['inspect', '-f', '{{.State.Pid}}', `muster-${victims[1]}-1-0`];
    containerPid = Number(execFileSync('docker', inspected, { encoding: 'utf8' }));
  });

  afterAll(() => {
    for (const account of Object.values(accounts))
      execFileSync('userdel', ['-f', account], { stdio: 'ignore' });
  });

  /** What is not bob's: of alice's tasks, and of agent, guard and coordinator. */
  function targets(): { readonly paths: readonly string[]; readonly pids: readonly number[] } {
    const agent = cluster.agent(0);
    const pids = [
      agent.pid,
      cluster.guardPid(agent),
      cluster.coordinator.pid,
      containerPid,
      ...cluster.processesOf(victims[0] ?? ''),
    ].filter((pid) => pid !== null);
    const own = createHash('sha256').update(cluster.agentDataDir(agent)).digest('hex').slice(0, 16);
    const inMemory = readdirSync('/dev/shm').filter((name) => name.startsWith(`muster-${own}`));
    expect(inMemory).toHaveLength(1);
    const roots = [
      cluster.agentsDir,
      cluster.dataDir,
      ...inMemory.map((name) => join('/dev/shm', name)),
      join(shared, 'alice'),
    ];
    const below = roots.flatMap((root) =>
      readdirSync(root, { withFileTypes: true, recursive: true }).map((entry) =>
        join(entry.parentPath, entry.name),
      ),
    );
    const ofProcesses = pids.flatMap((pid) =>
      ['environ', 'mem', 'maps', 'fd', 'cwd/', 'root/'].map((name) => `/proc/${pid}/${name}`),
    );
    // Beside a directory of /dev/shm everybody may put something.
    const tops = [cluster.dataDir, cluster.agentDataDir(agent), join(shared, 'alice')];
    return { paths: [...new Set([...tops, ...below, ...ofProcesses, dockerSocketPath])], pids };
  }

  /** Tries each path in four ways, and each process in one. */
  const attempts = `
tried() { if [ "$1" = 0 ]; then echo "OPEN $2"; else echo "closed $2"; fi; }
while read -r path; do
  { if [ -d "$path" ]; then ls "$path"; else head -c 1 "$path"; fi; } >/dev/null 2>&1; tried $? "read $path"
  { if [ -d "$path" ]; then true > "$path/planted"; else true >> "$path"; fi; } 2>/dev/null; tried $? "write $path"
  mv "$path" "$path.moved" 2>/dev/null; tried $? "move $path"
  ln -s /etc "$path.link" 2>/dev/null; tried $? "link $path"
done < paths
while read -r pid; do kill -0 "$pid" 2>/dev/null; tried $? "signal $pid"; done < pids
echo done
`;

  test.each(['as a process', 'in a container'])(
    'a job %s does not let the agent look after a directory of another user',
    async (where) => {
      const theirs = join(shared, `of-alice-${where.slice(-7)}`);
      mkdirSync(theirs);
      chownSync(theirs, idOf('alice'), 0);
      writeFileSync(join(theirs, 'notes'), '');
      const before = readdirSync(theirs);
      const ofContainer = { image: await ensureTestImage(), volumes: [`${theirs}:/work`] };
      const inContainer = where === 'in a container';
      const id = await submit('bob', {
        command: 'true',
        checkpoint: { dir: inContainer ? '/work' : theirs, keep_last: 1 },
        ...(inContainer ? ofContainer : { workdir: '/' }),
        retry: { max_attempts: 1 },
      });
      const { state, cause } = await cluster.untilEnded(id);
      expect([state, cause?.message]).toEqual([
        'failed',
        expect.stringContaining(`cannot be used by ${accounts.bob}`),
      ]);
      expect(readdirSync(theirs)).toEqual(before);
    },
  );

  test.each(['as a process', 'in a container'])(
    'a hostile job %s reaches nothing that is not its user’s',
    async (where) => {
      const { paths, pids } = targets();
      const own = join(shared, 'bob');
      const inContainer = where === 'in a container';
      // The container sees what it has mounted; its image names alice as its user.
      const mine = join(own, 'mine');
      writeFileSync(mine, '', { mode: 0o666 });
      chmodSync(mine, 0o666);
      const seen = [...paths, mine].map((path) => (inContainer ? path.replace(shared, '/shared') : path));
      for (const name of ['mine.moved', 'mine.link']) rmSync(join(own, name), { force: true });
      for (const [name, lines] of Object.entries({ paths: seen, pids, 'try.sh': [attempts] }))
        writeFileSync(join(own, name), `${lines.join('\n')}\n`, { mode: 0o644 });
      const image = await ensureTestImage({
        tag: `muster-test/as-alice:1`,
        changes: [`USER ${idOf('alice')}`],
      });
      const id = await submit('bob', {
        command: `id -u; sh try.sh`,
        workdir: inContainer ? '/shared/bob' : own,
        ...(inContainer ? { image, volumes: [`${shared}:/shared`] } : {}),
        retry: { max_attempts: 1 },
      });
      expect(await cluster.untilEnded(id)).toMatchObject({ state: 'succeeded' });
      const [uid, ...lines] = (await cluster.output(id)).trim().split('\n');
      expect(uid).toBe(String(idOf('bob')));
      // The file of bob shows that each way leads somewhere.
      const open = lines.filter((line) => line.startsWith('OPEN'));
      expect(open).toEqual(
        ['read', 'write', 'move', 'link'].map((access) => `OPEN ${access} ${seen.at(-1)}`),
      );
      expect(lines).toHaveLength(4 * seen.length + pids.length + 1);
      expect(lines.at(-1)).toBe('done');
      for (const victim of victims)
        expect(await cluster.api.getJob(victim)).toMatchObject({ state: 'running', attempts: { length: 1 } });
    },
  );
});

/**
 * Stands in for `muster coordinator` and `muster agent` in the tests of `muster up`: serves just enough to be found
 * online, and writes what happens to `history` in the data directory.
 */
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';

const [role, ...flags] = process.argv.slice(2);
const flag = (name: string) => flags[flags.indexOf(name) + 1] ?? '';
const dataDir = flag('--data');

const upDir = role === 'coordinator' ? dataDir : dirname(dirname(dataDir));
const name = role === 'coordinator' ? 'coordinator' : basename(dataDir);
const note = (what: string) => appendFileSync(join(upDir, 'history'), `${name} ${what}\n`);

function end(): void {
  note('stopped');
  rmSync(join(dataDir, 'online'), { force: true });
  process.exit(0);
}
process.on('SIGTERM', end);
process.on('disconnect', end);

if (role === 'coordinator' && existsSync(join(dataDir, 'refuse'))) {
  process.send?.({
    kind: 'failed',
    message: readFileSync(join(dataDir, 'refuse'), 'utf8'),
    hints: ['Try harder.'],
  });
  process.exitCode = 3;
  process.disconnect();
} else if (role === 'coordinator') {
  // Only here: it loads all that speaks gRPC, and an agent of this kind needs none of it.
  const { aJob, aNode, fakeToken, startFakeCoordinator, wire } = await import('./fakeCoordinator.ts');
  const agentsDir = join(dataDir, 'agents');
  const { address } = await startFakeCoordinator(
    {
      CreateJoinToken: (request: { nodeName: string }) => ({
        token: `join ${request.nodeName}`,
        expiresAtMs: 0,
      }),
      // Of a node whose file says `expired` the credential is good no more.
      ListCredentials: () => ({
        credentials: readdirSync(agentsDir)
          .filter((node) => existsSync(join(agentsDir, node, 'credential')))
          .map((node) => {
            const credential = { id: `agent:${node}:1`, kind: 'agent', node, createdAtMs: 0, openCalls: 0 };
            return existsSync(join(agentsDir, node, 'expired'))
              ? { ...credential, expiresAtMs: 1 }
              : credential;
          }),
      }),
      ListNodes: () => ({
        nodes: readdirSync(agentsDir)
          .filter((node) => existsSync(join(agentsDir, node, 'online')))
          .map((node) => wire.node(aNode({ name: node }))),
      }),
      ListJobs: () => ({
        jobs: existsSync(join(dataDir, 'busy')) ? [wire.job(aJob({ state: 'running' }))] : [],
      }),
    },
    flag('--listen'),
  );
  writeFileSync(join(dataDir, 'admin.token'), fakeToken);
  writeFileSync(
    join(dataDir, 'connection.json'),
    JSON.stringify({ addr: address, tokenFile: 'admin.token' }),
  );
  writeFileSync(join(dataDir, 'coordinator.flags'), JSON.stringify(flags));
  const given = ['--prometheus-url', '--prices', '--watch-dir', '--nats', '--nats-ca', '--nats-replicas'];
  const outside = given.filter((each) => flags.includes(each)).map(flag);
  note(['serves', ...(outside.length === 0 ? [] : ['with', ...outside])].join(' '));
  process.send?.({ kind: 'serving', address });
} else {
  mkdirSync(dataDir, { recursive: true });
  const token = process.env['MUSTER_JOIN_TOKEN'];
  if (token !== undefined) writeFileSync(join(dataDir, 'credential'), JSON.stringify({ joined: true }));
  writeFileSync(join(dataDir, 'flags'), JSON.stringify(flags));
  writeFileSync(join(dataDir, 'online'), String(process.pid));
  note(
    `started with ${token ?? 'its credential'}, ${flags.includes('--gpus') ? flag('--gpus') : 'detected'} GPUs`,
  );
  process.send?.({ kind: 'serving', address: null });
  setInterval(() => {}, 60_000);
}

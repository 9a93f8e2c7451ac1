/** A secret from the command line to the tasks that name it, and nowhere else. */
import { execFileSync } from 'node:child_process';
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { ensureTestImage } from '../support/images.ts';
import { tempDir, waitFor } from '../support/services.ts';

const canary = 'canary-7f3a9c51e2d84b06';
let cluster: Cluster;
/** What containers may mount. */
let shared = '';
beforeAll(async () => {
  shared = tempDir('gate').path;
  chmodSync(shared, 0o777);
  cluster = await startCluster({ nodes: 1, agentFlags: () => ['--mount-root', shared] });
  for (const name of ['wandb', 'ssh'])
    expect(await cluster.muster(['secret', 'set', name], { stdin: `${canary}-${name}\n` })).toMatchObject({
      exitCode: 0,
      stdout: `${name} of project default is stored.\n`,
    });
});

/** Files below a directory that hold the value. */
function holders(directory: string): readonly string[] {
  return readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => readIfThere(path).includes(canary));
}

/** Empty: it was removed meanwhile. */
function readIfThere(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}

test('a task reads its secrets, and nobody reads them in what it prints, or on a disk afterwards', async () => {
  const command =
    'echo "file $(cat $MUSTER_SECRETS_DIR/ssh) variable $KEY"; printf "begun %.10s" $KEY; sleep 0.3; ' +
    'printf "%s\\n" "${KEY#??????????}"; ' +
    // What libraries write down about a failure, beside the output.
    'echo "{\\"message\\": \\"torch.cuda.OutOfMemoryError: CUDA out of memory with $KEY\\"}" > "$TORCHELASTIC_ERROR_FILE"; ' +
    'echo "$KEY" > "${TORCH_NCCL_DEBUG_INFO_TEMP_FILE}0"; ' +
    'echo "torch.cuda.OutOfMemoryError: CUDA out of memory with $KEY"; exit 1';
  const spec = { command, secrets: ['ssh', 'KEY=wandb'], retry: { max_attempts: 1 } };
  const { id, state } = await cluster.run(spec);
  expect(state).toBe('failed');
  const hidden = '*'.repeat(`${canary}-wandb`.length);
  const output = await waitFor('all of its output', () => cluster.output(id), {
    until: (text) => text.includes('out of memory'),
  });
  expect(output).toBe(
    `file ${'*'.repeat(`${canary}-ssh`.length)} variable ${hidden}\nbegun ${hidden}\n` +
      `torch.cuda.OutOfMemoryError: CUDA out of memory with ${hidden}\n`,
  );
  for (const words of [
    ['job', id],
    ['job', id, '-o', 'json'],
    ['explain', id],
    ['diagnose', id],
    ['logs', id],
    ['events', '--since', '0', '-o', 'json'],
    ['secret', 'list', '-o', 'json'],
  ]) {
    const { stdout, stderr } = await cluster.muster(words);
    expect(stdout + stderr, words.join(' ')).not.toContain(canary);
  }
  expect((await cluster.muster(['explain', id])).stdout).toContain('cuda_oom');
  const backup = join(cluster.workDir, 'backup');
  expect(await cluster.muster(['backup', backup])).toMatchObject({ exitCode: 0 });
  // The node's copy of the output stays until the coordinator has it.
  await waitFor('the value is in no file of the cluster', () => holders(cluster.workDir), {
    until: (paths) => paths.length === 0,
  });
  expect(holders(cluster.dataDir)).toEqual([]);
  expect(holders(cluster.agentsDir)).toEqual([]);
  expect(holders('/dev/shm').filter((path) => path.includes(id))).toEqual([]);
});

test('a container reads its secrets over a kill of the agent, and its engine never has them', async () => {
  const image = await ensureTestImage();
  const command =
    'echo "file $(cat $MUSTER_SECRETS_DIR/ssh) variable $KEY"; stat -c %a $MUSTER_SECRETS_DIR; ' +
    'touch $MUSTER_SECRETS_DIR/x || echo closed; while [ ! -e /gate/open ]; do sleep 0.05; done; ' +
    'echo "RuntimeError: no $KEY"; exit 1';
  const spec = {
    command,
    image,
    volumes: [`${shared}:/gate`],
    secrets: ['ssh', 'KEY=wandb'],
    retry: { max_attempts: 1 },
  };
  const id = await cluster.submit(spec);
  const hidden = '*'.repeat(`${canary}-wandb`.length);
  const begun = await cluster.untilOutput(id, 'closed\n');
  expect(begun).toMatch(
    new RegExp(`^file \\*+ variable ${hidden.replaceAll('*', '\\*')}\\n755\\n.*closed\\n$`, 's'),
  );
  const container = `muster-${id}-1-0`;
  const ofEngine = ['inspect', 'logs', 'diff'].map((words) =>
    execFileSync('docker', [words, container], { encoding: 'utf8' }),
  );
  const containerId = execFileSync('docker', ['inspect', '-f', '{{.Id}}', container], {
    encoding: 'utf8',
  }).trim();
  const root = execFileSync('docker', ['info', '-f', '{{.DockerRootDir}}'], { encoding: 'utf8' }).trim();
  expect(ofEngine.join()).not.toContain(canary);
  expect(holders(join(root, 'containers', containerId))).toEqual([]);

  await cluster.agent(0).kill();
  expect(await cluster.muster(['secret', 'rotate-key'])).toMatchObject({ exitCode: 0 });
  writeFileSync(join(shared, 'open'), '');
  await cluster.agent(0).start();
  expect(await cluster.untilEnded(id)).toMatchObject({ state: 'failed', attempts: { length: 1 } });
  expect(await cluster.output(id)).toMatch(/RuntimeError: no \*+\n$/);
  for (const words of [
    ['job', id, '-o', 'json'],
    ['explain', id],
    ['diagnose', id],
    ['events', '--since', '0', '-o', 'json'],
  ]) {
    const { stdout, stderr } = await cluster.muster(words);
    expect(stdout + stderr, words.join(' ')).not.toContain(canary);
  }
  await waitFor('the value is in no file of the cluster', () => holders(cluster.workDir), {
    until: (paths) => paths.length === 0,
  });
  expect(holders('/dev/shm').filter((path) => path.includes(id))).toEqual([]);
});

test('values survive a restart and the rotation of the key, and a job names no secret that is not there', async () => {
  const rotated = await cluster.muster(['secret', 'rotate-key']);
  expect(rotated.stdout).toBe('The key is replaced, and 2 secrets are encrypted with it.\n');
  await cluster.coordinator.kill();
  await cluster.coordinator.start();
  await cluster.untilOnline();
  const check = `test "$(cat $MUSTER_SECRETS_DIR/ssh)" = ${canary}-ssh`;
  expect(await cluster.run({ command: check, secrets: ['ssh'] })).toMatchObject({ state: 'succeeded' });
  expect(await cluster.muster(['secret', 'remove', 'ssh'])).toMatchObject({ exitCode: 0 });
  const refused = await cluster.muster(['submit', '--secret', 'ssh', '--', 'true']);
  expect(refused.stderr).toContain('project default has no secret ssh; to store it: muster secret set ssh');
});

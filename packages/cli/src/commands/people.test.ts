/** Commands about users, projects and logins, against a coordinator that answers as the test says. */
import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { exitCodes } from '../exitCodes.ts';
import { runCli } from '../program.ts';
import { fakeLoginCode, fakeToken, fakeUserToken, submittedAtMs } from '../testing/fakeCoordinator.ts';
import { fakeCoordinator, newCall, run } from '../testing/testContext.ts';

const code = fakeLoginCode;
const expiresAtMs = submittedAtMs + 60_000 + 24 * 60 * 60_000 - 200;
const user = { name: 'ann', role: 'user', projects: ['vision'], createdAtMs: submittedAtMs };

test('user add prints the code alone on stdout', async () => {
  const answers = { AddUser: () => user, CreateLoginCode: () => ({ code, expiresAtMs }) };
  const added = await run(['user', 'add', 'ann', '--project', 'vision'], answers);
  expect(added.stdout).toBe(`${code}\n`);
  expect(added.stderr.replace(/127\.0\.0\.1:\d+/, 'ADDRESS')).toBe(
    'ann: user; vision.\nThe code works once, for 1 d; ann enters it at the prompt of:\n  muster login ADDRESS\n',
  );
  expect(added.requests).toMatchObject([
    { request: { name: 'ann', role: 'user', projects: ['vision'] } },
    { request: { user: 'ann' } },
  ]);
  const program = await run(['user', 'add', 'ci', '--role', 'viewer', '--no-login'], answers);
  expect(program.stdout).toBe('');
  expect(program.stderr).toContain('muster token issue LABEL --user ci');
  expect(program.requests).toHaveLength(1);
  expect(await run(['user', 'add', 'ann', '--role', 'root'], answers)).toMatchObject({
    exitCode: exitCodes.usage,
    requests: [],
  });
});

test('user list, set, code and remove', async () => {
  const listed = await run(['user'], { ListUsers: () => ({ users: [user] }) });
  expect(listed.stdout.split('\n')[1]?.split(/ {2,}/)).toEqual(['ann', 'user', 'vision', '1 min ago']);
  const set = await run(['user', 'set', 'ann', '--role', 'viewer'], {
    ChangeUser: () => ({ ...user, role: 'viewer' }),
  });
  expect(set).toMatchObject({
    stdout: 'ann: viewer; vision.\n',
    requests: [{ request: { role: 'viewer', projects: [] } }],
  });
  const another = await run(['user', 'code', 'ann'], { CreateLoginCode: () => ({ code, expiresAtMs }) });
  expect(another.stdout).toBe(`${code}\n`);
  const removed = await run(['user', 'remove', 'ann'], { RemoveUser: () => ({}) });
  expect(removed.stdout).toBe('ann is removed.\n');
});

test('project set wants one of two words', async () => {
  const SetProject = () => ({ name: 'vision', isPrivate: true });
  expect((await run(['project', 'set', 'vision', '--private'], { SetProject })).stdout).toBe(
    'vision is private.\n',
  );
  expect((await run(['project', 'set', 'vision'], { SetProject })).exitCode).toBe(exitCodes.usage);
  const projects = [{ name: 'vision', isPrivate: true }];
  expect((await run(['project'], { ListProjects: () => ({ projects }) })).stdout).toMatch(/vision +private/);
});

test('token issue sends the limits, and prints the token alone', async () => {
  const CreateUserToken = () => ({ id: 'user:ann:1', token: 'muster_user_x', expiresAtMs });
  const words = ['token', 'issue', 'ci', '--user', 'ann', '--allow', 'read,submit', '--expires', '2d'];
  const { stdout, requests } = await run(words, { CreateUserToken });
  expect(stdout).toBe('muster_user_x\n');
  const lifetimeMs = 2 * 24 * 60 * 60_000;
  expect(requests).toMatchObject([
    { request: { user: 'ann', label: 'ci', projects: [], verbs: ['read', 'submit'], lifetimeMs } },
  ]);
  const wrong = await run(['token', 'issue', 'ci', '--allow', 'fly'], { CreateUserToken });
  expect(wrong).toMatchObject({ exitCode: exitCodes.usage, requests: [] });
});

test('token issue sends a budget, and token show tells what is left of it', async () => {
  const CreateUserToken = () => ({ id: 'user:ann:1', token: 'muster_user_x', expiresAtMs });
  const words = 'token issue agent --gpu-hours 1.5 --max-gpus 4 --max-total-jobs 9 --max-priority 50'.split(
    ' ',
  );
  const { requests } = await run(words, { CreateUserToken });
  expect(requests).toMatchObject([
    { request: { label: 'agent', budget: { gpuHours: 1.5, gpus: 4, jobsTotal: 9, priority: 50 } } },
  ]);
  const wrong = await run(['token', 'issue', 'agent', '--gpu-hours', 'many'], { CreateUserToken });
  expect(wrong.stderr).toContain('--gpu-hours takes a number of hours such as 100 or 0.5; got "many"');

  const GetCaller = () => ({
    id: 'user:ann:1',
    kind: 'user',
    user: 'ann',
    role: 'user',
    verbs: ['read', 'submit'],
    budget: { gpuHours: 1.5, gpus: 4, priority: 50 },
    used: { gpuHours: 0.504, gpus: 5, jobs: 2, jobsTotal: 3 },
  });
  const { stdout } = await run(['token', 'show'], { GetCaller });
  expect(stdout).toBe(
    'user:ann:1, of ann (user)\nallows read, submit\n' +
      'left of its budget: 1 of 1.5 GPU-hours, 0 of 4 GPUs, priority up to 50\n',
  );
  const unlimited = await run(['token', 'show'], {
    GetCaller: () => ({ ...GetCaller(), budget: null, used: null }),
  });
  expect(unlimited.stdout).toContain('no budget: not limited');
});

test('login saves the token for this user alone, and later commands use it', async () => {
  const answers = {
    Login: () => ({ user, clusterId: 'c', expiresAtMs }),
    ListUsers: () => ({ users: [user] }),
  };
  const coordinator = await fakeCoordinator(answers);
  const call = newCall(null, { stdin: `${code}\n` });
  const { contextsPath } = call.context.environment;
  expect(await runCli(['login', coordinator.address], call.context)).toBe(exitCodes.ok);
  expect(call.stdout()).toContain(`Logged in to ${coordinator.address} as ann (user; vision), for 1 d.`);
  expect(statSync(contextsPath).mode & 0o777).toBe(0o600);
  const saved = JSON.parse(readFileSync(contextsPath, 'utf8'));
  const { token } = saved.contexts['127.0.0.1'];
  expect(saved).toEqual({
    current: '127.0.0.1',
    contexts: { '127.0.0.1': { address: coordinator.address, token, ca: null, user: 'ann' } },
  });
  expect(token).toMatch(/^muster_user_[\w-]{43}$/);
  expect(coordinator.requests).toMatchObject([{ request: { token } }]);
});

const savedAs = (path: string, token: string, address: string) => {
  mkdirSync(dirname(path), { recursive: true });
  const lab = { address, token, ca: null, user: 'ann' };
  writeFileSync(path, JSON.stringify({ current: 'lab', contexts: { lab } }), { mode: 0o600 });
};

test('the context in use is where commands go, unless another is named', async () => {
  const coordinator = await fakeCoordinator({ ListUsers: () => ({ users: [user] }) });
  const call = newCall(null);
  savedAs(call.context.environment.contextsPath, fakeToken, coordinator.address);
  expect(await runCli(['user'], call.context)).toBe(exitCodes.ok);
  expect(await runCli(['user', '--context', 'lab'], call.context)).toBe(exitCodes.ok);
  expect(await runCli(['user', '--context', 'none'], call.context)).toBe(exitCodes.usage);
  expect(call.stderr()).toContain('there is no context "none"');
  expect(await runCli(['user', '--context', 'local'], call.context)).toBe(exitCodes.unreachable);
  expect(await runCli(['context'], call.context)).toBe(exitCodes.ok);
  expect(call.stdout()).toMatch(/lab \(in use\) +127\.0\.0\.1:\d+ +ann\n/);
  expect(await runCli(['context', 'use', 'local'], call.context)).toBe(exitCodes.ok);
  expect(await runCli(['user'], call.context)).toBe(exitCodes.unreachable);
});

test('a file of tokens that others may read is refused', async () => {
  const call = newCall(null);
  const { contextsPath } = call.context.environment;
  savedAs(contextsPath, fakeToken, '127.0.0.1:1');
  chmodSync(contextsPath, 0o644);
  expect(await runCli(['user'], call.context)).not.toBe(exitCodes.ok);
  expect(call.stderr()).toContain('other users of this machine may read it');
  expect(call.stderr()).toContain(`chmod 600 ${contextsPath}`);
});

test('a token is rotated only where its context can be read, and shown where that cannot be written', async () => {
  const call = newCall(null);
  const { contextsPath } = call.context.environment;
  const directory = dirname(contextsPath);
  const answers = {
    RotateUserToken: () => {
      rmSync(directory, { recursive: true });
      writeFileSync(directory, '');
      return { id: 'user:ann:2', token: 'muster_user_new', name: 'ann' };
    },
  };
  const coordinator = await fakeCoordinator(answers);
  savedAs(contextsPath, fakeToken, coordinator.address);
  chmodSync(contextsPath, 0o644);
  expect(await runCli(['token', 'rotate', 'user:ann:1'], call.context)).not.toBe(exitCodes.ok);
  expect(coordinator.requests).toEqual([]);
  savedAs(contextsPath, fakeUserToken, coordinator.address);
  chmodSync(contextsPath, 0o600);
  expect(await runCli(['token', 'rotate'], call.context)).not.toBe(exitCodes.ok);
  expect(call.stdout()).toBe('muster_user_new\n');
  expect(call.stderr()).toContain('the context lab still has the earlier token');
});

test('context remove ends the token, and forgets it even when the coordinator is away', async () => {
  const coordinator = await fakeCoordinator({ RevokeCredential: () => ({ ids: ['user:ann:1'] }) });
  const call = newCall(null);
  const { contextsPath } = call.context.environment;
  savedAs(contextsPath, fakeToken, coordinator.address);
  expect(await runCli(['context', 'remove', 'lab'], call.context)).toBe(exitCodes.ok);
  expect(call.stdout()).toBe('lab is removed, and its token has ended.\n');
  expect(coordinator.requests).toMatchObject([
    { request: { name: expect.stringMatching(/^user:ann:[0-9a-f]{16}$/) } },
  ]);
  savedAs(contextsPath, fakeToken, '127.0.0.1:1');
  expect(await runCli(['context', 'remove', 'lab'], call.context)).toBe(exitCodes.ok);
  expect(call.stderr()).toContain('Its token could not be revoked');
  expect(JSON.parse(readFileSync(contextsPath, 'utf8'))).toEqual({ current: null, contexts: {} });
});

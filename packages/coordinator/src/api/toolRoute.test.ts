/** The tools over streamable HTTP, with the official client: who calls, what they are offered, and what their budget allows. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { Verb } from '@muster/common/people';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { submitJob } from '../rpc/jobFixture.ts';

let coordinator: TestCoordinator;

beforeAll(async () => {
  coordinator = await startTestCoordinator({ api: {} });
  await coordinator.api.addUser({ name: 'ann', role: 'user', projects: [] });
});
afterAll(() => coordinator.close());

async function tokenOf(verbs: readonly Verb[], jobs: number | null = null): Promise<string> {
  const none = { gpuHours: null, gpus: null, jobsTotal: null, priority: null };
  const budget = jobs === null ? null : { ...none, jobs };
  return (await coordinator.api.createUserToken({ user: 'ann', label: 'agent', projects: [], verbs, budget }))
    .token;
}

async function clientWith(token: string, headers: Readonly<Record<string, string>> = {}): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  onTestFinished(() => client.close());
  const transport = new StreamableHTTPClientTransport(new URL(`${coordinator.apiUrl}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${token}`, ...headers } },
  });
  await client.connect(transport);
  return client;
}

async function call(client: Client, name: string, given: Record<string, unknown> = {}) {
  const { content, structuredContent, isError = false } = await client.callTool({ name, arguments: given });
  return {
    data: structuredContent,
    isError,
    text: content.map((part) => (part.type === 'text' ? part.text : '')).join(''),
  };
}

test('submits and shows as the user of the token', async () => {
  const client = await clientWith(await tokenOf(['read', 'submit', 'change']));
  const { data } = await call(client, 'workload_submit', { command: ['true'], name: 'over-http' });
  const { workloadId } = data as { workloadId: string };
  expect(await coordinator.api.getJob(workloadId)).toMatchObject({ name: 'over-http', user: 'ann' });
  expect(await call(client, 'workload_get', { workloadId })).toMatchObject({
    data: { state: 'queued', user: 'ann' },
  });
  const events = await call(client, 'events_since', { subject: workloadId, sinceSeq: 0, waitSeconds: 5 });
  expect(events).toMatchObject({ data: { events: [{ kind: 'job.submitted' }] } });
  const page = await client.readResource({ uri: `muster://workloads/${workloadId}/status` });
  expect(page.contents[0]).toMatchObject({ text: expect.stringContaining('over-http') });
});

test('a repeated extension with the same id adds once, and without one each call adds', async () => {
  const client = await clientWith(await tokenOf(['read', 'submit', 'change']));
  const { data } = await call(client, 'workload_submit', { command: ['true'], maxRuntimeSeconds: 100 });
  const { workloadId } = data as { workloadId: string };
  const extended = async (more: object) =>
    (await call(client, 'workload_extend', { workloadId, seconds: 10, ...more })).data;
  for (let time = 0; time < 2; time += 1)
    expect(await extended({ requestId: 'once' })).toMatchObject({ maxRuntimeSeconds: 110 });
  expect(await extended({})).toMatchObject({ maxRuntimeSeconds: 120 });
  expect(await extended({})).toMatchObject({ maxRuntimeSeconds: 130 });
});

test('offers what the token may call; what it names all the same is refused', async () => {
  const client = await clientWith(await tokenOf(['read']));
  const names = (await client.listTools()).tools.map(({ name }) => name);
  expect(names).toContain('workload_list');
  expect(names).not.toContain('workload_submit');
  await expect(call(client, 'workload_submit', { command: ['true'] })).rejects.toThrow('workload_submit');
});

test('the budget of the token holds here too, with the figures', async () => {
  const client = await clientWith(await tokenOf([], 1));
  await call(client, 'workload_submit', { command: ['true'] });
  expect(await call(client, 'workload_submit', { command: ['true'] })).toMatchObject({
    isError: true,
    text: expect.stringMatching(
      /^error resource_exhausted: the budget of this token allows 1 jobs at a time: 1 asked for, 0 left, 1 used\nNext: /,
    ),
  });
});

test('another user of a private project sees nothing of a job, not that it exists', async () => {
  await coordinator.api.setProject({ name: 'secret', isPrivate: true });
  const id = await submitJob(coordinator, 'secret', JSON.stringify({ command: ['true'], project: 'secret' }));
  const client = await clientWith(await tokenOf(['read']));
  expect(await call(client, 'workload_get', { workloadId: id })).toMatchObject({
    isError: true,
    text: expect.stringMatching(/^error not_found/),
  });
});

test('without a valid token, or from a page of another origin, nothing is answered', async () => {
  await expect(clientWith('muster_user_nobody')).rejects.toThrow(/unknown to this coordinator/);
  await expect(clientWith(await tokenOf(['read']), { origin: 'https://evil.example' })).rejects.toThrow(
    /origin/,
  );
});

test('a request that is no message is refused, and the server goes on', async () => {
  const headers = {
    authorization: `Bearer ${await tokenOf(['read'])}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  };
  const post = (body: string) => fetch(`${coordinator.apiUrl}/mcp`, { method: 'POST', headers, body });
  for (const body of ['', '{', '[]', 'null', '{"jsonrpc":"2.0"}', `[${'['.repeat(50_000)}`]) {
    const answer = await post(body);
    expect(answer.status, body.slice(0, 20)).toBeGreaterThanOrEqual(400);
    expect(answer.status, body.slice(0, 20)).toBeLessThan(500);
    expect(await answer.text()).not.toMatch(/\n\s+at /);
  }
  expect((await post(`"${'x'.repeat(400 * 1024)}"`)).status).toBe(413);
  expect((await fetch(`${coordinator.apiUrl}/mcp`, { headers })).status).toBe(405);
});

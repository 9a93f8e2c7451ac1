/** Every method with every kind of credential: the same rules hold however the coordinator is reached. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { agentHubService, musterService } from '@muster/common/wire/service';
import type { ChannelTarget } from '@muster/common/wire/trust';
import { isForAnyone, listedPaths } from '@muster/coordinator/auth/policy';
import { describe, expect, test } from 'vitest';
import type { Cluster } from './cluster.ts';
import { patienceMs } from './patience.ts';
import { type Answer, bearerOf, callMethod, endlessCallMs } from './rawCalls.ts';

/** What one of the cluster's agents proves itself by: a secret, or with TLS the private key of its certificate. */
export function credentialOfAgent(
  cluster: Cluster,
  name: string,
): { readonly credential: string; readonly certificate?: string | null } {
  return JSON.parse(readFileSync(join(cluster.agentsDir, name, 'credential'), 'utf8'));
}

/** Where the cluster is reached as one of its agents, or by a token. */
export function targetOf(cluster: Cluster, agent: string | null = null): ChannelTarget {
  const target = { address: cluster.address, caCertificate: cluster.caCertificate };
  if (agent === null) return target;
  const { credential, certificate } = credentialOfAgent(cluster, agent);
  return certificate == null ? target : { ...target, identity: { privateKey: credential, certificate } };
}

/** What an agent sends with each call: its secret, unless its connection shows its certificate. */
function headersOfAgent(cluster: Cluster, name: string): Readonly<Record<string, string>> {
  const { credential, certificate } = credentialOfAgent(cluster, name);
  return certificate == null ? bearerOf(credential) : {};
}

/** A test beside the policy tries those that anyone may call. */
const adminPaths = Object.values(musterService).flatMap(({ path }) => (isForAnyone(path) ? [] : [path]));
const agentPaths = Object.values(agentHubService).map(({ path }) => path);
const loginPath = musterService.Login.path;
const rotatePath = '/muster.v1.Muster/RotateAdminToken';
const joinPath = agentHubService.Join.path;
const openPaths = [
  ...['Check', 'Watch', 'List'].map((method) => `/grpc.health.v1.Health/${method}`),
  ...['v1', 'v1alpha'].map((version) => `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`),
];
const allPaths = [...adminPaths, ...agentPaths, ...openPaths];

/** @param cluster has a node called node-1; asked when the tests run */
export function describeCallRules(cluster: () => Cluster): void {
  const call = (
    path: string,
    headers: Readonly<Record<string, string>>,
    agent: string | null = null,
    timeoutMs = patienceMs,
  ): Promise<Answer> => callMethod(targetOf(cluster(), agent), path, headers, { timeoutMs });

  /** There are more wrong calls here than an address may make at once. One that is held up for that is made again. */
  const callUntilJudged = async (
    path: string,
    headers: Readonly<Record<string, string>>,
  ): Promise<Answer> => {
    for (;;) {
      const answer = await call(path, headers);
      if (!answer.status.startsWith('RESOURCE_EXHAUSTED: too many calls without a valid token'))
        return answer;
      await delay(500);
    }
  };

  test('the methods tried here are all there are', () => {
    expect(adminPaths.length).toBeGreaterThan(10);
    expect(agentPaths).toHaveLength(6);
    const guarded = listedPaths().filter((path) => !isForAnyone(path));
    expect(allPaths.toSorted()).toEqual(guarded.toSorted());
  });

  describe('a call to any method', () => {
    const credentials: Readonly<Record<string, () => Promise<Readonly<Record<string, string>>>>> = {
      'no token': async () => ({}),
      'a wrong token': async () => bearerOf(`muster_admin_${randomBytes(32).toString('base64url')}`),
      'an empty token': async () => bearerOf(''),
      'another scheme': async () => ({ authorization: `Basic ${cluster().adminToken}` }),
      'no token, and an identity of its own making': async () => ({ 'muster-identity': '{"kind":"admin"}' }),
      // With TLS it is the key of a certificate that this connection does not show.
      "an agent's key": async () =>
        bearerOf(credentialOfAgent(cluster(), 'node-1').credential.split('\n')[1] ?? ''),
      'the token in the wrong place': async () => ({ 'muster-token': cluster().adminToken }),
    };

    test.each(Object.entries(credentials))('with %s is UNAUTHENTICATED', async (_what, headers) => {
      const given = await headers();
      const answers = allPaths.map(async (path) => ({
        path,
        ...(await callUntilJudged(path, given)),
      }));
      for (const { path, status } of await Promise.all(answers))
        expect(status, path).toMatch(/^UNAUTHENTICATED: /);
    });

    const roles: Readonly<
      Record<
        string,
        {
          headers: () => Promise<Readonly<Record<string, string>>>;
          agent?: string;
          may: readonly string[];
        }
      >
    > = {
      'the admin token': {
        headers: async () => bearerOf(cluster().adminToken),
        may: [...adminPaths.filter((path) => path !== loginPath), ...openPaths],
      },
      "an agent's credential": {
        agent: 'node-1',
        headers: async () => headersOfAgent(cluster(), 'node-1'),
        may: [...agentPaths.filter((path) => path !== joinPath), ...openPaths],
      },
      "an agent's credential, and the identity of an admin": {
        agent: 'node-1',
        headers: async () => ({
          ...headersOfAgent(cluster(), 'node-1'),
          'muster-identity': '{"kind":"admin"}',
        }),
        may: [...agentPaths.filter((path) => path !== joinPath), ...openPaths],
      },
      'a login code': {
        headers: async () => {
          const { api } = cluster();
          const users = await api.listUsers();
          if (!users.some(({ name }) => name === 'ann'))
            await api.addUser({ name: 'ann', role: 'user', projects: [] });
          return bearerOf((await api.createLoginCode('ann')).code);
        },
        may: [loginPath],
      },
      'a join token': {
        headers: async () => bearerOf((await cluster().api.createJoinToken('not-there-yet')).token),
        may: [joinPath],
      },
    };

    test.each(Object.entries(roles))(
      'with %s is allowed where its role is, and PERMISSION_DENIED elsewhere',
      async (_what, role) => {
        const headers = await role.headers();
        // It would end the very token that the others are tried with; that it does is tried beside it.
        const isTried = (path: string) => path !== rotatePath || !role.may.includes(path);
        const answers = allPaths.filter(isTried).map(async (path) => ({
          path,
          ...(await call(path, headers, role.agent, role.may.includes(path) ? endlessCallMs : patienceMs)),
        }));
        for (const { path, status } of await Promise.all(answers)) {
          const refusal =
            /^PERMISSION_DENIED: this (?:token|certificate) \(\w+\) may not call |^UNAUTHENTICATED/;
          if (role.may.includes(path)) expect(status, path).not.toMatch(refusal);
          else expect(status, path).toMatch(/^PERMISSION_DENIED: this (?:token|certificate)/);
        }
      },
    );

    test('that does not exist is refused too', async () => {
      const path = '/muster.v1.Muster/NoSuchMethod';
      expect((await call(path, {})).status).not.toBe('OK');
      expect((await call(path, bearerOf(cluster().adminToken))).status).toMatch(/^UNIMPLEMENTED/);
    });
  });
}

/**
 * What it costs to establish who calls: with one user and one token, and with 1,000 users and 10,000 tokens, in turn in the same
 * run. First the look-up itself, with the hash of the token; then a cheap call over the wire, which does that too.
 */
import { connectMuster } from '@muster/common/wire/client';
import { hashToken } from '@muster/coordinator/auth/tokens';
import { addCredential, startTestCoordinator } from '@muster/coordinator/coordinatorFixture';
import { someMs } from '@muster/coordinator/modelFixture';
import { Memory } from '@muster/coordinator/store/memory/memoryStore';
import { quietMachine, report, reportMachine, rounded, summary } from './support.ts';

const rounds = 20;
const lookUpsPerRound = 20_000;
const callsPerRound = 100;

async function coordinatorWith(users: number, tokensEach: number) {
  const memory = new Memory('bench');
  const tokens: string[] = [];
  for (let user = 0; user < users; user += 1) {
    const name = `user-${user}`;
    memory.users.set(name, { name, role: 'viewer', projects: ['default'], createdAtMs: someMs });
    for (let count = 0; count < tokensEach; count += 1) {
      const token = `muster_user_${String(tokens.length).padStart(43, '0')}`;
      tokens.push(token);
      const id = `user:${name}:${count}`;
      addCredential(memory, { id, kind: 'user', subject: name, secretHash: hashToken(token) });
    }
  }
  const coordinator = await startTestCoordinator({ memory });
  // The token of a client in the middle of them all.
  const token = tokens[Math.floor(tokens.length / 2)] ?? '';
  const api = connectMuster({ address: coordinator.address, token });
  return { coordinator, tokens, api, users, lookUpUs: [] as number[], callMs: [] as number[] };
}

reportMachine();
const busyPercent = await quietMachine(10);
const sides = [await coordinatorWith(1, 1), await coordinatorWith(1_000, 10)];

for (let round = 0; round < rounds; round += 1) {
  for (const { coordinator, tokens, api, lookUpUs, callMs } of sides) {
    const startedMs = performance.now();
    for (let count = 0; count < lookUpsPerRound; count += 1) {
      const token = tokens[count % tokens.length] ?? '';
      if (coordinator.gate.identify(hashToken(token), null) === null) throw new Error(`${token} is unknown`);
    }
    lookUpUs.push(((performance.now() - startedMs) / lookUpsPerRound) * 1_000);
    for (let count = 0; count < callsPerRound; count += 1) {
      const calledMs = performance.now();
      await api.listProjects();
      // The first round opens the connections and warms the code up.
      if (round > 0) callMs.push(performance.now() - calledMs);
    }
  }
}

for (const { users, tokens, lookUpUs, callMs } of sides) {
  const size = { users, tokens: tokens.length, busyPercent };
  report('look-up of a token, with its hash', { ...size, unit: 'µs', ...summary(lookUpUs) });
  report('ListProjects over the wire', { ...size, unit: 'ms', ...summary(callMs) });
}
const [one, many] = sides.map(({ lookUpUs }) => summary(lookUpUs)['p50'] ?? 0);
report('look-up: many tokens beside one', { ratio: rounded((many ?? 0) / (one ?? 1)) });
for (const { api, coordinator } of sides) {
  api.close();
  await coordinator.close();
}

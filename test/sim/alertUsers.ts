/** People who set alerts, silence and acknowledge what fires, and delete what they no longer want. */
import type { Client } from './client.ts';
import type { Random } from './random.ts';
import type { Timeline } from './timeline.ts';

/** States that alerts look for. */
const states = ['queued', 'starting', 'running', 'failed', 'failed', 'cancelled', 'succeeded'] as const;
const meanPauseMs = 2_500;

interface ListedAlert {
  readonly name: string;
  readonly firing: readonly { readonly subject: string }[];
}

export async function watchWithAlerts(
  client: Client,
  random: Random,
  timeline: Timeline,
  untilMs: number,
): Promise<void> {
  const names: string[] = [];
  for (let count = 1; timeline.nowMs < untilMs; count += 1) {
    await client.pause(random.waitMs(meanPauseMs));
    const what = random.next();
    if (what < 0.45 || names.length === 0) {
      const name = `alert-${count}`;
      const condition = `workload_state == '${random.pick(states)}'`;
      const forMs = random.pick([0, 0, 0, 2_000]);
      names.push(name);
      await client.callUntilAnswered('CreateAlert', { name, condition, labels: {}, forMs, dryRun: false });
    } else if (what < 0.6) {
      const [name] = names.splice(random.between(0, names.length - 1), 1);
      await client.callUntilAnswered('DeleteAlert', { name });
    } else if (what < 0.75) {
      const silence = { name: random.pick(names), forMs: random.pick([0, 3_000, 10_000]), reason: '' };
      await client.callUntilAnswered('SilenceAlert', silence);
    } else await acknowledgeOne(client, random);
  }
}

async function acknowledgeOne(client: Client, random: Random): Promise<void> {
  const answer = await client.callUntilAnswered<{ alerts: ListedAlert[] }>('ListAlerts', { firing: true });
  const firing = (answer?.alerts ?? []).flatMap(({ name, firing: each }) =>
    each.map(({ subject }) => ({ name, subject })),
  );
  if (firing.length > 0) await client.callUntilAnswered('AcknowledgeAlert', random.pick(firing));
}

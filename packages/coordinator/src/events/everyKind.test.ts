/**
 * Each kind of event is seen by a test that holds it to the schema of docs/events.md: those of a job's life in the stories here, and
 * the others in the files that the table names.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EventKind } from '@muster/common/eventKinds';
import { kindsOfEvents } from '@muster/common/eventSchema';
import { expect, test } from 'vitest';
import { aCheckpoint } from '../modelFixture.ts';
import { aGang, aStory, crash, Story } from '../storyFixture.ts';

const root = join(import.meta.dirname, '../../../..');

/** Their fixtures hold what is committed to the schema; a file without one does so itself. */
const checking = /coordinatorFixture\.ts|eventSchemaFixture\.ts|support\/cluster\.ts/;

const coordinator = 'packages/coordinator/src';
const calls = `${coordinator}/rpc/callers.test.ts`;
const alerts = `${coordinator}/rpc/alerts.test.ts`;
const nodes = `${coordinator}/rpc/nodes.test.ts`;
const leases = `${coordinator}/reconcilers/leaseKeeper.test.ts`;
const restore = `${coordinator}/leases/afterRestore.test.ts`;

const seenIn: Partial<Readonly<Record<EventKind, string>>> = {
  'job.submitted': calls,
  'task.frozen': `${coordinator}/rpc/gangs.test.ts`,
  'task.thawed': `${coordinator}/rpc/gangs.test.ts`,
  'training.stats': `${coordinator}/training/gpuStats.test.ts`,
  'log.truncated': 'test/e2e/output.test.ts',
  'log.throttled': `${coordinator}/rpc/agentHub.test.ts`,
  'log.removed': calls,
  'node.joined': nodes,
  'node.online': nodes,
  'node.silent': `${coordinator}/rpc/credentials.test.ts`,
  'node.fenced': leases,
  'node.confirmed_dead': calls,
  'node.changed': nodes,
  'condition.raised': nodes,
  'condition.changed': `${coordinator}/commands/status.test.ts`,
  'condition.cleared': nodes,
  'node.clear_asked': calls,
  'node.drained': calls,
  'node.undrained': calls,
  'node.orphans_ended': calls,
  'node.duplicate_identity': `${coordinator}/rpc/continuity.test.ts`,
  'node.rejoin_allowed': calls,
  'node.removed': calls,
  'cluster.suspect': leases,
  'cluster.trusted': leases,
  'cluster.maintenance': calls,
  'clock.stepped': `${coordinator}/clock/trustedClock.test.ts`,
  'clock.settled': calls,
  'retention.removed': `${coordinator}/reconcilers/retention.test.ts`,
  'store.restored': restore,
  'store.accepted': restore,
  'store.advanced': calls,
  'alert.created': calls,
  'alert.deleted': calls,
  'alert.firing': alerts,
  'alert.repeated': alerts,
  'alert.resolved': alerts,
  'alert.acknowledged': calls,
  'alert.silenced': calls,
  'checkpoint.evaluated': `${coordinator}/evaluations/evaluationRunner.test.ts`,
  'sweep.created': calls,
  'sweep.trial_ended': `${coordinator}/rpc/sweeps.test.ts`,
  'sweep.trial_paused': `${coordinator}/rpc/sweepStops.test.ts`,
  'sweep.trial_resumed': `${coordinator}/rpc/sweepStops.test.ts`,
  'sweep.stopped': calls,
  'sweep.extended': calls,
  'sweep.ended': `${coordinator}/rpc/sweeps.test.ts`,
  'pipeline.created': calls,
  'pipeline.step_ended': `${coordinator}/rpc/pipelines.test.ts`,
  'pipeline.stopped': calls,
  'pipeline.ended': `${coordinator}/rpc/pipelines.test.ts`,
  'trigger.created': calls,
  'trigger.deleted': calls,
  'trigger.paused': calls,
  'trigger.resumed': calls,
  'trigger.blocked': `${coordinator}/triggers/dataTriggers.test.ts`,
  'trigger.unblocked': `${coordinator}/triggers/dataTriggers.test.ts`,
  'trigger.fired': `${coordinator}/triggers/triggerRunner.test.ts`,
  'project.changed': calls,
  'secret.set': calls,
  'secret.removed': calls,
  'secret.key_rotated': calls,
  'token.created': calls,
  'token.joined': calls,
  'token.expired': `${coordinator}/reconcilers/credentialUse.test.ts`,
  'token.issued': calls,
  'token.renewed': `${coordinator}/rpc/renewal.test.ts`,
  'token.revoked': calls,
  'token.rotated': calls,
  'user.added': calls,
  'user.changed': calls,
  'user.code_created': calls,
  'user.removed': calls,
};

const { attempt: _attempt, node: _node, shared, suspect: _suspect, ...facts } = aCheckpoint(100);
const foundOne = {
  found: [{ checkpoint: facts, by: null, attempt: null }],
  shared,
  problem: null,
  tookMs: 1,
};

/** Each step of a story throws where an event of it has another form than the schema says. */
function stories(): readonly Story[] {
  const on = ['exit_code', 'nan_loss'] as const;
  const retry = { max_attempts: 9, on: [...on], breaker: { failures: 2, pause: '5m' } };
  const training = aStory({ retry, on_divergence: 'stop', max_runtime: '1h' })
    .allRunning()
    .on({ kind: 'extend', byMs: 1_000 })
    .saved(50)
    .saved(100)
    .saved(110, { verdict: 'unverified', problem: 'an unknown format' })
    .saved(120, { verdict: 'corrupt', problem: 'it is cut off' })
    .saved(50, { verdict: 'gone' })
    .noticed({ kind: 'loss_spike' })
    .noticed({ kind: 'nan_loss', step: 130, lastGoodStep: 60 })
    .ended(0, crash)
    .allRunning()
    .ended(0, crash);
  const signs = (['loss_divergence', 'loss_scale_exhausted'] as const).map((kind) =>
    aStory().allRunning().noticed({ kind }),
  );
  const resume = { name: 'checkpoint-100', step: 100 };
  const resumes = (['resume_confirmed', 'resume_ignored'] as const).map((kind) =>
    aStory().allRunning({ resume }).noticed({ kind }),
  );
  const preflight = { error: null, backend: 'tcp', pairs: [], allReduceBytesPerS: null } as const;
  const measured = aGang({ preflight: { min_bandwidth_mbps: 1 } })
    .allocated({ preflight: true })
    .allPrepared();
  return [
    training,
    ...signs,
    ...resumes,
    aStory().allRunning().lost(0).allocated().prepared(0, { look: foundOne }),
    measured.checked(0, {}, { preflight }).checked(1, {}, { preflight }),
    aGang().allRunning().ended(0).ended(1),
    aGang().allRunning().preempted().ended(0).ended(1),
    aGang().requeued({ kind: 'start' }),
    aGang().allRunning().stopped().ended(0).ended(1),
    aStory().allRunning().on({ kind: 'firstStep', attempt: 1, nodeRank: 0, step: 1, atMs: 1 }),
    aGang().allRunning().hung().ended(0).ended(1),
    aStory().allRunning().on({ kind: 'trainingComplete', attempt: 1, nodeRank: 0 }),
    aStory({ phases: [{ name: 'a', steps: 1, success: 'loss < 1', extend: { steps: 1 } }] })
      .allRunning()
      .ended(0)
      .on({ kind: 'phaseJudged', attempt: 1, verdict: 'unmet', values: { loss: 2 }, notFinite: [] })
      .allRunning()
      .ended(0)
      .on({ kind: 'phaseJudged', attempt: 2, verdict: 'unknown', values: { loss: null }, notFinite: [] }),
    aStory({ retry: { max_attempts: 1 } })
      .allRunning()
      .ended(0, crash),
  ];
}

test('each kind of event is seen by a test that holds it to its schema', () => {
  const inStories = new Set<string>(stories().flatMap(({ events }) => events));
  const unseen = kindsOfEvents.filter((kind) => !inStories.has(kind) && seenIn[kind] === undefined);
  expect(unseen).toEqual([]);
  const twice = kindsOfEvents.filter((kind) => inStories.has(kind) && seenIn[kind] !== undefined);
  expect(twice, 'the table names what no story here shows').toEqual([]);
});

test.each(Object.entries(seenIn))('%s is in %s, which holds events to the schema', (kind, path) => {
  const text = readFileSync(join(root, path), 'utf8');
  expect(text).toMatch(checking);
  expect(text).toContain(`'${kind}'`);
});

/** Triggers by events, of a coordinator on a store in memory. */
import { clusterSubject } from '@muster/common/eventKinds';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { aCaller } from '../modelFixture.ts';
import { submitJob } from '../rpc/jobFixture.ts';

let coordinator: TestCoordinator;
let requests = 0;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
});
afterEach(() => coordinator.close());

const file = { name: 'after', params: { of: '', state: '' }, steps: { note: { run: 'note' } } };

function create(name: string, condition: string, params: object = {}) {
  return coordinator.api.createTrigger({
    name,
    condition,
    specJson: JSON.stringify({ ...file, name }),
    paramsJson: JSON.stringify(params),
    overlap: 'allow',
  });
}

async function submit(name: string, more: object = {}): Promise<string> {
  requests += 1;
  return submitJob(coordinator, `e${requests}`, JSON.stringify({ name, command: ['true'], ...more }));
}

async function fires(name: string) {
  await coordinator.triggers.run();
  await coordinator.pipelines.run();
  await coordinator.triggers.run();
  return (await coordinator.api.getTrigger(name)).fires;
}

test('an event for which the condition holds starts a run, once, also over a kill', async () => {
  await submit('train');
  const made = await create(
    'after-train',
    "kind == 'job.submitted' && job == 'train' && labels.team == 'a'",
    {
      of: '${trigger.event.subject}',
      state: 'of ${trigger.event.job}',
    },
  );
  expect(made).toMatchObject({ kind: 'event', nextAtMs: null, fires: [] });
  await submit('train');
  await submit('other', { labels: { team: 'a' } });
  const id = await submit('train', { labels: { team: 'a' } });
  const [fire, another] = await fires('after-train');
  expect(another).toBeUndefined();
  expect(fire).toMatchObject({
    outcome: 'started',
    cause: expect.stringMatching(/^event \d+: job.submitted of train$/),
  });
  expect(await coordinator.api.getPipeline(fire?.run ?? '')).toMatchObject({
    trigger: 'after-train',
    params: { of: id, state: 'of train' },
  });
  // What was committed and not looked at is looked at by the next coordinator, and nothing twice.
  await submit('train', { labels: { team: 'a' } });
  const next = await startTestCoordinator({ memory: coordinator.memory });
  await coordinator.close();
  coordinator = next;
  expect(await fires('after-train')).toHaveLength(2);
  expect((await coordinator.api.listPipelines()).runs).toHaveLength(2);
});

test('what a trigger has started itself does not start it again, by whatever way', async () => {
  await create('each', "kind == 'job.submitted'");
  await create('ends', "kind == 'pipeline.created' && data.name == 'each'");
  await submit('train');
  await fires('each');
  await fires('ends');
  const [eachFires, endsFires] = [await fires('each'), await fires('ends')];
  // The job of the run of `ends` was led to by both.
  expect(eachFires.map(({ cause }) => cause)).toEqual([expect.stringMatching(/job.submitted of train$/)]);
  expect(endsFires).toHaveLength(1);
  expect((await coordinator.api.listPipelines()).runs).toHaveLength(2);
});

test('an alert about what a trigger has started does not start it again', async () => {
  await create('alarmed', "kind == 'alert.firing'", {
    of: '${trigger.event.data.of}',
    state: '${trigger.event.job}',
  });
  const alert = async (of: string) => {
    const about = {
      of,
      kind: 'job',
      name: 'x',
      project: 'default',
      severity: 'info',
      message: '',
      labels: {},
    };
    const data = { alert: 'slow', owner: null, episode: 'slow-1', ...about, firedAtMs: 1, silenced: false };
    const event = { kind: 'alert.firing', subject: clusterSubject, data } as const;
    await coordinator.loop.run(aCaller, (draft, nowMs) => draft.emit(event, nowMs));
  };
  const jobId = await submit('train');
  await alert(jobId);
  const [fire] = await fires('alarmed');
  const run = await coordinator.api.getPipeline(fire?.run ?? '');
  expect(run.params).toEqual({ of: jobId, state: 'train' });
  await alert(run.steps[0]?.jobId ?? '');
  expect(await fires('alarmed')).toHaveLength(1);
  await alert(await submit('other'));
  expect(await fires('alarmed')).toHaveLength(2);
});

test('a pause skips what happens meanwhile, and other projects are not seen', async () => {
  await create('each', "kind == 'job.submitted'");
  await submit('elsewhere', { project: 'lab' });
  await coordinator.api.pauseTrigger('each');
  await submit('train');
  expect(await fires('each')).toEqual([]);
  await coordinator.api.resumeTrigger('each');
  expect(await fires('each')).toEqual([]);
  await submit('train');
  expect(await fires('each')).toHaveLength(1);
});

test('a condition that is none is refused, with the column', async () => {
  for (const [condition, message] of [
    ['kin == 1', /condition: column 1: .*did you mean "kind"/],
    ["kind == 'a' &&", /condition: column \d+: /],
    ['kind', /condition: column 1: a condition is true or false/],
    ['data.step > 3', /condition: column \d+: /],
    ['', /condition: /],
  ] as const)
    await expect(create('bad', condition)).rejects.toThrow(message);
  const both = coordinator.api.createTrigger({
    name: 'bad',
    condition: "kind == 'a'",
    cron: '0 3 * * *',
    specJson: JSON.stringify(file),
  });
  await expect(both).rejects.toThrow(
    /condition: given beside cron; expected one of cron, condition, webhook and directory/,
  );
  expect(await coordinator.api.listTriggers()).toEqual([]);
});

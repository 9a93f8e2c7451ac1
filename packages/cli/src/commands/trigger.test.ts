import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TriggerFireView, TriggerView } from '@muster/common/triggers';
import { triggerFireToWire, triggerToWire } from '@muster/common/wire/codec';
import { expect, test } from 'vitest';
import { exitCodes } from '../exitCodes.ts';
import { clockText } from '../output/times.ts';
import { submittedAtMs } from '../testing/fakeCoordinator.ts';
import { run, temporaryDir } from '../testing/testContext.ts';

const trigger: TriggerView = {
  name: 'nightly',
  kind: 'cron',
  user: 'ann',
  project: 'default',
  pipeline: 'vision',
  cron: '0 3 * * *',
  timeZone: 'Europe/Berlin',
  missed: 'run_once',
  condition: null,
  directory: null,
  blocked: null,
  overlap: 'queue',
  paused: false,
  nextAtMs: submittedAtMs + 60_000,
  running: ['pln_00000000000a'],
  queued: 1,
  fires: [
    {
      atMs: submittedAtMs,
      cause: '2026-01-02T02:00:00Z',
      outcome: 'queued',
      run: null,
      reason: 'pln_00000000000a of it has not ended',
    },
    {
      atMs: submittedAtMs,
      cause: '2026-01-01T02:00:00Z',
      outcome: 'started',
      run: 'pln_00000000000a',
      reason: null,
    },
  ],
  spec: { name: 'vision' },
  params: { day: '${trigger.time}' },
  createdAtMs: submittedAtMs,
  secret: null,
};
const answer = () => triggerToWire(trigger);
const nextAt = clockText(submittedAtMs + 60_000);

function pipelineFile(): { readonly file: string; readonly environment: { readonly workingDir: string } } {
  const workingDir = join(temporaryDir(), 'work');
  mkdirSync(workingDir);
  const file = join(workingDir, 'pipeline.yaml');
  writeFileSync(
    file,
    'name: vision\nparams: {day: never, lr: {type: float}}\nsteps: {train: {run: train}}\n',
  );
  return { file, environment: { workingDir } };
}

test('list and show tell of a directory that cannot be listed: cause, since when, and remedy', async () => {
  const blocked = {
    cause: '"/data/in" may not be watched, or is not there',
    remedy: "provide a directory of the coordinator's machine below /data",
    sinceMs: submittedAtMs,
  };
  const arrived: TriggerView = {
    ...trigger,
    name: 'arrived',
    kind: 'data',
    cron: null,
    directory: '/data/in',
    blocked,
  };
  const answers = {
    GetTrigger: () => triggerToWire(arrived),
    ListTriggers: () => ({ triggers: [answer(), triggerToWire(arrived)] }),
  };
  const listed = await run(['trigger', 'list'], answers);
  expect(listed.stdout).toMatch(/arrived .* blocked /);
  const since = clockText(submittedAtMs);
  expect(listed.stderr).toBe(`arrived is blocked since ${since}: ${blocked.cause}; ${blocked.remedy}\n`);
  const shown = await run(['trigger', 'show', 'arrived'], answers);
  expect(shown.stdout).toContain(`Blocked:  ${blocked.cause}, since ${since}\nRemedy:   ${blocked.remedy}\n`);
});

test('trigger create sends the file with values, also those that a fire has', async () => {
  const { file, environment } = pipelineFile();
  const argv = ['trigger', 'create', 'nightly', '-f', file, '--cron', '0 3 * * *', '--overlap', 'queue'];
  const values = ['--param', 'day=${trigger.time}', '--param', 'lr=0.1', '--timezone', 'Europe/Berlin'];
  const made = await run([...argv, ...values], { CreateTrigger: answer }, { environment });
  expect(made.stdout).toBe(`nightly is set. The first run of vision starts at ${nextAt}.\n`);
  const [{ request } = { request: {} }] = made.requests as readonly { request: Record<string, unknown> }[];
  expect(request).toMatchObject({
    name: 'nightly',
    cron: '0 3 * * *',
    timeZone: 'Europe/Berlin',
    overlap: 'queue',
  });
  expect(JSON.parse(String(request['paramsJson']))).toEqual({ day: '${trigger.time}', lr: 0.1 });
  expect(JSON.parse(String(request['specJson']))).toMatchObject({ name: 'vision' });
  const tried = await run([...argv, ...values, '--dry-run'], { CreateTrigger: answer }, { environment });
  expect(tried.stdout).toBe(`Dry run, nothing was set. The first run of vision starts at ${nextAt}.\n`);
  expect(tried.requests).toMatchObject([{ request: { dryRun: true } }]);
});

test('the secret of a webhook is printed alone', async () => {
  const { file, environment } = pipelineFile();
  const webhook = {
    ...trigger,
    name: 'pushed',
    kind: 'webhook',
    cron: null,
    nextAtMs: null,
    secret: 'whsec_abc=',
  } as const;
  const argv = ['trigger', 'create', 'pushed', '-f', file, '--webhook', '--param', 'lr=${trigger.body.lr}'];
  const made = await run(argv, { CreateTrigger: () => triggerToWire(webhook) }, { environment });
  expect(made.requests).toMatchObject([{ request: { name: 'pushed', webhook: true } }]);
  expect(made.stdout).toBe('whsec_abc=\n');
  expect(made.stderr).toContain('/api/v1/triggers/pushed/deliveries, signed with this secret');
});

test('what is wrong is said before anything is sent', async () => {
  const { file, environment } = pipelineFile();
  const none = await run(['trigger', 'create', 'nightly'], {});
  expect(none.exitCode).toBe(exitCodes.usage);
  expect(none.stderr).toContain('give the pipeline file with -f');
  const missing = await run(
    ['trigger', 'create', 'nightly', '-f', file, '--cron', '0 3 * * *'],
    {},
    { environment },
  );
  expect(missing.stderr).toContain('param "lr": missing');
  expect(missing.requests).toEqual([]);
});

test('triggers are listed and shown with what has become of their fires', async () => {
  const list = await run(
    ['trigger', 'list'],
    { ListTriggers: () => ({ triggers: [answer()] }) },
    { columns: 200 },
  );
  expect(list.stdout).toMatch(/nightly +vision +0 3 \* \* \* \(Europe\/Berlin\) +\d{4}-.* +queued /);
  const shown = await run(['trigger', 'show', 'nightly'], { GetTrigger: answer }, { columns: 200 });
  expect(shown.requests).toMatchObject([{ request: { name: 'nightly' } }]);
  expect(shown.stdout).toContain(`Next:     ${nextAt}\nParams:   day=\${trigger.time}\nOverlap:  queue\n`);
  expect(shown.stdout).toMatch(/2026-01-02T02:00:00Z +queued +- +pln_00000000000a of it has not ended/);
  const json = await run(['trigger', 'show', 'nightly', '-o', 'json'], { GetTrigger: answer });
  expect(JSON.parse(json.stdout)).toEqual(trigger);
});

test('a trigger is paused, resumed and deleted', async () => {
  const paused = await run(['trigger', 'pause', 'nightly'], { PauseTrigger: answer });
  expect(paused.stdout).toBe('nightly starts nothing until it is resumed. Its runs continue.\n');
  const resumed = await run(['trigger', 'resume', 'nightly'], { ResumeTrigger: answer });
  expect(resumed.stdout).toBe(`nightly fires next at ${nextAt}.\n`);
  const deleted = await run(['trigger', 'delete', 'nightly'], { DeleteTrigger: answer });
  expect(deleted.stdout).toBe('nightly is deleted. Its runs continue.\n');
});

test('a trigger is fired by hand, and says so when no run was started', async () => {
  const typed = {
    ...trigger,
    spec: { name: 'vision', params: { lr: 0.1 }, steps: { train: { run: 'train' } } },
  };
  const fireOf = (fields: Partial<TriggerFireView>) => () =>
    triggerFireToWire({
      atMs: 1,
      cause: 'by hand, ann',
      outcome: 'started',
      run: null,
      reason: null,
      ...fields,
    });
  const fired = (fields: Partial<TriggerFireView>, ...args: readonly string[]) =>
    run(['trigger', 'run', 'nightly', ...args], {
      GetTrigger: () => triggerToWire(typed),
      RunTrigger: fireOf(fields),
    });
  const started = await fired({ run: 'pln_00000000000b' }, '--param', 'lr=0.5');
  expect(started.stdout).toBe('pln_00000000000b\n');
  expect(started.requests[1]).toMatchObject({ request: { name: 'nightly', paramsJson: '{"lr":0.5}' } });
  const queued = await fired({ outcome: 'queued', reason: 'pln_1 of it has not ended' });
  expect([queued.exitCode, queued.stdout]).toEqual([0, '']);
  expect(queued.stderr).toContain('starts a run once others have ended: pln_1 of it has not ended');
  const skipped = await fired({ outcome: 'skipped', reason: 'pln_1 of it has not ended' });
  expect(skipped.exitCode).not.toBe(0);
  expect(skipped.stderr).toContain('nightly has started no run: skipped: pln_1 of it has not ended');
});

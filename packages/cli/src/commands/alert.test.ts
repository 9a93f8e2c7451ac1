import type { AlertView } from '@muster/common/alerts';
import { alertToWire } from '@muster/common/wire/codec';
import { expect, test } from 'vitest';
import { exitCodes } from '../exitCodes.ts';
import { submittedAtMs } from '../testing/fakeCoordinator.ts';
import { run } from '../testing/testContext.ts';

const jobId = 'job_00000000000b';
const alert: AlertView = {
  name: 'failed',
  severity: 'critical',
  condition: "workload_state == 'failed'",
  message: '{workload_name} failed',
  labels: { team: 'vision' },
  forMs: 60_000,
  repeatMs: 3_600_000,
  scope: { kind: 'job', jobId, labels: {}, project: null, nodes: [] },
  owner: 'ann',
  builtIn: false,
  createdAtMs: submittedAtMs,
  silence: { alert: 'failed', untilMs: submittedAtMs + 3_600_000, by: 'ann', reason: 'moving' },
  firing: [
    {
      id: 'failed-7',
      alert: 'failed',
      subject: jobId,
      subjectName: 'train',
      project: 'default',
      message: 'train failed',
      firedAtMs: submittedAtMs,
      notifiedAtMs: null,
      acknowledgedAtMs: null,
      acknowledgedBy: null,
    },
  ],
  pending: 0,
};
const wire = () => alertToWire(alert);

test('a dry run says what would be set, and what it would fire for now', async () => {
  const tried = { ...alert, pending: 3 };
  const some = await run(['alert', 'create', 'failed', '--if', 'hung', '--dry-run'], {
    CreateAlert: () => alertToWire(tried),
  });
  expect(some.requests).toMatchObject([{ method: 'CreateAlert', request: { name: 'failed', dryRun: true } }]);
  expect(some.stdout.split('\n')).toEqual([
    `Dry run, nothing was set. failed would be: critical, looks at ${jobId}.`,
    'The condition holds for 3 now, and would fire if that is still so in 1m:',
    `  ${jobId} (train): train failed`,
    '  … and 2 more',
    '',
  ]);
  const none = await run(['alert', 'create', 'failed', '--if', 'hung', '--dry-run'], {
    CreateAlert: () => alertToWire({ ...alert, firing: [], pending: 0 }),
  });
  expect(none.stdout).toMatch(/\nThe condition holds for nothing now.\n$/);
});

test('alert create sends what was given and leaves the rest to the coordinator', async () => {
  const least = await run(['alert', 'create', 'failed', '--if', 'hung'], { CreateAlert: wire });
  expect(least.requests).toMatchObject([
    { method: 'CreateAlert', request: { name: 'failed', condition: 'hung', forMs: 0, scope: null } },
  ]);
  expect(least.stdout).toBe(`failed is set: critical, looks at ${jobId}.\n`);
  const argv = [
    'alert',
    'create',
    'failed',
    '--if',
    'hung',
    '--severity',
    'critical',
    '--message',
    'm',
    '--for',
    '1m',
  ];
  const scope = ['--repeat', '1h', '--project', 'vision', '--job-label', 'a=b=c', '--label', 'team=x'];
  const all = await run([...argv, ...scope], { CreateAlert: wire });
  expect(all.requests).toMatchObject([
    {
      request: {
        severity: 'critical',
        message: 'm',
        forMs: 60_000,
        repeatMs: 3_600_000,
        labels: { team: 'x' },
        scope: { kind: 'job', project: 'vision', labels: { a: 'b=c' }, nodes: [] },
      },
    },
  ]);
});

test.each([
  [['--cluster', '--project', 'x'], 'give flags of one of them'],
  [['--label', 'team'], '--label takes NAME=VALUE'],
  [['--severity', 'fatal'], 'info, warning, critical'],
  [['--repeat', '1s'], '--repeat takes a duration'],
])('alert create with %j sends nothing', async (flags, message) => {
  const result = await run(['alert', 'create', 'a', '--if', 'hung', ...flags], {});
  expect(result).toMatchObject({ exitCode: exitCodes.usage, requests: [] });
  expect(result.stderr).toContain(message);
});

test('alert list shows state and condition, and JSON everything', async () => {
  const ListAlerts = () => ({ alerts: [wire()] });
  const { stdout } = await run(['alert', 'list'], { ListAlerts });
  expect(stdout).toMatch(
    /^NAME +SEVERITY +STATE +OWNER +CONDITION\nfailed +critical +firing \(1\), silenced +ann +workload_state/,
  );
  const json = await run(['alert', '--firing', '-o', 'json'], { ListAlerts });
  expect(JSON.parse(json.stdout)).toEqual({ alerts: [alert] });
  expect(json.requests).toMatchObject([{ request: { firing: true } }]);
});

test('alert show has the episodes', async () => {
  const { stdout } = await run(['alert', 'show', 'failed'], { ListAlerts: () => ({ alerts: [wire()] }) });
  expect(stdout).toContain('Condition:  workload_state');
  expect(stdout).toMatch(/Silenced: {3}by ann for .*: moving/);
  expect(stdout).toMatch(new RegExp(`${jobId} .*train failed`));
});

test('alert delete, silence and ack tell what they have done', async () => {
  const deleted = await run(['alert', 'delete', 'failed'], { DeleteAlert: wire });
  expect(deleted.stdout).toBe('failed is deleted.\n');
  const silenced = await run(['alert', 'silence', 'failed', '--for', '2h', '--reason', 'r'], {
    SilenceAlert: wire,
  });
  expect(silenced.stdout).toBe('failed notifies nobody for 2h.\n');
  expect(silenced.requests).toMatchObject([{ request: { name: 'failed', forMs: 7_200_000, reason: 'r' } }]);
  const ended = await run(['alert', 'silence', 'failed', '--off'], { SilenceAlert: wire });
  expect(ended.requests).toMatchObject([{ request: { forMs: 0 } }]);
  const acknowledged = await run(['alert', 'ack', 'failed', '--of', jobId], { AcknowledgeAlert: wire });
  expect(acknowledged.stdout).toBe('failed is acknowledged.\n');
  expect(acknowledged.requests).toMatchObject([{ request: { name: 'failed', subject: jobId } }]);
});

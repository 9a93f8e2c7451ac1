/** Alerts in a real Alertmanager: what fires is there, and is gone when it is resolved. */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { alertmanagerProgram, freePort, tempDir, waitFor } from '../../../../test/support/services.ts';
import { alertmanagerSink } from './alertmanager.ts';
import { checkedTarget } from './safeRequest.ts';
import { aNotification } from './sinkFixture.ts';

interface ShownAlert {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

async function startAlertmanager(): Promise<string> {
  const { path } = tempDir('alertmanager');
  const config = join(path, 'alertmanager.yml');
  writeFileSync(config, 'route: {receiver: nobody}\nreceivers: [{name: nobody}]\n');
  const address = `127.0.0.1:${await freePort()}`;
  const flags = [`--config.file=${config}`, `--storage.path=${path}`, `--web.listen-address=${address}`];
  const child = spawn(alertmanagerProgram(), [...flags, '--cluster.listen-address='], { stdio: 'ignore' });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await waitFor('Alertmanager to end', () => child.exitCode !== null || child.signalCode !== null);
  });
  const url = `http://${address}`;
  await waitFor('Alertmanager to answer', () =>
    fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  return url;
}

test('a firing is shown with its labels until it is resolved', async () => {
  const url = await startAlertmanager();
  const wallMs = () => Date.now();
  const parts = { firing: () => [], wallMs, clusterId: 'c0ffee' };
  const sink = alertmanagerSink(checkedTarget('it', url, true), parts);
  onTestFinished(() => sink.close?.());
  const shown = async () =>
    (await (await fetch(`${url}/api/v2/alerts?active=true`)).json()) as readonly ShownAlert[];
  const never = new AbortController().signal;
  const firedAtMs = Date.now() - 60_000;

  await sink.deliver(aNotification({ firedAtMs }), never);
  const [alert] = await shown();
  expect(alert?.labels).toMatchObject({ alertname: 'failed', severity: 'critical', job: 'job_00000000000b' });
  expect(alert?.annotations).toMatchObject({ summary: 'train has failed: cuda_oom' });

  await sink.deliver(aNotification({ firedAtMs, status: 'resolved', atMs: Date.now() - 1_000 }), never);
  await waitFor('the alert to be gone', async () => (await shown()).length === 0);
});

/** The example files for Prometheus: they are what it accepts, and they ask for series that there are. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { renderPage } from './page.ts';
import { aCard, anInstance, anObservation, aTask, gpuParts, someAgent, someHost } from './testing/parts.ts';
import { promtool } from './testing/promtool.ts';

const fileOf = (name: string) =>
  fileURLToPath(new URL(`../../../../deploy/prometheus/${name}`, import.meta.url));

test('the configuration is one', async () => {
  const { exitCode, lines } = await promtool(['check', 'config', fileOf('prometheus.yml')]);
  expect(exitCode, lines.join('\n')).toBe(0);
});

test('the rules are rules', async () => {
  const { exitCode, lines } = await promtool(['check', 'rules', fileOf('muster.rules.yml')]);
  expect(exitCode, lines.join('\n')).toBe(0);
});

test('each alert fires when it should, and not before', async () => {
  const { exitCode, lines } = await promtool(['test', 'rules', fileOf('muster.rules.test.yml')]);
  expect(exitCode, lines.join('\n')).toBe(0);
});

test('each alert is tested', () => {
  const alerts = [...readFileSync(fileOf('muster.rules.yml'), 'utf8').matchAll(/- alert: (\w+)/g)];
  const tests = readFileSync(fileOf('muster.rules.test.yml'), 'utf8');
  expect(alerts.length).toBeGreaterThan(5);
  expect(alerts.map(([, name = '']) => name).filter((name) => !tests.includes(name))).toEqual([]);
});

test('rules ask for series and labels that the page has', () => {
  const holders = new Map([aCard(0), anInstance(7)].map(({ uuid }) => [uuid, aTask] as const));
  const gpus = [aCard(0), aCard(1, { simulated: true }), anInstance(7)];
  const page = renderPage({
    gpus: gpuParts(anObservation(gpus, { holders })),
    host: someHost,
    agent: someAgent(),
  });
  const rules = readFileSync(fileOf('muster.rules.yml'), 'utf8');
  // GPU time is booked by the coordinator, on its own page.
  const ours = /\b(?!muster_gpu_seconds_total)(?:DCGM_FI|muster_(?:agent|host|gpu))_\w+\b(?=[{[ ])/g;
  const names = [...rules.matchAll(ours)].map(([name]) => name);
  const labels = [...rules.matchAll(/[{,](\w+)(?:=|!=)"/g)].map(([, label = '']) => label);
  expect(names.length).toBeGreaterThan(6);
  expect(labels.length).toBeGreaterThan(6);
  expect(names.filter((name) => !page.includes(`# TYPE ${name} `))).toEqual([]);
  // What the coordinator's list of targets adds, and what its own page has.
  const elsewhere = ['muster_role', 'verdict'];
  expect(labels.filter((label) => !elsewhere.includes(label) && !page.includes(`${label}="`))).toEqual([]);
});

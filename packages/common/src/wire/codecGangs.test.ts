import { expect, test } from 'vitest';
import {
  type Endpoint,
  failureSources,
  type PathCheck,
  type PathFindings,
  type PreflightResult,
  preflightBackends,
} from '../gangs.ts';
import type { JobId } from '../ids.ts';
import {
  endpointFromWire,
  endpointToWire,
  findingsFromWire,
  findingsToWire,
  pathCheckFromWire,
  pathCheckToWire,
  taskFailure,
  taskRefFromWire,
  taskRefToWire,
} from './codec.ts';
import { agentHubService } from './service.ts';
import { asked, sent } from './wireFixture.ts';

const { Session } = agentHubService;
const task = { jobId: 'job_0123456789ab' as JobId, attempt: 2, nodeRank: 1 };

const full: Endpoint = {
  address: '10.1.0.7',
  network: '10.1.0.0/16',
  interface: 'ib0',
  speedMbps: 200_000,
  rdma: true,
};
const bare: Endpoint = { address: 'fd00::7', network: null, interface: null, speedMbps: null, rdma: false };

test('the addresses of a prepared node keep their order, and what is not known stays unknown', () => {
  const endpoints = [bare, full, { ...full, speedMbps: 0 }];
  const prepared = { task: taskRefToWire(task), endpoints: endpoints.map(endpointToWire), testPort: 40_001 };
  const read = asked(Session, { prepared }).prepared;
  expect(read?.endpoints.map(endpointFromWire)).toEqual(endpoints);
  expect(read?.testPort).toBe(40_001);
});

const check: PathCheck = {
  round: 3,
  addresses: ['10.1.0.7', '10.1.0.8'],
  peers: [{ nodeRank: 0, node: 'node-1', address: '10.1.0.7', port: 29_500 }],
  preflight: { master: { addr: '10.1.0.7', port: 29_501 }, timeoutMs: 60_000 },
};

test.each([
  ['with a preflight', check],
  ['without', { ...check, preflight: null }],
])('a check %s is the same on the other side', (_, value) => {
  const read = sent(Session, { check: { task: taskRefToWire(task), check: pathCheckToWire(value) } }).check;
  expect(read?.check && pathCheckFromWire(read.check)).toEqual(value);
  expect(taskRefFromWire(read?.task ?? null)).toEqual(task);
});

const measured: PreflightResult = {
  error: null,
  backend: 'nccl',
  allReduceBytesPerS: 2.5e10,
  pairs: [{ nodeRank: 0, bytesPerS: 1.25e9 }],
};

function overTheWire(findings: PathFindings): PathFindings | undefined {
  const read = asked(Session, { checked: { findings: findingsToWire(findings) } }).checked?.findings;
  return read == null ? undefined : findingsFromWire(read);
}

test.each<[string, PathFindings]>([
  ['good ones', { round: 1, paths: [{ nodeRank: 0, error: null, roundTripUs: 180 }], preflight: measured }],
  [
    'bad ones',
    {
      round: 2,
      paths: [{ nodeRank: 2, error: 'connection refused', roundTripUs: 0 }],
      preflight: { ...measured, error: 'no answer', pairs: [], allReduceBytesPerS: null },
    },
  ],
  ['none', { round: 1, paths: [], preflight: null }],
])('findings are the same on the other side: %s', (_, findings) => {
  expect(overTheWire(findings)).toEqual(findings);
});

test('every word has its own name on the wire, and a new one is taken for what claims least', () => {
  for (const backend of preflightBackends) {
    const findings = { round: 1, paths: [], preflight: { ...measured, backend } };
    expect(overTheWire(findings)).toEqual(findings);
  }
  const failure = { consequence: false, message: 'm', atBoottimeMs: 1, kind: '', blame: '', line: 0 };
  for (const source of failureSources)
    expect(taskFailure.fromWire({ ...failure, source }).source).toBe(source);
  expect(taskFailure.fromWire({ ...failure, source: 'crystal_ball' }).source).toBe('exit');
});

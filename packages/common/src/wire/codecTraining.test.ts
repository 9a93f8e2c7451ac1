import { expect, test } from 'vitest';
import { type CheckpointFacts, checkpointVerdicts, verificationDepths } from '../checkpoints.ts';
import type { JobId } from '../ids.ts';
import {
  gpuStillnesses,
  type HangSign,
  type TrainingRow,
  type TrainingSign,
  trainingMetrics,
  trainingSignKinds,
} from '../training.ts';
import { ledgerKinds } from '../views.ts';
import {
  checkpointSeenFromWire,
  checkpointSeenToWire,
  hang,
  ledgerEntry,
  progress,
  resumeFromWire,
  resumeToWire,
  trainingRowFromWire,
  trainingRowToWire,
  trainingSignFromWire,
  trainingSignToWire,
} from './codec.ts';
import { agentHubService, musterService } from './service.ts';
import { asked, sent } from './wireFixture.ts';

const { Session, UploadRows } = agentHubService;
const task = { jobId: 'job_0123456789ab' as JobId, attempt: 1, nodeRank: 0 };

const facts: CheckpointFacts = {
  name: 'last/step_10.safetensors',
  version: 'v1',
  step: 0,
  format: 'safetensors',
  bytes: 2 ** 40,
  files: 1,
  savedAtMs: 1_700_000_000_000,
  saveDurationMs: 0,
  metrics: { eval_loss: 0 },
  digest: 'sha256:ab',
  verdict: 'verified',
  depth: 'deep',
  problem: null,
  reread: true,
};
const bareFacts: CheckpointFacts = {
  ...facts,

  step: null,
  saveDurationMs: null,
  metrics: {},
  digest: null,
  depth: null,
  problem: 'not looked at yet',
  verdict: 'unverified',
};

function seen(checkpoint: CheckpointFacts, shared = false, afterStop = false) {
  const message = { checkpoint: checkpointSeenToWire({ task, checkpoint, shared, afterStop }) };
  const { checkpoint: read } = asked(Session, message);
  return read == null ? null : checkpointSeenFromWire(read);
}

test('a checkpoint that was seen is the same on the other side', () => {
  for (const checkpoint of [facts, bareFacts])
    expect(seen(checkpoint)).toEqual({ task, checkpoint, shared: false, afterStop: false });
  expect(seen(facts, true, true)).toMatchObject({ shared: true, afterStop: true });
  for (const verdict of checkpointVerdicts)
    for (const depth of verificationDepths)
      expect(seen({ ...facts, verdict, depth })?.checkpoint).toMatchObject({ verdict, depth });
});

test('an unknown verdict is no verdict, and a checkpoint of no task is none', () => {
  const wire = checkpointSeenToWire({ task, checkpoint: facts, shared: false, afterStop: false });
  const read = (message: typeof wire) => asked(Session, { checkpoint: message }).checkpoint;
  const newer = read({ ...wire, checkpoint: { ...wire.checkpoint, verdict: 'blessed', depth: 'abyssal' } });
  expect(newer == null ? null : checkpointSeenFromWire(newer)?.checkpoint).toMatchObject({
    verdict: 'unverified',
    depth: null,
  });
  for (const broken of [
    { ...wire, task: null },
    { ...wire, checkpoint: null },
  ]) {
    const garbage = read(broken);
    expect(garbage == null ? null : checkpointSeenFromWire(garbage)).toBeNull();
  }
});

const sign: TrainingSign = {
  kind: 'nan_loss',
  step: 0,
  lastGoodStep: 0,
  rank: 0,
  line: 2 ** 40,
  text: 'loss nan',
};

function signed(value: TrainingSign, kind: string = value.kind) {
  const { trainingSign } = asked(Session, {
    trainingSign: { sign: { ...trainingSignToWire(value), kind } },
  });
  return trainingSign?.sign == null ? undefined : trainingSignFromWire(trainingSign.sign);
}

test('a sign is the same on the other side; of an unknown kind it is none', () => {
  for (const kind of trainingSignKinds) expect(signed({ ...sign, kind })).toEqual({ ...sign, kind });
  const bare = { ...sign, step: null, lastGoodStep: null, rank: null };
  expect(signed(bare)).toEqual(bare);
  expect(signed(sign, 'boredom')).toBeNull();
});

test('a hang is the same on the other side', () => {
  const through = (value: HangSign | null) => {
    const { report } = asked(Session, { report: { hang: value && hang.toWire(value) } });
    return report?.hang ? hang.fromWire(report.hang) : null;
  };
  for (const gpus of gpuStillnesses) {
    const value = { quietForMs: 2 ** 40, usualMs: 0, gpus, rank: 0 };
    expect(through(value)).toEqual(value);
    expect(through({ ...value, rank: null })).toEqual({ ...value, rank: null });
  }
  expect(through(null)).toBeNull();
});

test('rows keep every metric there is, 0 and nothing apart, and a loss that is no number', () => {
  const through = (row: TrainingRow) => {
    const [read] = asked(UploadRows, { task, rows: [trainingRowToWire(row)] }).rows;
    return read === undefined ? undefined : trainingRowFromWire(read);
  };
  const values = Object.fromEntries(Object.keys(trainingMetrics).map((name, index) => [name, index]));
  const row: TrainingRow = { position: 2 ** 40, atMs: 1_700_000_000_000, values, lossNotFinite: false };
  expect(through(row)).toEqual(row);
  const nan = { ...row, values: { step: 0 }, lossNotFinite: true };
  expect(through(nan)).toEqual(nan);
  expect(through({ ...row, values: { step: 1, grad_norm: Number.POSITIVE_INFINITY } })).toEqual({
    ...row,
    values: { step: 1 },
  });
});

test('progress is of known metrics only', () => {
  const { report } = asked(Session, {
    report: { training: { latest: { step: 5, karma: 1, train_loss: Number.NaN }, rows: 1, atMs: 2 } },
  });
  expect(report?.training && progress.fromWire(report.training)).toEqual({
    framework: null,
    latest: { step: 5 },
    notFinite: [],
    totalSteps: null,
    etaMs: null,
    rows: 1,
    atMs: 2,
  });
});

test('what a task begins from is the same on the other side, and nothing is nothing', () => {
  for (const resume of [{ name: 'ckpt.pt', step: 0 }, { name: 'ckpt.pt', step: null }, null]) {
    const { attempts } = sent(musterService.GetJob, {
      attempts: [{ resume: resume && resumeToWire(resume) }],
    });
    const read = attempts[0]?.resume ?? null;
    expect(read && resumeFromWire(read)).toEqual(resume);
  }
});

test('every kind of the ledger has its own name; an unknown one cannot be read', () => {
  const through = (entry: ReturnType<typeof ledgerEntry.toWire>) =>
    sent(musterService.GetJob, { ledger: [entry] }).ledger.map(ledgerEntry.fromWire);
  for (const kind of ledgerKinds) {
    const entry = { kind, cause: null, gpuSeconds: 1.5 };
    expect(through(ledgerEntry.toWire(entry))).toEqual([entry]);
  }
  expect(through({ kind: 'astral', gpuSeconds: 1 })).toEqual([null]);
});

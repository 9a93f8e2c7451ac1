import { type MessageType, messageType } from '@muster/common/wire/messageTypes';
import { describe, expect, test } from 'vitest';
import { RefusedMessage, readBounded, readingCostOf } from './bounded.ts';
import { bounds, fieldsMax, messageBytesMax } from './table.ts';

const task = { jobId: 'job_0123456789ab', attempt: 1, nodeRank: 0 };

function read(typeName: string, message: object): object {
  const type = messageType(typeName);
  return readBounded(typeName, type.encode(type.fromObject(message)).finish());
}

function refusalOf(message: object): string | null {
  return message instanceof RefusedMessage ? `${message.error.code}: ${message.error.message}` : null;
}

/** Every message that a request of an agent can hold, by name. */
function reachable(): ReadonlyMap<string, MessageType> {
  const found = new Map<string, MessageType>();
  const add = (type: MessageType) => {
    if (found.has(type.name)) return;
    found.set(type.name, type);
    for (const field of type.fieldsArray) {
      const inner = field.resolve().resolvedType;
      if (inner !== null && 'fieldsById' in inner) add(inner);
    }
  };
  for (const name of Object.keys(messageBytesMax)) add(messageType(name));
  return found;
}

test('every text, list and map that an agent can send has a bound, and no bound is left over', () => {
  const needed = [...reachable().values()].flatMap((type) =>
    type.fieldsArray
      .filter(({ type: kind, repeated, map }) => repeated || map || kind === 'string' || kind === 'bytes')
      .map(({ name }) => `${type.name}.${name}`),
  );
  const given = Object.entries(bounds).flatMap(([type, fields]) =>
    Object.keys(fields).map((name) => `${type}.${name}`),
  );
  expect(given.sort()).toEqual(needed.sort());
  const lists = [...reachable().values()].flatMap((type) =>
    type.fieldsArray
      .filter(({ repeated, map, type: kind }) => map || (repeated && kind === 'string'))
      .map(({ name }) => bounds[type.name]?.[name]?.each),
  );
  expect(lists, 'what is in lists and maps is bounded, too').not.toContain(undefined);
});

describe('what is beyond its bound', () => {
  test.each<[string, string, object, RegExp]>([
    [
      'a message',
      'AgentMessage',
      { report: { task, exit: { failure: { message: 'x'.repeat(3_900_000) } } } },
      /AgentMessage of \d+ bytes/,
    ],
    [
      'a list',
      'AgentMessage',
      { heartbeat: { observed: Array.from({ length: 1_025 }, () => ({ task })) } },
      /Heartbeat.observed: 1024 at most/,
    ],
    [
      'an identity',
      'AgentMessage',
      { prepared: { task: { ...task, jobId: 'j'.repeat(65) } } },
      /TaskRef.jobId: 64 at most/,
    ],
    [
      'a map',
      'AgentMessage',
      {
        report: {
          task,
          training: {
            latest: Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`m${index}`, 1])),
          },
        },
      },
      /TrainingProgress.latest: 64/,
    ],
    ['output', 'LogUpload', { task, data: new Uint8Array(257 * 1024) }, /LogUpload.data/],
  ])('%s is refused', (_, typeName, message, refusal) => {
    expect(refusalOf(read(typeName, message))).toMatch(refusal);
    expect(refusalOf(read(typeName, message))).toMatch(/^resource_exhausted/);
  });

  test('words for people are cut, with a mark; whole characters stay whole', () => {
    const message = `${'a'.repeat(1_998)}🙂${'b'.repeat(100)}`;
    const gpus = [{ uuid: 'GPU-1', model: 'H'.repeat(5_000) }];
    const report = { task, state: 'TASK_STATE_ENDED', exit: { failure: { message } } };
    expect(read('AgentMessage', { report })).toMatchObject({
      report: { exit: { failure: { message: `${'a'.repeat(1_998)}\uFFFD…` } } },
    });
    expect(read('AgentMessage', { status: { inventory: { gpus } } })).toMatchObject({
      status: { inventory: { gpus: [{ model: `${'H'.repeat(127)}…` }] } },
    });
  });

  test('numbers come within what can be counted and added up', () => {
    const gpuUsage = {
      observedGpuSeconds: 1e308,
      utilizationMean: Number.NaN,
      energyKwh: Number.POSITIVE_INFINITY,
    };
    const training = {
      latest: { train_loss: Number.NaN, grad_norm: 1e30, epoch: 1e308 },
      rows: 2 ** 63,
      atMs: -5,
    };
    const read_ = read('AgentMessage', { report: { task, exit: { gpuUsage, logBytes: 2 ** 63 }, training } });
    const { report } = read_ as {
      report: { exit: { gpuUsage: object; logBytes: number }; training: object };
    };
    expect(report.exit.gpuUsage).toMatchObject({
      observedGpuSeconds: undefined,
      utilizationMean: undefined,
      energyKwh: undefined,
    });
    expect(report.exit.logBytes).toBe(Number.MAX_SAFE_INTEGER);
    expect(report.training).toMatchObject({
      latest: { grad_norm: 1e30 },
      rows: Number.MAX_SAFE_INTEGER,
      atMs: 0,
    });
  });
});

describe('bytes that are none of ours', () => {
  const heartbeat = (...bytes: number[]) => Uint8Array.from([0x12, bytes.length, ...bytes]);

  test.each<[string, Uint8Array]>([
    ['cut short', Uint8Array.from([0x12, 0x7f, 0x1a])],
    ['groups in groups', new Uint8Array(100_000).fill(0x0b)],
    ['a message twice where it stands once', Uint8Array.from([...heartbeat(), ...heartbeat()])],
    ['a tag without end', new Uint8Array(64).fill(0xff)],
  ])('%s are refused', (_, bytes) => {
    expect(readBounded('AgentMessage', bytes)).toBeInstanceOf(RefusedMessage);
  });

  test('a megabyte of empty parts is refused at the first one too many, and one of unknown fields by their number', () => {
    const empties = new Uint8Array(1_000_000).map((_, index) => (index % 2 === 0 ? 0x1a : 0));
    const type = messageType('AgentMessage');
    const wrap = (bytes: Uint8Array) => {
      const writer = type.encode(type.fromObject({})).uint32(0x12).bytes(bytes);
      return writer.finish();
    };
    expect(refusalOf(readBounded('AgentMessage', wrap(empties)))).toMatch(/Heartbeat.observed/);
    const unknown = new Uint8Array(1_000_000).map((_, index) => (index % 2 === 0 ? 0x78 : 0));
    expect(refusalOf(readBounded('AgentMessage', wrap(unknown)))).toMatch(
      `fields of Heartbeat: ${fieldsMax} at most`,
    );
  });

  test('fields that only a newer agent knows are passed over', () => {
    expect(readBounded('AgentMessage', heartbeat(0x78, 1, 0x08, 7))).toMatchObject({ heartbeat: { seq: 7 } });
  });
});

test('what a message costs is counted by its fields', () => {
  const cost = (count: number) =>
    readingCostOf(
      read('AgentMessage', { heartbeat: { observed: Array.from({ length: count }, () => ({ task })) } }),
    );
  expect(cost(200) - cost(100)).toBe(100 * (cost(2) - cost(1)));
});

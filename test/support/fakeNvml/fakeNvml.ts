/**
 * A library in the place of NVIDIA's, built with the C compiler of this machine. A test sets what it answers, also while a
 * process has it loaded: cards, values, return codes, hangs, crashes, the time that calls take.
 */
import { execFile } from 'node:child_process';
import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { functionNames, type NvmlFunction } from '../../../packages/agent/src/gpus/nvml/functions.ts';
import { cCompiler } from '../services.ts';
import {
  behaviours,
  cardsMax,
  type GlobalName,
  layoutHeader,
  notSupported,
  positionOf,
  stateBytes,
  type ValueName,
} from './layout.ts';

const source = fileURLToPath(new URL('fakeNvml.c', import.meta.url));

export interface FakeNvmlOptions {
  readonly cards?: number;
  /** Functions that this library does not have, as that of an old driver. */
  readonly without?: readonly NvmlFunction[];
}

/** null: the card does not have it. */
export type CardValues = Partial<Readonly<Record<ValueName, number | null>>>;

export type Behaviour = keyof typeof behaviours | number;

/** A card with work on it and nothing wrong, as an H100 without GPM. */
const healthyCard = {
  present: 1,
  memoryTotalMb: 81_559,
  memoryUsedMb: 40_000,
  memoryFreeMb: 41_000,
  memoryReservedMb: 559,
  utilization: 87,
  memoryUtilization: 43,
  encoderUtilization: 0,
  decoderUtilization: 0,
  temperature: 61,
  memoryTemperature: 72,
  powerMilliwatts: 512_345,
  powerLimitMilliwatts: 700_000,
  energyMillijoules: 9_876_543_210,
  smClockMhz: 1980,
  memoryClockMhz: 2619,
  clockEventReasons: 0x4,
  pcieReplays: 3,
  eccCorrectedVolatile: 1,
  eccUncorrectedVolatile: 0,
  eccCorrectedAggregate: 5,
  eccUncorrectedAggregate: 2,
  sramThresholdExceeded: 0,
  rowsCorrectable: 1,
  rowsUncorrectable: 2,
  rowsPending: 1,
  rowsFailed: 0,
  pagesSingleBit: null,
  pagesDoubleBit: null,
  pagesPending: null,
  recoveryAction: 0,
  pcieTxBytes: null,
  pcieRxBytes: null,
  nvlinkTxKib: null,
  nvlinkRxKib: null,
  /** Unsigned, 64 bits. */
  counterType: 3,
  counterMicros: 0,
  linkReplays: 0,
  linkRecoveries: 1,
  linkCrcErrors: 2,
  switchLinks: 0,
  pairLinks: 0,
  numaNode: 0,
  cpuFirst: 0,
  cpuLast: 31,
  migMode: 0,
  migSlots: 0,
  gpmSupported: 0,
  gpmPercent: null,
  gpmMebibytes: null,
  processCount: 0,
  processPid: 0,
  processMemoryMb: null,
  xid: 0,
  xidCount: 0,
} as const satisfies Required<CardValues>;

export interface FakeNvml {
  /** Path of the library. */
  readonly path: string;
  set(card: number, values: CardValues): void;
  setAll(values: CardValues): void;
  /** What a function does from now on. @param card null: calls that are about no card */
  behave(name: NvmlFunction, card: number | null, behaviour: Behaviour): void;
  /** The same for every function about this card. */
  behaveAll(card: number, behaviour: Behaviour): void;
  /** CPU time that each call takes. */
  setCost(name: NvmlFunction, microseconds: number): void;
  announceXid(card: number, xid: number): void;
  /** How often a wait for events looks; a real one is woken and costs nothing meanwhile. */
  setEventPoll(milliseconds: number): void;
  /** CPU time that calls with a cost have taken so far. */
  readonly spentNanoseconds: number;
  callsOf(name: NvmlFunction): number;
  uuid(card: number): string;
  migUuid(card: number, slot: number): string;
  close(): void;
}

/** @param dir of this library alone, absolute */
export async function buildFakeNvml(
  dir: string,
  { cards = 2, without = [] }: FakeNvmlOptions = {},
): Promise<FakeNvml> {
  const path = join(dir, 'libnvidia-ml.so.1');
  const statePath = join(dir, 'state');
  writeFileSync(path, await compiled(without));
  writeFileSync(statePath, Buffer.alloc(stateBytes));
  return openState(path, statePath, cards);
}

/** By what they lack: the compiler takes longer than most tests. */
const libraries = new Map<string, Promise<Buffer>>();

function compiled(without: readonly NvmlFunction[]): Promise<Buffer> {
  const key = without.join(' ');
  const library = libraries.get(key) ?? compile(without);
  libraries.set(key, library);
  return library;
}

async function compile(without: readonly NvmlFunction[]): Promise<Buffer> {
  const dir = mkdtempSync(join(tmpdir(), 'muster-fake-nvml-'));
  try {
    writeFileSync(join(dir, 'layout.h'), layoutHeader());
    // The definition gets another name, and so the library lacks the one that is looked for.
    const renamed = without.flatMap((name) => [
      `-D${name}=missing_${name}`,
      `-DFUNCTION_missing_${name}=FUNCTION_${name}`,
    ]);
    const flags = ['-shared', '-fPIC', '-O1', '-Wall', '-Wextra', '-Werror', `-I${dir}`];
    const path = join(dir, 'library.so');
    await promisify(execFile)(cCompiler(), [...flags, ...renamed, '-o', path, source, '-ldl']);
    return readFileSync(path);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function openState(path: string, statePath: string, cards: number): FakeNvml {
  const file = openSync(statePath, 'r+');
  const word = Buffer.alloc(8);
  const write = (position: number, value: number | null) => {
    word.writeBigInt64LE(value === null ? notSupported : BigInt(value));
    writeSync(file, word, 0, 8, position * 8);
  };
  const read = (position: number) => {
    readSync(file, word, 0, 8, position * 8);
    return Number(word.readBigInt64LE());
  };
  const setGlobal = (name: GlobalName, value: number) => write(positionOf.global(name), value);
  const numberOf = (name: NvmlFunction) => functionNames.indexOf(name);
  const set = (card: number, values: CardValues) => {
    for (const [name, value] of Object.entries(values)) {
      write(positionOf.value(card, name as ValueName), value);
    }
  };
  const codeOf = (behaviour: Behaviour) =>
    typeof behaviour === 'number' ? behaviour : behaviours[behaviour];
  const hex = (value: number, digits: number) => value.toString(16).padStart(digits, '0');

  setGlobal('cardCount', cards);
  setGlobal('cudaVersion', 13_010);
  setGlobal('driverMajor', 590);
  setGlobal('eventPollMs', 10);
  for (let card = 0; card < cardsMax; card += 1) {
    set(card, { ...healthyCard, numaNode: card < cards / 2 ? 0 : 1 });
  }
  return {
    path,
    set,
    setAll: (values) => {
      for (let card = 0; card < cards; card += 1) set(card, values);
    },
    behave: (name, card, behaviour) => write(positionOf.behaviour(numberOf(name), card), codeOf(behaviour)),
    behaveAll: (card, behaviour) => {
      for (const number of functionNames.keys()) {
        write(positionOf.behaviour(number, card), codeOf(behaviour));
      }
    },
    setCost: (name, microseconds) => write(positionOf.cost(numberOf(name)), microseconds),
    announceXid: (card, xid) => {
      set(card, { xid });
      set(card, { xidCount: read(positionOf.value(card, 'xidCount')) + 1 });
    },
    setEventPoll: (milliseconds) => setGlobal('eventPollMs', milliseconds),
    get spentNanoseconds() {
      return read(positionOf.global('libraryNanoseconds'));
    },
    callsOf: (name) => read(positionOf.calls(numberOf(name))),
    uuid: (card) => `GPU-fa4e0000-0000-4000-8000-0000000000${hex(card, 2)}`,
    migUuid: (card, slot) => `MIG-fa4e0000-0000-4000-8000-0000000${hex(card, 2)}${hex(slot, 3)}`,
    close: () => closeSync(file),
  };
}

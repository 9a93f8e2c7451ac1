/**
 * Messages as an agent might make them up that knows the protocol: every field there is, at its largest, one beyond that, or
 * absurd. A function of its seed.
 */
import type { TaskRef } from '@muster/common/ids';
import { type MessageType, messageType } from '@muster/common/wire/messageTypes';
import { bounds } from './bounds/table.ts';

export interface Hostility {
  readonly chance: () => number;
  /** Tasks that it names, its own and others'. */
  readonly tasks: readonly TaskRef[];
  /** How much larger than its bound a text or list may become. */
  readonly beyond: number;
  /** Of what a list may hold, so that several fit into a message. */
  readonly share: number;
}

/** The kinds of messages of a session, each once, in an order that is drawn. */
export function hostileKinds(chance: () => number): readonly string[] {
  const kinds = messageType('AgentMessage').fieldsArray.map(({ name }) => ({ name, place: chance() }));
  return kinds.sort((a, b) => a.place - b.place).map(({ name }) => name);
}

/** One message of a session. @param kind of `hostileKinds` */
export function hostileMessage(kind: string, how: Hostility): Record<string, unknown> {
  const field = messageType('AgentMessage').fields[kind];
  const type = field?.resolve().resolvedType;
  if (field === undefined || type == null || !('fieldsById' in type))
    throw new Error('a kind without a message');
  return { [field.name]: hostile(type, { ...how, room: { left: messageBytesMax } }) };
}

/** Many times what a server reads of one message. Lists in lists, each at its largest, would be gigabytes. */
const messageBytesMax = 24 * 1024 * 1024;
/** What a value costs at least, on the wire and in memory. */
const valueBytes = 16;

interface HostileMessage extends Hostility {
  /** Bytes that the message may still grow by. */
  readonly room: { left: number };
}

function hostile(type: MessageType, how: HostileMessage): Record<string, unknown> {
  const { chance, tasks, beyond, share, room } = how;
  if (type.name === 'TaskRef' && chance() < 0.9) return { ...tasks[Math.floor(chance() * tasks.length)] };
  const entries = type.fieldsArray.flatMap((field): [string, unknown][] => {
    if (chance() < 0.1) return [];
    const max = Math.floor((bounds[type.name]?.[field.name]?.max ?? 0) * beyond);
    const inner = field.map ? null : field.resolve().resolvedType;
    const one = (): unknown => {
      if (inner !== null && 'fieldsById' in inner) return hostile(inner, how);
      if (inner !== null) return Math.floor(chance() * 9);
      const value = hostileScalar(field.type, max, chance);
      room.left -= valueBytes + (typeof value === 'string' ? value.length : 0);
      return value;
    };
    if (field.map) {
      const value = () =>
        field.type === 'string' ? 'v'.repeat(max) : hostileScalar(field.type, max, chance);
      const keys = Array.from({ length: Math.ceil(max * share) }, (_, index) => `k${index}${'y'.repeat(50)}`);
      return [[field.name, Object.fromEntries(keys.map((key) => [key, value()]))]];
    }
    if (field.repeated) {
      const list: unknown[] = [];
      for (let left = Math.ceil(max * share * chance()); left > 0 && room.left > 0; left -= 1)
        list.push(one());
      return [[field.name, list]];
    }
    return [[field.name, one()]];
  });
  return Object.fromEntries(entries);
}

const letters = ['x', '\u001B[2J', '🙂', '\n', '\u0000', '../'];

function hostileScalar(type: string, max: number, chance: () => number): unknown {
  const pick = <T>(...values: readonly T[]) => values[Math.floor(chance() * values.length)];
  switch (type) {
    case 'string': {
      const words = [
        '',
        'xid_79',
        'critical',
        'drain_node',
        'corrupt',
        'verified',
        'nan_loss',
        '10.0.0.1',
        '10.0.0.0/8',
      ];
      if (chance() < 0.3) return words[Math.floor(chance() * words.length)];
      return (pick(...letters) ?? 'x').repeat(max).slice(0, max);
    }
    case 'bytes':
      return new Uint8Array(max);
    case 'bool':
      return chance() < 0.5;
    case 'double':
    case 'float':
      return pick(Number.NaN, Number.POSITIVE_INFINITY, -1, 0, 1e308, 3.4e38, 0.5);
    case 'int32':
    case 'uint32':
      return pick(0, 1, 2, 255, 65_536, 2 ** 31 - 1, type === 'uint32' ? 2 ** 32 - 1 : -(2 ** 31));
    default:
      return pick(0, 1, -1, 2 ** 40, Number.MAX_SAFE_INTEGER, 2 ** 63);
  }
}

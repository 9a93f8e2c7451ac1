/** Messages through bytes, as on the wire. */
import type { MessageType } from './messageTypes.ts';

interface Answered<Message, Read> {
  responseSerialize(value: Message): Buffer;
  responseDeserialize(bytes: Buffer): Read;
}

interface Asked<Message, Read> {
  requestSerialize(value: Message): Buffer;
  requestDeserialize(bytes: Buffer): Read;
}

/** What a client reads of an answer. */
export function sent<Message, Read>(method: Answered<Message, Read>, value: Message): Read {
  return method.responseDeserialize(method.responseSerialize(value));
}

/** What a server reads of a request. */
export function asked<Message, Read>(method: Asked<Message, Read>, value: Message): Read {
  return method.requestDeserialize(method.requestSerialize(value));
}

/** Of a linear congruential generator, so that a failure can be seen again. */
export function chances(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** A message with each of its fields absent, the value that a default has, or another one. */
export function chanceMessage(type: MessageType, chance: (below: number) => number, depth = 0): object {
  const one = (field: MessageType['fieldsArray'][number]): unknown => {
    const { name, type: kind, resolvedType } = field;
    if (resolvedType !== null && 'fieldsArray' in resolvedType)
      return chanceMessage(resolvedType, chance, depth + 1);
    if (resolvedType !== null) return chance(7);
    if (name === 'jobId') return 'job_0123456789ab';
    if (name === 'spec' || name === 'cloudEvent') return '{"a":[null,0,""]}';
    if (kind === 'string') return ['', 'x', 'unknown'][chance(3)];
    if (kind === 'bool') return chance(2) === 1;
    if (kind === 'bytes') return Buffer.from([chance(256)]);
    if (kind === 'double' || kind === 'float') return [0, -0.5, 3, Number.NaN][chance(4)];
    return [0, 1, kind.includes('64') ? 2 ** 40 : 7][chance(3)];
  };
  const fields = type.fieldsArray.flatMap((field): readonly (readonly [string, unknown])[] => {
    field.resolve();
    if (chance(3) === 0 || depth > 4) return [];
    if (field.map) return [[field.name, { step: one(field), other: one(field) }]];
    if (field.repeated) return [[field.name, Array.from({ length: chance(3) }, () => one(field))]];
    return [[field.name, one(field)]];
  });
  return Object.fromEntries(fields);
}

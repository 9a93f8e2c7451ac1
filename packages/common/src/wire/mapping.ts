/**
 * One mapping between the messages of proto/ and the values of the domain. A field of the message is the member of the same name;
 * what is absent on the wire is null in the domain, and 0, empty text and false are values like any other. Only where a member is
 * narrower than its field does a message name a rule for it; the types demand it there.
 */
import type { MessageTypeDefinition } from '@grpc/proto-loader';
import type { ProtoGrpcType as AgentTypes } from '../gen/agent.ts';
import type { ProtoGrpcType as MusterTypes } from '../gen/muster.ts';
import { wireFields } from './messages.ts';

type Schema = AgentTypes['muster']['v1'] & MusterTypes['muster']['v1'];
export type MessageName = {
  [Name in keyof Schema]: Schema[Name] extends MessageTypeDefinition<infer _Sent, infer _Read> ? Name : never;
}[keyof Schema];
/** A message as it is encoded. */
export type Sent<Name extends MessageName> =
  Schema[Name] extends MessageTypeDefinition<infer Message, infer _Read> ? Message : never;
/** A message as it was decoded. */
export type Read<Name extends MessageName> =
  Schema[Name] extends MessageTypeDefinition<infer _Sent, infer Message> ? Message : never;

/** How a member travels whose value is not the same on both sides. */
interface Rule<Value, Result = Value | null> {
  readonly toWire: (value: Value) => unknown;
  /** @returns null for what cannot be read; a list leaves it out */
  readonly fromWire: (wire: never) => Result;
}

interface Needed {
  readonly needed: true;
}

/** The message cannot be read without this member. */
export function needed<R = unknown>(rule?: R): R & Needed {
  return { ...(rule as R), needed: true };
}

/** The field is absent where the domain has no such member at all. */
export const sparse = { sparse: true } as const;

/** Fields that are no members of the domain's value. */
export function without<Field extends string>(...fields: readonly Field[]) {
  return Object.fromEntries(fields.map((each) => [each, skip])) as Record<Field, typeof skip>;
}
const skip = { skipped: true } as const;

/** A word of a fixed list. @param fallback what a word counts as that only a newer peer knows */
export function word<Word extends string>(words: readonly Word[], fallback: Word) {
  const { toWire, fromWire } = knownWord(words);
  return { toWire, fromWire: (text: string) => fromWire(text) ?? fallback };
}

/** A word of a fixed list. One that only a newer peer knows cannot be read. */
export function knownWord<Word extends string>(words: readonly Word[]) {
  return {
    toWire: (value: Word) => value,
    fromWire: (text: string) => words.find((each) => each === text) ?? null,
  };
}

/** A value of an enumeration: `'running'` is `'TASK_STATE_RUNNING'`. @param fallback what counts for an unknown one */
export function enumMapping<Word extends string, Prefix extends string>(
  prefix: Prefix,
  words: readonly Word[],
  fallback: Word,
) {
  const toWord = new Map<string, Word>(words.map((each) => [`${prefix}${each.toUpperCase()}`, each]));
  return {
    toWire: (value: Word) => `${prefix}${value.toUpperCase()}` as `${Prefix}${Uppercase<Word>}`,
    fromWire: (name: string): Word => toWord.get(name) ?? fallback,
  };
}

/** An object that travels as text, whatever its members are. */
export const json = {
  toWire: (value: Readonly<Record<string, unknown>>) => JSON.stringify(value),
  fromWire: (text: string) => JSON.parse(text || '{}') as Readonly<Record<string, unknown>>,
};

type Fields<Wire> = Exclude<keyof Wire & string, `_${string}`>;
type One<Value> = NonNullable<Value> extends readonly (infer Each)[] ? Each : NonNullable<Value>;
type MayLack<Field> = undefined extends Field ? true : null extends Field ? true : false;
/** What is read of a field without a rule, nested messages included. */
type Plain<Field> = Field extends undefined
  ? null
  : Field extends Uint8Array
    ? Uint8Array
    : Field extends readonly (infer Each)[]
      ? readonly Plain<Each>[]
      : Field extends object
        ? { readonly [K in Fields<Field>]: Plain<Field[K]> }
        : Field;

/** The rule by which a field and a value become each other; unknown: none is needed. */
type Conversion<Value, Field, Result = Value | null> = [Value, Plain<Field>] extends [Plain<Field>, Value]
  ? unknown
  : Rule<Value, Result>;

type RuleFor<Value, Field> = undefined extends Value
  ? { readonly sparse: true } & ([Value] extends [Plain<Field> | undefined] ? unknown : Rule<One<Value>>)
  : [Field] extends [readonly unknown[]]
    ? Conversion<One<Value>, One<Field>>
    : null extends Value
      ? MayLack<Field> extends true
        ? Conversion<One<Value>, One<Field>>
        : 'its field must be optional'
      : MayLack<Field> extends true
        ? Conversion<Value, One<Field>> & (Needed | { readonly absent: Value })
        : Conversion<Value, Field, Value> | (Conversion<Value, Field> & Needed);

/** Rules for the members that need one. A member without a field and a field without a member do not compile. */
type Rules<Domain, Wire> = {
  readonly [K in Fields<Wire> & keyof Domain as unknown extends RuleFor<Domain[K], Wire[K]>
    ? never
    : K]: RuleFor<Domain[K], Wire[K]>;
} & {
  readonly [K in Fields<Wire> & keyof Domain as unknown extends RuleFor<Domain[K], Wire[K]>
    ? K
    : never]?: Rule<One<Domain[K]>>;
} & { readonly [K in Exclude<Fields<Wire>, keyof Domain>]: typeof skip } & {
  readonly [K in Exclude<keyof Domain, Fields<Wire>>]: 'the message has no such field';
};

type Refusal<R> = Needed extends { [K in keyof R]: R[K] extends Needed ? Needed : never }[keyof R]
  ? null
  : never;

export interface Mapping<Domain, Name extends MessageName, Unreadable = never> {
  readonly toWire: (value: Domain) => Sent<Name>;
  /** @returns null for a message without a member that is needed */
  readonly fromWire: (wire: Read<Name>) => Domain | Unreadable;
}

type Given<D, Name extends MessageName, R> =
  Partial<Rules<D, Read<Name>>> extends Rules<D, Read<Name>> ? [rules?: R] : [rules: R];

/** `message<Drain>()('Drain')`: the mapping of one message. */
export function message<Domain>() {
  return <Name extends MessageName, const R extends Rules<Domain, Read<Name>> = Rules<Domain, Read<Name>>>(
    name: Name,
    ...[rules]: Given<Domain, Name, R>
  ) => objectMapping(name, rules ?? {}) as unknown as Mapping<Domain, Name, Refusal<R>>;
}

/**
 * The same without the types, for a message that is known by its name only.
 * @param rules for members that have one
 */
export function mappedMessage(
  name: string,
  rules: Readonly<Record<string, { readonly fromWire: (wire: never) => unknown }>>,
): (wire: never) => unknown {
  const { fromWire } = objectMapping(name, rules as AnyRules);
  return fromWire as (wire: never) => unknown;
}

interface AnyRule {
  readonly toWire?: (value: unknown) => unknown;
  readonly fromWire?: (wire: unknown) => unknown;
  readonly needed?: true;
  readonly sparse?: true;
  readonly skipped?: true;
  /** What the member is where the field is absent. */
  readonly absent?: unknown;
}
type AnyRules = Readonly<Record<string, AnyRule | undefined>>;
type Members = Record<string, unknown>;

interface FieldPlan extends AnyRule {
  readonly name: string;
  readonly isList: boolean;
}

interface Plan {
  readonly fields: readonly FieldPlan[];
  /** All members as they are where every field is absent: a copy of it is filled faster than an empty object. */
  readonly absent: Readonly<Members>;
}

/** @param ofMessage name of the message, whose fields are looked at when the first one is mapped */
function objectMapping(ofMessage: string, rules: AnyRules): AnyRule {
  let planned: Plan | null = null;
  const plan = () => (planned ??= planOf(ofMessage, rules));
  return {
    toWire(value) {
      const wire: Members = {};
      for (const { name, isList, toWire } of plan().fields) {
        const member = (value as Members)[name];
        if (member === null || member === undefined) continue;
        if (toWire === undefined) wire[name] = member;
        else wire[name] = isList ? (member as unknown[]).map((each) => toWire(each)) : toWire(member);
      }
      return wire;
    },
    fromWire(wire) {
      const { fields, absent } = plan();
      const value = { ...absent };
      for (const { name, isList, fromWire, needed: isNeeded } of fields) {
        const member = (wire as Members)[name] ?? null;
        const read =
          member === null || fromWire === undefined
            ? member
            : isList
              ? (member as unknown[]).map((each) => fromWire(each)).filter((each) => each !== null)
              : fromWire(member);
        if (read !== null) value[name] = read;
        else if (isNeeded) return null;
      }
      return value;
    },
  };
}

function planOf(ofMessage: string, rules: AnyRules): Plan {
  const absent: [string, unknown][] = [];
  const fields = wireFields(ofMessage).flatMap((field): readonly FieldPlan[] => {
    const { name, isList, isMap, isOptional, defaultValue } = field;
    const rule = rules[name];
    if (rule?.skipped) return [];
    if (!rule?.sparse) absent.push([name, rule?.absent ?? (isOptional ? null : defaultValue)]);
    if (field.message !== null) return [{ name, isList, ...objectMapping(field.message, {}), ...rule }];
    return [{ name, isList, fromWire: isMap ? finiteValues : finite, ...rule }];
  });
  // An object that grows member by member is slow to copy.
  return { fields, absent: Object.fromEntries(absent) };
}

/** A number that is not finite was printed by a program, and counts as not read. */
function finite(value: unknown): unknown {
  return typeof value === 'number' && !Number.isFinite(value) ? null : value;
}

function finiteValues(map: unknown): unknown {
  return Object.fromEntries(Object.entries(map as object).filter(([, value]) => finite(value) !== null));
}

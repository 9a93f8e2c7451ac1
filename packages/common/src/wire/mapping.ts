/**
 * One mapping between the messages of proto/ and the values of the domain. A field of the message is the member of the same name;
 * what is absent on the wire is null in the domain, and 0, empty text and false are values like any other. Only where a member is
 * narrower than its field, or nested, does a message name a rule for it; the types demand it there.
 */
import type { MessageTypeDefinition } from '@grpc/proto-loader';
import type { ProtoGrpcType as AgentTypes } from '../gen/agent.ts';
import type { ProtoGrpcType as MusterTypes } from '../gen/muster.ts';
import { type MessageType, messageType } from './service.ts';

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
export interface Rule<Value> {
  readonly toWire: (value: Value) => unknown;
  /** @returns null for what cannot be read; a list leaves it out */
  readonly fromWire: (wire: never) => Value | null;
}

interface SureRule<Value> extends Rule<Value> {
  readonly fromWire: (wire: never) => Value;
}

interface Needed {
  readonly needed: true;
}

/** The message cannot be read without this member. */
export function needed<R>(rule: R): R & Needed {
  return { ...rule, needed: true };
}

/** What the member is where the field is absent. */
export function orElse<R, Value>(rule: R, absent: Value): R & { readonly absent: Value } {
  return { ...rule, absent };
}

/** The field is absent where the domain has no such member at all. */
export function sparse<Value>(rule: Rule<Value> | null = null): { readonly sparse: true } {
  return { ...rule, sparse: true };
}

/** A field that is no member of the domain's value. */
export const skip = { skipped: true } as const;

/** A word of a fixed list. @param fallback what a word counts as that only a newer peer knows */
export function word<Word extends string>(words: readonly Word[], fallback: Word) {
  return { toWire: (value: Word) => value, fromWire: (text: string) => known(words, text, fallback) };
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

/** An object whose members are nobody's business on the way. */
export const json = {
  toWire: (value: Readonly<Record<string, unknown>>) => JSON.stringify(value),
  fromWire: (text: string) => JSON.parse(text || '{}') as Readonly<Record<string, unknown>>,
};

/** @returns the fallback for a word that only a newer peer knows */
export function known<Word extends string>(words: readonly Word[], text: string, fallback: Word): Word {
  return words.find((each) => each === text) ?? fallback;
}

type Fields<Wire> = Exclude<keyof Wire & string, `_${string}`>;
type One<Value> = NonNullable<Value> extends readonly (infer Each)[] ? Each : NonNullable<Value>;
type MayLack<Field> = undefined extends Field ? true : null extends Field ? true : false;
/** A field that needs no rule. */
type Plain<Field> = undefined extends Field ? Exclude<Field, undefined> | null : Field;

type RuleFor<Value, Field> = undefined extends Value
  ? { readonly sparse: true }
  : Field extends readonly unknown[]
    ? Rule<One<Value>>
    : null extends Value
      ? MayLack<Field> extends true
        ? Rule<One<Value>>
        : 'its field must be optional'
      : MayLack<Field> extends true
        ? Rule<One<Value>> & (Needed | { readonly absent: Value })
        : SureRule<One<Value>> | (Rule<One<Value>> & Needed);

/** Whether the values of a field are those of the member as they are. No member is a symbol. */
type IsPlain<Value, Field> = [
  undefined extends Value
    ? symbol
    : null extends Value
      ? MayLack<Field> extends true
        ? Plain<Field>
        : symbol
      : Plain<Field>,
] extends [Value]
  ? true
  : false;

type Rules<Domain, Wire> = {
  readonly [K in Fields<Wire> & keyof Domain as IsPlain<Domain[K], Wire[K]> extends true
    ? never
    : K]: RuleFor<Domain[K], Wire[K]>;
} & {
  readonly [K in Fields<Wire> & keyof Domain as IsPlain<Domain[K], Wire[K]> extends true
    ? K
    : never]?: RuleFor<Domain[K], Wire[K]>;
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

/** The same mapping of a message that may be missing as a whole. */
export function nullable<Domain, Name extends MessageName>({ toWire, fromWire }: Mapping<Domain, Name>) {
  return {
    toWire: (value: Domain | null): Sent<Name> | null => (value === null ? null : toWire(value)),
    fromWire: (wire: Read<Name> | null): Domain | null => (wire === null ? null : fromWire(wire)),
  };
}

type Given<D, Name extends MessageName, R> =
  Partial<Rules<D, Read<Name>>> extends Rules<D, Read<Name>> ? [rules?: R] : [rules: R];

/** `message<Drain>()('Drain')`: the mapping of one message. */
export function message<Domain>() {
  return <Name extends MessageName, const R extends Rules<Domain, Read<Name>> = Rules<Domain, Read<Name>>>(
    name: Name,
    ...[rules]: Given<Domain, Name, R>
  ) => objectMapping(() => messageType(name), rules ?? {}) as unknown as Mapping<Domain, Name, Refusal<R>>;
}

interface AnyRule {
  readonly toWire?: (value: unknown) => unknown;
  readonly fromWire?: (wire: unknown) => unknown;
  readonly needed?: true;
  readonly sparse?: true;
  readonly skipped?: true;
  readonly absent?: unknown;
}
type AnyRules = Readonly<Record<string, AnyRule | undefined>>;

interface FieldPlan extends AnyRule {
  readonly name: string;
  readonly isList: boolean;
  /** What a number counts as that is not finite: printed by a program, it was not read. */
  readonly notFinite: null | 0;
}

type Members = Record<string, unknown>;

interface Plan {
  readonly fields: readonly FieldPlan[];
  /** All members as they are where every field is absent: a copy of it is filled faster than an empty object. */
  readonly absent: Readonly<Members>;
}

/** @param typeOf asked once, at the first message */
function objectMapping(typeOf: () => MessageType, rules: AnyRules) {
  let planned: Plan | null = null;
  const plan = () => (planned ??= planOf(typeOf(), rules));
  return {
    toWire(value: Readonly<Members>): Members {
      const wire: Members = {};
      for (const { name, isList, toWire } of plan().fields) {
        const member = value[name];
        if (member === null || member === undefined) continue;
        if (toWire === undefined) wire[name] = member;
        else wire[name] = isList ? (member as unknown[]).map(toWire) : toWire(member);
      }
      return wire;
    },
    fromWire(wire: Readonly<Members>): Members | null {
      const { fields, absent } = plan();
      const value = { ...absent };
      for (const field of fields) {
        const { name } = field;
        const member = wire[name];
        const read = member === undefined || member === null ? null : readMember(field, member);
        if (read !== null) value[name] = read;
        else if (field.needed) return null;
        else if (member !== undefined && member !== null && !field.sparse) value[name] = null;
      }
      return value;
    },
  };
}

function readMember({ isList, fromWire, notFinite }: FieldPlan, wire: unknown): unknown {
  if (fromWire === undefined) return typeof wire === 'number' && !Number.isFinite(wire) ? notFinite : wire;
  if (!isList) return fromWire(wire);
  const values: unknown[] = [];
  for (const each of wire as unknown[]) {
    const value = fromWire(each);
    if (value !== null) values.push(value);
  }
  return values;
}

function planOf(type: MessageType, rules: AnyRules): Plan {
  const fields = fieldsOf(type, rules);
  const members = fields.flatMap(({ name, isList, sparse: isSparse, absent = isList ? [] : null }) =>
    isSparse ? [] : [[name, absent] as const],
  );
  return { fields, absent: Object.fromEntries(members) };
}

function fieldsOf(type: MessageType, rules: AnyRules): readonly FieldPlan[] {
  return type.fieldsArray.flatMap((field) => {
    const { name, map: isMap, repeated, options, resolvedType } = field.resolve();
    const rule = rules[name];
    if (rule?.skipped) return [];
    const nested =
      rule?.fromWire === undefined && resolvedType !== null && 'fieldsArray' in resolvedType && !isMap
        ? objectMapping(() => resolvedType, {})
        : {};
    const numbers = rule?.fromWire === undefined && isMap ? { toWire: copied, fromWire: finite } : {};
    const isOptional = options?.['proto3_optional'] === true;
    return [{ name, isList: repeated, notFinite: isOptional ? null : 0, ...nested, ...numbers, ...rule }];
  });
}

function copied(map: unknown): unknown {
  return { ...(map as object) };
}

function finite(map: unknown): unknown {
  return Object.fromEntries(
    Object.entries(map as object).filter(([, value]) => typeof value !== 'number' || Number.isFinite(value)),
  );
}

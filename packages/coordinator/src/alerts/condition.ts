/**
 * Conditions of alerts, in the Common Expression Language. The library parses and evaluates them; it has no checker of types, so
 * what a condition may use is checked here, over the parsed expression and against the table of known names. A checked condition
 * costs little whatever its text: no loops, no recursion deeper than its length, and regular expressions of a bounded size that
 * run in linear time.
 *
 * The module loads the library, so it is imported only once there is an alert.
 */
import { CelScalar, celEnv, celMethod, isCelError, parse, plan } from '@bufbuild/cel';
import type { Expr } from '@bufbuild/cel-spec/cel/expr/syntax_pb.js';
import { RE2JS } from '@bufbuild/re2';
import { conditionLengthMax } from '@muster/common/alerts';
import { messageOf } from '@muster/common/errors';
import { closest } from '@muster/common/spec/suggest';
import { type CheckedType, checkOperation, conditionFunctions } from './conditionTypes.ts';
import type { KnownName } from './names.ts';
import type { SubjectValues } from './subjectValues.ts';

/** What is wrong with a condition, and where. */
export class ConditionError extends Error {
  override readonly name = 'ConditionError';
  /** Characters from the start, from 1. */
  readonly column: number;

  constructor(column: number, message: string) {
    super(message);
    this.column = column;
  }
}

export interface CheckedCondition {
  /** The names that it uses, each once. */
  readonly names: readonly string[];
  /** Whether its value may change though nothing happens: it compares a duration since something. */
  readonly usesTime: boolean;
  /** @returns null: it depends on something that is unknown */
  evaluate(values: SubjectValues): boolean | null;
}

/** Parentheses, brackets and braces within one another. */
const nestingMax = 40;
const patternLengthMax = 100;
/** Of what a regular expression repeats by a number, all repetitions together. */
const repetitionsMax = 50;
const rememberedMax = 1_000;

/**
 * @param names what it may use
 * @throws {ConditionError}
 */
export function checkCondition(text: string, names: Readonly<Record<string, KnownName>>): CheckedCondition {
  refuseSize(text);
  const parsed = parsedCondition(text);
  const checker = new Checker(names, (id) => (parsed.sourceInfo?.positions[String(id)] ?? 0) + 1);
  const type = checker.check(parsed.expr);
  if (type !== 'bool')
    throw new ConditionError(1, `a condition is true or false, and this one is of type ${type}`);
  const parts = joined(parsed.expr).map((each) => partOf(each, names));
  const used = [...checker.used];
  return {
    names: used,
    usesTime: used.some((name) => names[name]?.type === 'duration'),
    evaluate: (values) => {
      let verdict: boolean | null = true;
      for (const part of parts) {
        const holds = verdictOf(part, values);
        if (holds === false) return false;
        if (holds === null) verdict = null;
      }
      return verdict;
    },
  };
}

/** What `&&` joins at the top of a condition. Many conditions have some of it in common. */
interface Part {
  readonly names: readonly (readonly [string, KnownName['type']])[];
  readonly run: (bindings: SubjectValues['bindings']) => unknown;
}

/** By the names that they may use, and by their content. */
const knownParts = new WeakMap<object, Map<string, Part>>();

function joined(expr: Expr): readonly Expr[] {
  const { exprKind: kind } = expr;
  return kind.case === 'callExpr' && kind.value.function === '_&&_'
    ? kind.value.args.flatMap(joined)
    : [expr];
}

function partOf(expr: Expr, known: Readonly<Record<string, KnownName>>): Part {
  const used = new Set<string>();
  // Ids depend on where an expression stands, not on its content.
  const key = JSON.stringify(expr, (name, value: unknown) => {
    const { case: kind, value: ident } = (value ?? {}) as { case?: string; value?: { name: string } };
    if (kind === 'identExpr' && ident !== undefined) used.add(ident.name);
    if (name === 'id') return undefined;
    return typeof value === 'bigint' || typeof value === 'number' ? `${typeof value} ${value}` : value;
  });
  const ofNames = knownParts.get(known) ?? new Map<string, Part>();
  if (ofNames.size >= rememberedMax * 10) ofNames.clear();
  knownParts.set(known, ofNames);
  const before = ofNames.get(key);
  if (before !== undefined) return before;
  const names = [...used].flatMap((name) => {
    const type = known[name]?.type;
    return type === undefined ? [] : [[name, type] as const];
  });
  const part = { names, run: plan(environment(), expr) };
  ofNames.set(key, part);
  return part;
}

function verdictOf(part: Part, values: SubjectValues): boolean | null {
  const before = values.verdicts.get(part);
  if (before !== undefined) return before;
  for (const [name, type] of part.names) values.bind(name, type);
  const result = part.run(values.bindings);
  const verdict = isCelError(result) || typeof result !== 'boolean' ? null : result;
  values.verdicts.set(part, verdict);
  return verdict;
}

function refuseSize(text: string): void {
  if (text.trim() === '') throw new ConditionError(1, 'the condition is empty');
  if (text.length > conditionLengthMax)
    throw new ConditionError(
      conditionLengthMax + 1,
      `the condition has ${text.length} characters; expected at most ${conditionLengthMax}`,
    );
  let depth = 0;
  for (let index = 0; index < text.length; index += 1) {
    if ('([{'.includes(text.charAt(index))) depth += 1;
    if (')]}'.includes(text.charAt(index))) depth -= 1;
    if (depth > nestingMax)
      throw new ConditionError(index + 1, `more than ${nestingMax} parentheses within one another`);
  }
}

function parsedCondition(text: string) {
  try {
    return parse(text);
  } catch (error) {
    const { location } = error as { location?: { start: { offset: number } } };
    const column = (location?.start.offset ?? 0) + 1;
    const [, found] = /found (.+?) but expecting/s.exec(messageOf(error)) ?? [];
    throw new ConditionError(
      column,
      `cannot be parsed here${found === undefined ? '' : `: unexpected ${found}`}`,
    );
  }
}

class Checker {
  readonly used = new Set<string>();
  private readonly names: Readonly<Record<string, KnownName>>;
  private readonly columnOf: (id: bigint) => number;

  constructor(names: Readonly<Record<string, KnownName>>, columnOf: (id: bigint) => number) {
    this.names = names;
    this.columnOf = columnOf;
  }

  check(expr: Expr): CheckedType {
    const { exprKind: kind } = expr;
    switch (kind.case) {
      case 'constExpr':
        return this.constant(expr, kind.value.constantKind.case);
      case 'identExpr':
        return this.name(expr, kind.value.name);
      case 'selectExpr': {
        const { operand, field, testOnly } = kind.value;
        const type = operand === undefined ? 'string' : this.check(operand);
        if (type !== 'map(string, string)')
          throw this.error(
            expr,
            `".${field}": ${typeText(type)} has no fields; labels have: labels.${field}`,
          );
        return testOnly ? 'bool' : 'string';
      }
      case 'callExpr': {
        const { target, args, function: name } = kind.value;
        const types = [...(target === undefined ? [] : [target]), ...args].map((each) => this.check(each));
        const result = checkOperation(name, types, target !== undefined);
        if (typeof result === 'object') throw this.error(expr, this.withHint(name, result.problem));
        if (name === 'matches') this.pattern(args.at(-1) ?? expr);
        if (name === 'duration') this.duration(expr, args[0] ?? expr);
        return result;
      }
      case 'listExpr': {
        const types = kind.value.elements.map((each) => this.check(each));
        if (types.some((type) => type !== 'string'))
          throw this.error(expr, 'a list holds texts only: x in ["a", "b"]');
        return 'list(string)';
      }
      case 'comprehensionExpr':
        throw this.error(expr, 'exists, all, map and filter are not available; "x" in list is');
      default:
        throw this.error(expr, 'this form is not available in conditions');
    }
  }

  private constant(expr: Expr, kind: string | undefined): CheckedType {
    switch (kind) {
      case 'stringValue':
        return 'string';
      case 'boolValue':
        return 'bool';
      case 'doubleValue':
        return 'double';
      case 'int64Value':
        return 'int';
      default:
        throw this.error(
          expr,
          `a value of the kind ${kind?.replace('Value', '') ?? 'unknown'} is not available`,
        );
    }
  }

  private name(expr: Expr, name: string): CheckedType {
    const known = Object.hasOwn(this.names, name) ? this.names[name] : undefined;
    if (known === undefined) {
      const meant = closest(name, Object.keys(this.names));
      const hint =
        meant === null ? `known are ${Object.keys(this.names).join(', ')}` : `did you mean "${meant}"?`;
      throw this.error(expr, `unknown name "${name.slice(0, 40)}"; ${hint}`);
    }
    this.used.add(name);
    return known.type;
  }

  private withHint(name: string, problem: string): string {
    const meant = conditionFunctions.includes(name) ? null : closest(name, conditionFunctions);
    return meant === null ? problem : `${problem}; did you mean "${meant}"?`;
  }

  /** Its cost is known only of a pattern that is written out. */
  private pattern(expr: Expr): void {
    const pattern = textOf(expr);
    if (pattern === null) throw this.error(expr, 'matches() takes a pattern in quotes');
    if (pattern.length > patternLengthMax)
      throw this.error(expr, `the pattern has more than ${patternLengthMax} characters`);
    const repetitions = [...pattern.matchAll(/\{(\d+)(?:,(\d*))?\}/g)]
      .map(([, least = '0', most]) => Math.max(Number(least), Number(most ?? 0), 1))
      .reduce((product, count) => product * count, 1);
    if (repetitions > repetitionsMax)
      throw this.error(expr, `the pattern repeats ${repetitions} times; expected at most ${repetitionsMax}`);
    try {
      compiled(pattern);
    } catch (error) {
      throw this.error(expr, `invalid pattern: ${messageOf(error).slice(0, 100)}`);
    }
  }

  /**
   * Puts the number of milliseconds in the place of the call. Durations are written out, and all that conditions do with them is to
   * compare, add and subtract: as numbers they are evaluated ten times as fast as the library's messages.
   */
  private duration(call: Expr, argument: Expr): void {
    const text = textOf(argument);
    if (text === null) throw this.error(argument, "duration() takes a text in quotes: duration('10m')");
    const ms = durationMs(text);
    if (ms === null)
      throw this.error(
        argument,
        `invalid duration "${text.slice(0, 40)}"; expected hours, minutes and seconds, such as '90s', '10m' or '1h30m'`,
      );
    const constantKind = { case: 'doubleValue', value: ms } as const;
    call.exprKind = { case: 'constExpr', value: { $typeName: 'cel.expr.Constant', constantKind } };
  }

  private error(expr: Expr, message: string): ConditionError {
    return new ConditionError(this.columnOf(expr.id), message);
  }
}

const unitsMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** @returns null: it is none */
function durationMs(text: string): number | null {
  if (text.length > 32 || !/^-?(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$/.test(text)) return null;
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)];
  const ms = parts.reduce((sum, [, count, unit = '']) => sum + Number(count) * (unitsMs[unit] ?? 0), 0);
  return text.startsWith('-') ? -ms : ms;
}

function typeText(type: CheckedType): string {
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`;
}

function textOf({ exprKind: kind }: Expr): string | null {
  if (kind.case !== 'constExpr' || kind.value.constantKind.case !== 'stringValue') return null;
  return kind.value.constantKind.value;
}

const patterns = new Map<string, RE2JS>();

/** Compiling costs far more than matching. @throws {Error} when it is not a valid RE2 regular expression */
function compiled(pattern: string): RE2JS {
  const known = patterns.get(pattern);
  if (known !== undefined) return known;
  if (patterns.size >= rememberedMax) patterns.clear();
  const fresh = RE2JS.compile(pattern);
  patterns.set(pattern, fresh);
  return fresh;
}

type Environment = ReturnType<typeof celEnv>;
let shared: Environment | null = null;

function environment(): Environment {
  shared ??= celEnv({
    funcs: [
      celMethod('isNaN', CelScalar.DOUBLE, [], CelScalar.BOOL, function () {
        return Number.isNaN(this);
      }),
    ],
    re2: { compile: (pattern) => ({ test: (text) => compiled(pattern).test(text) }) },
  });
  return shared;
}

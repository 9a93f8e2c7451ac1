/** Which operations and functions conditions of alerts have, and for which types. Pure. */
import type { ValueType } from './names.ts';

export type CheckedType = ValueType;

interface Problem {
  readonly problem: string;
}

const numbers: readonly CheckedType[] = ['int', 'double'];
const ordered: readonly CheckedType[] = ['int', 'double', 'string', 'duration'];
const shownOperators: Readonly<Record<string, string>> = { '@in': 'in', '_?_:_': '? :', '_[_]': '[ ]' };

/** As users write it. */
function shown(name: string): string {
  return shownOperators[name] ?? name.replaceAll('_', '');
}

const methods: Readonly<
  Record<string, { readonly takes: readonly CheckedType[]; readonly gives: CheckedType }>
> = {
  contains: { takes: ['string', 'string'], gives: 'bool' },
  startsWith: { takes: ['string', 'string'], gives: 'bool' },
  endsWith: { takes: ['string', 'string'], gives: 'bool' },
  matches: { takes: ['string', 'string'], gives: 'bool' },
  isNaN: { takes: ['double'], gives: 'bool' },
};

/** What users may call. */
export const conditionFunctions: readonly string[] = [
  ...Object.keys(methods),
  'duration',
  'size',
  'double',
  'int',
  'has',
];

/**
 * @param types of what it is applied to, the receiver of a method first
 * @returns the type of its value, or why there is none
 */
export function checkOperation(
  name: string,
  types: readonly CheckedType[],
  isMethod: boolean,
): CheckedType | Problem {
  const [a, b, c] = types;
  switch (name) {
    case '_&&_':
    case '_||_':
    case '!_': {
      const wrong = types.find((type) => type !== 'bool');
      return wrong === undefined
        ? 'bool'
        : { problem: `${shown(name)} joins what is true or false, and this is of type ${wrong}` };
    }
    case '_==_':
    case '_!=_':
      return a === b || areNumbers(a, b) ? 'bool' : mismatch(name, types);
    case '_<_':
    case '_<=_':
    case '_>_':
    case '_>=_':
      return areNumbers(a, b) || (a === b && a !== undefined && ordered.includes(a))
        ? 'bool'
        : mismatch(name, types);
    case '_+_':
      return a === b && a !== undefined && ordered.includes(a) ? a : mismatch(name, types);
    case '_-_':
      return a === b && a !== undefined && a !== 'string' && ordered.includes(a) ? a : mismatch(name, types);
    case '_*_':
    case '_/_':
      return a === b && a !== undefined && numbers.includes(a) ? a : mismatch(name, types);
    case '_%_':
      return a === 'int' && b === 'int' ? 'int' : mismatch(name, types);
    case '-_':
      return a === 'int' || a === 'double' ? a : mismatch(name, types);
    case '_?_:_':
      return a === 'bool' && b === c && b !== undefined ? b : mismatch(name, types);
    case '@in':
      return a === 'string' && (b === 'list(string)' || b === 'map(string, string)')
        ? 'bool'
        : mismatch(name, types);
    case '_[_]':
      return a === 'map(string, string)' && b === 'string' ? 'string' : mismatch(name, types);
    case 'duration':
      return !isMethod && types.length === 1 && a === 'string'
        ? 'duration'
        : { problem: "duration() takes a text: duration('10m')" };
    case 'size':
      return types.length === 1 && (a === 'string' || a === 'list(string)' || a === 'map(string, string)')
        ? 'int'
        : mismatch(name, types);
    case 'double':
    case 'int':
      return !isMethod && types.length === 1 && (a === 'int' || a === 'double')
        ? name
        : mismatch(name, types);
    default:
      return method(name, types, isMethod);
  }
}

function method(name: string, types: readonly CheckedType[], isMethod: boolean): CheckedType | Problem {
  const known = Object.hasOwn(methods, name) ? methods[name] : undefined;
  if (known === undefined) return { problem: `unknown function "${shown(name).slice(0, 40)}"` };
  const fits =
    isMethod &&
    types.length === known.takes.length &&
    types.every((type, place) => type === known.takes[place]);
  if (fits) return known.gives;
  const [receiver, ...rest] = known.takes;
  return { problem: `${name} is written as ${receiver}.${name}(${rest.join(', ')})` };
}

function areNumbers(a: CheckedType | undefined, b: CheckedType | undefined): boolean {
  return a !== undefined && b !== undefined && numbers.includes(a) && numbers.includes(b);
}

function mismatch(name: string, types: readonly CheckedType[]): Problem {
  const isMixed = types.includes('int') && types.includes('double');
  const hint = isMixed
    ? '; write a number with a point, such as 2.0, or double(x)'
    : types.includes('duration')
      ? "; write a duration as duration('10m')"
      : '';
  return { problem: `${shown(name)} cannot be applied to ${types.join(' and ')}${hint}` };
}

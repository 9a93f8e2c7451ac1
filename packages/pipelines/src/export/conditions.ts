/** The conditions of steps in the languages of other programs, as far as they map. Pure. */
import type { PipelineParameter } from '../model.ts';

interface Token {
  readonly kind: 'string' | 'number' | 'word' | 'sign';
  readonly text: string;
}

const tokenForm = new RegExp(
  [
    String.raw`\s+`,
    String.raw`(?<string>[rR]?(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))`,
    String.raw`(?<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)`,
    String.raw`(?<word>[A-Za-z_]\w*)`,
    String.raw`(?<sign>&&|\|\||[<>=!]=|[<>!()[\],+*.?:%/-])`,
  ].join('|'),
  'gy',
);

/** @returns null: it holds what is not read here, such as texts over several lines */
function tokensOf(condition: string): readonly Token[] | null {
  const tokens: Token[] = [];
  let end = 0;
  for (const match of condition.matchAll(tokenForm)) {
    end = match.index + match[0].length;
    const found = Object.entries(match.groups ?? {}).find(([, text]) => text !== undefined);
    if (found !== undefined) tokens.push({ kind: found[0] as Token['kind'], text: found[1] });
  }
  return end === condition.length ? tokens : null;
}

export interface SplitCondition {
  /** Steps that must have succeeded. */
  readonly succeeded: readonly string[];
  /** What else must hold. null: nothing. */
  readonly rest: string | null;
}

/**
 * Takes `steps.NAME == 'succeeded'` out of a condition whose parts must all hold: other programs say that by their tasks.
 * @param needs the steps that are waited for; only those are taken out
 */
export function splitCondition(condition: string, needs: readonly string[]): SplitCondition {
  const whole = { succeeded: [], rest: condition };
  const parts: Token[][] = [[]];
  let depth = 0;
  for (const token of tokensOf(condition) ?? []) {
    if (['(', '['].includes(token.text)) depth += 1;
    if ([')', ']'].includes(token.text)) depth -= 1;
    if (depth === 0 && ['||', '?'].includes(token.text)) return whole;
    if (depth === 0 && token.text === '&&') parts.push([]);
    else parts.at(-1)?.push(token);
  }
  const texts = parts.map((part) => part.map(({ text }) => text).join(' '));
  const asked = texts.map(
    (text) => /^steps (?:\. (\w+)|\[ ["']([\w-]+)["'] \]) == ["']succeeded["']$/.exec(text)?.slice(1) ?? [],
  );
  const names = asked.map(([dotted, bracketed]) => dotted ?? bracketed ?? '');
  const isTaken = (name: string | undefined) => name !== undefined && needs.includes(name);
  if (!names.some(isTaken)) return whole;
  const rest = texts.filter((_, index) => !isTaken(names[index]));
  return { succeeded: names.filter(isTaken), rest: rest.length === 0 ? null : rest.join(' && ') };
}

/** Kubeflow's are in CEL too, over the values of the task's inputs. @returns null: it looks at the states of steps */
export function kubeflowCondition(condition: string, params: readonly PipelineParameter[]): string | null {
  const tokens = tokensOf(condition);
  if (tokens === null || tokens.some(({ kind, text }) => kind === 'word' && text === 'steps')) return null;
  const words = tokens.map(({ kind, text }, index) => {
    const param = params.find(({ name }) => name === text);
    if (kind !== 'word' || param === undefined || tokens[index - 1]?.text === '.') return text;
    const value = `inputs.parameter_values['${text}']`;
    // Numbers are stored as floating-point ones, and in CEL those do not mix with whole ones.
    return param.type === 'int' ? `int(${value})` : value;
  });
  return words.join(' ');
}

const comparisons: ReadonlySet<string> = new Set(['==', '!=', '<', '<=', '>', '>=', 'in']);
/** Signs that mean the same in both languages. A division of whole numbers does not, and nothing has methods. */
const alike: ReadonlySet<string> = new Set(['(', ')', '[', ']', ',', '+', '-', '*', ...comparisons]);
const pythonWords: Readonly<Record<string, string>> = {
  '&&': 'and',
  '||': 'or',
  '!': 'not',
  true: 'True',
  false: 'False',
  in: 'in',
};

/** @returns null: it looks at the states of steps, or does what Python does in another way */
export function pythonCondition(condition: string, params: readonly PipelineParameter[]): string | null {
  const tokens = tokensOf(condition);
  if (tokens === null) return null;
  let comparisonsInRow = 0;
  const words: string[] = [];
  for (const [index, { kind, text }] of tokens.entries()) {
    if (['&&', '||', '(', ')', ','].includes(text)) comparisonsInRow = 0;
    if (comparisons.has(text)) comparisonsInRow += 1;
    // `a < b == c` is a chain in Python.
    if (comparisonsInRow > 1) return null;
    const word = pythonWord(kind, text, params);
    if (word === null || (text === '!' && !isWholeOperand(tokens, index + 1))) return null;
    words.push(word);
  }
  return words.join(' ');
}

function pythonWord(kind: Token['kind'], text: string, params: readonly PipelineParameter[]): string | null {
  if (kind === 'number') return text;
  // The escapes that both know mean the same.
  if (kind === 'string') return /\\[^\\'"nrt]/.test(text) ? null : text;
  const known = Object.hasOwn(pythonWords, text) ? pythonWords[text] : undefined;
  if (known !== undefined) return known;
  if (kind === 'sign') return alike.has(text) ? text : null;
  return params.some(({ name }) => name === text) ? `params["${text}"]` : null;
}

/** In CEL `!` binds closer than comparisons, in Python `not` does not. */
function isWholeOperand(tokens: readonly Token[], at: number): boolean {
  if (tokens[at]?.text === '(') return true;
  const next = tokens[at + 1]?.text ?? ')';
  return tokens[at]?.kind === 'word' && ['&&', '||', ')'].includes(next);
}

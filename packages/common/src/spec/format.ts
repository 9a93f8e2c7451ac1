/** Problems as the text a person reads in a terminal. */
import { escapeControls } from './path.ts';
import type { SpecProblem } from './types.ts';

export interface SpecSource {
  /** As the user named it, such as `job.yaml`. */
  readonly file: string;
  /** For the line under each problem; null: none is shown. */
  readonly text: string | null;
}

/** Adds colour; the default adds none. */
export type Paint = (text: string, part: 'place' | 'message' | 'frame') => string;

/**
 * One block per problem, blocks separated by a line break:
 *
 *     job.yaml:5:3  resources.gpu: unknown key; did you mean "gpus"?
 *         5 |   gpu: 4
 *           |   ^
 *
 * @param source the file the spec came from; null when there was none
 */
export function formatProblems(
  problems: readonly SpecProblem[],
  source: SpecSource | null,
  paint: Paint = (text) => text,
): string {
  const lines = source?.text?.split(/\r?\n/) ?? [];
  return problems
    .flatMap((problem) => {
      const place = placeOf(problem, source);
      const sentence = paint(escapeControls(problemSentence(problem)), 'message');
      const head = place === '' ? sentence : `${paint(escapeControls(place), 'place')}  ${sentence}`;
      return [head, ...frameOf(problem, lines).map((line) => paint(line, 'frame'))];
    })
    .join('\n');
}

function placeOf({ line, column, flag }: SpecProblem, source: SpecSource | null): string {
  if (flag !== null) return flag;
  if (source === null) return '';
  return line === null ? source.file : `${source.file}:${line}:${column ?? 1}`;
}

/** `resources.gpu: unknown key; did you mean "gpus"?` The path is omitted beside a flag. */
export function problemSentence({
  path,
  flag,
  message,
  expected,
  suggestion,
}: Omit<SpecProblem, 'line' | 'column'>): string {
  // The flag names the setting already.
  const subject = path === '' || flag !== null ? '' : `${path}: `;
  const expectation = expected === null ? '' : `; expected ${expected}`;
  return `${subject}${message}${expectation}${suggestion === null ? '' : `; did you mean ${shown(suggestion)}?`}`;
}

/** Numbers, booleans and mappings without quotes: quotes are often what was wrong. */
function shown(suggestion: string): string {
  return /^(?:[\d.]+|true|false|\{.*\})$/.test(suggestion) ? suggestion : `"${suggestion}"`;
}

const frameWidth = 90;

function frameOf({ line, column }: SpecProblem, lines: readonly string[]): readonly string[] {
  const text = line === null ? undefined : lines[line - 1];
  if (text === undefined || text.trim() === '') return [];
  const caret = Math.min((column ?? 1) - 1, text.length);
  const from = caret > frameWidth - 10 ? caret - frameWidth / 2 : 0;
  const shownText = oneCellEach(text.slice(from, from + frameWidth));
  const gutter = String(line).padStart(5);
  return [`${gutter} | ${shownText}`, `${' '.repeat(gutter.length)} | ${' '.repeat(caret - from)}^`];
}

/** Tabs and control characters as one blank each, so that the caret stands under what it means. */
function oneCellEach(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Bidi_Control}]/gu, ' ');
}

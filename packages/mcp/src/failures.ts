/** What a caller is told when a call fails: what is wrong, where, and what to do next. Never a stack trace. Pure. */
import { type ErrorCode, MusterError, type SpecProblemView } from '@muster/common/errors';
import { closest } from '@muster/common/spec/suggest';
import type * as z from 'zod';
import { brief } from './size.ts';

const nextSteps: Readonly<Partial<Record<ErrorCode, string>>> = {
  invalid: 'Correct the parameters and call again; nothing was changed.',
  not_found: 'workload_list, sweep_list, node_list and alert_list show what there is.',
  already_exists: 'Choose another requestId or name; nothing was changed.',
  failed_precondition: 'workload_get or sweep_get shows the present state; nothing was changed.',
  resource_exhausted: 'Nothing was changed. Ask for less, or wait until there is room.',
  unauthenticated: 'Ask the user for a valid token (MUSTER_TOKEN, or muster login).',
  permission_denied: 'Do not retry: ask the user, or an admin of the cluster.',
  unavailable:
    'The coordinator is away: call again in some seconds, with the same requestId if it was a change.',
  deadline_exceeded:
    'It is unknown whether a change was made: call again with the same requestId, or look with workload_list or sweep_list.',
};

/** Problems that are told at once. */
const problemsMax = 10;

export function failureText(error: unknown): string {
  if (!(error instanceof MusterError))
    return 'error internal: a bug of Muster, which is in the log of this server. Report it; do not retry.';
  const problems = error.problems.slice(0, problemsMax).map((problem) => `\n- ${problemText(problem)}`);
  const more = error.problems.length - problems.length;
  const next = nextSteps[error.code];
  return [
    `error ${error.code}: ${brief(error.message, 1_000)}`,
    ...problems,
    ...(more > 0 ? [`\n- and ${more} more`] : []),
    ...(next === undefined ? [] : [`\nNext: ${next}`]),
  ].join('');
}

function problemText({ path, message, expected, suggestion }: SpecProblemView): string {
  const parts = [
    `${parameterOf(path)}: ${brief(message)}`,
    ...(expected === null ? [] : [`expected ${brief(expected)}`]),
    ...(suggestion === null ? [] : [`did you mean ${brief(suggestion, 100)}?`]),
  ];
  return parts.join('; ');
}

/** Parts of a sweep that have the names of its file. */
const filePart = /^(?:job|parameters|objectives?|early_stopping)\b/;

/** `resources.gpu_memory_mb` of the job file is the parameter `gpuMemoryMb`. */
function parameterOf(path: string): string {
  const [part] = filePart.exec(path) ?? [];
  if (part !== undefined) return `${camelCased(part)}${path.slice(part.length)}`;
  const plain = camelCased(path.replace(/^resources\./, ''));
  return plain === '' ? 'the workload' : plain;
}

function camelCased(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** What is wrong with the parameters of a call, by the issues of its schema. */
export function parameterError(
  toolName: string,
  issues: readonly z.core.$ZodIssue[],
  parameters: readonly string[],
): MusterError {
  const problems = issues.flatMap((issue): readonly SpecProblemView[] => {
    const path = issue.path.map(String).join('.');
    if (issue.code !== 'unrecognized_keys')
      return [{ path, message: issue.message, expected: null, suggestion: null }];
    return issue.keys.map((key) => ({
      path: path === '' ? brief(key, 60) : `${path}.${brief(key, 60)}`,
      message: 'is not a parameter',
      expected: path === '' ? `one of ${parameters.join(', ')}` : null,
      suggestion: path === '' ? closest(key, parameters) : null,
    }));
  });
  return new MusterError('invalid', `${toolName} was called with wrong parameters`, { problems });
}

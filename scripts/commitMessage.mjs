// The hook `commit-msg` of a clone that has switched it on: refuses a message of the wrong form, and warns of a large commit.
// It runs when somebody commits and at no other time: build servers have shallow clones, and nothing to correct there.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const subjectMax = 72;
const changedLinesMax = 500;

/**
 * What is wrong with the form of a commit's message; its thoughts are left to the review.
 * @param {string} message as git hands it to the hook, its comments included
 * @returns {readonly string[]} one sentence for each problem
 */
export function problemsOf(message) {
  const [subject = '', second = '', ...body] = message
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .join('\n')
    .trimEnd()
    .split('\n');
  // Git writes these itself, or replaces them before anybody reads them.
  if (/^(?:Merge|Revert|fixup!|squash!|amend!) /.test(subject)) return [];
  return [
    ...(subject.length > subjectMax
      ? [`The subject has ${subject.length} characters; at most ${subjectMax} are shown in lists.`]
      : []),
    ...(/^\p{Lu}/u.test(subject) ? [] : ['The subject must begin with a capital letter.']),
    ...(subject.endsWith('.') ? ['The subject must not end with a full stop.'] : []),
    ...(second === '' ? [] : ['The line after the subject must be empty.']),
    ...(body.some((line) => line !== '') ? [] : ['The message must have a body that says why.']),
  ];
}

/**
 * @param {string} numstat what `git diff --numstat` prints; generated files, marked `-diff`, have no numbers there
 * @returns {number} lines added and removed
 */
export function changedLines(numstat) {
  return numstat
    .split('\n')
    .map((line) => line.split('\t').slice(0, 2).map(Number))
    .reduce((sum, [added = 0, removed = 0]) => sum + (added || 0) + (removed || 0), 0);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const problems = problemsOf(readFileSync(process.argv[2] ?? '', 'utf8'));
  const { stdout } = spawnSync('git', ['diff', '--cached', '--numstat', '-M'], { encoding: 'utf8' });
  const lines = changedLines(stdout);
  if (lines > changedLinesMax)
    process.stderr.write(
      `warning: ${lines} changed lines; over ${changedLinesMax} only for renames and generated files\n`,
    );
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  if (problems.length > 0) process.stderr.write('See "Commits" in CONTRIBUTING.md.\n');
  process.exitCode = problems.length > 0 ? 1 : 0;
}

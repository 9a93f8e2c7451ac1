// `npm run check`: everything that can be said about the code without running the product. One line per check; what a
// failed check printed follows.
import { fileURLToPath } from 'node:url';
import { capture, interruption } from './processes.mjs';
import { prepare, root } from './setup.mjs';
import { exitWith, Stop, step } from './terminal.mjs';

/** @typedef {{ title: string, command: readonly [string, ...string[]], remedy?: string }} Check */

/** @type {readonly Check[]} */
export const staticChecks = [
  { title: 'types', command: ['tsc', '-p', '.'] },
  { title: 'lint', command: ['oxlint'] },
  { title: 'format', command: ['biome', 'check', '.'], remedy: '`npm run fix` corrects this.' },
  { title: 'unused files, exports, dependencies', command: ['knip', '--no-progress', '--no-config-hints'] },
  {
    title: 'generated code is what proto/ says',
    command: ['node', 'scripts/generate-proto.mjs', '--check'],
    remedy: '`npm run generate` corrects this.',
  },
  {
    title: 'docs/json.md is what proto/ says',
    command: ['node', 'scripts/generate-json-docs.mjs', '--check'],
    remedy: '`npm run generate` fixes this.',
  },
  {
    title: 'docs/openapi.json is what proto/ and the routes say',
    command: ['node', 'scripts/generate-openapi.mjs', '--check'],
    remedy: '`npm run generate` fixes this.',
  },
];

/** @type {Check} */
const rules = {
  title: "the repository's own rules (test/rules)",
  command: ['vitest', 'run', '--project', 'unit', 'test/rules'],
};

/**
 * Runs every check, also after one has failed.
 * @param {readonly Check[]} checks
 * @param {AbortSignal} interrupted
 * @returns {Promise<number>} how many failed
 */
export async function runChecks(checks, interrupted) {
  let failed = 0;
  for (const check of checks) {
    try {
      await step(check.title, () => runCheck(check, interrupted));
    } catch (error) {
      interrupted.throwIfAborted();
      if (!(error instanceof Stop)) throw error;
      process.stderr.write(`${error.message}\n`);
      failed += 1;
    }
  }
  return failed;
}

/** @param {Check} check @param {AbortSignal} interrupted */
async function runCheck({ command: [program, ...args], remedy }, interrupted) {
  const { code, output } = await capture(program, args, { cwd: root, signal: interrupted });
  if (code !== 0) throw new Stop([output.trimEnd(), ...(remedy === undefined ? [] : [remedy])].join('\n'));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  void exitWith(async () => {
    await prepare(import.meta.url);
    return (await runChecks([...staticChecks, rules], interruption())) === 0 ? 0 : 1;
  });
}

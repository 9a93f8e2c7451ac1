import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { expect, test } from 'vitest';
import { tempDir } from '../../../../test/support/services.ts';
import { withAgentFlags } from '../agentFlags.ts';
import { withCoordinatorFlags } from '../coordinatorFlags.ts';
import { exitCodes } from '../exitCodes.ts';
import { runCli } from '../program.ts';
import { newCall } from '../testing/testContext.ts';
import { configKeys, parseConfig, withConfigFile } from './configFile.ts';

const agent = new Command('agent');
withAgentFlags(agent);
const coordinator = new Command('coordinator');
withCoordinatorFlags(coordinator);

/** A file with this text. */
function file(text: string): string {
  const path = join(tempDir('config').path, 'muster.yaml');
  writeFileSync(path, text);
  return path;
}

/** What a command line means, with the file that it names. */
async function flagsOf(...words: readonly string[]): Promise<Readonly<Record<string, unknown>>> {
  const command = new Command('agent').exitOverride();
  withAgentFlags(command);
  const [, ...all] = await withConfigFile(['agent', ...words], command, { workingDir: '/' });
  const { config: _path, ...flags } = command.parse(all, { from: 'user' }).opts();
  return flags;
}

test('keys of the file are the flags, with the same parsers', async () => {
  const path = file(`
# The agent of gpu-1.
data: /var/lib/muster-agent
name: gpu-1
coordinator: head:7070
label: [topology=rack7/leaf3, network=ib0]
checkpoint_root: /shared/checkpoints
container_read_only: true
shutdown_grace: 25s
cpus: 8
kernel_log: "-"
metrics: off
`);
  expect(await flagsOf('--config', path)).toEqual(
    await flagsOf(
      ...'--data /var/lib/muster-agent --name gpu-1 --coordinator head:7070 --label topology=rack7/leaf3'.split(
        ' ',
      ),
      ...'--label network=ib0 --container-read-only --checkpoint-root /shared/checkpoints'.split(' '),
      ...'--shutdown-grace 25s --cpus 8 --kernel-log - --metrics off'.split(' '),
    ),
  );
});

test('a flag that was typed replaces the key, lists included', async () => {
  const path = file('data: /d\nname: gpu-1\ncoordinator: head:7070\nlabel: [a=b, c=d]\nroot_tasks: refuse\n');
  const flags = await flagsOf('--label', 'e=f', '--name=gpu-2', '--config', path);
  expect(flags).toEqual({
    data: '/d',
    name: 'gpu-2',
    coordinator: 'head:7070',
    label: ['e=f'],
    rootTasks: 'refuse',
  });
});

test.each([
  ['lebel: [a=b]', 'line 1: unknown key "lebel"; did you mean label?'],
  ['\nshutdown-grace: 20s', 'line 2: unknown key "shutdown-grace"; did you mean shutdown_grace?'],
  ['colour: red', 'line 1: unknown key "colour"'],
  ['config: /etc/other', 'line 1: unknown key "config"'],
  ['cpus: many', 'line 1: cpus takes a whole number from 1 to 4096; got "many"'],
  ['cpus: 0x10', 'line 1: cpus takes a whole number from 1 to 4096; got "0x10"'],
  ['guard: mine', 'line 1: guard: allowed choices are own, service'],
  ['container_read_only: yes', 'line 1: container_read_only takes true or false; got "yes"'],
  ['name: [a, b]', 'line 1: name takes one value, not a list'],
  ['label: {a: b}', 'line 1: label takes a value or a list of values'],
  ['name:', 'line 1: name has no value; leave the line out for the default'],
  ['name: a\nname: b', 'line 2: Map keys must be unique'],
  ['- name', 'line 1: keys with values are expected'],
  ['name: "a', 'line 1: Missing closing "quote'],
])('%j is refused', (text, problem) => {
  expect(parseConfig(text, agent)).toEqual({ ok: false, problems: [problem] });
});

test('all problems of a file are named at once, with the file', async () => {
  const path = file('data: /d\nlissen: 0.0.0.0:7070\nlease: 10 parsecs\n');
  const { context, stderr } = newCall(null);
  expect(await runCli(['coordinator', '--config', path], context)).toBe(exitCodes.usage);
  expect(stderr()).toContain(`${path} is not valid`);
  expect(stderr()).toContain('line 2: unknown key "lissen"; did you mean listen?');
  expect(stderr()).toContain('line 3: lease takes a duration from 1s to 1d');
});

test('a missing file is named', async () => {
  const { context, stderr } = newCall(null);
  expect(await runCli(['agent', '--config', '/nowhere/agent.yaml'], context)).toBe(exitCodes.usage);
  expect(stderr()).toContain('cannot read /nowhere/agent.yaml');
});

test('a file of comments alone sets nothing; every flag is a key', () => {
  expect(parseConfig('# nothing yet\n', coordinator)).toEqual({ ok: true, settings: [] });
  expect([...configKeys(coordinator).keys()].slice(0, 3)).toEqual(['data', 'listen', 'advertise']);
});

test('prices may be a mapping, and each is checked with its line', () => {
  const prices = 'prices:\n  H100: 8.00\n  node:gpu-7: 1.2\n';
  expect(parseConfig(prices, coordinator)).toMatchObject({
    ok: true,
    settings: [{ key: 'prices', values: ['H100=8.00', 'node:gpu-7=1.2'] }],
  });
  for (const wrong of [
    'prices: 7',
    'prices: {H100: cheap}',
    'prices: {H100: 1, node: [2]}',
    'prices: [A=1, A=2]',
  ])
    expect(parseConfig(wrong, coordinator)).toMatchObject({
      ok: false,
      problems: [expect.stringMatching(/^line 1: prices (?:takes|has two prices)/)],
    });
});

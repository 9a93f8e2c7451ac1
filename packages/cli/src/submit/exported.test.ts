import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { exitCodes } from '../exitCodes.ts';
import { run, temporaryDir } from '../testing/testContext.ts';

const accepted = {
  Submit: () => ({ jobIds: ['job_0123456789ab'], repeatedRequest: false }),
};

function sentSpec(requests: readonly { readonly request: unknown }[]): unknown {
  const [first] = requests as readonly { readonly request: { readonly specJson: string } }[];
  return JSON.parse(first?.request.specJson ?? 'null');
}

describe('the environment of the user', () => {
  function venv(): string {
    const dir = join(temporaryDir(), 'venv');
    mkdirSync(join(dir, 'bin'), { recursive: true });
    writeFileSync(join(dir, 'bin/python'), '');
    return dir;
  }

  async function envOf(argv: readonly string[], variables: Readonly<Record<string, string>>, stdin?: string) {
    const options = { environment: { workingDir: temporaryDir(), variables }, ...(stdin ? { stdin } : {}) };
    const { exitCode, stderr, requests } = await run(['submit', ...argv], accepted, options);
    return { exitCode, stderr, env: (sentSpec(requests) as { env?: unknown } | null)?.env };
  }

  test('goes with a process, and is named', async () => {
    const dir = venv();
    const variables = { PATH: '/bin', VIRTUAL_ENV: dir, SECRET: 'x' };
    const expected = {
      exitCode: exitCodes.ok,
      stderr: `using the venv ${dir} (VIRTUAL_ENV)\n`,
      env: { VIRTUAL_ENV: dir, PATH: `${dir}/bin:/bin` },
    };
    expect(await envOf(['--', 'python', 'x.py'], variables)).toEqual(expected);
    expect(await envOf(['-f', '-'], variables, 'command: [python, x.py]\n')).toEqual(expected);
  });

  test('includes the umask, unless it is the usual one, another is given, or none is wanted', async () => {
    const umaskOf = async (argv: readonly string[], umask: number | null, stdin?: string) => {
      const environment = { workingDir: temporaryDir(), umask };
      const options = { environment, ...(stdin === undefined ? {} : { stdin }) };
      const { requests } = await run(['submit', ...argv], accepted, options);
      return (sentSpec(requests) as { umask?: string }).umask;
    };
    expect(await umaskOf(['--', 'true'], 0o007)).toBe('0007');
    expect(await umaskOf(['-f', '-'], 0o077, 'command: a\n')).toBe('0077');
    expect(await umaskOf(['-f', '-'], 0o077, "command: a\numask: '0002'\n")).toBe('0002');
    expect(await umaskOf(['--umask', '0027', '--', 'true'], 0o077)).toBe('0027');
    expect(await umaskOf(['--', 'true'], 0o022)).toBeUndefined();
    expect(await umaskOf(['--', 'true'], null)).toBeUndefined();
    expect(await umaskOf(['--export', 'none', '--', 'true'], 0o077)).toBeUndefined();
    expect(await umaskOf(['--image', 'torch', '--', 'python'], 0o077)).toBeUndefined();
  });

  test('does not go into a container, nor where PATH is chosen or none is wanted', async () => {
    const variables = { PATH: '/bin', VIRTUAL_ENV: venv(), SECRET: 'x' };
    const nothing = { exitCode: exitCodes.ok, stderr: '' };
    expect(await envOf(['--image', 'torch', '--', 'python'], variables)).toEqual({
      ...nothing,
      env: undefined,
    });
    expect(await envOf(['--export', 'none', '--', 'python'], variables)).toEqual({
      ...nothing,
      env: undefined,
    });
    expect(await envOf(['-e', 'PATH=/opt/bin', '--', 'python'], variables)).toEqual({
      ...nothing,
      env: { PATH: '/opt/bin' },
    });
    const file = 'command: python\nenv: {PATH: /opt/bin}\n';
    expect(await envOf(['-f', '-'], variables, file)).toEqual({ ...nothing, env: { PATH: '/opt/bin' } });
  });

  test('--export adds names, or everything; what the job sets wins', async () => {
    const variables = { PATH: '/bin', HF_HOME: '/hf', SECRET: 'x', PWD: '/' };
    expect(await envOf(['--export', 'HF_HOME', '--', 'true'], variables)).toMatchObject({
      env: { HF_HOME: '/hf' },
    });
    expect(await envOf(['--export', 'all', '-e', 'SECRET=y', '--', 'true'], variables)).toMatchObject({
      env: { PATH: '/bin', HF_HOME: '/hf', SECRET: 'y' },
    });
    expect(await envOf(['--export', 'HF_HOME,NOPE', '--', 'true'], variables)).toEqual({
      exitCode: exitCodes.usage,
      stderr: 'muster: --export: NOPE is not set in your environment\n',
      env: undefined,
    });
    expect(await envOf(['--export', 'all', '--image', 'torch'], variables)).toMatchObject({
      exitCode: exitCodes.usage,
      stderr: expect.stringContaining('--export is for jobs without an image'),
    });
  });

  test('takes the words of sbatch, and values', async () => {
    const variables = { PATH: '/bin', A: '1', B: '2' };
    const envFor = async (choice: string) =>
      (await envOf(['--export', choice, '--', 'python'], variables)).env;
    const all = await envFor('all');
    expect(all).toMatchObject({ A: '1', B: '2' });
    expect(await envFor('ALL')).toEqual(all);
    expect(await envFor('ALL,B=3,C=a=b')).toEqual({ ...(all as object), B: '3', C: 'a=b' });
    expect(await envFor('A,C=x y')).toEqual({ A: '1', C: 'x y' });
    expect(await envFor('NONE')).toBeUndefined();
    const { stderr } = await envOf(['--export', 'ALL,MISSING', '--', 'python'], variables);
    expect(stderr).toContain('--export: MISSING is not set in your environment');
  });
});

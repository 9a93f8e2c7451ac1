import { expect, test } from 'vitest';
import { detectEnvironment, exportable } from './userEnvironment.ts';

function detect(variables: Readonly<Record<string, string>>, files: readonly string[], workdir = '/srv/a/p') {
  return detectEnvironment({ PATH: '/usr/bin:/bin', ...variables }, workdir, (path) => files.includes(path));
}

test('an active venv is sent, with its programs first', () => {
  expect(detect({ VIRTUAL_ENV: '/v' }, ['/v/bin/python'])).toEqual({
    variables: { VIRTUAL_ENV: '/v', PATH: '/v/bin:/usr/bin:/bin' },
    notes: ['using the venv /v (VIRTUAL_ENV)'],
  });
  const activated = { VIRTUAL_ENV: '/v', PATH: '/v/bin:/usr/bin' };
  expect(detect(activated, ['/v/bin/python']).variables['PATH']).toBe('/v/bin:/usr/bin');
});

test('a venv that was removed is not', () => {
  expect(detect({ VIRTUAL_ENV: '/gone' }, [])).toEqual({ variables: {}, notes: [] });
});

test('an active conda environment is sent with its name', () => {
  const conda = { CONDA_PREFIX: '/c/envs/ml', CONDA_DEFAULT_ENV: 'ml', CONDA_SHLVL: '2' };
  expect(detect(conda, ['/c/envs/ml/bin'])).toEqual({
    variables: { CONDA_PREFIX: '/c/envs/ml', CONDA_DEFAULT_ENV: 'ml', PATH: '/c/envs/ml/bin:/usr/bin:/bin' },
    notes: ['using the conda environment /c/envs/ml (CONDA_PREFIX)'],
  });
});

test('of a venv and a conda environment that one wins whose python a shell would start', () => {
  const files = ['/v/bin/python', '/c/bin'];
  const both = { VIRTUAL_ENV: '/v', CONDA_PREFIX: '/c' };
  expect(detect({ ...both, PATH: '/v/bin:/c/bin:/bin' }, files).notes[0]).toContain('venv /v');
  expect(detect({ ...both, PATH: '/c/bin:/v/bin:/bin' }, files).notes[0]).toContain('conda environment /c');
  expect(detect({ ...both, PATH: '/c/bin:/bin' }, files).notes[0]).toContain('conda environment /c');
});

test('a pixi shell is distinguished from conda', () => {
  const pixi = { CONDA_PREFIX: '/p/.pixi/envs/gpu', PIXI_PROJECT_ROOT: '/p', PIXI_ENVIRONMENT_NAME: 'gpu' };
  expect(detect(pixi, ['/p/.pixi/envs/gpu/bin'])).toEqual({
    variables: { ...pixi, PATH: '/p/.pixi/envs/gpu/bin:/usr/bin:/bin' },
    notes: ['using the pixi environment /p/.pixi/envs/gpu (CONDA_PREFIX)'],
  });
});

test.each([
  ['uv.lock', 'uv'],
  ['pyproject.toml', 'any tool'],
  ['poetry.lock', 'Poetry with environments inside of projects'],
])('a .venv beside %s is that of the project, as with %s', (marker) => {
  const files = [`/srv/a/${marker}`, '/srv/a/.venv/bin/python'];
  expect(detect({}, files)).toEqual({
    variables: { VIRTUAL_ENV: '/srv/a/.venv', PATH: '/srv/a/.venv/bin:/usr/bin:/bin' },
    notes: [`using the venv /srv/a/.venv (beside ${marker})`],
  });
});

test('a .venv alone belongs to nobody, and an active environment wins over that of the project', () => {
  expect(detect({}, ['/srv/a/p/.venv/bin/python'])).toEqual({ variables: {}, notes: [] });
  const files = ['/srv/a/p/uv.lock', '/srv/a/p/.venv/bin/python', '/v/bin/python'];
  expect(detect({ VIRTUAL_ENV: '/v' }, files).variables['VIRTUAL_ENV']).toBe('/v');
});

test('the environment of a pixi project is found without its shell', () => {
  expect(detect({}, ['/srv/a/.pixi/envs/default/bin'])).toEqual({
    variables: {
      CONDA_PREFIX: '/srv/a/.pixi/envs/default',
      PATH: '/srv/a/.pixi/envs/default/bin:/usr/bin:/bin',
    },
    notes: ['using the pixi environment /srv/a/.pixi/envs/default'],
  });
});

test('what cannot be found or is not sent is reported', () => {
  expect(detect({}, ['/srv/a/p/poetry.lock']).notes).toEqual([
    '/srv/a/p/poetry.lock: no environment is active; `poetry run` before this command uses it',
  ]);
  expect(detect({}, ['/srv/a/.envrc']).notes).toEqual([
    '/srv/a/.envrc is not loaded, and its variables are not sent: `direnv allow`, then --export NAMES',
  ]);
  expect(detect({ DIRENV_DIR: '-/srv/a' }, ['/srv/a/.envrc'])).toEqual({
    variables: {},
    notes: ['variables of /srv/a/.envrc are not sent: --export NAMES sends some, --export all every one'],
  });
});

test('everything that is exported is nothing of this shell alone, and no secret of Muster', () => {
  const shell = { PWD: '/', SHLVL: '2', _: '/bin/x', TERM: 'xterm', SSH_AUTH_SOCK: '/s', MUSTER_TOKEN: 'x' };
  const odd = { 'BASH_FUNC_f%%': '() { :; }' };
  expect(exportable({ ...shell, ...odd, HF_HOME: '/hf', PATH: '/bin' })).toEqual({
    HF_HOME: '/hf',
    PATH: '/bin',
  });
});

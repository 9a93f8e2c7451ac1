import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import {
  addressForOthers,
  type ConnectionFlags,
  remediesForSilence,
  resolveEndpoint,
  upLockName,
} from './connection.ts';
import { type ProgramEnvironment, readEnvironment } from './environment.ts';
import { CliError } from './errors.ts';
import { temporaryDir } from './testing/testContext.ts';

let home: string;
beforeEach(() => {
  home = temporaryDir();
});

function environment(variables: Readonly<Record<string, string>> = {}): ProgramEnvironment {
  return readEnvironment({ HOME: home, ...variables }, 'muster', home);
}

/** What a coordinator leaves in its data directory. */
function coordinatorRan(
  dataDir: string,
  addr: string,
  token: string,
  tls: { readonly ca?: string; readonly advertised?: readonly string[] } = {},
): void {
  mkdirSync(dataDir, { recursive: true });
  writeFileSync(join(dataDir, 'admin.token'), `${token}\n`);
  writeFileSync(join(dataDir, 'connection.json'), JSON.stringify({ addr, tokenFile: 'admin.token', ...tls }));
}

/** As far as this side looks into one. */
const pem = (name: string) => `-----BEGIN CERTIFICATE-----\n${name}\n`;

function refusalOf(flags: ConnectionFlags, variables: Readonly<Record<string, string>> = {}): CliError {
  try {
    resolveEndpoint(flags, environment(variables));
  } catch (error) {
    if (error instanceof CliError) return error;
    throw error;
  }
  throw new Error('resolved');
}

test('the default is what the last up of this user left, at its place or noted elsewhere', () => {
  coordinatorRan(join(home, '.local/share/muster'), '127.0.0.1:7070', 'default');
  expect(resolveEndpoint({}, environment())).toMatchObject({
    address: '127.0.0.1:7070',
    token: 'default',
  });

  coordinatorRan(join(home, 'elsewhere'), '127.0.0.1:7071', 'elsewhere');
  const { lastUpPath } = environment();
  mkdirSync(dirname(lastUpPath), { recursive: true });
  writeFileSync(lastUpPath, JSON.stringify({ dataDir: join(home, 'elsewhere') }));
  expect(resolveEndpoint({}, environment())).toMatchObject({
    address: '127.0.0.1:7071',
    token: 'elsewhere',
  });
});

test('a data directory can be named, the flag before the variable', () => {
  coordinatorRan(join(home, 'a'), '127.0.0.1:1111', 'a');
  coordinatorRan(join(home, 'b'), '127.0.0.1:2222', 'b');
  expect(resolveEndpoint({}, environment({ MUSTER_DATA: 'a' })).token).toBe('a');
  expect(resolveEndpoint({ data: 'b' }, environment({ MUSTER_DATA: 'a' })).token).toBe('b');
});

test('flags win over variables, variables over what up left', () => {
  coordinatorRan(join(home, '.local/share/muster'), '127.0.0.1:7070', 'default');
  const variables = { MUSTER_ADDR: '127.0.0.1:8080', MUSTER_TOKEN: 'variable' };
  expect(resolveEndpoint({}, environment(variables))).toMatchObject({
    address: '127.0.0.1:8080',
    token: 'variable',
  });
  writeFileSync(join(home, 'token'), 'flag\n');
  expect(
    resolveEndpoint({ addr: 'localhost:9090', tokenFile: 'token' }, environment(variables)),
  ).toMatchObject({
    address: 'localhost:9090',
    token: 'flag',
  });
  expect(resolveEndpoint({}, environment({ MUSTER_TOKEN: 'other' }))).toMatchObject({
    address: '127.0.0.1:7070',
    token: 'other',
  });
});

test('the token of one coordinator is not sent to another', () => {
  coordinatorRan(join(home, '.local/share/muster'), '127.0.0.1:7070', 'default');
  expect(resolveEndpoint({ addr: '127.0.0.1:7070' }, environment()).token).toBe('default');
  expect(refusalOf({ addr: '127.0.0.1:9999' })).toMatchObject({
    message: 'no token for the coordinator at 127.0.0.1:9999',
    code: 'unauthenticated',
  });
});

test.each([
  'example.org:7070',
  '10.0.0.1:7070',
  '[2001:db8::1]:7070',
  '127.0.0.1.example.org:80',
  '0.0.0.0:7070',
])('no token goes to %s unencrypted', (addr) => {
  expect(refusalOf({ addr }, { MUSTER_TOKEN: 'secret' }).message).toContain(
    `will not send a token to ${addr}`,
  );
});

test.each(['7070', 'localhost', '127.0.0.1:0', '127.0.0.1:70000', 'http://127.0.0.1:7070', ''])(
  '"%s" is no address',
  (addr) => {
    expect(refusalOf({ addr }, { MUSTER_TOKEN: 'secret' })).toMatchObject({
      message: expect.stringContaining('invalid address'),
      code: 'invalid',
    });
  },
);

test('an address that is not on this machine needs a CA, by flag or variable, and the error says where it is', () => {
  const variables = { MUSTER_ADDR: 'gpu-head:7070', MUSTER_TOKEN: 'secret' };
  expect(refusalOf({}, variables)).toMatchObject({
    code: 'permission_denied',
    hints: [expect.stringContaining('tls/ca.pem')],
  });
  writeFileSync(join(home, 'variable.pem'), pem('variable'));
  writeFileSync(join(home, 'flag.pem'), pem('flag'));
  const withVariable = environment({ ...variables, MUSTER_CA: 'variable.pem' });
  expect(resolveEndpoint({}, withVariable).caCertificate).toBe(pem('variable'));
  expect(resolveEndpoint({ ca: 'flag.pem' }, withVariable).caCertificate).toBe(pem('flag'));
});

test('a CA that is none is named', () => {
  const variables = { MUSTER_ADDR: 'gpu-head:7070', MUSTER_TOKEN: 'secret' };
  expect(refusalOf({ ca: 'missing.pem' }, variables).message).toBe(
    `cannot read the CA: ${home}/missing.pem does not exist`,
  );
  writeFileSync(join(home, 'ca.key'), '-----BEGIN PRIVATE KEY-----\n');
  expect(refusalOf({ ca: 'ca.key' }, variables)).toMatchObject({
    message: `${home}/ca.key does not hold a certificate in PEM`,
    code: 'invalid',
  });
});

test('a coordinator on this machine says itself whether it has a CA, whatever MUSTER_CA says of another', () => {
  writeFileSync(join(home, 'other.pem'), pem('other'));
  const variables = { MUSTER_CA: 'other.pem' };
  const dataDir = join(home, '.local/share/muster');
  coordinatorRan(dataDir, '127.0.0.1:7070', 'token');
  expect(resolveEndpoint({}, environment(variables)).caCertificate).toBeNull();

  const advertised = ['192.0.2.1:7070', 'gpu-head:7070'];
  coordinatorRan(dataDir, '127.0.0.1:7070', 'token', { ca: 'ca.pem', advertised });
  writeFileSync(join(dataDir, 'ca.pem'), pem('own'));
  for (const addr of ['127.0.0.1:7070', ...advertised]) {
    expect(resolveEndpoint({ addr }, environment(variables))).toEqual({
      address: addr,
      token: 'token',
      caCertificate: pem('own'),
    });
    const withToken = environment({ ...variables, MUSTER_TOKEN: 'given' });
    expect(resolveEndpoint({ addr }, withToken)).toMatchObject({ token: 'given', caCertificate: pem('own') });
  }
  const elsewhere = environment({ ...variables, MUSTER_TOKEN: 'given' });
  expect(resolveEndpoint({ addr: '192.0.2.9:7070' }, elsewhere).caCertificate).toBe(pem('other'));
});

test('whoever names address, token and CA needs nothing of what lies around here', () => {
  coordinatorRan(join(home, '.local/share/muster'), '127.0.0.1:7070', 'x');
  writeFileSync(join(home, '.local/share/muster/connection.json'), 'damaged');
  writeFileSync(join(home, 'ca.pem'), pem('given'));
  const variables = { MUSTER_ADDR: 'gpu-head:7070', MUSTER_TOKEN: 'secret', MUSTER_CA: 'ca.pem' };
  expect(resolveEndpoint({}, environment(variables)).caCertificate).toBe(pem('given'));
});

test('other machines get what the coordinator advertises, or the address that led here', () => {
  const dataDir = join(home, '.local/share/muster');
  const outside = (flags: ConnectionFlags, variables: Readonly<Record<string, string>> = {}) =>
    addressForOthers(resolveEndpoint(flags, environment(variables)), flags, environment(variables));
  coordinatorRan(dataDir, '127.0.0.1:7070', 'token');
  expect(outside({})).toBeNull();
  writeFileSync(join(dataDir, 'ca.pem'), pem('own'));
  coordinatorRan(dataDir, '127.0.0.1:7070', 'token', {
    ca: 'ca.pem',
    advertised: ['192.0.2.1:7070', 'gpu-head:7070'],
  });
  expect(outside({})).toBe('192.0.2.1:7070');
  writeFileSync(join(home, 'ca.pem'), pem('given'));
  const remote = { MUSTER_ADDR: 'far-away:7070', MUSTER_TOKEN: 'secret', MUSTER_CA: 'ca.pem' };
  expect(outside({}, remote)).toBe('far-away:7070');
});

test('without any coordinator the error says how to get one', () => {
  expect(refusalOf({})).toMatchObject({
    message: 'no coordinator is known on this machine',
    code: 'unavailable',
    hints: [
      'Start one here with: muster up',
      'Or log in to one: muster login HOST',
      expect.stringContaining('--addr'),
    ],
  });
  expect(refusalOf({ data: 'nowhere' }).message).toBe(
    `no coordinator has run with the data directory ${home}/nowhere`,
  );
});

test('damaged and unreadable files are named', () => {
  const dataDir = join(home, '.local/share/muster');
  coordinatorRan(dataDir, '127.0.0.1:7070', 'x');
  for (const damaged of ['', '{"addr": "127.0', '[]', '{"addr": 7070}', 'null']) {
    writeFileSync(join(dataDir, 'connection.json'), damaged);
    expect(refusalOf({}).message).toBe(`${dataDir}/connection.json is damaged`);
  }
  coordinatorRan(dataDir, '127.0.0.1:7070', 'two words');
  expect(refusalOf({}).message).toBe(`${dataDir}/admin.token does not hold a token`);
  coordinatorRan(dataDir, '127.0.0.1:7070', '');
  expect(refusalOf({}).message).toBe(`${dataDir}/admin.token is empty`);
  expect(refusalOf({ tokenFile: 'missing' }).message).toBe(
    `cannot read the token: ${home}/missing does not exist`,
  );
  expect(refusalOf({ tokenFile: '.' }).message).toBe(`cannot read the token from ${home}: it is a directory`);
  writeFileSync(join(home, 'large'), Buffer.alloc(1_000_000, 'x'));
  expect(refusalOf({ tokenFile: 'large' }).message).toContain('too large');
});

test('colours follow the conventions of terminals', () => {
  expect(environment().colour).toBe('auto');
  expect(environment({ NO_COLOR: '1', FORCE_COLOR: '1' }).colour).toBe('never');
  expect(environment({ NO_COLOR: '' }).colour).toBe('auto');
  expect(environment({ FORCE_COLOR: '1', TERM: 'dumb' }).colour).toBe('always');
  expect(environment({ FORCE_COLOR: '0' }).colour).toBe('never');
  expect(environment({ TERM: 'dumb' }).colour).toBe('never');
});

test('tokens and CA are for this process alone', () => {
  const { variables } = environment({
    MUSTER_TOKEN: 'a',
    MUSTER_JOIN_TOKEN: 'b',
    MUSTER_CA: 'd',
    WANDB: 'c',
  });
  expect(variables).toEqual({ HOME: home, WANDB: 'c' });
});

test('a coordinator that does not answer is started by what had started it', () => {
  const head = join(home, 'head');
  const remedyOf = (flags: ConnectionFlags, variables: Readonly<Record<string, string>> = {}) => {
    const known = environment(variables);
    return remediesForSilence(resolveEndpoint(flags, known), flags, known).join();
  };
  coordinatorRan(head, '127.0.0.1:7070', 'head');
  expect(remedyOf({ data: head })).toContain(`muster coordinator --data ${head}`);
  expect(remedyOf({}, { MUSTER_DATA: head })).toContain(`muster coordinator --data ${head}`);

  writeFileSync(join(head, upLockName), '');
  expect(remedyOf({ data: head })).toBe('Start one on this machine with: muster up');
  expect(remedyOf({ addr: '127.0.0.1:1' }, { MUSTER_TOKEN: 'x' })).toBe(
    'Start one on this machine with: muster up',
  );

  const ca = join(home, 'ca.pem');
  writeFileSync(ca, pem('other'));
  const elsewhere = remedyOf({ addr: 'gpu-head.lan:7070', ca }, { MUSTER_TOKEN: 'x' });
  expect(elsewhere).toBe('Check that the coordinator runs there, and that this machine reaches it.');
});

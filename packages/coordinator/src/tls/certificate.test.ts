/** Read by OpenSSL, which is who has to make sense of them. */
// oxlint-disable-next-line no-unassigned-import -- what reads certificates here refuses to load without
import 'reflect-metadata';
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import {
  BasicConstraintsExtension,
  X509Certificate as ReadCertificate,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { expect, test } from 'vitest';
import { someMs } from '../modelFixture.ts';
import { authorityCertificate, type Issuer, serverCertificate } from './certificate.ts';

const keyPair = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });
const validity = { notBeforeMs: someMs, notAfterMs: someMs + 1_000_000 };
const authorityKeys = keyPair();
const makeAuthority = ({ privateKey }: typeof authorityKeys) =>
  authorityCertificate({
    name: 'CA of ünit tests',
    privateKey,
    serial: Uint8Array.of(0xff, 1),
    ...validity,
  });
const issuer = {
  certificate: await makeAuthority(authorityKeys),
  privateKey: authorityKeys.privateKey,
};
const authority = new X509Certificate(issuer.certificate);

async function serverOf(hosts: readonly string[], by: Issuer = issuer): Promise<X509Certificate> {
  const { publicKey } = keyPair();
  const request = { name: 'a "quoted" server', publicKey, hosts, serial: Uint8Array.of(2), ...validity };
  return new X509Certificate(await serverCertificate(request, by));
}

test('the CA signs itself and may sign others', () => {
  expect(authority.ca).toBe(true);
  expect(authority.subject).toBe('CN=CA of ünit tests');
  expect(authority.issuer).toBe(authority.subject);
  expect(authority.serialNumber).toBe('FF01');
  expect(authority.verify(authorityKeys.publicKey)).toBe(true);
  expect(authority.checkPrivateKey(authorityKeys.privateKey)).toBe(true);
  const toSecond = (ms: number) => Math.floor(ms / 1_000) * 1_000;
  expect(authority.validFromDate.getTime()).toBe(toSecond(validity.notBeforeMs));
  expect(authority.validToDate.getTime()).toBe(toSecond(validity.notAfterMs));
});

test('a server certificate is of its CA, names its hosts, and may sign nothing', async () => {
  const server = await serverOf(['gpu-head', 'gpu_head.lan', '192.0.2.1', '2001:db8::1']);
  expect(server.verify(authorityKeys.publicKey)).toBe(true);
  expect(server.checkIssued(authority)).toBe(true);
  expect(server.ca).toBe(false);
  expect(server.subject).toBe(String.raw`CN=a \"quoted\" server`);
  expect(server.subjectAltName).toBe(
    'DNS:gpu-head, DNS:gpu_head.lan, IP Address:192.0.2.1, IP Address:2001:DB8:0:0:0:0:0:1',
  );
  expect(server.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
  expect(server.checkHost('gpu-head')).toBe('gpu-head');
  expect(server.checkHost('other')).toBeUndefined();
  expect(server.checkIP('2001:db8::1')).toBe('2001:db8::1');
  expect(server.checkIP('2001:db8::2')).toBeUndefined();
});

test('what each may do is written as RFC 5280 has it', async () => {
  // In DER: of these Node shows only whether it is a CA.
  const criticalOf = ({ raw }: X509Certificate) =>
    new ReadCertificate(raw).extensions
      .filter(({ critical }) => critical)
      .map(({ type, value }) => [type, Buffer.from(value).toString('hex')]);
  const [basicConstraints, keyUsage] = ['2.5.29.19', '2.5.29.15'];
  const [aLastAuthority, noAuthority] = ['30060101ff020100', '3000'];
  const [keyCertSign, digitalSignature] = ['03020204', '03020780'];
  expect(criticalOf(authority)).toEqual([
    [basicConstraints, aLastAuthority],
    [keyUsage, keyCertSign],
  ]);
  expect(criticalOf(await serverOf(['a']))).toEqual([
    [basicConstraints, noAuthority],
    [keyUsage, digitalSignature],
  ]);
});

test('a certificate of another CA with the same name does not pass for one of this', async () => {
  const keys = keyPair();
  const forged = await serverOf(['a'], {
    certificate: await makeAuthority(keys),
    privateKey: keys.privateKey,
  });
  expect(forged.verify(authorityKeys.publicKey)).toBe(false);
  expect(forged.checkIssued(authority)).toBe(false);
});

test.each([
  ['192.0.2.255', '192.0.2.255'],
  ['::', '0:0:0:0:0:0:0:0'],
  ['::1', '0:0:0:0:0:0:0:1'],
  ['2001:db8::', '2001:DB8:0:0:0:0:0:0'],
  ['2001:db8:0:1:2:3:4:5', '2001:DB8:0:1:2:3:4:5'],
  ['fd00::a:0:b', 'FD00:0:0:0:0:A:0:B'],
  ['::ffff:192.0.2.1', '0:0:0:0:0:FFFF:C000:201'],
  ['fe80::1%eth0', 'FE80:0:0:0:0:0:0:1'],
])('the address %s is named as it is', async (address, named) => {
  expect((await serverOf([address])).subjectAltName).toBe(`IP Address:${named}`);
});

test.each([
  ['another key identifier', [new SubjectKeyIdentifierExtension('00010203')]],
  ['no key identifier', []],
])(
  'a CA that another program made, with %s and a name of more parts, can sign servers',
  async (_what, own) => {
    const { privateKey, publicKey } = authorityKeys;
    const algorithm = { name: 'ECDSA', namedCurve: 'P-256' };
    const foreign = await X509CertificateGenerator.createSelfSigned({
      name: 'C=CH, O=Example, CN=Example CA',
      keys: {
        privateKey: privateKey.toCryptoKey(algorithm, false, ['sign']),
        publicKey: publicKey.toCryptoKey(algorithm, true, ['verify']),
      },
      extensions: [new BasicConstraintsExtension(true), ...own],
    });
    const server = await serverOf(['a'], { certificate: foreign.toString(), privateKey });
    expect(server.issuer).toBe('C=CH\nO=Example\nCN=Example CA');
    expect(server.checkIssued(new X509Certificate(foreign.toString()))).toBe(true);
  },
);

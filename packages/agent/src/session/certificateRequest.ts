/**
 * The request for a certificate that an agent sends. Import this file lazily: the library behind it is needed once in days, and
 * costs memory from then on.
 */
// oxlint-disable-next-line no-unassigned-import -- first, as the library's dependency injection refuses to load without
import 'reflect-metadata';
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { Name, Pkcs10CertificateRequestGenerator } from '@peculiar/x509';

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/**
 * @param privateKey PEM, ECDSA P-256
 * @returns PEM, PKCS #10; that the key has signed it shows that its sender holds the key
 */
export async function certificateRequest(privateKey: string, nodeName: string): Promise<string> {
  const key = createPrivateKey(privateKey);
  const made = await Pkcs10CertificateRequestGenerator.create({
    name: new Name([{ CN: [{ utf8String: nodeName }] }]),
    keys: {
      privateKey: key.toCryptoKey(algorithm, false, ['sign']),
      publicKey: createPublicKey(key).toCryptoKey(algorithm, true, ['verify']),
    },
    signingAlgorithm: algorithm,
  });
  return made.toString('pem');
}

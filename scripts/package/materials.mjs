// What of other people's work a release holds, as a bill of materials for programs and as licences for people. Both are made from
// the files that were really bundled, because what package.json names is more (tools) and less (packages of packages).
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { root } from '../setup.mjs';
import { Stop } from '../terminal.mjs';
import { nativePackages } from './native.mjs';

/**
 * One npm package of which something is in the release.
 * @typedef {object} Part
 * @property {string} name
 * @property {string} version
 * @property {string} licence an SPDX expression
 * @property {string | null} sha512 of its tarball in the registry, in hex digits
 * @property {string[]} texts its licence and notices
 */

/** Packages whose tarball has no file with its licence, and where the same text stands. */
const licenceElsewhere = /** @type {Record<string, string>} */ ({
  '@koromix/koffi-linux-x64': 'node_modules/koffi',
  '@koromix/koffi-linux-arm64': 'node_modules/koffi',
});

/**
 * @param {readonly string[]} inputs the bundled files, relative to the root
 * @param {import('./tree.mjs').Release} release
 * @param {string} packages the folder below which the npm packages of its native parts lie
 * @returns {Promise<Part[]>} by name and version
 */
export async function partsOf(inputs, { arch }, packages) {
  const bundled = new Set(inputs.flatMap((path) => packageFolder(path) ?? []));
  /** In no bundle: they lie beside them. */
  const native = Object.values(nativePackages(arch)).map((name) => `node_modules/${name}`);
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8'));
  const parts = await Promise.all(
    [...bundled, 'node_modules/koffi', ...native].map(async (locked) => {
      const folder = native.includes(locked)
        ? join(packages, relative('node_modules', locked))
        : join(root, locked);
      const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
      const { name, version, license } = manifest;
      if (typeof license !== 'string')
        throw new Stop(`${folder}/package.json names no licence; find out whether ${name} may be shipped.`);
      const elsewhere = licenceElsewhere[name];
      const texts = await licenceTexts(elsewhere === undefined ? folder : join(root, elsewhere));
      const integrity = /^sha512-(.+)$/.exec(lock.packages[locked]?.integrity ?? '')?.[1];
      const sha512 = integrity === undefined ? null : Buffer.from(integrity, 'base64').toString('hex');
      return { name, version, licence: license, sha512, texts };
    }),
  );
  const order = (/** @type {Part} */ part) => `${part.name}@${part.version}`;
  const byOrder = new Map(parts.map((part) => [order(part), part]));
  return [...byOrder.keys()].sort().flatMap((key) => byOrder.get(key) ?? []);
}

/** @param {string} path @returns {string | null} the folder of the npm package that a file belongs to; null: it is ours */
function packageFolder(path) {
  return /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0] ?? null;
}

/** @param {string} folder */
async function licenceTexts(folder) {
  const names = (await readdir(folder)).filter((name) =>
    /^(licen[cs]e|notice|copying|copyright)/i.test(name),
  );
  return Promise.all(names.sort().map((name) => readFile(join(folder, name), 'utf8')));
}

/** @param {readonly Part[]} parts */
export function notices(parts) {
  const sections = parts.map(({ name, version, licence, texts }) => {
    const text =
      texts.length === 0
        ? `Its package names the licence ${licence} and has no text of it.`
        : texts.join('\n');
    return `${'='.repeat(100)}\n${name} ${version} (${licence})\n${'='.repeat(100)}\n\n${text.trim()}\n`;
  });
  return `Muster contains the work of others, under the licences below.\n\n${sections.join('\n')}`;
}

/**
 * CycloneDX 1.6. What Node itself is built from stands below Node, so that a scanner sees its OpenSSL and SQLite.
 * @param {readonly Part[]} parts
 * @param {import('./tree.mjs').Release} release
 */
export function billOfMaterials(parts, { version, arch, commit, epochS }) {
  const self = `pkg:generic/muster@${version}?arch=${arch}`;
  const components = parts.map((part) => ({
    ...component(part),
    ...(part.name === nativePackages(arch).node ? { components: insideNode(part) } : {}),
  }));
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidOf(`${self} ${commit}`)}`,
    version: 1,
    metadata: {
      timestamp: new Date(epochS * 1000).toISOString(),
      component: {
        type: 'application',
        'bom-ref': self,
        name: 'muster',
        version,
        licenses: [{ license: { id: 'Apache-2.0' } }],
        purl: self,
      },
    },
    components,
    dependencies: [{ ref: self, dependsOn: components.map((each) => each['bom-ref']) }],
  };
}

/** @param {Part} part */
function component({ name, version, licence, sha512 }) {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
  const isExpression = /\s/.test(licence);
  return {
    type: 'library',
    'bom-ref': purl,
    name,
    version,
    ...(sha512 === null ? {} : { hashes: [{ alg: 'SHA-512', content: sha512 }] }),
    licenses: [isExpression ? { expression: licence } : { license: { id: licence } }],
    purl,
  };
}

/** @param {Part} node */
function insideNode({ version }) {
  if (process.versions.node !== version)
    throw new Stop(
      `This runs on Node ${process.versions.node}, but the release contains ${version}. Call it as \`npm run package\`.`,
    );
  const { node: _node, modules: _modules, napi: _napi, ...libraries } = process.versions;
  return Object.entries(libraries).flatMap(([name, value]) =>
    value ? [{ type: 'library', name, version: value }] : [],
  );
}

/** A UUID that depends on nothing but the text. @param {string} text */
function uuidOf(text) {
  const hex = createHash('sha256').update(text).digest('hex');
  const variant = '89ab'[Number.parseInt(hex[16] ?? '0', 16) % 4];
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

// Bundles the `muster` command into dist/: one file to start, the commands that only ask the coordinator in one file more, all
// others with parts that load only when a command needs them, and the guard, the readers of NVML, of failures and of machine
// facts and the verifier of checkpoints as programs of their own. Started from a bundle, a command is ready in a fraction of
// the time that reading hundreds of source files takes. `--force` builds even when nothing has changed.
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from './setup.mjs';
import { exitWith, Stop, secondsSince } from './terminal.mjs';

/**
 * @typedef {object} Sources
 * @property {string} cliEntry
 * @property {string} guardEntry
 * @property {string} nvmlReaderEntry
 * @property {string} verifierEntry
 * @property {string} failureReaderEntry
 * @property {string} machineReaderEntry
 * @property {string} outDir
 * @typedef {{ path: string, contents: string | Uint8Array }} OutputFile
 */

/** @type {Sources} */
const standard = {
  cliEntry: join(root, 'packages/cli/src/main.ts'),
  guardEntry: join(root, 'packages/agent/src/guard/main.ts'),
  nvmlReaderEntry: join(root, 'packages/agent/src/gpus/nvml/main.ts'),
  verifierEntry: join(root, 'packages/checkpoints/src/verifier/main.ts'),
  failureReaderEntry: join(root, 'packages/agent/src/failure/reader/main.ts'),
  machineReaderEntry: join(root, 'packages/agent/src/host/machine/main.ts'),
  outDir: join(root, 'dist'),
};

/**
 * What bundled CommonJS takes for granted and an ES module does not have. It stands in every part, so it does nothing until
 * it is used.
 */
const commonJsBanner =
  'const require = (id) => process.getBuiltinModule(id) ?? ' +
  "process.getBuiltinModule('node:module').createRequire(import.meta.url)(id), __dirname = import.meta.dirname;";

/**
 * What `dist/muster.mjs` holds. Node keeps the compiled code of everything imported after the first line; the cache lies
 * in dist/, because in the shared temporary folder another user could plant code in it.
 */
const starter = (
  /** @type {readonly string[]} */ short,
) => `const { enableCompileCache } = process.getBuiltinModule('node:module');
enableCompileCache(import.meta.dirname + '/.compile-cache');
await import(${JSON.stringify(short)}.includes(process.argv[2]) ? './short.mjs' : './main.mjs');
`;

/**
 * Commands that send calls and print answers: their parts are one file, `short.mjs`, because each part that Node loads costs time
 * of its own. Everything that only some calls need is still evaluated when it is needed.
 */
export const shortCommands = (
  'submit jobs job logs metrics checkpoints explain stop extend requeue ' +
  'nodes node top events token maintenance'
).split(' ');

/** What checks job files, with the libraries for it, is larger than all short commands together and stays apart from them. */
export const specChecks = ['parse', 'resolve', 'validate'];

/** A part that is no longer wanted may still be loaded by a command that has just started; after this, none will. */
const stalePartAgeMs = 10 * 60_000;

/**
 * @param {Partial<Sources> & { force?: boolean }} [options]
 * @returns {Promise<boolean>} false: everything was current, nothing was done
 */
export async function build(options = {}) {
  const sources = { ...standard, ...options };
  const startedAtMs = Date.now();
  if (!options.force && (await isCurrent(sources.outDir))) return false;
  const { cliEntry, guardEntry, nvmlReaderEntry, verifierEntry, failureReaderEntry, machineReaderEntry } =
    sources;
  await requireEntries([
    cliEntry,
    guardEntry,
    nvmlReaderEntry,
    verifierEntry,
    failureReaderEntry,
    machineReaderEntry,
  ]);
  const specEntries = Object.fromEntries(
    specChecks.map((name) => [`spec-${name}`, join(root, `packages/common/src/spec/${name}.ts`)]),
  );
  const { build: bundle, formatMessages } = await import('esbuild');

  /** @type {import('esbuild').BuildOptions} */
  const common = {
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    packages: 'bundle',
    sourcemap: 'linked',
    outdir: sources.outDir,
    absWorkingDir: root,
    outExtension: { '.js': '.mjs' },
    logLevel: 'silent',
  };
  /** @type {OutputFile[]} */
  const assets = [];
  // A native library lies beside koffi's code (`external`), which has to stay where npm put it.
  /** In memory until all of it is there. */
  const kept = /** @type {const} */ ({ write: false, metafile: true });
  const results = await Promise.all([
    bundle({
      ...common,
      ...kept,
      entryPoints: { main: cliEntry, ...specEntries },
      splitting: true,
      chunkNames: 'part-[name]-[hash]',
      banner: { js: commonJsBanner },
      plugins: [lazyPackages, lazyBuiltins, bundledProtos(sources.outDir, assets)],
      external: ['koffi'],
    }),
    bundle({
      ...common,
      ...kept,
      entryPoints: { short: cliEntry },
      banner: { js: commonJsBanner },
      plugins: [onlyShortCommands, lazyBuiltins],
    }),
    bundle({ ...common, ...kept, entryPoints: { guard: guardEntry } }),
    bundle({ ...common, ...kept, entryPoints: { 'checkpoint-verifier': verifierEntry } }),
    bundle({ ...common, ...kept, entryPoints: { 'failure-reader': failureReaderEntry } }),
    // The library behind it is CommonJS.
    bundle({
      ...common,
      ...kept,
      entryPoints: { 'machine-reader': machineReaderEntry },
      banner: { js: commonJsBanner },
    }),
    bundle({
      ...common,
      ...kept,
      entryPoints: { 'nvml-reader': nvmlReaderEntry },
      external: ['koffi'],
    }),
  ]).catch(async (error) => {
    const messages = await formatMessages(error.errors ?? [], {
      kind: 'error',
      color: process.stderr.isTTY === true,
    });
    throw messages.length === 0 ? error : new Stop(`The build failed.\n\n${messages.join('\n')}`);
  });
  refuseHeavyGuard(results[2].metafile);

  // Parts first, what imports them after: a command started in this moment finds either the old whole or the new one.
  const outputs = results.flatMap((result) => result.outputFiles);
  const parts = outputs.filter((file) => isPart(file.path));
  const programs = outputs.filter((file) => !isPart(file.path));
  const files = [
    ...assets,
    ...parts,
    ...programs,
    { path: join(sources.outDir, 'muster.mjs'), contents: starter(shortCommands) },
  ];
  for (const { path, contents } of files) await replaceFile(path, contents);
  await rm(join(sources.outDir, '.compile-cache'), { recursive: true, force: true });
  await removeStaleParts(sources.outDir, new Set(files.map((file) => file.path)));
  await writeStamp(
    sources.outDir,
    results.flatMap((result) => Object.keys(result.metafile.inputs)),
    startedAtMs,
  );
  return true;
}

/** @param {string[]} entries */
async function requireEntries(entries) {
  for (const entry of entries) {
    const found = await stat(entry).catch(() => null);
    if (found === null) throw new Stop(`Nothing to build: ${relative(root, entry)} does not exist.`);
  }
}

/** @param {string} path @param {string | Uint8Array} contents */
async function replaceFile(path, contents) {
  // Named after this process: two builds at once must not write into each other's half-finished file.
  await mkdir(dirname(path), { recursive: true });
  const temporary = `${path}.${process.pid}`;
  await writeFile(temporary, contents);
  await rename(temporary, path);
}

/** @param {string} path */
function isPart(path) {
  return basename(path).startsWith('part-');
}

/** @param {string} outDir @param {Set<string>} wanted */
async function removeStaleParts(outDir, wanted) {
  const present = (await readdir(outDir)).filter(isPart).map((name) => join(outDir, name));
  for (const path of present) {
    if (wanted.has(path)) continue;
    const { mtimeMs } = await stat(path);
    if (Date.now() - mtimeMs > stalePartAgeMs) await rm(path, { force: true });
  }
}

/**
 * The guard outlives agents and stands beside every bare task, so its memory counts many times.
 * @param {import('esbuild').Metafile} metafile
 */
function refuseHeavyGuard(metafile) {
  const packages = Object.keys(metafile.inputs).filter((path) => path.includes('node_modules/'));
  if (packages.length === 0) return;
  throw new Stop(
    `The guard must stay a tiny program, but it now bundles ${packages.length} files of npm packages, such as ` +
      `${packages[0]}. Import the part it needs from a file that does not import a package.`,
  );
}

/**
 * Refuses `await import('some-package')`: bundled, a CommonJS package would come without its named exports, while the
 * same line works from source.
 * @type {import('esbuild').Plugin}
 */
const lazyPackages = {
  name: 'lazy-packages',
  setup({ onResolve }) {
    onResolve({ filter: /^[^.]/ }, ({ kind, path, importer }) => {
      const ours =
        path.startsWith('@muster/') || path.startsWith('node:') || importer.includes('node_modules/');
      if (kind !== 'dynamic-import' || ours) return null;
      return {
        errors: [{ text: `import '${path}' statically in a file of its own, and load that file lazily` }],
      };
    });
  },
};

/**
 * Leaves out of `short.mjs` what no short command loads, and takes the checks of job files from the parts of `main.mjs`. Both have
 * their own copy of what they share, so nothing may cross that is told by its class: the checks throw no errors of Muster.
 * @type {import('esbuild').Plugin}
 */
const onlyShortCommands = {
  name: 'only-short-commands',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /./ }, ({ kind, path, importer }) => {
      if (kind !== 'dynamic-import') return null;
      const check = specChecks.find((each) => path === `@muster/common/spec/${each}`);
      if (check !== undefined) return { path: `./spec-${check}.mjs`, external: true };
      const command = importer.endsWith('/commandTable.ts') ? basename(path, '.ts') : null;
      return command === null || shortCommands.includes(command) ? null : { path, namespace: 'left-out' };
    });
    onLoad({ filter: /./, namespace: 'left-out' }, () => ({ contents: 'export const command = null;' }));
  },
};

/**
 * Takes Node's own modules as they are. An import would make Node read every export of each for the bindings, and so load what
 * hides behind those that are lazy, such as the streams of node:fs. Commander's import for subcommands that are programs of their
 * own is left out: Muster has none, and loading what that takes would be a tenth of the start of a command.
 * @type {import('esbuild').Plugin}
 */
const lazyBuiltins = {
  name: 'lazy-builtins',
  setup({ onLoad }) {
    const imports = /^import (?!type )([^;'"]+?) from ['"](node:[\w/]+)['"];?$/gm;
    onLoad({ filter: /\.(?:ts|m?js)$/ }, async ({ path }) => {
      const code = await readFile(path, 'utf8');
      const isCommander = path.endsWith('/commander/lib/command.js');
      if (isCommander && !code.includes("from 'node:child_process'"))
        throw new Stop(`${path} no longer loads node:child_process as it did.`);
      const contents = code.replace(imports, (statement, names, module) => {
        if (isCommander && module === 'node:child_process') return '';
        const lines = '\n'.repeat(statement.split('\n').length - 1);
        return `${declarationOf(names)} = globalThis.process.getBuiltinModule('${module}');${lines}`;
      });
      return contents === code ? null : { contents, loader: path.endsWith('.ts') ? 'ts' : 'js' };
    });
  },
};

/**
 * The clause of an import statement as a declaration: `{ type A, b as c }` is `const { b: c }`, and `fs` or `* as fs` is `const fs`.
 * @param {string} clause
 */
function declarationOf(clause) {
  const [, all, named] = /^(?:(?:\* as )?(\w+)|\{([^}]*)\})$/.exec(clause.trim()) ?? [];
  if (all !== undefined) return `const ${all}`;
  if (named === undefined) throw new Stop(`The build cannot read the import of: ${clause}`);
  const names = named.split(',').map((name) => name.trim());
  const values = names.filter((name) => name !== '' && !name.startsWith('type '));
  return `const { ${values.map((name) => name.replace(' as ', ': ')).join(', ')} }`;
}

/**
 * The grpc project's reflection and health services read .proto files from a folder beside their code; for the bundle
 * those go to dist/proto.
 * @param {string} outDir
 * @param {OutputFile[]} assets gets the files to write
 * @returns {import('esbuild').Plugin}
 */
function bundledProtos(outDir, assets) {
  const servicesWithProtos = /node_modules\/(@grpc\/reflection|grpc-health-check)\/build\/src\/.*\.js$/;
  const besideCode = /(__dirname(?:, '|\}\/))\.\.\/\.\.\/proto/g;
  return {
    name: 'bundled-protos',
    setup({ onLoad }) {
      onLoad({ filter: servicesWithProtos }, async ({ path }) => {
        const code = await readFile(path, 'utf8');
        const contents = code.replaceAll(besideCode, '$1proto');
        if (contents === code) return null;
        const folder = join(dirname(path), '../../proto');
        const names = await readdir(folder, { recursive: true });
        for (const name of names.filter((each) => each.endsWith('.proto') && !each.startsWith('sample/'))) {
          assets.push({ path: join(outDir, 'proto', name), contents: await readFile(join(folder, name)) });
        }
        return { contents, loader: 'js' };
      });
    },
  };
}

// What a build depends on: every file that went into the last one, what says how packages resolve, and this script.
const stampName = '.inputs.json';
const resolution = [
  'package-lock.json',
  'scripts/build.mjs',
  ...['common', 'checkpoints', 'diagnosis', 'coordinator', 'agent', 'cli'].map(
    (name) => `packages/${name}/package.json`,
  ),
];

/** @param {string} outDir */
async function isCurrent(outDir) {
  const text = await readFile(join(outDir, stampName), 'utf8').catch(() => null);
  if (text === null) return false;
  /** @type {{ inputs: string[], state: string }} */
  const stamp = JSON.parse(text);
  return stamp.state === (await stateOf(stamp.inputs)).state;
}

/**
 * @param {string} outDir
 * @param {string[]} bundled paths relative to the root, as esbuild names them
 * @param {number} startedAtMs a file saved after this may have been bundled as it was before
 */
async function writeStamp(outDir, bundled, startedAtMs) {
  // Files below node_modules change only together with the lock file.
  const own = bundled.filter((path) => !path.includes('node_modules/'));
  const inputs = [...new Set([...own, ...resolution])].sort();
  const { state, newestMs } = await stateOf(inputs);
  const stamp = join(outDir, stampName);
  if (newestMs >= startedAtMs) await rm(stamp, { force: true });
  else await replaceFile(stamp, JSON.stringify({ inputs, state }));
}

/** @param {string[]} inputs */
async function stateOf(inputs) {
  const hash = createHash('sha256');
  const states = await Promise.all(inputs.map((path) => stat(join(root, path)).catch(() => null)));
  for (const [index, state] of states.entries()) {
    hash.update(`${inputs[index]} ${state?.mtimeMs} ${state?.size}\n`);
  }
  return { state: hash.digest('hex'), newestMs: Math.max(...states.map((state) => state?.mtimeMs ?? 0)) };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  void exitWith(async () => {
    const startedAtMs = performance.now();
    const built = await build({ force: process.argv.includes('--force') });
    process.stderr.write(built ? `Built dist/ in ${secondsSince(startedAtMs)}.\n` : 'dist/ is current.\n');
    return 0;
  });
}

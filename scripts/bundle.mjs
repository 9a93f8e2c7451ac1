// Makes the bundles of the `muster` command in memory: one file to start, the commands that only ask the coordinator as one script,
// all others with parts that load only when a command needs them, and the guard, the readers of NVML, of failures and of
// machine facts and the verifier of checkpoints as programs of their own. Started from a bundle, a command is ready in a fraction
// of the time that reading hundreds of source files takes.
import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { preparedMessages } from './preparedMessages.mjs';
import { root } from './setup.mjs';
import { Stop } from './terminal.mjs';

/** @typedef {{ path: string, contents: string | Uint8Array }} OutputFile path: below the folder of the bundles */

const entries = {
  starter: 'packages/cli/src/starter.ts',
  cli: 'packages/cli/src/main.ts',
  guard: 'packages/agent/src/guard/main.ts',
  nvmlReader: 'packages/agent/src/gpus/nvml/main.ts',
  verifier: 'packages/checkpoints/src/verifier/main.ts',
  failureReader: 'packages/agent/src/failure/reader/main.ts',
  machineReader: 'packages/agent/src/host/machine/main.ts',
};

/**
 * What bundled CommonJS takes for granted and an ES module does not have. It stands in every part, so it does nothing until
 * it is used.
 */
const commonJsBanner =
  'const require = (id) => process.getBuiltinModule(id) ?? ' +
  "process.getBuiltinModule('node:module').createRequire(import.meta.url)(id), __dirname = import.meta.dirname;";

/**
 * Commands that send calls and print answers: their parts are one script, because each part that Node loads costs time of its own,
 * and because the compiled code of a script can be kept after it has run (packages/cli/src/starter.ts). Everything that only some
 * calls need is still evaluated when it is needed.
 */
export const shortCommands = (
  'submit jobs job logs metrics checkpoints explain stop extend requeue ' +
  'nodes node top alert events token secret user project maintenance'
).split(' ');

/** Before the hash of the script of short commands in the name of its file. */
const shortName = 'part-short';

/** What checks job files, with the libraries for it, is larger than all short commands together and stays apart from them. */
export const specChecks = ['parse', 'resolve', 'validate'];

/**
 * @param {{ for: 'checkout' | 'release' }} options for a release: no source maps, and nothing is ever written beside the bundles
 * @returns {Promise<{ files: OutputFile[], inputs: string[] }>} inputs: the bundled files, relative to the root
 */
export async function makeBundles(options) {
  await requireEntries();
  const isRelease = options.for === 'release';
  const specEntries = Object.fromEntries(
    specChecks.map((name) => [`spec-${name}`, join(root, `packages/common/src/spec/${name}.ts`)]),
  );
  const { build, formatMessages } = await import('esbuild');

  const common = /** @satisfies {import('esbuild').BuildOptions} */ (
    /** @type {const} */ ({
      bundle: true,
      platform: 'node',
      target: 'node24',
      format: 'esm',
      packages: 'bundle',
      sourcemap: isRelease ? false : 'linked',
      // Nothing is written there; source maps name their sources from it.
      outdir: join(root, 'dist'),
      absWorkingDir: root,
      outExtension: { '.js': '.mjs' },
      logLevel: 'silent',
      write: false,
      metafile: true,
    })
  );
  /** @type {OutputFile[]} */
  const assets = [];
  // A native library lies beside koffi's code (`external`), which has to stay where npm put it.
  const results = await Promise.all([
    build({
      ...common,
      entryPoints: { main: entries.cli, ...specEntries },
      splitting: true,
      chunkNames: 'part-[name]-[hash]',
      banner: { js: commonJsBanner },
      plugins: [lazyPackages, lazyBuiltins, bundledProtos(assets)],
      external: ['koffi'],
    }),
    build({
      ...common,
      entryPoints: { [shortName]: entries.cli },
      outExtension: { '.js': '.js' },
      format: 'cjs',
      // In a script it is an experiment of Node, and `require` loads the checks of job files as well.
      supported: { 'dynamic-import': false },
      banner: { js: '(function (require, __dirname, __filename) {' },
      footer: { js: '})' },
      define: { 'import.meta.dirname': '__dirname', 'import.meta.filename': '__filename' },
      plugins: [onlyShortCommands, messagesPrepared, lazyBuiltins],
    }),
    // Loaded only by a guard that starts tasks as accounts.
    build({ ...common, entryPoints: { guard: entries.guard }, external: ['koffi'] }),
    build({ ...common, entryPoints: { 'checkpoint-verifier': entries.verifier } }),
    build({ ...common, entryPoints: { 'failure-reader': entries.failureReader } }),
    // The library behind it is CommonJS.
    build({
      ...common,
      entryPoints: { 'machine-reader': entries.machineReader },
      banner: { js: commonJsBanner },
    }),
    build({ ...common, entryPoints: { 'nvml-reader': entries.nvmlReader }, external: ['koffi'] }),
  ]).catch(async (error) => {
    const messages = await formatMessages(error.errors ?? [], {
      kind: 'error',
      color: process.stderr.isTTY === true,
    });
    throw messages.length === 0 ? error : new Stop(`The build failed.\n\n${messages.join('\n')}`);
  });
  refuseHeavyGuard(results[2].metafile);

  const outputs = results
    .flatMap((result) => result.outputFiles)
    .map(({ path, contents }) => ({ path: relative(common.outdir, path), contents }));
  const short = outputs.find(({ path }) => path === `${shortName}.js`)?.contents ?? '';
  // V8 distinguishes two scripts by their lengths only, so the name under which compiled code is kept has to differ.
  const shortFile = `${shortName}-${createHash('sha256').update(short).digest('hex').slice(0, 16)}.js`;
  const starter = await build({
    ...common,
    entryPoints: { muster: entries.starter },
    define: {
      __SHORT_COMMANDS__: JSON.stringify(shortCommands),
      __SHORT_FILE__: JSON.stringify(shortFile),
      __MAIN_FILE__: '"./main.mjs"',
      __IS_RELEASE__: String(isRelease),
    },
    external: ['./main.mjs'],
    sourcemap: false,
    plugins: [lazyBuiltins],
  });
  const worker = await automlWorker();
  return {
    // Parts first, what imports them after: a command started while they are written finds either the old whole or the new one.
    files: [
      ...assets,
      ...worker.files,
      ...outputs
        .filter(({ path }) => isPart(path))
        .map((file) => (file.contents === short ? { ...file, path: shortFile } : file)),
      ...outputs.filter(({ path }) => !isPart(path)),
      ...starter.outputFiles.map(({ contents }) => ({ path: 'muster.mjs', contents })),
    ],
    inputs: [
      ...[...results, starter].flatMap((result) => Object.keys(result.metafile.inputs)),
      ...worker.inputs,
    ],
  };
}

/** The Python of AutoML, which lies beside the bundles as it is. */
async function automlWorker() {
  const folder = 'packages/advice/muster_automl';
  const names = (await readdir(join(root, folder))).filter((name) => name.endsWith('.py')).sort();
  const files = await Promise.all(
    names.map(async (name) => ({
      path: `muster_automl/${name}`,
      contents: await readFile(join(root, folder, name)),
    })),
  );
  return { files, inputs: names.map((name) => `${folder}/${name}`) };
}

async function requireEntries() {
  for (const entry of Object.values(entries)) {
    const found = await stat(join(root, entry)).catch(() => null);
    if (found === null) throw new Stop(`Nothing to build: ${entry} does not exist.`);
  }
}

/** One of the files that the programs load when they need them. @param {string} path */
export function isPart(path) {
  return basename(path).startsWith('part-');
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
 * Leaves out of their script what no short command loads, and takes the checks of job files from the parts of `main.mjs`. Both have
 * their own copy of what they share, so nothing may cross that is recognised by its class: the checks throw no errors of Muster.
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
 * Gives short commands functions for their messages that are made now, and leaves out what only makes such functions. Without the
 * library for 64-bit integers protobufjs reads them as numbers, which is what `conversion` asks for; loading it compiles WebAssembly.
 * @type {import('esbuild').Plugin}
 */
export const messagesPrepared = {
  name: 'messages-prepared',
  setup({ onResolve, onLoad }) {
    onLoad({ filter: /\/packages\/common\/src\/wire\/messages\.ts$/ }, () => ({
      contents: preparedMessages(),
      resolveDir: root,
    }));
    onResolve({ filter: /^long$/ }, ({ path }) => ({ path, namespace: 'without' }));
    onLoad({ filter: /./, namespace: 'without' }, () => ({ contents: 'module.exports = null;' }));
  },
};

/**
 * Takes Node's own modules as they are. An import would make Node read every export of each for the bindings, and so load what
 * lazy exports need, such as the streams of node:fs. Commander's import for subcommands that are programs of their own is
 * removed: Muster has none, and loading what that takes would be a tenth of the start of a command.
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
 * @param {OutputFile[]} assets gets the files to write
 * @returns {import('esbuild').Plugin}
 */
function bundledProtos(assets) {
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
          assets.push({ path: join('proto', name), contents: await readFile(join(folder, name)) });
        }
        return { contents, loader: 'js' };
      });
    },
  };
}

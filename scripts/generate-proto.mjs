// Makes packages/common/src/gen from proto/: TypeScript types (proto-loader-gen-types) and one JSON descriptor, so that
// no process parses .proto text at start-up. `--check` compares instead of writing and fails when they differ.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import protobuf from 'protobufjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const committed = join(root, 'packages/common/src/gen');
const entryFiles = ['muster/v1/muster.proto', 'muster/v1/agent.proto'];

/**
 * Writes types and descriptor for all of proto/ below `outDir`.
 * @param {string} outDir
 */
function generate(outDir) {
  execFileSync(
    process.execPath,
    [
      join(root, 'node_modules/@grpc/proto-loader/build/bin/proto-loader-gen-types.js'),
      ...entryFiles,
      '--longs=Number',
      '--enums=String',
      '--oneofs',
      '--defaults',
      '--importFileExtension=.ts',
      '--grpcLib=@grpc/grpc-js',
      `--outDir=${outDir}`,
      '-I',
      'proto',
    ],
    { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const schema = new protobuf.Root();
  schema.resolvePath = (_origin, target) => join(root, 'proto', target);
  schema.loadSync(entryFiles).resolveAll();
  const json = JSON.stringify(schema.toJSON());
  writeFileSync(
    join(outDir, 'descriptor.ts'),
    `// Made by scripts/generate-proto.mjs from proto/; do not edit.\nexport const descriptorJson: string =\n  ${JSON.stringify(json)};\n`,
  );
}

/** @param {string} dir */
function filesBelow(dir) {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(dir, join(entry.parentPath, entry.name)))
    .sort();
}

const temporary = mkdtempSync(join(tmpdir(), 'muster-proto-'));
try {
  generate(temporary);
  if (process.argv.includes('--check')) {
    const made = filesBelow(temporary);
    const same =
      JSON.stringify(made) === JSON.stringify(filesBelow(committed)) &&
      made.every((file) => readFileSync(join(temporary, file)).equals(readFileSync(join(committed, file))));
    if (!same) {
      console.error(
        'packages/common/src/gen is not what proto/ says; run `npm run generate` and commit the result.',
      );
      process.exitCode = 1;
    }
  } else {
    rmSync(committed, { recursive: true, force: true });
    cpSync(temporary, committed, { recursive: true });
  }
} finally {
  rmSync(temporary, { recursive: true, force: true });
}

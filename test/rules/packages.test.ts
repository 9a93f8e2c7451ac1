import { expect, test } from 'vitest';
import {
  expectNone,
  importsOf,
  isTestCode,
  repositoryFiles,
  resolveImport,
  type SourceFile,
} from './source.ts';

/** package => the packages of ours that it may import, and why no others. */
const mayImport: Readonly<Record<string, { readonly packages: readonly string[]; readonly why: string }>> = {
  common: { packages: [], why: 'everything imports common, so an import from it would close a circle' },
  diagnosis: { packages: ['common'], why: 'it reads text; whoever has the text calls it' },
  checkpoints: { packages: ['common'], why: 'it reads files; whoever knows whose they are calls it' },
  experiments: {
    packages: ['common'],
    why: 'it computes what to try next; whoever runs the trials calls it',
  },
  pipelines: {
    packages: ['common', 'experiments'],
    why: 'it computes which step is next; whoever runs the steps calls it',
  },
  advice: {
    packages: ['common', 'experiments', 'pipelines'],
    why: 'it computes on what it is told, and checks the files that it writes; whoever has files and flags calls it',
  },
  coordinator: {
    packages: ['common', 'advice', 'experiments', 'mcp', 'pipelines'],
    why: 'it knows agents only by what they say over the wire, and serves the tools over HTTP',
  },
  agent: {
    packages: ['common', 'diagnosis', 'checkpoints'],
    why: 'it is installed alone on nodes and knows the coordinator only by the wire',
  },
  mcp: {
    packages: ['common', 'advice'],
    why: 'its tools are calls of the API, whoever answers them; what advice takes and gives is said by its schemas',
  },
  cli: {
    packages: [
      'common',
      'coordinator',
      'advice',
      'agent',
      'diagnosis',
      'checkpoints',
      'experiments',
      'mcp',
      'pipelines',
    ],
    why: 'it starts both daemons, and reads files that Muster never saw',
  },
};

function strayImports(files: readonly SourceFile[]): string[] {
  return files.flatMap((file) => {
    const { path, text } = file;
    const own = packageOf(path);
    if (own === null) return [];
    const rule = mayImport[own];
    if (rule === undefined) return [`${path}: package ${own} has no entry in test/rules/packages.test.ts`];
    return importsOf(text).flatMap(({ specifier, line }) => {
      const target = resolveImport(path, specifier);
      const other = target === null ? own : packageOf(target);
      // Tests may use test/support; what ships may not leave its package by a relative path.
      if (other === null)
        return isTestCode(file) ? [] : [`${path}:${line}: ${specifier} is not in a package`];
      if (other === own) return [];
      if (specifier.startsWith('.')) return [`${path}:${line}: ${specifier}: write @muster/${other}/…`];
      if (rule.packages.includes(other)) return [];
      return [`${path}:${line}: ${own} must not import ${other}: ${rule.why}`];
    });
  });
}

function packageOf(path: string): string | null {
  return /^packages\/(\w+)\/src\//.exec(path)?.[1] ?? null;
}

test('the checker sees imports that cross a border', () => {
  const problems = strayImports([
    { path: 'packages/common/src/a.ts', text: "import type { Job } from '@muster/coordinator/model';" },
    { path: 'packages/agent/src/a.ts', text: "import { x } from '../../common/src/x.ts';" },
    { path: 'packages/agent/src/b.ts', text: "import { waitFor } from '../../../test/support/services.ts';" },
    {
      path: 'packages/agent/src/b.test.ts',
      text: "import { freePort } from '../../../test/support/services.ts';",
    },
    { path: 'packages/cli/src/a.ts', text: "import { serve } from '@muster/coordinator/main';" },
    { path: 'packages/new/src/a.ts', text: '' },
  ]);
  expect(problems).toEqual([
    'packages/common/src/a.ts:1: common must not import coordinator: ' +
      'everything imports common, so an import from it would close a circle',
    'packages/agent/src/a.ts:1: ../../common/src/x.ts: write @muster/common/…',
    'packages/agent/src/b.ts:1: ../../../test/support/services.ts is not in a package',
    'packages/new/src/a.ts: package new has no entry in test/rules/packages.test.ts',
  ]);
});

test('packages import only what they may', () => {
  const files = repositoryFiles().filter(({ path }) => path.endsWith('.ts'));
  expectNone(
    strayImports(files),
    'The borders between packages are what lets each be understood, shipped and tested alone.',
  );
});

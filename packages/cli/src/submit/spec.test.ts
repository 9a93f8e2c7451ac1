import { applyOverrides } from '@muster/common/spec/overrides';
import { Command } from 'commander';
import { expect, test } from 'vitest';
import { overridesOf, withSpecFlags } from './spec.ts';

/** The job file that flags stand for. */
function fileOf(...flags: readonly string[]): unknown {
  const command = withSpecFlags(new Command().exitOverride()).parse(flags, { from: 'user' });
  return applyOverrides({}, overridesOf(command.opts(), ['train']), {}).value;
}

test('what flags say about a gang is what the job file says', () => {
  const size = ['--nodes', '1:4', '--topology', 'required', '--launcher', 'env'];
  const paths = ['--network', 'ib0', '--preflight', '--lease', '90s', '--node-loss', 'requeue'];
  expect(fileOf(...size, ...paths)).toEqual({
    command: ['train'],
    resources: { nodes: { min: 1, max: 4 }, topology: 'required' },
    launcher: 'env',
    network: 'ib0',
    preflight: true,
    lease: '90s',
    node_loss: 'requeue',
  });
});

test('flags that are not given say nothing', () => {
  expect(fileOf()).toEqual({ command: ['train'] });
});

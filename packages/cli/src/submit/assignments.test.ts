import { withValueAt } from '@muster/common/spec/path';
import { expect, test } from 'vitest';
import { parseChange } from './assignments.ts';

const spec = { name: 'train', env: { LR: '0.1' }, resources: { nodes: 1, gpus: 1 }, max_runtime: '1h' };

test.each([
  ['env.LR=3e-4', { ...spec, env: { LR: '3e-4' } }],
  ['env.my.name==x=y', { ...spec, env: { LR: '0.1', 'my.name': '=x=y' } }],
  ['params.lr=3e-4', { ...spec, params: { lr: 0.0003 } }],
  ['resources.gpus=2', { ...spec, resources: { nodes: 1, gpus: 2 } }],
  ['max_runtime=2h', { ...spec, max_runtime: '2h' }],
  ['preemptible=true', { ...spec, preemptible: true }],
  ['command=["a", "b c"]', { ...spec, command: ['a', 'b c'] }],
  ['max_runtime=', { name: spec.name, env: spec.env, resources: spec.resources }],
  ['name.x=1', spec],
])('--set %s', (typed, wanted) => {
  const change = parseChange(typed);
  expect(change === null ? null : withValueAt(spec, change.path, change.value)).toEqual(wanted);
});

test.each(['', 'env', '=1', '.x=1', 'resources.=1'])('"%s" is no change', (typed) => {
  expect(parseChange(typed)).toBeNull();
});

// As text, the shell would get the brackets.
test.each(['command=[a', 'command=[torchrun, train.py]', 'resources={gpus: 2}', 'name="a'])(
  '"%s" is no JSON, and no text either',
  (typed) => {
    expect(() => parseChange(typed)).toThrow(SyntaxError);
  },
);

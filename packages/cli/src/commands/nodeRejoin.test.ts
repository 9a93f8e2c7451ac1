import { expect, test } from 'vitest';
import { aNode, wire } from '../testing/fakeCoordinator.ts';
import { run } from '../testing/testContext.ts';

test('node rejoin tells the coordinator, and says who becomes the node', async () => {
  const RejoinNode = () => wire.node(aNode({ state: 'silent' }));
  const { stdout, requests } = await run(['node', 'rejoin', 'node-1'], { RejoinNode });
  expect(stdout).toBe('The next machine with the credential of node-1 becomes node-1.\n');
  expect(requests).toEqual([{ method: 'RejoinNode', request: { node: 'node-1' } }]);
  const json = await run(['node', 'rejoin', 'node-1', '-o', 'json'], { RejoinNode });
  expect(JSON.parse(json.stdout)).toMatchObject({ name: 'node-1' });
});

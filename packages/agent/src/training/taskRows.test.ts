import { taskKey } from '@muster/common/ids';
import { describe, expect, test, vi } from 'vitest';
import { aTask } from '../tasks/managerFixture.ts';
import { Node, step, steps } from './taskTrainingFixture.ts';

describe('rows', () => {
  const shown = ({ rows }: Node) => rows.map(({ position, values: { step: at } }) => [position, at]);

  test('are all lines of metrics, by where they end in the output, and end with it', async () => {
    const node = new Node();
    const agent = await node.agent();
    node.run();
    const lines = ['é no metrics\n', step(0, 4), '\n', step(1, 'nan'), step(2, 2).slice(0, -1)];
    node.write(lines.slice(0, 3).join(''));
    await vi.waitFor(() => expect(node.rows).toHaveLength(1));
    node.nowMs += 5_000;
    node.write(lines.slice(3).join(''));
    await vi.waitFor(() => expect(node.rows).toHaveLength(2));
    expect(node.ended).toEqual([]);
    await agent.finish(aTask);
    expect(node.ended.map(({ task }) => task)).toEqual([taskKey(aTask)]);
    const output = lines.join('');
    const endOf = (line: string) => Buffer.byteLength(output.slice(0, output.indexOf(line) + line.length));
    expect(node.rows).toEqual([
      {
        task: aTask,
        atMs: 1_000_000,
        lossNotFinite: false,
        position: endOf(step(0, 4).trimEnd()),
        values: expect.objectContaining({ step: 0, train_loss: 4 }),
      },
      {
        task: aTask,
        atMs: 1_005_000,
        lossNotFinite: true,
        position: endOf(step(1, 'nan').trimEnd()),
        values: expect.not.objectContaining({ train_loss: expect.anything() }),
      },
      {
        task: aTask,
        atMs: 1_005_000,
        lossNotFinite: false,
        position: Buffer.byteLength(output),
        values: expect.objectContaining({ step: 2, train_loss: 2 }),
      },
    ]);
  });

  test('are the same again for the next agent, at the same positions', async () => {
    const node = new Node();
    node.run();
    node.write(steps(0, 3_000));
    const first = await node.agent();
    await vi.waitFor(() => expect(node.rows).toHaveLength(3_000));
    const before = shown(node);
    first.close();
    node.rows.length = 0;
    node.write(steps(3_000, 3_010));
    await node.agent();
    await vi.waitFor(() => expect(node.rows).toHaveLength(3_010));
    expect(shown(node).slice(0, 3_000)).toEqual(before);
    expect(new Set(shown(node).map(([position]) => position)).size).toBe(3_010);
    // By this clock its output is of the future: nothing is later than now.
    expect(new Set(node.rows.map(({ atMs }) => atMs))).toEqual(new Set([1_000_000]));
  });
});

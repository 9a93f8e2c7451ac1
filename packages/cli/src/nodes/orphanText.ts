/** Tasks that nodes run and the store does not know, for people. Pure. */
import type { NodeView, OrphanTask } from '@muster/common/views';
import { count, printable } from '../output/text.ts';

/** Tasks of a node that are named. */
const namedMax = 8;

/** A block for each node that has some, with the command that ends them; empty when none has. */
export function orphansText(
  nodes: readonly Pick<NodeView, 'name' | 'orphans'>[],
  programName: string,
): string {
  return nodes
    .filter(({ orphans }) => orphans.length > 0)
    .map(({ name, orphans }) => {
      const { length } = orphans.flatMap(({ gpuUuids }) => gpuUuids);
      const holding = length === 0 ? '' : `, holding ${count(length, 'GPU')}`;
      const tasks = count(orphans.length, 'task runs', 'tasks run');
      return (
        `${tasks} on ${name} that the store does not know${holding}:\n${orphanLines(orphans)}` +
        `Kill ${orphans.length === 1 ? 'it' : 'them'}: ${programName} node end-orphans ${name}\n`
      );
    })
    .join('');
}

/** One line for each of the first few. */
export function orphanLines(orphans: readonly OrphanTask[]): string {
  const lines = orphans.slice(0, namedMax).map(({ task, name, gpuUuids, frozen }) => {
    const facts = [
      task.jobId,
      name,
      `attempt ${task.attempt}`,
      `node rank ${task.nodeRank}`,
      ...(gpuUuids.length === 0 ? [] : [count(gpuUuids.length, 'GPU')]),
      ...(frozen ? ['frozen'] : []),
    ];
    return `  ${printable(facts.filter((fact) => fact !== '').join('  '))}\n`;
  });
  const more = orphans.length - namedMax;
  return [...lines, ...(more > 0 ? [`  … and ${more} more\n`] : [])].join('');
}

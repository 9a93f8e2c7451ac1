import { type ConditionTable, defaultConditionTable } from './conditionTable.ts';

/**
 * The table of conditions, with the operator's file laid over it. @param path null: as it comes
 * @throws {MusterError} naming every problem of the file at once
 */
export async function loadConditionTable(path: string | null): Promise<ConditionTable> {
  if (path === null) return defaultConditionTable;
  // Loaded only here: zod and YAML are a fifth of the agent's memory, and few nodes have such a file.
  const { readConditionTable } = await import('./tableFile.ts');
  return readConditionTable(path);
}

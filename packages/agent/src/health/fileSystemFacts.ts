/** What the state of the file systems of the agent and of the jobs means. Pure. */

import type { HealthThresholds } from './conditionTable.ts';
import { see, well } from './entries.ts';
import type { HealthContext } from './faults.ts';
import type { FileSystemFact } from './fileSystems.ts';
import type { LevelKind } from './levelRows.ts';
import type { HealthDraft } from './state.ts';

const mbBytes = 1024 * 1024;

/** The result of one check of one file system; null: well. undefined: it was not read. */
type Finding = string | null | undefined;

export function applyFileSystems(
  draft: HealthDraft,
  context: HealthContext,
  facts: readonly FileSystemFact[],
): void {
  const { thresholds } = context.table;
  const agent = facts.filter(({ isDataDir }) => isDataDir);
  const others = facts.filter(({ isDataDir }) => !isDataDir);
  const wasWritable = draft.writablePaths;
  judge(draft, context, 'disk_full', agent, (fact) => fullness(fact, thresholds));
  judge(draft, context, 'mount_full', others, (fact) => fullness(fact, thresholds));
  judge(draft, context, 'disk_read_only', agent, readOnly);
  // Data sets are often mounted read-only on purpose: only one that was not is worth a word.
  judge(draft, context, 'mount_read_only', others, (fact) =>
    wasWritable.has(fact.path) ? readOnly(fact) : null,
  );
  judge(draft, context, 'disk_unreachable', agent, ({ failure }) => failure);
  judge(draft, context, 'mount_unreachable', others, ({ failure }) => failure);
  const writable = facts.flatMap(({ path, readOnly: isReadOnly }) => (isReadOnly === false ? [path] : []));
  const paths = new Set(facts.map(({ path }) => path));
  // A path that is watched no more is forgotten.
  draft.writablePaths = new Set([...wasWritable, ...writable].filter((path) => paths.has(path)));
}

function judge(
  draft: HealthDraft,
  context: HealthContext,
  kind: LevelKind,
  facts: readonly FileSystemFact[],
  check: (fact: FileSystemFact) => Finding,
): void {
  const findings = facts.map((fact) => ({ path: fact.path, finding: check(fact) }));
  const bad = findings.filter(({ finding }) => typeof finding === 'string');
  if (bad.length === 0) {
    const allRead = findings.every(({ finding }) => finding === null);
    if (allRead) well(draft, kind, null, context.now.uptimeMs);
    return;
  }
  const lines = bad.map(({ path, finding }) => `${path}: ${finding}`);
  see(draft, context.table, {
    kind,
    gpuUuid: null,
    pciBusId: null,
    number: null,
    detail: lines.join('; '),
    evidence: lines.join('; '),
    task: null,
    announced: false,
    at: context.now,
  });
}

function fullness(fact: FileSystemFact, thresholds: HealthThresholds): Finding {
  const { space } = fact;
  if (space === null) return fact.failure === null ? null : undefined;
  const { sizeBytes, availableBytes, files, availableFiles } = space;
  const wanted = Math.min(thresholds.diskFreeMb * mbBytes, (sizeBytes * thresholds.diskFreePercent) / 100);
  if (availableBytes < wanted) return `${mb(availableBytes)} MiB of ${mb(sizeBytes)} MiB are free`;
  if (
    files !== null &&
    availableFiles !== null &&
    availableFiles < (files * thresholds.inodesFreePercent) / 100
  )
    return `${availableFiles} of ${files} inodes are free`;
  return null;
}

function readOnly(fact: FileSystemFact): Finding {
  if (fact.readOnly === null) return undefined;
  return fact.readOnly ? 'mounted read-only' : null;
}

function mb(bytes: number): number {
  return Math.floor(bytes / mbBytes);
}

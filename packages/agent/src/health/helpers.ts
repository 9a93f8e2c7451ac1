/** What it means for a node that its guard or its container engine does not answer. Pure. */
import { see, well } from './entries.ts';
import type { HealthContext } from './faults.ts';
import type { LevelKind } from './levelRows.ts';
import type { HealthDraft } from './state.ts';

/** `absent`: none listens, which is no problem of the node. `silent`: one listens and does not answer. */
export type HelperState = 'answers' | 'absent' | 'silent';

/** A program that runs tasks of the node, as it was seen last. */
export interface HelperFact {
  readonly state: HelperState;
  /** Names the program for people: its pid or socket, and what keeps it from answering if that is known. */
  readonly detail: string;
}

export interface HelperFacts {
  readonly guard: HelperFact;
  readonly engine: HelperFact;
}

export function applyHelpers(draft: HealthDraft, context: HealthContext, facts: HelperFacts): void {
  judge(draft, context, 'guard_silent', facts.guard);
  judge(draft, context, 'engine_silent', facts.engine);
}

function judge(
  draft: HealthDraft,
  { table, now }: HealthContext,
  kind: LevelKind,
  { state, detail }: HelperFact,
): void {
  if (state !== 'silent') {
    well(draft, kind, null, now.uptimeMs);
    return;
  }
  see(draft, table, {
    kind,
    gpuUuid: null,
    pciBusId: null,
    number: null,
    detail,
    evidence: `no answer: ${detail}`,
    task: null,
    announced: false,
    at: now,
  });
}

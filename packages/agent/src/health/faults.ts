/**
 * Xids and SXids, as NVML announces and the kernel log prints them, and what follows from them. Pure.
 *
 * The same Xid comes on both ways and counts once. A program that faults (Xid 13, 31 …) draws others behind it (43, 45):
 * the first is the cause and the only one that becomes a condition. A GPU on which one job after the other faults, while
 * its neighbours are clean, is itself at fault.
 */
import { conditionKey } from '@muster/common/conditions';
import { cardUuid } from '@muster/common/hardware';
import type { GpuObservation, XidEvent } from '../gpus/gpuSource.ts';
import { cardAt, holderOf } from './cards.ts';
import { type ConditionTable, rowOf } from './conditionTable.ts';
import { type ConditionObservation, see } from './entries.ts';
import { isNvlink5, type KernelFact } from './kernelLines.ts';
import { judgeRecovery } from './recovery.ts';
import type { HealthDraft, Moment, ProgramFault, RecentXid } from './state.ts';

export interface HealthContext {
  readonly table: ConditionTable;
  /** The newest; null: none yet. */
  readonly observation: GpuObservation | null;
  readonly now: Moment;
}

/** Both sources report an Xid within this. The kernel log is read once a second. */
const pairWindowMs = 5_000;
/** A pid may be another process after that. */
const samePidWindowMs = 600_000;
const recentXidsMax = 256;
const programFaultsMax = 256;

const followUps: ReadonlySet<number> = new Set([43, 45]);
/** Of programs, unless different programs have them on the same GPU. */
const suspicious: ReadonlySet<number> = new Set([13, 31]);
const recoveryChanged = 154;

interface Xid {
  readonly number: number;
  readonly from: RecentXid['from'];
  readonly gpuUuid: string | null;
  readonly pciBusId: string | null;
  readonly pid: number | null;
  readonly fatal: boolean;
  readonly evidence: string;
  readonly at: Moment;
  /** From before the agent started: who held the GPU then is not known. */
  readonly history: boolean;
}

export function applyXidEvent(draft: HealthDraft, context: HealthContext, event: XidEvent): void {
  const { xid } = event;
  const instance = context.observation?.gpus.find(({ uuid }) => uuid === event.gpuUuid);
  const gpuUuid = instance === undefined ? event.gpuUuid : cardUuid(instance);
  noteLastXid(draft, gpuUuid, xid);
  // The number alone does not show what the driver asks for; the next sample does.
  if (xid === recoveryChanged) return;
  applyXid(draft, context, {
    number: xid,
    from: 'nvml',
    gpuUuid,
    pciBusId: null,
    pid: null,
    fatal: false,
    evidence: `NVML announced Xid ${xid}`,
    at: context.now,
    history: false,
  });
}

export function applyKernelFact(
  draft: HealthDraft,
  context: HealthContext,
  fact: KernelFact,
  at: Moment,
  history: boolean,
): void {
  const card = cardAt(draft.cards.values(), fact.pciBusId);
  const gpuUuid = card?.uuid ?? null;
  const { kind, number, pciBusId, text: evidence } = fact;
  const seen = { gpuUuid, pciBusId, number, detail: '', evidence, task: null, announced: true, at };
  switch (kind) {
    case 'fallen_off':
      // The line that comes with Xid 79 adds nothing.
      if (draft.entries.has(conditionKey({ kind: 'xid_79', gpuUuid }))) return;
      raise(draft, context, {
        ...seen,
        kind: 'gpu_fallen_off',
        task: taskOf(context, gpuUuid, null, history),
      });
      return;
    case 'gsp_errors':
      raise(draft, context, {
        ...seen,
        kind: 'gsp_errors',
        task: taskOf(context, gpuUuid, null, history),
      });
      return;
    case 'sxid':
      // The id is the switch's: the node as a whole is concerned.
      raise(draft, context, {
        ...seen,
        gpuUuid: null,
        kind: `sxid_${number}${fact.fatal === true ? '_fatal' : ''}`,
      });
      return;
    case 'xid': {
      if (number === null) return;
      noteLastXid(draft, gpuUuid, number);
      if (fact.recoveryAction !== null && card !== null) {
        draft.cards.set(card.uuid, {
          ...card,
          lastXid: number,
          recovery: { action: fact.recoveryAction, atMs: at.uptimeMs },
        });
        judgeRecovery(draft, context.table, card.uuid, evidence, taskOf(context, gpuUuid, null, history), at);
        return;
      }
      const fatal = isNvlink5(number) && fact.fatal === true;
      const xid = { number, pciBusId, pid: fact.pid, fatal, evidence, at, history };
      applyXid(draft, context, { ...xid, from: 'kernel', gpuUuid });
    }
  }
}

function applyXid(draft: HealthDraft, context: HealthContext, xid: Xid): void {
  const twin = takeTwin(draft, xid);
  // The kernel log has reported it already, and better.
  if (twin !== null && xid.from === 'nvml') return;
  const cause = causeOf(draft, context, xid);
  const kind = `xid_${xid.number}${xid.fatal ? '_fatal' : ''}`;
  const key = cause === null ? conditionKey({ kind, gpuUuid: xid.gpuUuid }) : cause.key;
  if (twin !== null && twin.key !== key) uncount(draft, twin.key);
  remember(draft, {
    gpuUuid: xid.gpuUuid,
    xid: xid.number,
    pid: xid.pid,
    from: xid.from,
    key,
    atMs: xid.at.uptimeMs,
    // What was there before the agent started, nobody is going to announce again.
    paired: twin !== null || xid.history,
  });
  if (cause !== null) return;
  const task = taskOf(context, xid.gpuUuid, xid.pid, xid.history);
  raise(draft, context, {
    kind,
    gpuUuid: xid.gpuUuid,
    pciBusId: xid.pciBusId,
    number: xid.number,
    detail: '',
    evidence: xid.evidence,
    task,
    announced: twin === null || twin.key !== key,
    at: xid.at,
  });
  if (suspicious.has(xid.number) && xid.gpuUuid !== null && !xid.history && twin === null) {
    noteProgramFault(
      draft,
      context,
      { gpuUuid: xid.gpuUuid, jobId: task?.jobId ?? null, atMs: xid.at.uptimeMs },
      xid,
    );
  }
}

/** The same Xid as it came on the other way, which is then covered. */
function takeTwin(draft: HealthDraft, xid: Xid): RecentXid | null {
  const isTwin = (recent: RecentXid) =>
    !recent.paired &&
    recent.from !== xid.from &&
    recent.xid === xid.number &&
    recent.gpuUuid === xid.gpuUuid &&
    Math.abs(xid.at.uptimeMs - recent.atMs) <= pairWindowMs;
  const twin = draft.xids.find(isTwin) ?? null;
  if (twin === null || xid.history) return null;
  draft.xids = draft.xids.map((recent) => (recent === twin ? { ...recent, paired: true } : recent));
  return twin;
}

/** The first Xid of the process that a follow-up belongs to; without a pid, one of the same GPU just before. */
function causeOf(draft: HealthDraft, { table }: HealthContext, xid: Xid): RecentXid | null {
  if (!followUps.has(xid.number)) return null;
  const isCause = (recent: RecentXid) => {
    if (followUps.has(recent.xid) || recent.gpuUuid !== xid.gpuUuid) return false;
    const ageMs = xid.at.uptimeMs - recent.atMs;
    if (xid.pid !== null && recent.pid !== null) return recent.pid === xid.pid && ageMs <= samePidWindowMs;
    return ageMs <= table.thresholds.followUpMs;
  };
  return draft.xids.find(isCause) ?? null;
}

function uncount(draft: HealthDraft, key: string): void {
  const entry = draft.entries.get(key);
  if (entry === undefined) return;
  const count = entry.condition.count - 1;
  if (count === 0) draft.entries.delete(key);
  else draft.entries.set(key, { ...entry, condition: { ...entry.condition, count } });
}

function remember(draft: HealthDraft, recent: RecentXid): void {
  draft.xids = [...draft.xids, recent].slice(-recentXidsMax);
}

function noteLastXid(draft: HealthDraft, gpuUuid: string | null, xid: number): void {
  const card = gpuUuid === null ? undefined : draft.cards.get(gpuUuid);
  if (card !== undefined) draft.cards.set(card.uuid, { ...card, lastXid: xid });
}

function taskOf(
  { observation }: HealthContext,
  gpuUuid: string | null,
  pid: number | null,
  history: boolean,
) {
  return gpuUuid === null || history ? null : holderOf(observation, gpuUuid, pid);
}

/** What a reboot should have ended and did not, time and again, is the hardware. */
function raise(draft: HealthDraft, context: HealthContext, seen: ConditionObservation): void {
  see(draft, context.table, seen);
  const boots = draft.survivedBoots.get(conditionKey(seen)) ?? 0;
  const { action } = rowOf(context.table, seen.kind);
  if (boots < context.table.thresholds.suspectBoots || !action.startsWith('drain_')) return;
  const detail = `${seen.kind} is back after ${boots} reboots in a row`;
  see(draft, context.table, { ...seen, kind: 'hardware_suspected', detail });
}

function noteProgramFault(draft: HealthDraft, { table }: HealthContext, fault: ProgramFault, xid: Xid): void {
  const { suspectJobs, suspectWindowMs } = table.thresholds;
  const others = draft.programFaults.filter(
    ({ gpuUuid, jobId, atMs }) =>
      fault.atMs - atMs < suspectWindowMs && !(gpuUuid === fault.gpuUuid && jobId === fault.jobId),
  );
  draft.programFaults = [...others, fault].slice(-programFaultsMax);
  const here = draft.programFaults.filter(({ gpuUuid }) => gpuUuid === fault.gpuUuid);
  const neighboursAreClean = here.length === draft.programFaults.length && draft.cards.size > 1;
  const jobs = here.filter(({ jobId }) => jobId !== null).map(({ jobId }) => jobId);
  if (!neighboursAreClean || jobs.length < suspectJobs) return;
  see(draft, table, {
    kind: 'hardware_suspected',
    gpuUuid: fault.gpuUuid,
    pciBusId: xid.pciBusId,
    number: xid.number,
    detail: `the programs of ${jobs.length} jobs faulted there, and on no other GPU of the node`,
    evidence: `${jobs.slice(-20).join(', ')}; last: ${xid.evidence}`,
    task: null,
    announced: true,
    at: xid.at,
  });
}

/**
 * Finds the events that fire triggers. How far each trigger has looked is stored with its fires, and now and then without one: after a
 * restart, events behind that are looked at again, of which none is carried out twice.
 */
import { isJobId } from '@muster/common/ids';
import { verbsOf } from '@muster/common/people';
import type { CheckedCondition } from '../alerts/condition.ts';
import { mayUseOwned } from '../auth/access.ts';
import type { Job } from '../model.ts';
import { isPrivate } from '../state/people.ts';
import type { ClusterState } from '../state/state.ts';
import type { Store } from '../store/store.ts';
import type { StoredTrigger } from '../store/triggers.ts';
import { nextRound } from '../work/inOrder.ts';
import { eventConditionOf, eventHolds, type SeenEvent } from './eventCondition.ts';

const eventsPerPage = 500;
/** How far the stored number may be behind. */
const behindMax = 1_000;

export interface EventFollowerActions {
  /** @param after names of the triggers that have led to the event */
  readonly fire: (
    trigger: StoredTrigger,
    event: SeenEvent,
    job: Job | null,
    after: readonly string[],
  ) => Promise<void>;
  /** Stores that all events up to this one were looked at. */
  readonly note: (trigger: StoredTrigger, seq: number) => Promise<void>;
}

export interface TriggerEventParts {
  readonly state: ClusterState;
  readonly store: Pick<Store, 'readEvents' | 'readJob'>;
}

export class TriggerEvents {
  private readonly parts: TriggerEventParts;
  /** Up to which event each trigger has looked since the start, by name and creation. */
  private readonly looked = new Map<string, number>();
  private readonly conditions = new Map<string, CheckedCondition>();

  constructor(parts: TriggerEventParts) {
    this.parts = parts;
  }

  /** One pass: looks at what has happened since the last one. */
  async run({ fire, note }: EventFollowerActions): Promise<void> {
    const { state, store } = this.parts;
    this.forgetDeleted();
    const following = () =>
      [...state.pipelines.triggers.values()].filter(
        ({ source, isPaused }) => source.kind === 'event' && !isPaused,
      );
    let position = Math.min(...following().map((each) => this.positionOf(each)));
    while (position < state.lastEventSeq) {
      const events = await store.readEvents(position, eventsPerPage, null);
      for (const event of events) {
        for (const trigger of following()) {
          if (this.positionOf(trigger) >= event.seq) continue;
          const found = await this.look(trigger, event);
          if (found !== null) await fire(trigger, event, found.job, found.after);
          this.looked.set(keyOf(trigger), event.seq);
        }
      }
      const last = events.at(-1);
      if (last === undefined) break;
      position = last.seq;
      await nextRound();
    }
    for (const trigger of following()) {
      const seq = this.positionOf(trigger);
      if (seq - (trigger.eventSeq ?? 0) >= behindMax) await note(trigger, seq);
    }
  }

  private forgetDeleted(): void {
    const triggers = [...this.parts.state.pipelines.triggers.values()];
    const keys = new Set(triggers.map(keyOf));
    for (const key of this.looked.keys()) if (!keys.has(key)) this.looked.delete(key);
    const texts = new Set(triggers.map(({ source }) => (source.kind === 'event' ? source.condition : null)));
    for (const text of this.conditions.keys()) if (!texts.has(text)) this.conditions.delete(text);
  }

  private positionOf(trigger: StoredTrigger): number {
    return Math.max(this.looked.get(keyOf(trigger)) ?? 0, trigger.eventSeq ?? 0);
  }

  /** @returns null: the event does not concern it, or its condition does not hold */
  private async look(
    trigger: StoredTrigger,
    event: SeenEvent,
  ): Promise<{ readonly job: Job | null; readonly after: readonly string[] } | null> {
    if (trigger.source.kind !== 'event') return null;
    const job = await this.jobOf(event);
    const owner = {
      user: job === null ? textOrNull(event.data['user']) : job.user,
      project: job === null ? textOrNull(event.data['project']) : job.spec.project,
    };
    if (owner.project !== trigger.project || !this.mayRead(trigger, { ...owner, project: owner.project }))
      return null;
    const after = this.triggersBefore(event, job);
    // What it has started itself, by whatever way, must not start it again.
    if (after.includes(trigger.name) || event.data['trigger'] === trigger.name) return null;
    const { condition: text } = trigger.source;
    const condition = this.conditions.get(text) ?? (await eventConditionOf(text));
    this.conditions.set(text, condition);
    return eventHolds(condition, event, job) ? { job, after } : null;
  }

  /** A trigger sees what its user may see now. */
  private mayRead(
    { by }: StoredTrigger,
    owner: { readonly user: string | null; readonly project: string },
  ): boolean {
    if (by.kind !== 'user') return true;
    const { people } = this.parts.state;
    const user = people.users.get(by.user);
    if (user === undefined) return false;
    const now = { ...by, role: user.role, projects: user.projects, verbs: verbsOf[user.role] };
    return now.verbs.includes('read') && mayUseOwned(now, 'read', owner, (name) => isPrivate(people, name));
  }

  private async jobOf({ subject, data }: SeenEvent): Promise<Job | null> {
    // Alerts name what they are about: a job, a node or the cluster.
    const id = [subject, data['jobId'], data['of']]
      .map(textOrNull)
      .find((text) => text !== null && isJobId(text));
    if (id == null || !isJobId(id)) return null;
    const { state, store } = this.parts;
    return state.jobs.get(id) ?? (await store.readJob(id))?.job ?? null;
  }

  /** The triggers of the run that the event belongs to, by a job, a sweep or the run itself. */
  private triggersBefore({ data }: SeenEvent, job: Job | null): readonly string[] {
    const { pipelines, sweeps } = this.parts.state;
    const sweep = sweeps.sweeps.get(textOrNull(data['sweep']) ?? '');
    const ofSweep = sweep === undefined ? null : labelOf((JSON.parse(sweep.spec) as SpecWithJob).job);
    const ids = [labelOf(job?.spec), ofSweep, textOrNull(data['pipeline']), textOrNull(data['run'])];
    return ids.flatMap((id) => (id === null ? [] : (pipelines.runs.get(id)?.triggers ?? [])));
  }
}

interface SpecWithJob {
  readonly job?: { readonly labels?: Readonly<Record<string, string>> };
}

function labelOf(job: SpecWithJob['job']): string | null {
  return job?.labels?.['muster.pipeline'] ?? null;
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function keyOf({ name, createdAtMs }: StoredTrigger): string {
  return `${name}/${createdAtMs}`;
}

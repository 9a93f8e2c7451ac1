/**
 * What attempts begin from: the newest checkpoint that was found whole by then, of which nothing bad is known and that the
 * nodes of the attempt can read; and no nodes are chosen that cannot read the newest, while those are there that can.
 */
import type { ResumeChoice } from '@muster/common/checkpoints';
import { type TaskRef, taskKey } from '@muster/common/ids';
import type { TaskEnd } from '@muster/common/views';
import type { StoredEvent } from '@muster/coordinator/model';
import type { Grants } from '../grants.ts';
import type { CheckpointSaved, Fact } from '../history.ts';
import { isProgress, type JobStories, type JobStory } from './jobStories.ts';
import type { Verdict } from './verdict.ts';

interface Known {
  readonly name: string;
  readonly step: number;
  readonly attempt: number;
  readonly node: string;
  isGood: boolean;
}

interface Memory {
  /** Oldest first. */
  known: readonly Known[];
  /** One of these is what its user wants; which one nobody outside can tell. */
  choices: readonly ResumeChoice[];
}

/** By then a node that answers counts as being there, by all. */
const steadyAfterMs = 8_000;
/** The coordinator keeps no more. */
const knownMax = 64;

export class ResumeCheck {
  private readonly memories = new Map<string, Memory>();
  /** Of jobs that somebody wants to be run again. */
  private readonly wanted = new Map<string, ResumeChoice[]>();
  /** What programs saved on their way out, by task. */
  private readonly last = new Map<string, CheckpointSaved>();
  /** By job: what the next attempt does not begin before. */
  private readonly owed = new Map<string, CheckpointSaved>();
  /** Attempts, `<job>.<number>`, of which a node was lost. */
  private readonly lost = new Set<string>();
  private readonly verdict: Verdict;
  private readonly stories: JobStories;
  private readonly grants: Grants;
  private readonly isLossy: boolean;

  constructor(verdict: Verdict, stories: JobStories, grants: Grants, isLossy: boolean) {
    this.isLossy = isLossy;
    this.verdict = verdict;
    this.stories = stories;
    this.grants = grants;
  }

  see(fact: Fact): void {
    if (fact.kind === 'requeueWanted')
      this.wanted.set(fact.jobId, [...(this.wanted.get(fact.jobId) ?? []), fact.from]);
    else if (fact.kind === 'started') this.requireWhole(fact.task, fact.resume);
    else if (fact.kind === 'saved' && fact.isLast && fact.quality === 'good')
      this.last.set(taskKey(fact.task), fact);
    else if (fact.kind === 'committed') for (const event of fact.events) this.onEvent(event);
  }

  private requireWhole(task: TaskRef, resume: Extract<Fact, { kind: 'started' }>['resume']): void {
    const what = () => `${taskKey(task)} begins from ${resume?.name}, which is ${resume?.state}`;
    this.verdict.require(resume === null || resume.state === 'whole', 'resume', what);
  }

  private onEvent(event: StoredEvent): void {
    const { kind, subject, data } = event;
    const story = this.stories.of(subject);
    if (story === undefined) return;
    const memory = this.memories.get(subject) ?? { known: [], choices: [{ kind: 'newest' }] };
    this.memories.set(subject, memory);
    if (kind === 'job.submitted') this.inherit(memory, data['requeuedFrom'] as string | undefined);
    else if (kind === 'job.requeued') memory.choices = [data['from'] as ResumeChoice];
    else if (kind === 'job.stopping') this.onStopping(memory, story);
    else if (kind === 'checkpoint.saved') this.onSaved(memory, story, event);
    else if (kind === 'checkpoint.corrupt' || kind === 'checkpoint.suspect') {
      for (const each of memory.known) if (each.name === data['checkpoint']) each.isGood = false;
    } else if (kind === 'attempt.allocated') this.onAllocated(memory, story, event);
    else if (kind === 'job.queued') this.onQueued(story);
    else if (kind === 'task.ended' && (data['exit'] as TaskEnd).startError?.kind === 'node_lost')
      this.lost.add(`${subject}.${Number(data['attempt'])}`);
  }

  private inherit(memory: Memory, from: string | undefined): void {
    if (from === undefined) return;
    memory.known = (this.memories.get(from)?.known ?? []).map((each) => ({ ...each, attempt: 0 }));
    memory.choices = this.wanted.get(from) ?? memory.choices;
  }

  private onStopping(memory: Memory, { id, attempt }: JobStory): void {
    if (attempt?.stopCause?.message.startsWith('requeued by a user') !== true) return;
    const step = /from step (\d+)/.exec(attempt.stopCause.message)?.[1];
    const isFromStart = attempt.stopCause.message.endsWith('from scratch');
    memory.choices = [
      step !== undefined ? { kind: 'step', step: Number(step) } : { kind: isFromStart ? 'start' : 'newest' },
    ];
    this.owed.delete(id);
  }

  private onSaved(memory: Memory, story: JobStory, event: StoredEvent): void {
    const { checkpoint, step, attempt, node } = event.data as Record<string, string>;
    const added = {
      name: String(checkpoint),
      step: Number(step),
      attempt: Number(attempt),
      node: String(node),
      isGood: true,
    };
    const others = memory.known.filter(({ name }) => name !== added.name);
    const later = others.filter((each) => each.attempt > added.attempt);
    const same = others.filter((each) => each.attempt === added.attempt);
    const earlier = others.filter((each) => each.attempt < added.attempt);
    memory.known = [...earlier, ...[...same, added].sort((a, b) => a.step - b.step), ...later];
    if (isProgress(story, event) && story.attempt?.isRequeued === false)
      memory.choices = [{ kind: 'newest' }];
  }

  /** What a program that gave way has saved on its way out is where it goes on. */
  private onQueued({ id, last }: JobStory): void {
    this.owed.delete(id);
    // What a node could not tell any more, nobody knows.
    if (last?.stopCause?.kind !== 'preempted' || last.isRequeued || this.lost.has(`${id}.${last.number}`))
      return;
    const saved = this.last.get(`${id}.${last.number}.0`);
    if (saved !== undefined) this.owed.set(id, saved);
  }

  private onAllocated(memory: Memory, story: JobStory, { data }: StoredEvent): void {
    const { tasks, resume } = data as { tasks: { node: string }[]; resume: { name: string } | null };
    const nodes = tasks.map(({ node }) => node);
    const isShared = story.file?.checkpoint?.dir !== undefined;
    const must = (holds: boolean, what: () => string) =>
      this.verdict.require(
        holds,
        'resume',
        () => `${story.id}.${story.attempt?.number} on ${nodes.join()} ${what()}`,
      );
    if (memory.known.length >= knownMax) return;
    const wanted = memory.choices.map((choice) => candidatesOf(memory.known, choice));
    const readable = wanted.map((all) => all.find(({ node }) => isShared || nodes.includes(node)));
    must(
      readable.some((each) => each?.name === resume?.name),
      () =>
        `begins from ${resume?.name}, and ${readable.map((each) => each?.name).join()} is the newest it can read`,
    );
    const [best] = wanted[0] ?? [];
    if (wanted.length === 1 && best !== undefined && !isShared) {
      const isThere = this.grants.steadyForMs(best.node) > steadyAfterMs;
      must(!isThere || nodes[0] === best.node, () => `leaves ${best.name} behind on ${best.node}`);
    }
    const owed = this.owed.get(story.id);
    this.owed.delete(story.id);
    // Messages that get lost on a connection that lasts are not said again before the next one.
    if (this.isLossy) return;
    if (owed === undefined || !(isShared || nodes.includes(owed.machine))) return;
    must((story.attempt?.resumeStep ?? 0) >= owed.step, () => {
      return `begins from step ${story.attempt?.resumeStep}, and step ${owed.step} was saved when it gave way`;
    });
  }
}

function candidatesOf(known: readonly Known[], choice: ResumeChoice): readonly Known[] {
  const good = known.filter(({ isGood }) => isGood).toReversed();
  if (choice.kind === 'start') return [];
  if (choice.kind === 'newest') return good;
  return good.filter(({ step }) => step <= choice.step).sort((a, b) => b.step - a.step);
}

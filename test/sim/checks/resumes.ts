/**
 * What attempts begin from: the newest checkpoint that was found whole by then, of which nothing bad is known and that the
 * nodes of the attempt can read; and no nodes are chosen that cannot read the newest, while those are there that can.
 */
import { isSetAside, type ResumeChoice } from '@muster/common/checkpoints';
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

/** What an attempt may begin from, if its user wants this. */
interface Wish {
  /** Oldest first. */
  readonly known: readonly Known[];
  readonly choice: ResumeChoice;
}

/** One of these is what the user of a job wants; which one cannot be seen from outside. */
type Memory = readonly Wish[];

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
  /** Checkpoints that programs saved, `<job> <name>`, and those of them that they saved again. */
  private readonly written = new Set<string>();
  private readonly writtenOver = new Set<string>();
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
    else if (fact.kind === 'started') {
      const { ahead = [] } = fact;
      const what = () => `${taskKey(fact.task)} is going to write over ${ahead.join()}`;
      this.verdict.require(ahead.length === 0, 'resume', what);
      this.requireWhole(fact.task, fact.resume);
    } else if (fact.kind === 'saved') this.onWritten(fact);
    else if (fact.kind === 'committed') for (const event of fact.events) this.onEvent(event);
  }

  private requireWhole(task: TaskRef, resume: Extract<Fact, { kind: 'started' }>['resume']): void {
    if (resume === null) return;
    // The message that another one has this name now can get lost on a connection that lasts.
    const isReplaced = this.isLossy && this.writtenOver.has(`${task.jobId} ${resume.name}`);
    const what = () => `${taskKey(task)} begins from ${resume.name}, which is ${resume.state}`;
    this.verdict.require(resume.state === 'whole' || isReplaced, 'resume', what);
  }

  private onWritten(saved: CheckpointSaved): void {
    const name = `${saved.task.jobId} step-${saved.step}`;
    if (this.written.has(name)) this.writtenOver.add(name);
    this.written.add(name);
    if (saved.isLast && saved.quality === 'good') this.last.set(taskKey(saved.task), saved);
  }

  private onEvent(event: StoredEvent): void {
    const { kind, subject, data } = event;
    const story = this.stories.of(subject);
    if (story === undefined) return;
    if (!this.memories.has(subject)) this.memories.set(subject, [{ known: [], choice: { kind: 'newest' } }]);
    if (kind === 'job.submitted') this.inherit(subject, data['requeuedFrom'] as string | undefined);
    else if (kind === 'job.requeued') this.choose(subject, data['from'] as ResumeChoice);
    else if (kind === 'job.stopping') this.onStopping(story);
    else if (kind === 'checkpoint.saved') this.onSaved(story, event);
    else if (['checkpoint.corrupt', 'checkpoint.suspect', 'checkpoint.gone'].includes(kind)) {
      for (const { known } of this.memoryOf(subject))
        for (const each of known) if (each.name === data['checkpoint']) each.isGood = false;
    } else if (kind === 'attempt.allocated') this.onAllocated(story, event);
    else if (kind === 'job.queued') this.onQueued(story);
    else if (kind === 'task.ended' && (data['exit'] as TaskEnd).startError?.kind === 'node_lost')
      this.lost.add(`${subject}.${Number(data['attempt'])}`);
  }

  private memoryOf(jobId: string): Memory {
    return this.memories.get(jobId) ?? [];
  }

  private inherit(jobId: string, from: string | undefined): void {
    if (from === undefined) return;
    const wanted = this.wanted.get(from) ?? [{ kind: 'newest' }];
    const inherited = wanted.flatMap((choice) =>
      this.memoryOf(from).map(({ known }) => ({
        choice,
        // From the start: it has nothing of the other's, also when its own are out of reach later.
        known: choice.kind === 'start' ? [] : known.map((each) => ({ ...each, attempt: 0 })),
      })),
    );
    this.memories.set(jobId, inherited);
  }

  private choose(jobId: string, choice: ResumeChoice): void {
    this.memories.set(
      jobId,
      this.memoryOf(jobId).map(({ known }) => ({ known, choice })),
    );
  }

  private onStopping({ id, attempt }: JobStory): void {
    if (attempt?.stopCause?.message.startsWith('requeued by a user') !== true) return;
    const step = /from step (\d+)/.exec(attempt.stopCause.message)?.[1];
    const isFromStart = attempt.stopCause.message.endsWith('from scratch');
    const choice: ResumeChoice =
      step !== undefined ? { kind: 'step', step: Number(step) } : { kind: isFromStart ? 'start' : 'newest' };
    this.choose(id, choice);
    this.owed.delete(id);
  }

  private onSaved(story: JobStory, event: StoredEvent): void {
    const { checkpoint, step, attempt, node } = event.data as Record<string, string>;
    const added = {
      name: String(checkpoint),
      step: Number(step),
      attempt: Number(attempt),
      node: String(node),
    };
    const after = this.memoryOf(story.id).map(({ known, choice }) => {
      const others = known.filter(({ name }) => name !== added.name);
      const later = others.filter((each) => each.attempt > added.attempt);
      const same = others.filter((each) => each.attempt === added.attempt);
      const earlier = others.filter((each) => each.attempt < added.attempt);
      const ofAttempt = [...same, { ...added, isGood: true }].sort((a, b) => a.step - b.step);
      return { choice, known: [...earlier, ...ofAttempt, ...later] };
    });
    this.memories.set(story.id, after);
    if (isProgress(story, event) && story.attempt?.isRequeued === false)
      this.choose(story.id, { kind: 'newest' });
  }

  /** What a preempted program has saved on its way out is where it resumes. */
  private onQueued({ id, last }: JobStory): void {
    this.owed.delete(id);
    // What a node could no longer report is not known.
    if (last?.stopCause?.kind !== 'preempted' || last.isRequeued || this.lost.has(`${id}.${last.number}`))
      return;
    const saved = this.last.get(`${id}.${last.number}.0`);
    if (saved !== undefined) this.owed.set(id, saved);
  }

  private onAllocated(story: JobStory, { data }: StoredEvent): void {
    const memory = this.memoryOf(story.id);
    const { tasks, resume } = data as { tasks: { node: string }[]; resume: { name: string } | null };
    const nodes = tasks.map(({ node }) => node);
    const isShared = story.file?.checkpoint?.dir !== undefined;
    const must = (holds: boolean, what: () => string) =>
      this.verdict.require(
        holds,
        'resume',
        () => `${story.id}.${story.attempt?.number} on ${nodes.join()} ${what()}`,
      );
    if (memory.some(({ known }) => known.length >= knownMax)) return;
    const wanted = memory.map(candidatesOf);
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
    // Messages that get lost on a connection that lasts are not repeated before the next one.
    if (this.isLossy) return;
    if (owed === undefined || !(isShared || nodes.includes(owed.machine))) return;
    must((story.attempt?.resumeStep ?? 0) >= owed.step, () => {
      return `begins from step ${story.attempt?.resumeStep}, and step ${owed.step} was saved when it was preempted`;
    });
  }
}

function candidatesOf({ known, choice }: Wish): readonly Known[] {
  const all = known.filter(({ isGood }) => isGood).toReversed();
  const good = all.filter(({ name }) => !isSetAside(name));
  if (choice.kind === 'start') return [];
  if (choice.kind === 'newest') return good;
  if (choice.kind === 'name') return all.filter(({ name }) => name === choice.name);
  const upTo = good.filter(({ step }) => step <= choice.step).sort((a, b) => b.step - a.step);
  if (upTo[0]?.step === choice.step) return upTo;
  return [...all.filter(({ name, step }) => isSetAside(name) && step === choice.step), ...upTo];
}

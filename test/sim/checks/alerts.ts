/**
 * Alerts on the states of jobs fire once for each time that a job is in that state, whatever is killed in between, and are resolved
 * when it no longer is; an end is missed by none.
 */
import type { StoredEvent } from '@muster/coordinator/model';
import type { Fact } from '../history.ts';
import type { Verdict } from './verdict.ts';

const stateAfter: Readonly<Record<string, string>> = {
  'job.submitted': 'queued',
  'job.queued': 'queued',
  'attempt.allocated': 'starting',
  'attempt.running': 'running',
  'job.stopping': 'stopping',
  'job.succeeded': 'succeeded',
  'job.failed': 'failed',
  'job.cancelled': 'cancelled',
};
const ends = ['succeeded', 'failed', 'cancelled'];
/** Built in, and switched on in every run. */
const builtIn = [['job_failed', 'failed']] as const;

interface Episodes {
  /** How often the job came into the state while the alert was there, with the time before if it is still in it. */
  held: number;
  fired: number;
}

export class AlertCheck {
  /** The state of jobs that each alert looks for. */
  private readonly rules = new Map<string, string>(builtIn);
  private readonly states = new Map<string, string>();
  /** By alert and job. */
  private readonly episodes = new Map<string, Episodes>();
  /** Ids of episodes that fire, by alert and what they fire for. */
  private readonly firing = new Map<string, string>();
  private readonly requeued = new Set<string>();
  private readonly verdict: Verdict;

  constructor(verdict: Verdict) {
    this.verdict = verdict;
  }

  see(fact: Fact): void {
    if (fact.kind === 'committed') for (const event of fact.events) this.onEvent(event);
  }

  /** When the coordinator has had the time for two looks at everything. @param online names of nodes that are */
  requireSettled(online: readonly string[]): void {
    for (const [alert, wanted] of this.rules)
      for (const [job, state] of this.states) {
        const key = `${alert}/${job}`;
        const { held, fired } = this.of(key);
        const isFiring = this.firing.has(key);
        if (state !== wanted || this.requeued.has(job))
          this.must(!isFiring, () => `${alert} still fires for ${job}, which is ${state}`);
        else if (ends.includes(state))
          this.must(held === fired, () => `${alert} missed that ${job} has ${state}`);
        else this.must(isFiring, () => `${alert} does not fire for ${job}, which is ${state}`);
      }
    for (const node of online)
      this.must(!this.firing.has(`node_lost/${node}`), () => `node_lost still fires for ${node}`);
  }

  private onEvent({ kind, subject, data }: StoredEvent): void {
    const state = stateAfter[kind];
    if (state !== undefined) this.onState(subject, state);
    const { alert, of, episode, requeuedFrom } = data as Readonly<Record<string, string>>;
    if (kind === 'job.submitted' && typeof requeuedFrom === 'string') this.requeued.add(requeuedFrom);
    const key = `${alert}/${of}`;
    const isOfOne = ['alert.resolved', 'alert.repeated', 'alert.acknowledged'].includes(kind);
    if (isOfOne)
      this.must(this.firing.get(key) === episode, () => `${kind} of ${key} ${episode}, which does not fire`);
    if (kind === 'alert.created') this.onCreated(String(alert), String(data['condition']));
    else if (kind === 'alert.deleted') this.onDeleted(String(alert));
    else if (kind === 'alert.firing') this.onFiring(key, String(alert), String(episode));
    else if (kind === 'alert.resolved') this.firing.delete(key);
  }

  private onState(job: string, state: string): void {
    this.states.set(job, state);
    for (const [alert, wanted] of this.rules) if (wanted === state) this.of(`${alert}/${job}`).held += 1;
  }

  private onCreated(alert: string, condition: string): void {
    const [, wanted = ''] = /^workload_state == '(\w+)'$/.exec(condition) ?? [];
    this.rules.set(alert, wanted);
    // What ended before does not count.
    for (const [job, state] of this.states)
      if (state === wanted && !ends.includes(state)) this.of(`${alert}/${job}`).held = 1;
  }

  private onDeleted(alert: string): void {
    this.rules.delete(alert);
    const left = [...this.firing.keys()].filter((key) => key.startsWith(`${alert}/`));
    this.must(left.length === 0, () => `${alert} was deleted, and fires: ${left.join(', ')}`);
  }

  private onFiring(key: string, alert: string, episode: string): void {
    this.must(!this.firing.has(key), () => `${key} fires again while it fires`);
    this.firing.set(key, episode);
    if (!this.rules.has(alert)) return;
    const episodes = this.of(key);
    episodes.fired += 1;
    const { held, fired } = episodes;
    this.must(
      fired <= held,
      () => `${key} fires for the ${fired}th time, and its condition has held ${held} times`,
    );
  }

  private of(key: string): Episodes {
    const episodes = this.episodes.get(key) ?? { held: 0, fired: 0 };
    this.episodes.set(key, episodes);
    return episodes;
  }

  private must(holds: boolean, what: () => string): void {
    this.verdict.require(holds, 'alert', what);
  }
}

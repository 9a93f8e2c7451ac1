/** The rules that are looked at: those of users and those that are built in and switched on, with their conditions checked. */
import type { AlertDefinition, AlertEpisode, AlertKind } from '@muster/common/alerts';
import { type BuiltInAlertName, builtInAlerts } from '@muster/common/builtInAlerts';
import { messageOf } from '@muster/common/errors';
import { clusterSubject } from '@muster/common/eventKinds';
import { isJobId } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { CheckedCondition } from '../alerts/condition.ts';
import type { CheckCondition } from '../alerts/definitions.ts';
import { namesOfKind } from '../alerts/names.ts';
import { type FiringAlert, firedBy } from '../commands/alerts.ts';
import type { ClusterState } from '../state/state.ts';

export interface ActiveRule {
  readonly definition: AlertDefinition;
  readonly alert: FiringAlert;
  readonly condition: CheckedCondition;
  /** The event with which it was set. 0: before everything that is looked at. */
  setSeq: number;
  /** Since when the condition has held, by subject; monotonic. */
  readonly pending: Map<string, number>;
}

/** Rules whose conditions are the same text: it is evaluated once for all of them. */
export interface RuleGroup {
  readonly condition: CheckedCondition;
  readonly rules: ActiveRule[];
}

export interface RuleSetParts {
  readonly state: Pick<ClusterState, 'alerts'>;
  readonly builtIn: readonly BuiltInAlertName[];
  readonly log: Logger;
}

export class RuleSet {
  private readonly parts: RuleSetParts;
  private check: CheckCondition | null = null;
  private readonly active = new Map<string, ActiveRule>();
  private readonly checked = new Map<string, CheckedCondition>();
  private readonly groups: Readonly<Record<AlertKind, Map<CheckedCondition, RuleGroup>>> = {
    job: new Map(),
    node: new Map(),
    cluster: new Map(),
  };
  /** Rules of one job only, by its id: there may be one for each of a thousand jobs. */
  private readonly ofJob = new Map<string, ActiveRule[]>();

  constructor(parts: RuleSetParts) {
    this.parts = parts;
  }

  /** Whether there is anything to look at. */
  get isEmpty(): boolean {
    return this.parts.builtIn.length === 0 && this.parts.state.alerts.rules.size === 0;
  }

  /** The library of conditions is loaded with the first alert: it costs memory that a cluster without alerts need not pay. */
  async load(): Promise<CheckCondition> {
    if (this.check !== null) return this.check;
    const { checkCondition } = await import('../alerts/condition.ts');
    this.check = checkCondition;
    for (const name of this.parts.builtIn) this.addBuiltIn(name);
    this.changed([...this.parts.state.alerts.rules.keys()], () => 0);
    return checkCondition;
  }

  get isLoaded(): boolean {
    return this.check !== null;
  }

  /**
   * @param names of rules that were set or deleted
   * @param seqOf the event with which each was set
   */
  changed(names: readonly string[], seqOf: (name: string) => number): void {
    for (const name of names) {
      const before = this.active.get(name);
      if (before !== undefined) this.remove(before);
      const rule = this.parts.state.alerts.rules.get(name);
      if (rule !== undefined) this.add(rule, firedBy(rule), seqOf(name));
    }
  }

  /** A rule of before the start was set with this event. */
  wasSet(name: string, seq: number): void {
    const rule = this.active.get(name);
    if (rule !== undefined) rule.setSeq = Math.max(rule.setSeq, seq);
  }

  rule(name: string): ActiveRule | undefined {
    return this.active.get(name);
  }

  /** Of this job and no other. */
  rulesOfJob(id: string): readonly ActiveRule[] {
    return this.ofJob.get(id) ?? [];
  }

  /** All others. */
  groupsOf(kind: AlertKind): Iterable<RuleGroup> {
    return this.groups[kind].values();
  }

  /** What conditions about jobs read. */
  namesOfJobs(): ReadonlySet<string> {
    const rules = [...this.active.values()].filter(({ definition }) => definition.scope.kind === 'job');
    return new Set(rules.flatMap(({ condition }) => condition.names));
  }

  private addBuiltIn(name: BuiltInAlertName): void {
    const { kind, ...rest } = builtInAlerts[name];
    const scope = { kind, jobId: null, labels: {}, project: null, nodes: [] };
    const definition = { ...rest, name, labels: {}, repeatMs: null, scope };
    this.add(definition, { ...definition, kind, owner: null }, 0);
  }

  private add(definition: AlertDefinition, alert: FiringAlert, setSeq: number): void {
    const { kind, jobId } = definition.scope;
    const condition = this.checkedCondition(definition, kind);
    if (condition === null) return;
    const rule = { definition, alert, condition, setSeq, pending: new Map<string, number>() };
    this.active.set(definition.name, rule);
    if (jobId !== null) {
      this.ofJob.set(jobId, [...(this.ofJob.get(jobId) ?? []), rule]);
      return;
    }
    const group = this.groups[kind].get(condition);
    if (group === undefined) this.groups[kind].set(condition, { condition, rules: [rule] });
    else group.rules.push(rule);
  }

  private remove(rule: ActiveRule): void {
    const { name, scope } = rule.definition;
    this.active.delete(name);
    const isLast = ![...this.active.values()].some(({ condition }) => condition === rule.condition);
    if (isLast) this.checked.delete(`${scope.kind} ${rule.definition.condition}`);
    if (scope.jobId !== null) {
      const others = this.rulesOfJob(scope.jobId).filter((each) => each !== rule);
      if (others.length === 0) this.ofJob.delete(scope.jobId);
      else this.ofJob.set(scope.jobId, others);
      return;
    }
    const group = this.groups[scope.kind].get(rule.condition);
    group?.rules.splice(group.rules.indexOf(rule), 1);
    if (group?.rules.length === 0) this.groups[scope.kind].delete(rule.condition);
  }

  /** @returns null: another version accepted it, and this one does not */
  private checkedCondition({ name, condition }: AlertDefinition, kind: AlertKind): CheckedCondition | null {
    const key = `${kind} ${condition}`;
    const known = this.checked.get(key);
    if (known !== undefined) return known;
    try {
      const fresh = this.check?.(condition, namesOfKind[kind]) ?? null;
      if (fresh !== null) this.checked.set(key, fresh);
      return fresh;
    } catch (error) {
      const fields = { alert: name, error: messageOf(error) };
      this.parts.log.error(fields, 'an alert is not looked at: its condition is not valid in this version');
      return null;
    }
  }
}

/** Of a rule that is there no more, a built-in one that was switched off. */
export function goneAlert({ alert: name, subject }: AlertEpisode) {
  const kind = isJobId(subject) ? 'job' : subject === clusterSubject ? 'cluster' : 'node';
  return { name, kind, owner: null, severity: 'info', labels: {} } as const;
}

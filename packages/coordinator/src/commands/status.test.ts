import type { Condition } from '@muster/common/conditions';
import { describe, expect, it } from 'vitest';
import { problemOfEvent } from '../events/eventSchemaFixture.ts';
import type { Node } from '../model.ts';
import {
  aCaller,
  aCondition,
  aNode,
  anInventory,
  jobIdOf,
  nodeNameOf,
  someGpus,
  someMs,
} from '../modelFixture.ts';
import { ClusterState, Draft } from '../state/state.ts';
import { noStoredAlerts } from '../store/alerts.ts';
import { noStoredPipelines } from '../store/pipelines.ts';
import { noStoredSweeps } from '../store/sweeps.ts';
import { acceptConditions, conditionsMax, gpuFaultOf } from './conditions.ts';
import { type HelloCommand, hello, nodeStatus, type StatusCommand } from './nodes.ts';

const name = nodeNameOf('node-1');

function stateWith(nodes: readonly Node[]): ClusterState {
  return new ClusterState({
    clusterId: 'test',
    activeJobs: [],
    unfilledArrays: [],
    outcomes: new Map(),
    successors: new Map(),
    arrayFailures: new Map(),
    nodes,
    credentials: [],
    users: [],
    projects: [],
    alerts: noStoredAlerts,
    sweeps: noStoredSweeps,
    pipelines: noStoredPipelines,
    evaluations: [],
    budgets: [],
    lastSubmitSeq: 0,
    lastEventSeq: 0,
    subjectSeqs: new Map(),
  });
}

/** What a status makes of a node that is known already. */
function after(before: Partial<Node>, status: Partial<StatusCommand>) {
  const state = stateWith([aNode('node-1', before)]);
  const draft = new Draft(state);
  const conditions = before.conditions ?? [];
  nodeStatus(draft, { name, inventory: null, conditions, leavingInMs: null, ...status }, someMs);
  const wasEmpty = draft.isEmpty();
  const { nodes, events } = draft.toBatch();
  draft.apply();
  expect(events.flatMap((event) => problemOfEvent(event) ?? [])).toEqual([]);
  return {
    events: events.map(({ kind, subject, data }) => ({ kind, subject, data })),
    stored: nodes,
    wasEmpty,
    node: state.nodes.get(name),
  };
}

const held = aCondition('xid_48', { gpuUuid: 'GPU-node-1-0', action: 'drain_gpu', severity: 'critical' });

describe('a status', () => {
  it('of an agent that has not read its machine again leaves what is known of it', () => {
    const machine = { model: 'Example', board: null, bios: null, disks: [], memoryModules: [] };
    const known = anInventory({ machine });
    const { node, events } = after({ inventory: known }, { inventory: anInventory({ machine: null }) });
    expect(node?.inventory.machine).toEqual(machine);
    expect(events).toEqual([]);
    const silent = { ...machine, model: null };
    expect(
      after({ inventory: anInventory() }, { inventory: anInventory({ machine: silent }) }).events,
    ).toEqual([]);
    const other = anInventory({ machine: { ...machine, model: 'Exchanged' } });
    expect(after({ inventory: known }, { inventory: other }).events).toMatchObject([
      { kind: 'node.changed', data: { changes: ['machine: model Example → Exchanged'] } },
    ]);
  });

  it('that says nothing new changes nothing', () => {
    const reversed = someGpus('node-1', 2).toReversed();
    const status = {
      inventory: anInventory({ gpus: reversed }),
      conditions: [held, aCondition('clock_skew')],
    };
    const before = { conditions: acceptConditions([aCondition('clock_skew'), held]) };
    const { wasEmpty, node } = after(before, status);

    expect(wasEmpty).toBe(true);
    expect(node).toEqual(aNode('node-1', before));
  });

  it('of a node that never sent Hello is nothing', () => {
    const draft = new Draft(stateWith([]));
    nodeStatus(draft, { name, inventory: anInventory(), conditions: [held], leavingInMs: null }, someMs);
    expect(draft.isEmpty()).toBe(true);
  });

  it('raises, changes and clears conditions, each as an event that says it all', () => {
    const ranThere = { jobId: jobIdOf(1), attempt: 1, nodeRank: 0 };
    const raised = aCondition('xid_79', { severity: 'critical', action: 'drain_node', task: ranThere });
    const changed = { ...held, message: 'more of it' };
    const cleared = aCondition('clock_skew');
    const { events, stored, node } = after(
      { conditions: [held, cleared] },
      { conditions: [raised, changed] },
    );

    const data = ({ kind, gpuUuid, severity, action, message, evidence, task }: Condition) => {
      return { kind, gpuUuid, severity, action, message, evidence, task };
    };
    expect(events).toEqual([
      { kind: 'condition.raised', subject: 'node-1', data: data(raised) },
      { kind: 'condition.changed', subject: 'node-1', data: data(changed) },
      { kind: 'condition.cleared', subject: 'node-1', data: data(cleared) },
    ]);
    expect(stored).toEqual([node]);
    expect(node?.conditions).toEqual([raised, changed]);
  });

  it.each<[string, Partial<Condition>]>([
    ['severity', { severity: 'warning' }],
    ['action', { action: 'note' }],
    ['message', { message: 'worse' }],
  ])('with another %s of a condition is an event', (_, fields) => {
    const { events } = after({ conditions: [held] }, { conditions: [{ ...held, ...fields }] });
    expect(events).toMatchObject([{ kind: 'condition.changed', data: fields }]);
  });

  it.each<[string, Partial<Condition>]>([
    ['seen once more', { count: 2, lastSeenAtMs: someMs + 1 }],
    ['with newer evidence', { evidence: 'another line' }],
  ])('with a condition %s is kept in mind, and no commit', (_, fields) => {
    const seen = { ...held, ...fields };
    const { wasEmpty, events, node } = after({ conditions: [held] }, { conditions: [seen] });

    expect(wasEmpty).toBe(true);
    expect(events).toEqual([]);
    expect(node?.conditions).toEqual([seen]);
  });

  it('is stored with all that was kept in mind before', () => {
    const seen = { ...held, count: 7 };
    const state = stateWith([aNode('node-1', { conditions: [held] })]);
    const first = new Draft(state);
    nodeStatus(first, { name, inventory: null, conditions: [seen], leavingInMs: null }, someMs);
    first.apply();
    const second = new Draft(state);
    const raised = aCondition('clock_skew');
    nodeStatus(second, { name, inventory: null, conditions: [seen, raised], leavingInMs: null }, someMs);

    expect(second.toBatch().nodes).toEqual([aNode('node-1', { conditions: [seen, raised] })]);
  });

  it('that comes in one batch with a change is stored with it', () => {
    const draft = new Draft(stateWith([aNode('node-1')]));
    nodeStatus(draft, { name, inventory: null, conditions: [held], leavingInMs: null }, someMs);
    nodeStatus(
      draft,
      { name, inventory: null, conditions: [{ ...held, count: 2 }], leavingInMs: null },
      someMs,
    );

    expect(draft.toBatch().nodes).toEqual([aNode('node-1', { conditions: [{ ...held, count: 2 }] })]);
  });

  it('leaves nothing behind when its command is refused', () => {
    const draft = new Draft(stateWith([aNode('node-1', { conditions: [held] })]));
    const refused = (conditions: readonly Condition[]) => () =>
      draft.attempt(aCaller, () => {
        nodeStatus(draft, { name, inventory: null, conditions, leavingInMs: null }, someMs);
        throw new Error('refused');
      });
    expect(refused([{ ...held, count: 2 }])).toThrow('refused');
    expect(refused([])).toThrow('refused');

    expect(draft.node(name)?.conditions).toEqual([held]);
    expect(draft.isEmpty()).toBe(true);
  });

  it('of other hardware says what has changed', () => {
    const inventory = anInventory({ gpus: someGpus('node-1', 1) });
    const { events, node } = after({}, { inventory });

    expect(events).toEqual([
      {
        kind: 'node.changed',
        subject: 'node-1',
        data: { changes: ['GPU GPU-node-1-1 is gone'], gpus: inventory.gpus },
      },
    ]);
    expect(node?.inventory).toEqual(inventory);
  });
});

describe('a Hello', () => {
  const command = (fields: Partial<HelloCommand> = {}): HelloCommand => {
    const { joinedAtMs: _, drain: __, ...node } = aNode('node-1');
    const rest = { observed: [], failedAtMs: () => null, lastContactMs: null, leavingInMs: null };
    return { ...node, ...rest, ...fields };
  };
  const eventsOf = (nodes: readonly Node[], fields: Partial<HelloCommand>) => {
    const draft = new Draft(stateWith(nodes));
    hello(draft, command(fields), someMs);
    return draft.toBatch().events.map(({ kind }) => kind);
  };

  it('of a new node raises its conditions', () => {
    expect(eventsOf([], { conditions: [held] })).toEqual(['node.joined', 'node.online', 'condition.raised']);
  });

  it('of a known one says what has changed since the last contact', () => {
    const known = aNode('node-1', { conditions: [held, aCondition('clock_skew')] });
    expect(eventsOf([known], { conditions: known.conditions })).toEqual(['node.online']);
    const inventory = anInventory({ gpus: someGpus('node-1', 3) });
    expect(eventsOf([known], { conditions: [held], inventory })).toEqual([
      'node.online',
      'node.changed',
      'condition.cleared',
    ]);
  });
});

describe('of the conditions that an agent reports', () => {
  it('those without a proper kind or place are dropped', () => {
    const kinds = ['', 'Xid 79', 'xid-79', '../etc', 'a'.repeat(65), '__proto__', 'a'.repeat(64)];
    const accepted = acceptConditions(kinds.map((kind) => aCondition(kind)));
    expect(accepted.map(({ kind }) => kind)).toEqual(['__proto__', 'a'.repeat(64)]);
    expect(acceptConditions([aCondition('xid_79', { gpuUuid: 'G'.repeat(1_000_000) })])).toEqual([]);
  });

  it('words are cut, in no character', () => {
    const text = '🚀'.repeat(5_000);
    const [accepted] = acceptConditions([
      aCondition('xid_79', { evidence: `x${text}`, message: `x${text}` }),
    ]);
    expect(accepted?.evidence).toHaveLength(1_000);
    expect(accepted?.message).toHaveLength(500);
    expect(accepted?.evidence.isWellFormed()).toBe(true);
  });

  it('each kind and place counts once, as it was reported last', () => {
    const twice = [held, aCondition('xid_48'), { ...held, count: 2 }];
    expect(acceptConditions(twice)).toEqual([{ ...held, count: 2 }, aCondition('xid_48')]);
  });

  it('critical ones come first, and of too many those that keep work away stay', () => {
    const notes = Array.from({ length: 10_000 }, (_, index) =>
      aCondition(`n_${index}`, { severity: 'critical' }),
    );
    const drain = aCondition('zzz', { severity: 'info', action: 'drain_gpu', gpuUuid: 'GPU-a' });
    const accepted = acceptConditions([...notes, drain]);
    expect(accepted).toHaveLength(conditionsMax);
    expect(accepted.at(-1)).toEqual(drain);
    expect(acceptConditions([...notes, drain].toReversed())).toEqual(accepted);
  });
});

describe('what broke under a task', () => {
  const task = { jobId: jobIdOf(1), attempt: 2, nodeRank: 0 };
  const xid = aCondition('xid_79', { severity: 'critical', action: 'drain_gpu', gpuUuid: 'GPU-a', task });

  it('is what keeps new work away and names it', () => {
    expect(gpuFaultOf([aCondition('clock_skew'), xid], task)).toEqual({
      text: xid.evidence,
      gpuUuid: 'GPU-a',
    });
    const node = { ...xid, action: 'drain_node', gpuUuid: null, evidence: '' } as const;
    expect(gpuFaultOf([node], task)).toEqual({ text: xid.message, gpuUuid: null });
  });

  it.each([
    ['no other task', { task: { ...task, attempt: 1 } }],
    ['no other rank', { task: { ...task, nodeRank: 1 } }],
    ['no other job', { task: { ...task, jobId: jobIdOf(2) } }],
    ['nothing that nobody can place', { task: null }],
    ['nothing that the program did itself', { action: 'blame_job' as const }],
    ['nothing that only warns', { severity: 'warning' as const }],
  ])('is %s', (_, fields) => {
    expect(gpuFaultOf([{ ...xid, ...fields }], task)).toBeNull();
  });
});

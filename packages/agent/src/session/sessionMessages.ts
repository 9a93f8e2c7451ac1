/** What an agent sends about its tasks, within what a coordinator takes at once. */
import type { AgentMessage } from '@muster/common/gen/muster/v1/AgentMessage';
import type { Continuity } from '@muster/common/gen/muster/v1/Continuity';
import type { Hello } from '@muster/common/gen/muster/v1/Hello';
import type { Prepared } from '@muster/common/gen/muster/v1/Prepared';
import type { TaskReport as WireReport } from '@muster/common/gen/muster/v1/TaskReport';
import { type TaskRef, taskKey } from '@muster/common/ids';
import type { TaskReport } from '@muster/common/views';
import { helloTasksMax, observedMax, sessionBytesMax } from '@muster/common/wire/agentLimits';
import {
  checkpointSeenToWire,
  endpointToWire,
  findingsToWire,
  lookToWire,
  taskRefToWire,
  taskReportToWire,
  trainingSignToWire,
} from '@muster/common/wire/codec';
import { agentHubService } from '@muster/common/wire/service';
import type { Term } from '../leases/highestTerm.ts';
import type { PreparedMessage, TaskMessage } from '../tasks/messages.ts';
import type { MachineIdentity } from './continuity.ts';

/** @param tokens those that this agent keeps, newest first */
export function continuityToWire(tokens: readonly string[], machine: MachineIdentity): Continuity {
  const [token, previousToken] = tokens;
  const { hostName, firmwareUuid, cardAddresses } = machine;
  return {
    hostName,
    cardAddresses: [...cardAddresses],
    ...(token === undefined ? {} : { token }),
    ...(previousToken === undefined ? {} : { previousToken }),
    ...(firmwareUuid === null ? {} : { firmwareUuid }),
  };
}

/** What may run has to be among them, for its lease; an end has been reported by itself, and is in every Hello. */
export function heartbeatTasks(reports: readonly TaskReport[]): WireReport[] {
  return liveFirst(reports).slice(0, observedMax).map(taskReportToWire);
}

/** A task that runs, with what it was given. */
interface HoldingTask {
  readonly task: TaskRef;
  readonly assignment: { readonly spec: { readonly name: string } } | null;
  readonly gpuUuids: readonly string[];
}

/** @param running what tasks that run hold, for a coordinator that does not know them */
export function helloTasks(
  reports: readonly TaskReport[],
  running: readonly HoldingTask[] = [],
): WireReport[] {
  const held = new Map(running.map((each) => [taskKey(each.task), each]));
  return liveFirst(reports)
    .slice(0, helloTasksMax)
    .map((report) => {
      const holder = held.get(taskKey(report.task));
      if (holder === undefined) return taskReportToWire(report);
      const { assignment, gpuUuids } = holder;
      const jobName = assignment === null ? '' : assignment.spec.name;
      return { ...taskReportToWire(report), gpuUuids: [...gpuUuids], jobName };
    });
}

function liveFirst(reports: readonly TaskReport[]): readonly TaskReport[] {
  if (reports.length <= observedMax) return reports;
  const isEnded = ({ state }: TaskReport) => state === 'ended';
  return [...reports.filter((each) => !isEnded(each)), ...reports.filter(isEnded)];
}

/** With as many checkpoints as fit: all of them are sent again after the Welcome. Then with as many ended tasks. */
export function fittingHello(hello: Hello): AgentMessage {
  const { checkpoints = [], observed = [] } = hello;
  if (agentHubService.Session.requestSerialize({ hello }).length <= sessionBytesMax) return { hello };
  if (checkpoints.length > 0)
    return fittingHello({ ...hello, checkpoints: checkpoints.slice(0, Math.floor(checkpoints.length / 2)) });
  if (observed.length <= observedMax) return { hello };
  const kept = Math.max(observedMax, Math.floor(observed.length / 2));
  return fittingHello({
    ...hello,
    observed: observed.slice(0, kept),
    proofs: hello.proofs?.slice(0, kept) ?? [],
  });
}

/** What a Hello has of the highest term: nothing before the first one. */
export function termToWire({
  term,
  proof,
  clusterId,
}: Term): Pick<Hello, 'highestTerm' | 'termProof' | 'clusterId'> {
  if (term === 0) return {};
  const known = { highestTerm: term, termProof: proof };
  return clusterId === '' ? known : { ...known, clusterId };
}

export function taskMessageToWire(message: TaskMessage): AgentMessage {
  switch (message.kind) {
    case 'prepared':
      return { prepared: preparedToWire(message) };
    case 'checked':
      return {
        checked: { task: taskRefToWire(message.task), findings: findingsToWire(message.findings) },
      };
    case 'checkpoint':
      return { checkpoint: checkpointSeenToWire(message) };
    case 'trainingSign': {
      const { task, sign } = message;
      return { trainingSign: { task: taskRefToWire(task), sign: trainingSignToWire(sign) } };
    }
    case 'report':
      return { report: taskReportToWire(message.report) };
    default: {
      const never: never = message;
      return never;
    }
  }
}

function preparedToWire({ task, master, endpoints, testPort, look }: PreparedMessage): Prepared {
  return {
    task: taskRefToWire(task),
    master,
    endpoints: endpoints.map(endpointToWire),
    ...(testPort === null ? {} : { testPort }),
    look: look && lookToWire(look),
  };
}

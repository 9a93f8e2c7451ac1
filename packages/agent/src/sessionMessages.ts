/** What an agent says of its tasks, within what a coordinator takes at once. */
import type { AgentMessage } from '@muster/common/gen/muster/v1/AgentMessage';
import type { Hello } from '@muster/common/gen/muster/v1/Hello';
import type { TaskReport as WireReport } from '@muster/common/gen/muster/v1/TaskReport';
import type { TaskReport } from '@muster/common/views';
import { helloTasksMax, observedMax, sessionBytesMax } from '@muster/common/wire/agentLimits';
import { taskReportToWire } from '@muster/common/wire/codec';
import { agentHubService } from '@muster/common/wire/service';

/** What may run has to be among them, for its lease; an end has been reported by itself, and is in every Hello. */
export function heartbeatTasks(reports: readonly TaskReport[]): WireReport[] {
  return liveFirst(reports).slice(0, observedMax).map(taskReportToWire);
}

export function helloTasks(reports: readonly TaskReport[]): WireReport[] {
  return liveFirst(reports).slice(0, helloTasksMax).map(taskReportToWire);
}

function liveFirst(reports: readonly TaskReport[]): readonly TaskReport[] {
  if (reports.length <= observedMax) return reports;
  const isEnded = ({ state }: TaskReport) => state === 'ended';
  return [...reports.filter((each) => !isEnded(each)), ...reports.filter(isEnded)];
}

/** With as many checkpoints as fit: all of them are said again after the Welcome. Then with as many ended tasks. */
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

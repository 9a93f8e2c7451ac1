/** What the coordinator knows of this machine, and whether it can be asked. */
import type { DoctorCheck } from '@muster/agent/doctor/doctorReport';
import type { Condition } from '@muster/common/conditions';
import type { NodeView } from '@muster/common/views';
import type { MusterApi } from '@muster/common/wire/client';
import { type ApiEndpoint, type ConnectionFlags, findEndpoint } from '../connection.ts';
import type { Context } from '../context.ts';
import { failureOf } from '../errors.ts';
import { cardText, clearCommand, worstFirst } from '../nodes/conditionText.ts';
import { printable } from '../output/text.ts';
import { durationText } from '../output/times.ts';
import { withSession } from '../session.ts';
import { upkeepChecks } from './upkeepChecks.ts';

const area = 'coordinator';

/** @param nodeName this node's name in the cluster; null: whichever nodes say that they run on this host */
export async function examineCoordinator(
  context: Context,
  flags: ConnectionFlags,
  nodeName: string | null,
): Promise<readonly DoctorCheck[]> {
  const { environment } = context;
  let endpoint: ApiEndpoint | null;
  try {
    endpoint = findEndpoint(flags, environment);
  } catch (error) {
    return [failed('address', error)];
  }
  if (endpoint === null) {
    const message = 'none found on this machine';
    return [
      check(
        'address',
        'absent',
        message,
        `Name one with --addr HOST:PORT, or start one: ${environment.programName} up`,
      ),
    ];
  }
  const { address } = endpoint;
  const known = check('address', 'ok', address);
  try {
    return await withSession(context, flags, async ({ api }) => {
      const { version, clockProblem } = await api.getCluster();
      const answers = check('answer', 'ok', `it answers and accepts the token; version ${version}`);
      const checks = await nodeChecks(api, nodeName, context);
      const clock = clockChecks(clockProblem, environment.programName);
      return [known, answers, ...clock, ...checks, ...(await upkeepOf(api, context))];
    });
  } catch (error) {
    return [known, failed('answer', error)];
  }
}

/** @param problem as the coordinator words it, with the remedy; empty: its clock is trusted */
function clockChecks(problem: string, programName: string): readonly DoctorCheck[] {
  if (problem === '') return [];
  return [check('clock', 'problem', printable(problem), `Both clocks: ${programName} clock`)];
}

/** A coordinator of another version may not know the call, and is as good as it was. */
async function upkeepOf(api: MusterApi, { clock, environment }: Context): Promise<readonly DoctorCheck[]> {
  try {
    return upkeepChecks(await api.getUpkeep(), clock.wallMs(), environment.programName);
  } catch (error) {
    return [{ ...failed('disks, certificates', error), state: 'warning' }];
  }
}

async function nodeChecks(
  api: MusterApi,
  nodeName: string | null,
  { environment }: Context,
): Promise<readonly DoctorCheck[]> {
  const { hostname, programName } = environment;
  const here = (await api.listNodes()).filter(({ name, inventory }) =>
    nodeName === null ? name === hostname || inventory.host?.hostname === hostname : name === nodeName,
  );
  if (here.length > 0)
    return here.flatMap((node) => [stateCheck(node), ...conditionChecks(node, programName)]);
  return nodeName === null
    ? [
        check(
          'node',
          'absent',
          `no node reports that it runs on ${hostname}`,
          'If one should, name it with --name.',
        ),
      ]
    : [
        check(
          'node',
          'problem',
          `it has no node named ${nodeName}`,
          `\`${programName} nodes\` lists those it knows; \`${programName} token create ${nodeName}\` lets the agent join.`,
        ),
      ];
}

function stateCheck({ name, state, silentForMs, drained }: NodeView): DoctorCheck {
  if (state !== 'online') {
    const since = silentForMs === null ? '' : ` for ${durationText(silentForMs)}`;
    return check(name, 'problem', `its agent has been silent${since}`, 'Start the agent, or read its log.');
  }
  return drained
    ? check(name, 'warning', 'online, but drained: it gets no new work')
    : check(name, 'ok', 'online');
}

function conditionChecks(node: NodeView, programName: string): readonly DoctorCheck[] {
  const states = { critical: 'problem', warning: 'warning', info: 'ok' } as const;
  return worstFirst(node.conditions).map((condition: Condition) => {
    const { kind, gpuUuid, severity, message, evidence } = condition;
    const where = gpuUuid === null ? '' : ` (${cardText(gpuUuid, node.inventory.gpus)})`;
    const clearing = clearCommand(condition, node, programName);
    const remedy = clearing === null ? null : `Once fixed: ${clearing}`;
    return {
      ...check(node.name, states[severity], `${kind}${where}: ${message}`, remedy),
      evidence: evidence || null,
    };
  });
}

function check(
  name: string,
  state: DoctorCheck['state'],
  message: string,
  remedy: string | null = null,
): DoctorCheck {
  return { area, name, state, chosen: false, message, evidence: null, remedy };
}

function failed(name: string, error: unknown): DoctorCheck {
  const { message, hints } = failureOf(error);
  return check(name, 'problem', message, hints.join(' ') || null);
}

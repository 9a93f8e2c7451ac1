import type { Condition } from '@muster/common/conditions';
import { cardUuid } from '@muster/common/hardware';
import { closest } from '@muster/common/spec/suggest';
import type { NodeView } from '@muster/common/views';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { Context, Subcommand } from '../context.ts';
import { CliError, usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { cardText, worstFirst } from '../nodes/conditionText.ts';
import { writeJson } from '../output/json.ts';
import { withSession } from '../session.ts';

interface ClearFlags extends ConnectionFlags, OutputFlags {
  readonly gpu?: string;
}

export const nodeClear: Subcommand = {
  name: 'clear',
  summary: 'clear a condition by hand, once its problem is fixed',
  define(sub) {
    sub
      .argument('<node>', 'its name')
      .argument('<condition>', 'kind of the condition, such as xid_79')
      .option('--gpu <gpu>', 'number or UUID of the GPU; required if several GPUs have the condition');
    withConnection(withOutput(sub));
  },
  run: clearCondition,
};

async function clearCondition(
  context: Context,
  name: string,
  kind: string,
  flags: ClearFlags,
): Promise<ExitCode> {
  const { io } = context;
  const { condition, node } = await withSession(context, flags, async ({ api }) => {
    const before = await api.getNode(name);
    const found = conditionMeant(before, kind, flags.gpu ?? null, context);
    const { gpuUuid } = found;
    return { condition: found, node: await api.clearCondition({ node: name, kind: found.kind, gpuUuid }) };
  });
  if (flags.output === 'json') {
    await writeJson(io.stdout, node);
    return exitCodes.ok;
  }
  const left = node.conditions.length === 0 ? 'nothing else is wrong with it' : 'other conditions remain';
  const back = condition.clears === 'when_gone' ? '; it returns if the next reading still shows it' : '';
  await io.stdout.write(`${kind} of ${placeText(condition, node)} is cleared${back}; ${left}\n`);
  return exitCodes.ok;
}

/** @throws {CliError} that names the conditions there are */
function conditionMeant(
  node: NodeView,
  kind: string,
  gpu: string | null,
  { environment }: Context,
): Condition {
  const { conditions } = node;
  const sameKind = conditions.filter((condition) => condition.kind === kind);
  if (sameKind.length === 0) {
    const kinds = [...new Set(worstFirst(conditions).map((condition) => condition.kind))];
    if (kinds.length === 0)
      throw new CliError(`${node.name} has no conditions, so none named "${kind}"`, { code: 'not_found' });
    const meant = closest(kind, kinds);
    throw usageError(
      `${node.name} has no condition "${kind}"`,
      ...(meant === null ? [] : [`Did you mean ${meant}?`]),
      `It has: ${kinds.join(', ')}`,
    );
  }
  const here = gpu === null ? sameKind : sameKind.filter(({ gpuUuid }) => isGpu(gpuUuid, gpu, node));
  const [only, ...more] = here;
  if (only !== undefined && more.length === 0) return only;
  const places = sameKind.map((condition) => placeText(condition, node)).join(', ');
  if (only === undefined)
    throw usageError(`${kind} of ${node.name} is not on GPU ${gpu}`, `It is on: ${places}`);
  throw usageError(
    `${kind} is on several GPUs of ${node.name}: ${places}`,
    `Name one with --gpu; \`${environment.programName} node ${node.name}\` shows them.`,
  );
}

/** @param typed number of a card as the driver counts, or UUID of the card or of a part of it */
function isGpu(conditionUuid: string | null, typed: string, { inventory }: NodeView): boolean {
  if (conditionUuid === null) return false;
  if (conditionUuid === typed) return true;
  return inventory.gpus.some(
    (gpu) => (String(gpu.index) === typed || gpu.uuid === typed) && cardUuid(gpu) === conditionUuid,
  );
}

function placeText({ gpuUuid }: Condition, { name, inventory }: NodeView): string {
  return gpuUuid === null ? name : `${cardText(gpuUuid, inventory.gpus)} of ${name}`;
}

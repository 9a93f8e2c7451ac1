/** Every parameter of every tool, by its schema and against it, against a real coordinator: nothing breaks, and nothing is half done. */
import type { MusterApi } from '@muster/common/wire/client';
import { advertised, readArguments } from '@muster/mcp/arguments';
import { failureText } from '@muster/mcp/failures';
import { answerBytesMax, jsonBytes } from '@muster/mcp/size';
import { argumentsBy, type JsonSchema } from '@muster/mcp/testing/fromSchema';
import type { Tool } from '@muster/mcp/tool';
import { toolTable } from '@muster/mcp/toolTable';
import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { seededChance } from '../../../../test/support/chance.ts';
import { trialsOf } from '../../../../test/support/trials.ts';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { startJob, submitJob } from '../rpc/jobFixture.ts';

let coordinator: TestCoordinator;

beforeAll(async () => {
  coordinator = await startTestCoordinator();
  await startJob(coordinator, await submitJob(coordinator, 'running'));
  await submitJob(coordinator, 'queued', JSON.stringify({ command: ['true'], resources: { gpus: 8 } }));
});
afterAll(() => coordinator.close());

/** Long waits would make the test long, and are a parameter like any other. */
function withoutWaiting(given: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const wait = given['waitSeconds'];
  return typeof wait === 'number' && wait > 0 && wait <= 45 ? { ...given, waitSeconds: 0 } : given;
}

async function outcomeOf(
  tool: Tool,
  api: MusterApi,
  given: unknown,
): Promise<{ error: string } | { data: unknown; text: string }> {
  let requests = 0;
  const context = {
    api,
    nowMs: () => coordinator.clock.wallMs(),
    newRequestId: () => `fuzz-${tool.name}-${++requests}-${Math.floor(performance.now() * 1e6)}`,
    abort: new AbortController().signal,
  };
  try {
    return await tool.run(readArguments(tool, given) as never, context);
  } catch (error) {
    return { error: failureText(error) };
  }
}

test.each(toolTable.map((tool) => [tool.name, tool] as const))('%s', async (_name, tool) => {
  const schema: JsonSchema = advertised(tool.input, 'input')['~standard'].jsonSchema.input();
  await fc.assert(
    fc.asyncProperty(argumentsBy(schema), async (generated) => {
      const given = withoutWaiting(generated);
      const before = coordinator.state.lastEventSeq;
      const outcome = await outcomeOf(tool, coordinator.api, given);
      const changed = coordinator.state.lastEventSeq !== before;
      if ('error' in outcome) {
        expect(outcome.error).toMatch(/^error (?!internal)\w+: ./);
        expect(outcome.error).not.toMatch(/\n\s+at |\.ts:\d/);
        expect(jsonBytes(outcome.error)).toBeLessThan(answerBytesMax);
        expect(changed, 'a refused call changes nothing').toBe(false);
        return;
      }
      expect(tool.output.safeParse(outcome.data).error?.issues ?? []).toEqual([]);
      expect(jsonBytes(outcome.data) + Buffer.byteLength(outcome.text)).toBeLessThan(answerBytesMax);
      const isTrial = tool.effect === 'read' || given['dryRun'] === true || given['dry_run'] === true;
      if (isTrial) expect(changed, 'what only looks changes nothing').toBe(false);
    }),
    { numRuns: trialsOf(2_000, 40), seed: seededChance().seed },
  );
  expect(coordinator.fatal).toEqual([]);
});

/**
 * Prints each failure when it happens, with its time. A whole run takes minutes, more on a busy machine, and the other reporters
 * tell what was wrong only when it has ended; what can be seen of a failure on the machine is gone by then.
 */
import type { Reporter, TestCase, TestModule, TestSuite } from 'vitest/node';

export default class FailuresAtOnce implements Reporter {
  onTestCaseResult(test: TestCase): void {
    const { state, errors = [] } = test.result();
    if (state === 'failed') print(`${test.module.relativeModuleId} > ${test.fullName}`, errors);
  }

  onTestSuiteResult(suite: TestSuite): void {
    print(`${suite.module.relativeModuleId} > ${suite.fullName}`, suite.errors());
  }

  onTestModuleEnd(module: TestModule): void {
    print(module.relativeModuleId, module.errors());
  }
}

type Failure = ReturnType<TestModule['errors']>[number];

function print(name: string, errors: readonly Failure[]): void {
  for (const { message, diff, stack, stacks } of errors) {
    const [place] = stacks ?? [];
    const where = place === undefined ? stack : `${place.file}:${place.line}:${place.column}`;
    const text = [message, diff, where].filter((part) => typeof part === 'string').join('\n');
    process.stderr.write(`\n${new Date().toISOString()} FAILED ${name}\n${text}\n`);
  }
}

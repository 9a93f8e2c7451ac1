import { expect, test } from 'vitest';
import { waitFor } from '../../../test/support/services.ts';
import { type Daemon, runDaemon } from './daemon.ts';
import { exitCodes } from './exitCodes.ts';
import { newCall } from './testing/testContext.ts';

/** A daemon that notes what is asked of it, and leaves when it is told to. */
function aDaemon() {
  const call = newCall(null);
  const asked: string[] = [];
  const left = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  const daemon: Daemon = {
    address: null,
    closed: closed.promise,
    beforeClose: () => {
      asked.push('leave');
      return left.promise;
    },
    close: async () => {
      asked.push('close');
    },
  };
  const ended = runDaemon(call.context, async () => {
    asked.push('start');
    return daemon;
  });
  return { call, asked, left, closed, ended };
}

test('asked to stop, it does what is to be done before, and closes then', async () => {
  const { call, asked, left, ended } = aDaemon();
  await waitFor('it runs', () => asked.includes('start'));
  call.pressCtrlC();
  await waitFor('it leaves', () => asked.includes('leave'));
  expect(asked).not.toContain('close');
  left.resolve();
  expect(await ended).toBe(exitCodes.ok);
  expect(asked).toEqual(['start', 'leave', 'close']);
});

test('asked a second time, it closes at once', async () => {
  const { call, asked, ended } = aDaemon();
  call.pressCtrlC();
  await waitFor('it leaves', () => asked.includes('leave'));
  call.pressCtrlC();
  expect(await ended).toBe(exitCodes.ok);
  expect(asked).toEqual(['start', 'leave', 'close']);
});

test('one that ends by itself just closes', async () => {
  const { asked, closed, ended } = aDaemon();
  closed.resolve();
  expect(await ended).toBe(exitCodes.ok);
  expect(asked).toEqual(['start', 'close']);
});

test('one that is refused while it leaves says why', async () => {
  const { call, asked, closed, ended } = aDaemon();
  call.pressCtrlC();
  await waitFor('it leaves', () => asked.includes('leave'));
  closed.reject(new Error('another agent has its name'));
  expect(await ended).not.toBe(exitCodes.ok);
  expect(call.stderr()).toContain('another agent has its name');
});

/** What `coordinator` and `agent` have in common: start, serve until asked to stop, close, report why when it fails. */
import { whenAborted } from '@muster/common/async';
import type { Context } from './context.ts';
import { reportFailure } from './errors.ts';
import { type ExitCode, exitCodes } from './exitCodes.ts';
import { notifyServiceManager, type ServiceNotice } from './serviceManager.ts';

export interface Daemon {
  /** What it serves on; null: nothing. */
  readonly address: string | null;
  /** Settles when it ends by itself; rejects with the reason. */
  readonly closed: Promise<void>;
  /** Runs when the daemon is asked to stop, before it is closed. Asked a second time, the daemon is closed at once. */
  beforeClose?(): Promise<void>;
  close(): Promise<void>;
}

export async function runDaemon(context: Context, start: () => Promise<Daemon>): Promise<ExitCode> {
  const { io } = context;
  const stop = new AbortController();
  const stopAtOnce = new AbortController();
  const dispose = io.onStopRequest(() => (stop.signal.aborted ? stopAtOnce : stop).abort());
  const service = await serviceOf(context);
  try {
    const daemon = await start();
    await io.supervisor?.send({ kind: 'serving', address: daemon.address });
    service?.ready();
    await Promise.race([daemon.closed, whenAborted(stop.signal)]);
    service?.stopping();
    if (stop.signal.aborted && daemon.beforeClose !== undefined) {
      await Promise.race([daemon.closed, whenAborted(stopAtOnce.signal), daemon.beforeClose()]);
    }
    await daemon.close();
    return exitCodes.ok;
  } catch (error) {
    const { message, hints, exitCode } = await reportFailure(error, context);
    await io.supervisor?.send({ kind: 'failed', message, hints });
    return exitCode;
  } finally {
    service?.close();
    dispose();
  }
}

/** null: systemd did not start this daemon, or does not ask */
async function serviceOf({ io, environment }: Context): Promise<ServiceNotice | null> {
  if (environment.serviceManager === null) return null;
  const print = (sentence: string) => void io.stderr.write(`${sentence}\n`).catch(() => {});
  return notifyServiceManager(environment.serviceManager, print);
}

/** What a daemon tells systemd: that it serves, that it lives, that it ends (sd_notify(3)). */
import { messageOf } from '@muster/common/errors';

export interface ServiceManager {
  /** NOTIFY_SOCKET: where systemd listens. */
  readonly notifySocket: string;
  /** WatchdogSec of the unit, in milliseconds; null: nobody watches. */
  readonly watchdogMs: number | null;
}

export interface ServiceNotice {
  /** The daemon serves. From now on its event loop says by itself that it turns, for as long as it does. */
  ready(): void;
  /** It is about to end, and may take the unit's TimeoutStopSec for that. */
  stopping(): void;
  close(): void;
}

/** Two may come late on a machine that is out of breath before systemd ends the daemon. */
const pingsPerWatchdog = 3;

/**
 * @param onTrouble gets one sentence, once: systemd ends a daemon that sends nothing
 * @returns a notification that fails is no error: the daemon serves anyway
 */
export async function notifyServiceManager(
  { notifySocket, watchdogMs }: ServiceManager,
  onTrouble: (sentence: string) => void,
): Promise<ServiceNotice> {
  let hasTrouble = false;
  const trouble = (error: unknown) => {
    if (!hasTrouble) onTrouble(messageOf(error));
    hasTrouble = true;
  };
  // A native library, which no other command has to load.
  const { openNotifySocket } = await import('@muster/agent/service/notifySocket');
  let watchdog: NodeJS.Timeout | undefined;
  const notify = (state: string) => {
    try {
      openSocket().send(state);
    } catch (error) {
      trouble(error);
    }
  };
  let socket: ReturnType<typeof openNotifySocket> | null = null;
  const openSocket = () => {
    socket ??= openNotifySocket(notifySocket);
    return socket;
  };
  return {
    ready() {
      notify('READY=1');
      if (watchdogMs === null) return;
      watchdog = setInterval(() => notify('WATCHDOG=1'), watchdogMs / pingsPerWatchdog);
      // A daemon that has nothing else to do is about to end.
      watchdog.unref();
    },
    stopping: () => notify('STOPPING=1'),
    close: () => clearInterval(watchdog),
  };
}

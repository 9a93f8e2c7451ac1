/**
 * Whether the system itself is being shut down: clouds that take a machine back press its power button, and systemd then
 * ends the agent with the same SIGTERM as when somebody restarts it.
 */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';

const scheduleFile = '/run/systemd/shutdown/scheduled';
/** systemd answers at once or, while the bus is already gone, not at all. */
const answerMs = 2_000;

export interface ShutdownSources {
  /** Prints what `systemctl is-system-running` prints. */
  readonly systemState: () => Promise<string>;
  /** What `shutdown` has written down; null: nothing is scheduled. */
  readonly schedule: () => Promise<string | null>;
  readonly wallMs: () => number;
}

/** @param withinMs a shutdown that is scheduled for later than that is none yet */
export async function isShuttingDown(sources: ShutdownSources, withinMs: number): Promise<boolean> {
  const [state, schedule] = await Promise.all([sources.systemState(), sources.schedule()]);
  if (state.trim() === 'stopping') return true;
  const atMs = schedule === null ? null : scheduledMs(schedule);
  return atMs !== null && atMs - sources.wallMs() <= withinMs;
}

/** @returns epoch milliseconds; null: it holds none, or it is a drill (`shutdown -k`) */
function scheduledMs(text: string): number | null {
  if (/^WARN_ONLY=1$|^MODE=dry-/m.test(text)) return null;
  const micros = /^USEC=(\d{1,20})$/m.exec(text)?.[1];
  return micros === undefined ? null : Number(micros) / 1_000;
}

/** Where there is no systemd, nothing is known of a shutdown. */
export function systemSources(wallMs: () => number): ShutdownSources {
  return {
    wallMs,
    // Any state but `running` is an exit code other than 0.
    systemState: () =>
      new Promise((resolve) => {
        execFile('systemctl', ['is-system-running'], { timeout: answerMs }, (_error, stdout) =>
          resolve(stdout),
        );
      }),
    schedule: () => readFile(scheduleFile, 'utf8').catch(() => null),
  };
}

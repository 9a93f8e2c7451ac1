/** Whether a daemon of this machine answers, and with which version. */
import { readlinkSync } from 'node:fs';
import { request } from 'node:http';

/** What the page of an agent tells about it. */
export interface AgentAnswer {
  readonly version: string;
  /** The coordinator has answered one of its heartbeats. */
  readonly isInContact: boolean;
}

/** @returns null: it does not show a version */
export function readAgentPage(page: string): AgentAnswer | null {
  const [, version] = /^muster_agent_build_info\{version="([^"]+)"\} 1$/m.exec(page) ?? [];
  return version === undefined
    ? null
    : { version, isInContact: /^muster_agent_heartbeat_age_seconds /m.test(page) };
}

/** @param address `host:port` of this machine @throws {Error} when nothing answers within 5 s */
export function fetchPage(address: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = request(`http://${address}/metrics`, { timeout: 5_000 }, (answer) => {
      const pieces: Buffer[] = [];
      answer.on('data', (piece: Buffer) => pieces.push(piece));
      answer.on('end', () => resolve(Buffer.concat(pieces).toString()));
      answer.on('error', reject);
    });
    call.on('timeout', () => call.destroy(new Error(`${address} did not answer`)));
    call.on('error', reject);
    call.end();
  });
}

/** @returns the program that a process runs, absolute; null: there is no such process */
export function programOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch {
    return null;
  }
}

export interface HealthProblem {
  readonly what: string;
  /** It will not become healthy, however long one waits. */
  readonly isFinal?: boolean;
}

/**
 * Asks again and again until nothing is wrong, or nothing can become right.
 * @param problem what is wrong now; null: nothing
 * @param waitMs for how long; the last answer is one from the end of that time
 * @returns null, or what was wrong at last
 */
export async function untilHealthy(
  problem: () => Promise<HealthProblem | null>,
  waitMs: number,
  { monotonicMs, pause }: { readonly monotonicMs: () => number; readonly pause: () => Promise<void> },
): Promise<string | null> {
  const endMs = monotonicMs() + waitMs;
  for (;;) {
    const isLast = monotonicMs() >= endMs;
    const found = await problem();
    if (found === null) return null;
    if (isLast || found.isFinal === true) return found.what;
    await pause();
  }
}

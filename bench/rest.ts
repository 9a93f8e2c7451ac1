/**
 * What Muster costs when nothing happens: resident memory and CPU of each process of a local cluster at rest.
 *
 *     node bench/rest.ts [seconds]
 *
 * RSS counts pages shared between processes (the Node binary itself, about 40 MiB) once per process; PSS divides them.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { report, reportMachine, rounded, startCluster } from './support.ts';

const seconds = Number(process.argv[2] ?? 60);
const roles = ['coordinator', 'agent', 'guard'] as const;
const targets = { coordinator: 'rss < 150', agent: 'rss < 90, cpu < 1 %', guard: null } as const;

/** CPU time used so far, milliseconds (proc_pid_stat(5), fields 14 and 15, hundredths of a second). */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function sizeMib(file: string, key: string): number {
  const kib = new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(readFileSync(file, 'utf8'))?.[1];
  return rounded(Number(kib) / 1024);
}

reportMachine();
const cluster = await startCluster(2, 2);
try {
  // Past start-up: the first heartbeats, compilations and collections.
  await delay(10_000);
  const processes = roles.flatMap((role) =>
    cluster.pids(role).map((pid) => ({ role, pid, beforeMs: cpuMs(pid) })),
  );
  await delay(seconds * 1_000);
  for (const { role, pid, beforeMs } of processes) {
    report(`${role} at rest for ${seconds} s`, {
      rssMib: sizeMib(`/proc/${pid}/status`, 'VmRSS'),
      pssMib: sizeMib(`/proc/${pid}/smaps_rollup`, 'Pss'),
      cpuPercentOfOneCore: rounded((cpuMs(pid) - beforeMs) / (seconds * 10)),
      target: targets[role],
    });
  }
} finally {
  await cluster.stop();
}

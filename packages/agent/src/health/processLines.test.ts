import { expect, test } from 'vitest';
import { parseOomKill, parseOomSummary, parseSegfault } from './kernelLines.ts';

test.each([
  [
    'Out of memory: Killed process 4711 (python3) total-vm:66124kB, anon-rss:31200kB, file-rss:0kB, shmem-rss:0kB, UID:1000',
    { pid: 4711 },
  ],
  [
    'Memory cgroup out of memory: Killed process 99 (pt_data (worker) total-vm:1kB, anon-rss:0kB',
    { pid: 99 },
  ],
  ['Out of memory (oom_kill_allocating_task): Killed process 7 (a b), UID 0, total-vm:8kB', { pid: 7 }],
])('%s', (text, kill) => {
  expect(parseOomKill(text)).toEqual({ ...kill, text });
  expect(parseOomKill(`[ 12 ] one line before\n${text}\n`)).toMatchObject(kill);
});

test.each([
  'oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=python3,pid=4711,uid=1000',
  'Out of memory: Kill process 4711 (python3) score 900 or sacrifice child',
  'python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0',
  'oom_reaper: reaped process 4711 (python3), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB',
  'user says: Out of memory: Killed process 1 (init) total-vm:1kB',
  'Out of memory: Killed process 99999999999 (x) total-vm:1kB',
])('no process is said to be killed by: %s', (text) => {
  expect(parseOomKill(text)).toBeNull();
});

test('a segmentation fault, with the library in which it happened', () => {
  const text =
    'pt_main_thread[2536443]: segfault at 8 ip 00007f1a2b3c4d5e sp 00007ffd01234567 error 4 in libnccl.so.2[7f1a2b000000+9a4000]';
  expect(parseSegfault(text)).toEqual({ pid: 2_536_443, text });
  expect(parseSegfault(`${text} likely on CPU 5\nCode: 48 8b`)?.pid).toBe(2_536_443);
  expect(parseSegfault('traps: python3[12] general protection fault ip:1 sp:2 error:0')).toBeNull();
});

const id = 'ab'.repeat(32);
test.each([
  [`/docker/${id}`, 'python3'],
  [`/system.slice/docker-${id}.scope/worker`, 'pt_data,pid=1,ui'],
])('the control group of a process that was killed for lack of memory: %s', (group, name) => {
  const head = `oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=0,2,cpuset=${id},mems_allowed=0,oom_memcg=/docker`;
  const text = `${head},task_memcg=${group},task=${name},pid=4711,uid=1000`;
  expect(parseOomSummary(text)).toEqual({ pid: 4711, controlGroup: group });
  expect(parseOomSummary(`a program writes: ${text}`)).toBeNull();
  const ofTheNode = 'oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom';
  expect(parseOomSummary(`${ofTheNode},task_memcg=${group},task=${name},pid=4711,uid=0`)?.pid).toBe(4711);
  expect(parseOomSummary(`${ofTheNode},task=${name},pid=4711,uid=0`)).toBeNull();
});

/** The first process of every host: it reaps what loses its parent, as an init system does, and does nothing else. */

const reaper = [
  'import os, signal',
  // Inherited over exec: the kernel then takes away whatever ends, and no zombie looks like a process that was left behind.
  'signal.signal(signal.SIGCHLD, signal.SIG_IGN)',
  'print("up", flush=True)',
  'os.execv("/bin/sleep", ["sleep", "infinity"])',
].join('\n');

export const firstProcess: readonly string[] = ['/usr/bin/python3', '-c', reaper];

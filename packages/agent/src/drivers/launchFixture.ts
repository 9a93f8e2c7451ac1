/** The launch of a task for tests: a program that does nothing, with nothing asked for. */
import type { TaskLaunch } from './driver.ts';

/** @param launch what matters to the test */
export function aLaunch(launch: Pick<TaskLaunch, 'key' | 'directory'> & Partial<TaskLaunch>): TaskLaunch {
  return {
    image: null,
    command: ['true'],
    env: {},
    workdir: null,
    account: null,
    umask: null,
    gpus: [],
    cpus: null,
    memoryMb: null,
    shmMb: null,
    volumes: [],
    ownVolumes: [],
    directories: [],
    ownDirectories: [],
    variablesFile: null,
    ownFiles: [],
    network: 'host',
    lease: null,
    ...launch,
  };
}

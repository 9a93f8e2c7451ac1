import { describe, expect, it } from 'vitest';
import { DriverError } from '../../taskFacts/errors.ts';
import { aLaunch } from '../launchFixture.ts';
import { EngineError } from './engineHttp.ts';
import { explainStart } from './startErrors.ts';

const launch = aLaunch({
  key: 'job_7.2.0',
  directory: '/var/lib/muster/tasks/job_7.2.0',
  image: 'trainer:1',
  command: ['train'],
});

const oci =
  'failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process';

describe('explainStart', () => {
  it.each([
    [
      'disk_full',
      'mkdir /var/lib/docker/overlay2/1: no space left on device',
      'the disk of the node is full',
    ],
    [
      'command_not_found',
      `${oci}: exec: "train": executable file not found in $PATH: unknown`,
      'has no program named "train"',
    ],
    [
      'command_not_found',
      `${oci}: exec: "/train": stat /train: no such file or directory: unknown`,
      'has no program named "/train"',
    ],
    [
      'unknown',
      'invalid mount config for type "bind": bind source path does not exist: /data/set 1',
      'there is no /data/set 1 on the node',
    ],
    [
      'container_engine',
      'could not select device driver "nvidia" with capabilities: [[gpu]]',
      'NVIDIA Container Toolkit',
    ],
    [
      'container_engine',
      'CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=GPU-1',
      'NVIDIA Container Toolkit',
    ],
    [
      'unknown',
      `invalid mount config for type "bind": bind source path does not exist: ${launch.directory}/output.log`,
      'an agent in a container needs its data directory mounted at the same path',
    ],
    ['unknown', 'Minimum memory limit allowed is 6MB', 'refuses the task: Minimum memory limit'],
  ])('reports %s for: %s', (causeKind, words, message) => {
    const cause = new EngineError(500, words);
    const error = explainStart(cause, launch);
    expect(error).toMatchObject({ name: 'DriverError', causeKind, cause });
    expect(error.message).toContain(message);
  });

  it.each([
    'failed to create task for container: containerd: connection error: desc = "transport is closing"',
    'dial unix /run/containerd/containerd.sock: connect: connection refused: unavailable',
    'error creating overlay mount to /var/lib/docker/overlay2/1: read-only file system',
    'failed to start shim: start failed: context deadline exceeded',
  ])('blames the node for: %s', (words) => {
    const error = explainStart(new EngineError(500, words), launch);
    expect(error).toMatchObject({ causeKind: 'container_engine' });
    expect(error.message).toContain(`the container engine cannot start tasks: ${words}`);
  });

  it('blames the node for an engine that gives no answer', () => {
    const error = explainStart(new EngineError(null, 'gave no answer within 30 s'), launch);
    expect(error).toMatchObject({ causeKind: 'container_engine', message: 'gave no answer within 30 s' });
  });

  it('passes on what is explained already', () => {
    const error = new DriverError('image_pull', 'cannot pull');
    expect(explainStart(error, launch)).toBe(error);
  });

  it('names the directory when the output cannot be made there', () => {
    const error = explainStart(new Error("EACCES: permission denied, open '…/output.log'"), launch);
    expect(error.message).toContain(`cannot prepare the task in ${launch.directory}: EACCES`);
  });
});

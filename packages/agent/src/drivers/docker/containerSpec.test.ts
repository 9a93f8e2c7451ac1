import { describe, expect, it } from 'vitest';
import type { GpuDevice, TaskLaunch } from '../driver.ts';
import { aLaunch } from '../launchFixture.ts';
import { containerDefaults, misnamedGroup } from './containerPolicy.ts';
import {
  argvOf,
  type ContainerPlan,
  commandPaths,
  containerName,
  containerSpec,
  survivesShell,
} from './containerSpec.ts';
import type { ImageDetails } from './engineAnswers.ts';

const mebibyte = 1024 * 1024;
const image: ImageDetails = { entrypoint: [], command: ['python3'], env: ['PATH=/bin'], user: '' };
const gpu: GpuDevice = { uuid: 'GPU-1', simulated: false };
const simulatedGpu: GpuDevice = { uuid: 'GPU-2', simulated: true };

function launchOf(launch: Partial<TaskLaunch> = {}): TaskLaunch {
  const place = { key: 'job_7.2.0', directory: '/var/lib/muster/tasks/job_7.2.0' };
  return aLaunch({ ...place, image: 'trainer:1', command: ['train', '--fast'], ...launch });
}

interface Spec {
  Image: string;
  Entrypoint: string[];
  Cmd: string[];
  Env: string[];
  WorkingDir?: string;
  User?: string;
  Labels: Record<string, string>;
  HostConfig: Record<string, unknown>;
}

function specOf(launch: Partial<TaskLaunch> = {}, plan: Partial<ContainerPlan> = {}): Spec {
  return containerSpec({
    launch: launchOf(launch),
    image,
    ids: null,
    output: 'file',
    gpuMode: 'nvidia',
    init: true,
    volumes: launch.volumes ?? [],
    policy: containerDefaults,
    agentId: 'agent-1',
    bootId: 'boot-1',
    ...plan,
  }) as Spec;
}

const outputMount = {
  Type: 'bind',
  Source: '/var/lib/muster/tasks/job_7.2.0/output.log',
  Target: '/.muster/output.log',
  ReadOnly: false,
};

describe('containerSpec', () => {
  it('lets the image shell open the output and become the command', () => {
    const spec = specOf();
    expect(spec.Entrypoint).toEqual(['/bin/sh', '-c', 'exec "$0" "$@" >>/.muster/output.log 2>&1']);
    expect(spec.Cmd).toEqual(['train', '--fast']);
    expect(spec.HostConfig.Mounts).toEqual([outputMount]);
  });

  it('lets that shell set what no engine may know', () => {
    const { Entrypoint, HostConfig, Env } = specOf({ variablesFile: '/dev/shm/m/export.sh' });
    expect(Entrypoint.at(-1)).toBe('exec >>/.muster/output.log 2>&1; . /.muster/variables && exec "$0" "$@"');
    const mount = { Source: '/dev/shm/m/export.sh', Target: '/.muster/variables', ReadOnly: true };
    expect(HostConfig.Mounts).toEqual([outputMount, { Type: 'bind', ...mount }]);
    expect(Env.join()).not.toContain('m/export');
  });

  it('runs the command alone where the engine keeps the output', () => {
    const spec = specOf({}, { output: 'engine' });
    expect([...spec.Entrypoint, ...spec.Cmd]).toEqual(['train', '--fast']);
    expect(spec.HostConfig.Mounts).toEqual([]);
  });

  it('marks the container as a task of this agent and boot', () => {
    expect(specOf().Labels).toEqual({
      'muster.task': 'job_7.2.0',
      'muster.agent': 'agent-1',
      'muster.boot': 'boot-1',
      'muster.output': 'file',
    });
  });

  it('asks for no limit that the job does not ask for', () => {
    const { HostConfig, WorkingDir, User } = specOf();
    expect(HostConfig).not.toHaveProperty('Memory');
    expect(HostConfig).not.toHaveProperty('NanoCpus');
    expect(HostConfig).not.toHaveProperty('Ulimits');
    expect(HostConfig.ShmSize).toBe(1024 * mebibyte);
    expect([WorkingDir, User]).toEqual([undefined, '65532:65532']);
  });

  it('sets the limits that the job asks for', () => {
    const spec = specOf({ cpus: 1.5, memoryMb: 512, shmMb: 64, workdir: '/work' });
    expect(spec).toMatchObject({
      WorkingDir: '/work',
      HostConfig: {
        NanoCpus: 1_500_000_000,
        Memory: 512 * mebibyte,
        MemorySwap: 512 * mebibyte,
        ShmSize: 64 * mebibyte,
      },
    });
  });

  it('runs as the account of its job with all its groups, whatever the image names', () => {
    const account = { name: 'alice', isRule: false };
    const ids = { uid: 4001, gid: 4001, groups: [4001, 27] };
    for (const user of ['', '1234', 'nobody']) {
      const spec = specOf({ account }, { ids, image: { ...image, user } });
      expect(spec.User).toBe('4001:4001');
      expect(spec.HostConfig.GroupAdd).toEqual(['4001', '27']);
      expect(spec.Env).toEqual(expect.arrayContaining(['HOME=/tmp', 'USER=alice', 'LOGNAME=alice']));
    }
  });

  it('gives each GPU a gibibyte of shared memory unless the job says otherwise', () => {
    const gpus = [gpu, { ...gpu, uuid: 'GPU-3' }];
    expect(specOf({ gpus }).HostConfig.ShmSize).toBe(2048 * mebibyte);
    expect(specOf({ gpus, shmMb: 100 }).HostConfig.ShmSize).toBe(100 * mebibyte);
  });

  it('mounts volumes without making their sources', () => {
    const volumes = [
      { source: '/data', target: '/in', readOnly: true },
      { source: '/out', target: '/out', readOnly: false },
    ];
    expect(specOf({ volumes }).HostConfig.Mounts).toEqual([
      outputMount,
      { Type: 'bind', Source: '/data', Target: '/in', ReadOnly: true },
      { Type: 'bind', Source: '/out', Target: '/out', ReadOnly: false },
    ]);
  });

  it('never lets the engine restart or keep privileges', () => {
    expect(specOf().HostConfig).toMatchObject({
      RestartPolicy: { Name: 'no' },
      SecurityOpt: ['no-new-privileges:true'],
      CapDrop: ['ALL'],
      PidsLimit: 32_768,
      NetworkMode: 'host',
      Init: true,
    });
  });

  it('does without an init where the engine has none', () => {
    expect(specOf({}, { init: false }).HostConfig).not.toHaveProperty('Init');
  });

  it('keeps the whole log in the engine, byte for byte', () => {
    expect(specOf().HostConfig.LogConfig).toEqual({
      Type: 'local',
      Config: { 'max-size': '1000t', 'max-file': '1', compress: 'false' },
    });
  });

  describe('GPUs', () => {
    it('are requested by UUID from the NVIDIA runtime', () => {
      const spec = specOf({ gpus: [gpu] });
      expect(spec.HostConfig.DeviceRequests).toEqual([
        { Driver: 'nvidia', DeviceIDs: ['GPU-1'], Capabilities: [['gpu', 'compute', 'utility']] },
      ]);
      expect(spec.Env).toContain('NVIDIA_VISIBLE_DEVICES=GPU-1');
      expect(spec.Env).toContain('NVIDIA_DRIVER_CAPABILITIES=compute,utility');
    });

    it('are requested by CDI name, and then nothing is left to the NVIDIA runtime', () => {
      const spec = specOf({ gpus: [gpu] }, { gpuMode: 'cdi' });
      expect(spec.HostConfig.DeviceRequests).toEqual([
        { Driver: 'cdi', DeviceIDs: ['nvidia.com/gpu=GPU-1'] },
      ]);
      expect(spec.Env).toContain('NVIDIA_VISIBLE_DEVICES=void');
    });

    it('bring unlimited locked memory and deep stacks', () => {
      expect(specOf({ gpus: [gpu] }).HostConfig.Ulimits).toEqual([
        { Name: 'memlock', Soft: -1, Hard: -1 },
        { Name: 'stack', Soft: 64 * mebibyte, Hard: 64 * mebibyte },
      ]);
    });

    it('that are simulated are shown and not requested', () => {
      const spec = specOf({ gpus: [simulatedGpu] });
      expect(spec.HostConfig.DeviceRequests).toEqual([]);
      expect(spec.HostConfig).not.toHaveProperty('Ulimits');
      expect(spec.Env).toContain('NVIDIA_VISIBLE_DEVICES=GPU-2');
    });

    it('stay hidden from a task without any, whatever its environment says', () => {
      const { Env, HostConfig } = specOf({ env: { NVIDIA_VISIBLE_DEVICES: 'all' } });
      expect(Env.filter((entry) => entry.startsWith('NVIDIA_'))).toEqual(['NVIDIA_VISIBLE_DEVICES=void']);
      expect(HostConfig.DeviceRequests).toEqual([]);
    });

    it('leave the driver capabilities to a job that names some', () => {
      const env = { NVIDIA_DRIVER_CAPABILITIES: 'all' };
      expect(specOf({ gpus: [gpu], env }).Env).toContain('NVIDIA_DRIVER_CAPABILITIES=all');
    });
  });
});

describe('misnamedGroup', () => {
  it.each([
    ['27:x:27:\nsudo:x:27:alice\n', null],
    ['sudo:x:27:\n100:x:0:\n', null],
    ['root:x:0:\n27:x:0:\n', 27],
    ['  27 :x:0:\r\n', 27],
    ['27\n', 27],
    ['27:x:027:\n', 27],
  ])('of %j', (database, group) => {
    expect(misnamedGroup([4001, 27], database)).toBe(group);
  });
});

describe('argvOf', () => {
  const withEntrypoint: ImageDetails = { ...image, entrypoint: ['/entrypoint.sh', '-x'] };

  it('keeps the image entrypoint in front of the command', () => {
    expect(argvOf(launchOf(), withEntrypoint)).toEqual(['/entrypoint.sh', '-x', 'train', '--fast']);
  });

  it('falls back to the image command', () => {
    expect(argvOf(launchOf({ command: [] }), withEntrypoint)).toEqual(['/entrypoint.sh', '-x', 'python3']);
  });
});

describe('survivesShell', () => {
  it('knows the names that a shell cannot say', () => {
    expect(survivesShell(launchOf({ env: { PLAIN_1: 'a-b.c', _x: '' } }), image)).toBe(true);
    expect(survivesShell(launchOf({ env: { 'dotted.name': '' } }), image)).toBe(false);
    expect(survivesShell(launchOf({ env: { '1st': '' } }), image)).toBe(false);
    expect(survivesShell(launchOf(), { ...image, env: ['BASH_FUNC_module%%=() { :; }'] })).toBe(false);
  });
});

describe('commandPaths', () => {
  it('searches the PATH that the container will have', () => {
    expect(commandPaths('train', '/srv', ['PATH=/first', 'PATH=/a:/b'])).toEqual(['/a/train', '/b/train']);
  });

  it('takes an empty folder of PATH for the working directory', () => {
    expect(commandPaths('train', '/srv', ['PATH=/a:'])).toEqual(['/a/train', '/srv/train']);
  });

  it('does not search for a path', () => {
    expect(commandPaths('/opt/train', '/srv', ['PATH=/a'])).toEqual(['/opt/train']);
    expect(commandPaths('bin/train', '/srv', ['PATH=/a'])).toEqual(['/srv/bin/train']);
  });

  it('searches the engine default where there is no PATH', () => {
    expect(commandPaths('train', '/', ['HOME=/'])).toContain('/usr/local/sbin/train');
  });
});

describe('containerName', () => {
  it('says which task it is', () => {
    expect(containerName('job_7.2.0')).toBe('muster-job_7-2-0');
  });
});

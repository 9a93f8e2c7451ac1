import { expect, test } from 'vitest';
import type { HostSample } from '../host/hostMetrics.ts';
import { GpuReads } from './gpuReads.ts';
import { type PageParts, renderPage } from './page.ts';
import { aCard, anInstance, anObservation, aTask, gpuParts, someAgent, someHost } from './testing/parts.ts';
import { promtool } from './testing/promtool.ts';

function aPage(change: Partial<PageParts> = {}): string {
  const gpus = [aCard(0), aCard(1, { simulated: true }), anInstance(7)];
  const holders = new Map([[aCard(0).uuid, aTask]]);
  return renderPage({
    gpus: gpuParts(anObservation(gpus, { holders })),
    host: someHost,
    agent: someAgent(),
    ...change,
  });
}

const noGpus = gpuParts(anObservation([]));
const linesOf = (page: string, name: string) => page.split('\n').filter((line) => line.startsWith(name));

test('promtool finds nothing in the series of ours', async () => {
  const page = aPage({ gpus: noGpus });
  expect(page).toContain('muster_host_');
  expect(page).toContain('muster_agent_');
  expect(await promtool(['check', 'metrics'], page)).toEqual({ exitCode: 0, lines: [] });
});

test('promtool reads the whole page, and takes exception only to the names that NVIDIA gave', async () => {
  const { exitCode, lines } = await promtool(['check', 'metrics'], aPage());
  // 1: the page cannot be read. 3: it can, but names are not as recommended: `modelName`, counters without `_total`.
  expect(exitCode).toBe(3);
  const problem =
    /^DCGM_FI_\w+ (?:label names should be .* not 'camelCase'|counter metrics should have "_total" suffix|metric name should not include type 'counter')$/;
  expect(lines.filter((line) => !problem.test(line))).toEqual([]);
});

test('the host is there in base units', () => {
  expect(
    aPage({ gpus: noGpus })
      .split('\n')
      .filter((line) => line.startsWith('muster_host')),
  ).toEqual([
    'muster_host_cpu_seconds_total{mode="user"} 1000.25',
    'muster_host_cpu_seconds_total{mode="nice"} 0',
    'muster_host_cpu_seconds_total{mode="system"} 200.5',
    'muster_host_cpu_seconds_total{mode="idle"} 90000.75',
    'muster_host_cpu_seconds_total{mode="iowait"} 3',
    'muster_host_cpu_seconds_total{mode="irq"} 0',
    'muster_host_cpu_seconds_total{mode="softirq"} 4',
    'muster_host_cpu_seconds_total{mode="steal"} 0',
    'muster_host_memory_size_bytes 137438953472',
    'muster_host_memory_available_bytes 68719476736',
    'muster_host_load1 1.5',
    'muster_host_load5 1.25',
    'muster_host_load15 0.75',
    'muster_host_disk_read_bytes_total{device="nvme0n1"} 1000',
    'muster_host_disk_written_bytes_total{device="nvme0n1"} 2000',
    'muster_host_network_receive_bytes_total{device="eth0"} 3000',
    'muster_host_network_receive_bytes_total{device="docker0"} 30',
    'muster_host_network_transmit_bytes_total{device="eth0"} 4000',
    'muster_host_network_transmit_bytes_total{device="docker0"} 40',
    'muster_host_filesystem_size_bytes{path="/data"} 5000',
    'muster_host_filesystem_avail_bytes{path="/data"} 2500',
    'muster_host_filesystem_files{path="/data"} 200',
    'muster_host_filesystem_files_free{path="/data"} 100',
    'muster_host_filesystem_answering{path="/data"} 1',
  ]);
});

test('what the host did not tell is not there', () => {
  const host: HostSample = {
    monotonicMs: 0,
    cpu: null,
    memoryTotalBytes: null,
    memoryAvailableBytes: null,
    load: null,
    disks: [],
    nics: [],
    fileSystems: [],
  };
  expect(aPage({ host })).not.toContain('muster_host_');
  expect(aPage({ host: null })).not.toContain('muster_host_');
});

test('a file system that does not answer shows that, and no sizes of an earlier time', () => {
  const fileSystems = someHost.fileSystems.map((each) => ({ ...each, isAnswering: false }));
  expect(linesOf(aPage({ host: { ...someHost, fileSystems } }), 'muster_host_filesystem')).toEqual([
    'muster_host_filesystem_answering{path="/data"} 0',
  ]);
});

test('a thousand interfaces do not make the page grow, and real ones come first', () => {
  const bridges = Array.from({ length: 1_000 }, (_, index) => ({
    name: `veth${index}`,
    receivedBytes: 1,
    transmittedBytes: 1,
    isHardware: false,
  }));
  const page = aPage({ host: { ...someHost, nics: [...bridges, ...someHost.nics] } });
  const lines = linesOf(page, 'muster_host_network_receive_bytes_total');
  expect(lines).toHaveLength(64);
  expect(lines[0]).toContain('"eth0"');
});

test('the agent tells how it is', () => {
  const page = aPage({ gpus: noGpus, host: null });
  expect(
    page.split('\n').filter((line) => /^(?:muster|process)/.test(line) && !line.includes('_read_seconds')),
  ).toEqual([
    'muster_agent_build_info{version="0.1.0"} 1',
    'muster_agent_connected 1',
    'muster_agent_heartbeat_age_seconds 1.5',
    'muster_agent_tasks{state="running"} 2',
    'muster_agent_tasks{state="frozen"} 0',
    'muster_agent_gpu_source_info{source="nvml",use="samples"} 1',
    'muster_agent_gpu_source_info{source="dcgm-exporter",use="profiling"} 1',
    'muster_agent_gpu_read_timestamp_seconds 1700000000.5',
    'muster_agent_gpu_read_failures_total{source="dcgm-exporter",kind="hung"} 1',
    'muster_agent_conditions{kind="xid_79",gpu="GPU-10000000-aaaa-bbbb-cccc-000000000000",' +
      'severity="critical",action="drain_node"} 1',
    'process_cpu_seconds_total 12.5',
    'process_resident_memory_bytes 80000000',
    'process_start_time_seconds 1700000000',
  ]);
});

test('what the agent cannot know yet is not there', () => {
  const agent = someAgent({
    heartbeatAgeSeconds: null,
    conditions: [],
    gpuReads: new GpuReads(),
  });
  const unread = gpuParts(anObservation([], { atMs: 0 }));
  expect(aPage({ agent, gpus: unread })).not.toMatch(/heartbeat_age|gpu_read|agent_conditions/);
});

test('how long readings took is a histogram', () => {
  const lines = linesOf(aPage(), 'muster_agent_gpu_read_seconds');
  expect(
    lines.filter((line) => /le="(?:0\.0025|0\.005|0\.25|0\.5|10|\+Inf)"|_sum|_count/.test(line)),
  ).toEqual([
    'muster_agent_gpu_read_seconds_bucket{source="nvml",le="0.0025"} 0',
    'muster_agent_gpu_read_seconds_bucket{source="nvml",le="0.005"} 1',
    'muster_agent_gpu_read_seconds_bucket{source="nvml",le="0.25"} 1',
    'muster_agent_gpu_read_seconds_bucket{source="nvml",le="0.5"} 2',
    'muster_agent_gpu_read_seconds_bucket{source="nvml",le="10"} 2',
    'muster_agent_gpu_read_seconds_bucket{source="nvml",le="+Inf"} 3',
    'muster_agent_gpu_read_seconds_sum{source="nvml"} 60.304',
    'muster_agent_gpu_read_seconds_count{source="nvml"} 3',
  ]);
});

// Writes the dashboards of deploy/grafana/ from the tables below: a row for each panel, with its title, unit and queries. `--check`
// compares instead of writing and fails when they differ. test/e2e/prometheus.test.ts asks a real Prometheus every query.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = join(fileURLToPath(new URL('..', import.meta.url)), 'deploy/grafana');

/** Of Grafana's variables, those that a dashboard is chosen by. */
const node = { name: 'node', label: 'Node', query: 'label_values(muster_agent_build_info, node)' };
const job = { name: 'job', label: 'Job', query: 'label_values(muster_job_info, muster_job)' };

const ofJob = '{muster_job="$job"}';
const ofNode = '{node="$node"}';
const perRank = 'rank {{muster_rank}} GPU {{gpu}}';
const perGpu = 'GPU {{gpu}}';
const rate = '$__rate_interval';

/** @typedef {readonly [title: string, unit: string, ...queries: (readonly [expr: string, legend: string])[]]} Panel */
/** @typedef {{ name: string, label: string, query: string }} Variable */
/** @typedef {{ title: string, variables: readonly Variable[], panels: readonly Panel[] }} Dashboard */

/** @type {Readonly<Record<string, Dashboard>>} */
const dashboards = {
  cluster: {
    title: 'Muster: cluster',
    variables: [],
    panels: [
      ['GPUs', 'short', ['muster_gpus', '{{state}}']],
      ['Nodes', 'short', ['muster_nodes', '{{state}}']],
      ['Jobs', 'short', ['muster_jobs', '{{state}}']],
      [
        'Utilization of GPUs that jobs hold',
        'percent',
        ['avg(DCGM_FI_DEV_GPU_UTIL{muster_job!=""})', 'mean'],
      ],
      ['GPU time by use', 'short', [`sum by (kind) (rate(muster_gpu_seconds_total[${rate}]))`, '{{kind}}']],
      [
        'Cost of an hour',
        'currencyUSD',
        [`sum by (project) (rate(cost_usd[${rate}])) * 3600`, '{{project}}'],
      ],
      ['Power', 'watt', ['sum by (node) (DCGM_FI_DEV_POWER_USAGE)', '{{node}}']],
      ['Conditions', 'short', ['sum by (kind, severity) (muster_conditions)', '{{kind}} {{severity}}']],
      [
        'Time of a commit',
        's',
        [`histogram_quantile(0.5, sum by (le) (rate(muster_commit_seconds_bucket[${rate}])))`, 'p50'],
        [`histogram_quantile(0.99, sum by (le) (rate(muster_commit_seconds_bucket[${rate}])))`, 'p99'],
      ],
      ['Events', 'ops', [`sum by (kind) (rate(muster_events_total[${rate}]))`, '{{kind}}']],
      [
        'Memory of the coordinator',
        'bytes',
        ['process_resident_memory_bytes{muster_role="coordinator"}', 'resident'],
      ],
      ['Paused, frozen tasks', 'short', ['muster_paused', 'paused'], ['muster_lease_frozen_tasks', 'frozen']],
    ],
  },
  node: {
    title: 'Muster: node',
    variables: [node],
    panels: [
      ['GPU utilization', 'percent', [`DCGM_FI_DEV_GPU_UTIL${ofNode}`, perGpu]],
      ['GPU memory', 'mbytes', [`DCGM_FI_DEV_FB_USED${ofNode}`, perGpu]],
      ['GPU temperature', 'celsius', [`DCGM_FI_DEV_GPU_TEMP${ofNode}`, perGpu]],
      ['GPU power', 'watt', [`DCGM_FI_DEV_POWER_USAGE${ofNode}`, perGpu]],
      [
        'SMs and tensor cores',
        'percentunit',
        [`DCGM_FI_PROF_SM_ACTIVE${ofNode}`, `SM ${perGpu}`],
        [`DCGM_FI_PROF_PIPE_TENSOR_ACTIVE${ofNode}`, `tensor ${perGpu}`],
      ],
      [
        'NVLink',
        'Bps',
        [`DCGM_FI_PROF_NVLINK_RX_BYTES${ofNode}`, `received ${perGpu}`],
        [`DCGM_FI_PROF_NVLINK_TX_BYTES${ofNode}`, `sent ${perGpu}`],
      ],
      [
        'Network',
        'Bps',
        [`rate(muster_host_network_receive_bytes_total${ofNode}[${rate}])`, 'received {{device}}'],
        [`rate(muster_host_network_transmit_bytes_total${ofNode}[${rate}])`, 'sent {{device}}'],
      ],
      ['CPU', 'short', [`sum by (mode) (rate(muster_host_cpu_seconds_total${ofNode}[${rate}]))`, '{{mode}}']],
      [
        'Memory',
        'bytes',
        [`muster_host_memory_size_bytes${ofNode} - muster_host_memory_available_bytes${ofNode}`, 'used'],
      ],
      ['Space on disks', 'bytes', [`muster_host_filesystem_avail_bytes${ofNode}`, '{{path}}']],
      ['Tasks', 'short', [`muster_agent_tasks${ofNode}`, '{{state}}']],
      ['Conditions', 'short', [`muster_agent_conditions${ofNode}`, '{{kind}} {{gpu}}']],
    ],
  },
  job: {
    title: 'Muster: job',
    variables: [job],
    panels: [
      ['Loss', 'short', [`training_loss${ofJob}`, 'training loss']],
      ['Learning rate', 'sci', [`learning_rate${ofJob}`, 'learning rate']],
      [
        'Phases',
        'percentunit',
        [`muster_job_phases_done_ratio${ofJob}`, 'all phases'],
        [`muster_job_phase_done_ratio${ofJob}`, '{{phase}}'],
      ],
      [
        'GPU utilization',
        'percent',
        [`DCGM_FI_DEV_GPU_UTIL${ofJob}`, perRank],
        [`gpu_utilization${ofJob}`, 'mean'],
      ],
      ['GPU memory', 'mbytes', [`DCGM_FI_DEV_FB_USED${ofJob}`, perRank]],
      ['Tensor cores', 'percentunit', [`DCGM_FI_PROF_PIPE_TENSOR_ACTIVE${ofJob}`, perRank]],
      ['Power', 'watt', [`sum(DCGM_FI_DEV_POWER_USAGE${ofJob})`, 'all GPUs']],
      [
        'NVLink',
        'Bps',
        [`sum by (muster_rank) (DCGM_FI_PROF_NVLINK_RX_BYTES${ofJob})`, 'rank {{muster_rank}}'],
      ],
      [
        'Network of its nodes',
        'Bps',
        [
          `sum by (node) (rate(muster_host_network_receive_bytes_total[${rate}])) and on (node) DCGM_FI_DEV_GPU_UTIL${ofJob}`,
          '{{node}}',
        ],
      ],
      [
        'Time since a checkpoint was saved',
        's',
        [`time() - muster_job_saved_timestamp_seconds${ofJob}`, 'newest verified checkpoint'],
      ],
      ['Size of the newest checkpoint', 'bytes', [`muster_job_checkpoint_bytes${ofJob}`, 'size']],
    ],
  },
  queue: {
    title: 'Muster: queue',
    variables: [],
    panels: [
      ['Jobs', 'short', ['muster_jobs', '{{state}}']],
      ['Longest wait', 's', ['muster_queue_oldest_wait_seconds', 'oldest job in the queue']],
      [
        'Time in the queue',
        's',
        [`histogram_quantile(0.5, sum by (le) (rate(muster_queue_wait_seconds_bucket[${rate}])))`, 'p50'],
        [`histogram_quantile(0.95, sum by (le) (rate(muster_queue_wait_seconds_bucket[${rate}])))`, 'p95'],
      ],
      ['Jobs that started', 'short', [`increase(muster_queue_wait_seconds_count[${rate}])`, 'started']],
      [
        'Free GPUs',
        'short',
        ['muster_gpus{state="free"}', 'free'],
        ['muster_gpus{state="drained"}', 'drained'],
      ],
      ['Preemptions', 'short', [`increase(muster_preemptions_total[${rate}])`, 'preemptions']],
      ['Recoveries', 'short', [`sum by (cause) (increase(muster_recoveries_total[${rate}]))`, '{{cause}}']],
      [
        'Running time of jobs',
        's',
        [`histogram_quantile(0.5, sum by (le) (rate(training_duration_seconds_bucket[${rate}])))`, 'p50'],
        [`histogram_quantile(0.95, sum by (le) (rate(training_duration_seconds_bucket[${rate}])))`, 'p95'],
      ],
      [
        'Size of checkpoints',
        'mbytes',
        [`histogram_quantile(0.95, sum by (le) (rate(checkpoint_size_mb_bucket[${rate}])))`, 'p95'],
      ],
      ['Verdicts on checkpoints', 'short', [`increase(muster_checkpoints_total[${rate}])`, '{{verdict}}']],
    ],
  },
};

const datasource = { type: 'prometheus', uid: '$datasource' };
const [columns, width, height] = [2, 12, 8];

/** @param {Panel} panel @param {number} index */
function panelOf([title, unit, ...queries], index) {
  return {
    id: index + 1,
    type: 'timeseries',
    title,
    datasource,
    gridPos: { h: height, w: width, x: (index % columns) * width, y: Math.floor(index / columns) * height },
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    targets: queries.map(([expr, legendFormat], position) => ({
      refId: String.fromCharCode(65 + position),
      datasource,
      expr,
      legendFormat,
    })),
  };
}

/** @param {string} name @param {Dashboard} dashboard */
function dashboardOf(name, { title, variables, panels }) {
  return {
    uid: `muster-${name}`,
    title,
    tags: ['muster'],
    schemaVersion: 39,
    editable: true,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    templating: {
      list: [
        { name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus' },
        ...variables.map((each) => ({ ...each, type: 'query', datasource, refresh: 2, sort: 1 })),
      ],
    },
    panels: panels.map(panelOf),
  };
}

for (const [name, dashboard] of Object.entries(dashboards)) {
  const path = join(folder, `${name}.json`);
  // A list of one word takes one line, as the formatter has it.
  const text = `${JSON.stringify(dashboardOf(name, dashboard), null, 2)}\n`.replace(
    /\[\s+("muster")\s+\]/,
    '[$1]',
  );
  if (!process.argv.includes('--check')) writeFileSync(path, text);
  else if (readFileSync(path, 'utf8') !== text) {
    process.stderr.write(
      `deploy/grafana/${name}.json is not what the script says: run \`npm run generate\`.\n`,
    );
    process.exitCode = 1;
  }
}

// Makes docs/json.md from proto/ and the table of exit codes: the shape of what `-o json` prints. `--check` compares instead of
// writing and fails when they differ. packages/cli/src/jsonDocs.test.ts compares the shapes with what the CLI prints.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import protobuf from 'protobufjs';
import { exitCodeMeanings } from '../packages/cli/src/exitCodes.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const path = join(root, 'docs/json.md');

/** What a command prints: a message, or members by hand where no message of the API has them. */
const answers = [
  [
    '`submit`, also with `--dry-run`',
    '[SubmitResponse](#submitresponse); with `--wait`, then the [Job](#job) once it has ended, or the [ArraySummary](#arraysummary)',
  ],
  ['`jobs`', '`{jobs: `[Job](#job)`[], more, notStored}`'],
  ['`job`, `extend`', '[Job](#job)'],
  ['`job --status`', '`{markdown}`'],
  ['`checkpoints`', '[Checkpoint](#checkpoint)`[]`'],
  ['`explain`', '[ExplainJobResponse](#explainjobresponse)'],
  ['`job`, `explain` of an array', '[ArraySummary](#arraysummary)'],
  ['`stop`', '`{jobs: `[Job](#job)`[], total}`; at most 1,000 are listed, `total` counts all'],
  ['`requeue`', '[RequeueJobResponse](#requeuejobresponse)'],
  [
    '`requeue` of an array',
    '`{arrayId, requeued: {index, from, jobId}[], refused: {index, jobId, message}[]}`; ' +
      '`from` is the job before; with `--wait`, then the [ArraySummary](#arraysummary)',
  ],
  ['`metrics JOB NAME`', '[QueryMetricsResponse](#querymetricsresponse)'],
  ['`metrics JOB`', 'an object of metric names, each with its [QueryMetricsResponse](#querymetricsresponse)'],
  [
    '`metrics` of an array or of several jobs',
    'an object of job ids, each with an object of metric names and their [QueryMetricsResponse](#querymetricsresponse)',
  ],
  ['`logs`', 'one `{attempt, nodeRank, line}` per line of output; stored output has no times'],
  ['`logs` of an array', 'one `{index, jobId, attempt, nodeRank, line}` per line of output'],
  ['`logs rm`', '`{jobId, bytesFreed}`'],
  ['`events`', 'one [CloudEvent](events.md) per line'],
  ['`nodes`', '`{nodes: `[Node](#node)`[]}`'],
  ['`top`', '`{nodes: `[Node](#node)`[], telemetry: {node, host, gpus}[], jobs: `[Job](#job)`[]}`'],
  ['`node`, `node drain`, `node undrain`, `node clear`, `node confirm-dead`', '[Node](#node)'],
  [
    '`node add`',
    '`{hosts: {ssh, node, gpus, findings, error, hint}[]}`; `findings` are problems that `doctor` found there; `error` is null once the host is a node',
  ],
  ['`node remove`', '`{node, uninstalled}`'],
  ['`maintenance`, `store advance`', '[Cluster](#cluster)'],
  ['`clock`, `clock accept`', '[CoordinatorClock](#coordinatorclock)'],
  ['`token create`', '`{token, expiresAtMs}`'],
  ['`token list`', '`{credentials: `[Credential](#credential)`[]}`'],
  ['`token show`', '[Caller](#caller)'],
  ['`token revoke`', '`{ids}`'],
  ['`token rotate`', '`{token}`; of a user `{id, token, expiresAtMs}`'],
  ['`token issue`', '`{id, token, expiresAtMs}`'],
  ['`user list`', '`{users: `[User](#user)`[]}`'],
  ['`user add`, `user code`', '`{user, code, expiresAtMs}`; `user` is a [User](#user), or null'],
  ['`user set`', '[User](#user)'],
  ['`user remove`', '`{user}`'],
  ['`project list`', '`{projects: {name, isPrivate}[]}`'],
  ['`project set`', '`{name, isPrivate}`'],
  ['`login`', '`{context, address, user, role, projects, expiresAtMs}`'],
  ['`context list`', '`{contexts: {name, address, user, isCurrent}[]}`'],
  ['`context use`', '`{current}`'],
  ['`context remove`', '`{context, revoked}`'],
  ['`alert list`', '`{alerts: `[Alert](#alert)`[]}`'],
  ['`alert create`, `alert show`, `alert delete`, `alert silence`, `alert ack`', '[Alert](#alert)'],
  ['`sweep`, `sweep show`, `sweep stop`, `sweep extend`', '[Sweep](#sweep)'],
  ['`sweep list`', '`{sweeps: `[Sweep](#sweep)`[], more}`'],
  ['`sweep trials`', '`{trials: `[Trial](#trial)`[]}`'],
  ['`sweep best`', '[Trial](#trial); with several objectives `{trials: `[Trial](#trial)`[]}`'],
  ['`sweep importance`', '`{trials, parameters: {name, share}[]}`, most important first'],
  ['`pipeline run`, `pipeline show`, `pipeline stop`, `pipeline rerun`', '[PipelineRun](#pipelinerun)'],
  ['`lineage`', '[Lineage](#lineage)'],
  [
    '`trigger create`, `trigger show`, `trigger pause`, `trigger resume`, `trigger delete`',
    '[Trigger](#trigger)',
  ],
  ['`trigger run`', '[TriggerFire](#triggerfire)'],
  ['`trigger list`', '`{triggers: `[Trigger](#trigger)`[]}`'],
  ['`pipeline list`', '`{runs: `[PipelineRun](#pipelinerun)`[], more}`'],
  ['`secret set`, `secret remove`', '[Secret](#secret)'],
  ['`secret list`', '`{secrets: `[Secret](#secret)`[]}`'],
  ['`secret rotate-key`', '`{secrets}`'],
  ['`doctor`', '`{checks: {area, name, chosen, state, message, evidence, remedy}[]}`'],
  [
    '`checkpoint verify`',
    '`{checkpoints: {path, verdict, depth, format, bytes, files, step, digest, version, problem, durationMs}[]}`',
  ],
  [
    '`backup`',
    '`{file, bytes, format, clusterId, schema, pages, pageBytes, commits, lastEventSeq, lastSubmitSeq, takenAtMs, ' +
      'files: {name, bytes, sha256}[]}`',
  ],
  ['`restore`', '`{lastEventSeq, lostEvents, lostJobs, keptIn, restoredFiles}`'],
  ['`store check`', '`{ok, findings: {kind, message}[], contents}`'],
  [
    '`advise pipeline`',
    '`{task_type, pipeline_config: {orchestrator, steps: {name, needs, command, outputs}[], triggers}, files, reasons, assumptions}`',
  ],
  [
    '`advise distributed`',
    '`{task_type, distributed_config: {strategy, world_size, backend}, plan, reasons, considered: plan[], model, gpu, usableBytes, precision, ' +
      'communication, tips: {tip, because}[], files: {name, about, text, fits}[], sufficient: {gpu, gpuCount, method}[], assumptions, sources}`; ' +
      '`plan` is `{method, degrees: {data, tensor, pipeline}, microBatch, accumulation, recomputation, memory, fits}`; ' +
      '`distributed_config`, `plan` and `communication` are null where nothing fits; `sufficient` is empty where something does. ' +
      'Every answer of `advise` has `pipeline_config`, `distributed_config`, `tuning_results` and `cost_estimate`, null where its question has none; ' +
      '[openapi.json](openapi.json) has the schema',
  ],
  [
    '`advise tuning`',
    '`{task_type, tuning_results: {best_params, best_score, trials_completed}, cost_estimate, costRangeUsd, parameters: {name, range, why}[], ' +
      'sampler, earlyStopping, trials, parallel, trialHours, reasons, files, pricesAsOf, assumptions, sources}`; nothing was tried, so that ' +
      '`best_score` is null',
  ],
  [
    '`advise automl`',
    '`{task_type, pipeline_config, tuning_results, cost_estimate, name, dir, models, metric, trials, parallel, earlyStopping, ' +
      'parameters: {name, range}[], reports, reasons, files, pricesAsOf, assumptions, sources}`; `cost_estimate` is the most that the ' +
      'trials cost, null without `time` and `parallel`',
  ],
  [
    '`advise compute`',
    '`{task_type, cost_estimate: {hourly_cost_usd, estimated_duration_hours, total_cost_usd}, recommended, reasons, alternatives: recommended[], spot, ' +
      'checkpointIntervalMinutes, checkpointBytes, scalingPolicy: {minGpus, maxGpus, counts, reasons}, tokens, flops, pricesAsOf, assumptions, ' +
      'sources}`; `recommended` has the members of `cost_estimate` and `gpu, gpuCount, method, durationRangeHours, costRangeUsd, slowdown, ' +
      'isWithinLimits`; `cost_estimate` and what follows from it are null where no GPUs fit',
  ],
  [
    '`diagnose`',
    '`{state, cause, blame, evidence: {line, text, rank}, retry, advice, framework, metrics: {rows, first, last}}`; ' +
      '`first` and `last` are values by name of the metric, as the program calls it',
  ],
];
const shown = [
  'SubmitResponse',
  'Job',
  'ExplainJobResponse',
  'RequeueJobResponse',
  'QueryMetricsResponse',
  'Node',
  'Cluster',
  'CoordinatorClock',
  'Credential',
  'Caller',
  'User',
  'Secret',
  'Alert',
  'Sweep',
  'Trial',
  'PipelineRun',
  'PipelineStep',
  'Trigger',
  'TriggerBlock',
  'TriggerFire',
  'Artifact',
  'Lineage',
  'LineageStep',
];

/** Where the JSON is easier to read than the message: message.field → name and type; null: inside of another, or not there. */
const differences = {
  'Job.spec': ['spec', 'object', 'The job file, complete, with its own keys in snake_case.'],
  'Sweep.spec': ['spec', 'object', 'The sweep file, complete, with its own keys in snake_case.'],
  'PipelineRun.spec': ['spec', 'object', 'The pipeline file, with its own keys in snake_case.'],
  'LineageStep.params': ['params', 'object', 'Values of the parameters of its run, by name.'],
  'Trigger.spec': ['spec', 'object', 'The pipeline file, with its own keys in snake_case.'],
  'Trigger.params': ['params', 'object', 'The values that each run is given, by name.'],
  'PipelineRun.params': ['params', 'object', 'Values of all parameters, by name.'],
  'Trial.params': ['params', 'object', 'Values of the parameters that apply, by name.'],
  // The CLI prints all points.
  'QueryMetricsResponse.nextSkip': null,
};

/** Shapes that the CLI makes of several answers. Its tests compare them with what it prints. */
const own = `### ArraySummary

An array as a whole. A job that was requeued counts with its newest run; \`indexes\` are those in the array.

| member | type | meaning |
|---|---|---|
| \`array\` | {id, name, size} | \`size\`: how many jobs were submitted with the array. |
| \`counts\` | object of number | How many jobs are in each state. |
| \`submittedAtMs\` | number | Of its oldest job; null: it no longer has one. |
| \`causes\` | {kind, message, count, indexes}[] | Of jobs that have not succeeded, by cause; the commonest first. |
| \`waits\` | {kind, message, remedy, count, indexes}[] | Why jobs are queued; the commonest first. |
| \`marks\` | {mark, count, indexes}[] | Signs in the training: \`NaN\`, \`diverged\`, \`overflow\`, \`hangs\`, \`hung\`. |
| \`ledger\` | [LedgerEntry](#ledgerentry)[] | Of all jobs together. |
| \`longest\` | {jobId, index, name, state, ranMs}[] | The longest runs, at most five. |
| \`nextSteps\` | string[] | Advice and commands. |`;

const schema = new protobuf.Root();
schema.resolvePath = (_origin, target) => join(root, 'proto', target);
schema.loadSync(['muster/v1/muster.proto'], { alternateCommentMode: true }).resolveAll();

/** @param {string | null} comment */
function cell(comment) {
  return (comment ?? '').replaceAll(/\s+/g, ' ').replaceAll('|', '\\|').trim();
}

/** @param {protobuf.Field} field */
function typeOf(field) {
  const { resolvedType } = field;
  const name =
    resolvedType instanceof protobuf.Type
      ? `[${resolvedType.name}](#${resolvedType.name.toLowerCase()})`
      : scalar(field);
  if (field instanceof protobuf.MapField) return `object of ${name}`;
  return field.repeated ? `${name}[]` : name;
}

/** @param {protobuf.Field} field */
function scalar({ type, resolvedType }) {
  if (resolvedType instanceof protobuf.Enum || type === 'string' || type === 'bytes') return 'string';
  return type === 'bool' ? 'boolean' : 'number';
}

/** @param {protobuf.Type} message */
function section(message) {
  const rows = message.fieldsArray.flatMap((field) => {
    const difference = differences[/** @type {keyof typeof differences} */ (`${message.name}.${field.name}`)];
    if (difference === null) return [];
    const [name, type, comment] = difference ?? [field.name, typeOf(field), cell(field.comment)];
    return [`| \`${name}\` | ${type} | ${comment} |`];
  });
  const about = cell(message.comment);
  const table = ['| member | type | meaning |', '|---|---|---|', ...rows];
  return [`### ${message.name}`, ...(about === '' ? [] : [about]), table.join('\n')].join('\n\n');
}

/** The messages and all that they hold, each once. */
function reachable() {
  const found = new Set(shown.map((name) => schema.lookupType(`muster.v1.${name}`)));
  for (const message of found) {
    for (const { resolvedType } of message.fieldsArray) {
      if (resolvedType instanceof protobuf.Type) found.add(resolvedType);
    }
  }
  return [...found];
}

const text = `# JSON for programs

<!-- Made by scripts/generate-json-docs.mjs; do not edit. \`npm run generate\` writes it. -->

Every command that reads has \`-o json\`. It prints one value on stdout: on one line when stdout is no terminal. \`logs\` and
\`events\` print one object per line. Names are in camelCase, with one exception: the job file (\`spec\`) keeps its own keys.
Names of metrics (\`train_loss\`), causes (\`cuda_oom\`) and labels are data, and are spelled the same everywhere.

- \`…AtMs\`: milliseconds since 1970-01-01 UTC. \`…Ms\`: a duration in milliseconds. \`…Seconds\`: seconds.
- \`…Bytes\`: bytes. \`…Mb\`: MiB (1,048,576 bytes).
- \`null\`, or a member that is absent: there is none, or it is not known. The tables below call that absent.
- New members may be added. Ignore those that you do not know.

## Exit codes

| code | meaning |
|---|---|
${Object.entries(exitCodeMeanings)
  .map(([code, meaning]) => `| ${code} | ${meaning} |`)
  .join('\n')}

## Errors

With \`-o json\` the last line of stderr is an object, whatever went wrong:

\`\`\`json
{"error":{"code":"not_found","message":"there is no job job_000000000000","hint":null,"problems":[]}}
\`\`\`

| member | type | meaning |
|---|---|---|
| \`code\` | string | the kind of error, see below |
| \`message\` | string | what is wrong, for people |
| \`hint\` | string | what to do; null: nothing is known |
| \`problems\` | object[] | of a refused job spec; empty otherwise |

\`code\` is \`invalid_argument\`, \`not_found\`, \`already_exists\`, \`failed_precondition\`, \`resource_exhausted\`,
\`unauthenticated\`, \`permission_denied\`, \`unavailable\`, \`deadline_exceeded\` or \`internal\`. A problem has \`path\`,
\`message\`, \`expected\`, \`suggestion\`, \`line\`, \`column\` and \`flag\`, of which all but the first two may be null.

## Answers

| command | prints |
|---|---|
${answers.map(([command, answer]) => `| ${command} | ${answer} |`).join('\n')}

## Shapes

${[own, ...reachable().map(section)].join('\n\n')}
`;

if (process.argv.includes('--check')) {
  if (readFileSync(path, 'utf8') !== text) {
    process.stderr.write('docs/json.md is not what proto/ and the exit codes say: run `npm run generate`.\n');
    process.exitCode = 1;
  }
} else {
  writeFileSync(path, text);
}

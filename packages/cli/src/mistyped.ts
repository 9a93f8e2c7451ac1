/** From a word that is no command or flag to what was probably meant. */
import { closest } from '@muster/common/spec/suggest';
import type { Command, CommanderError } from 'commander';

/**
 * @param words the command line without what follows `--`
 * @param command the deepest that they name
 * @returns hints; none when nothing similar is known
 */
export function mistyped(
  error: CommanderError,
  words: readonly string[],
  command: Command,
  programName: string,
): readonly string[] {
  const flag = /unknown option '([^'=]+)/.exec(error.message)?.[1];
  if (flag !== undefined) return flagHints(flag, command);
  // `muster node cordon gpu-1`: the word stands where a node's name does.
  const firstTwo = words.slice(0, 2).join(' ').toLowerCase();
  if (error.code === 'commander.excessArguments') {
    const synonym = findSynonym(commandSynonyms, firstTwo);
    return synonym === null ? subcommandHints(words[1], command) : synonymHints(synonym, `${programName} `);
  }
  const word = /unknown command '([^']+)'/.exec(error.message)?.[1];
  if (word === undefined) return [];
  const typed = command.parent === null ? word : `${command.name()} ${word}`;
  const synonym = findSynonym(commandSynonyms, firstTwo) ?? findSynonym(commandSynonyms, typed.toLowerCase());
  if (synonym !== null) return synonymHints(synonym, `${programName} `);
  return didYouMean(
    word,
    command.commands.map((each) => each.name()),
  );
}

/** All are named, for what may end work is proposed to nobody who has only mistyped something. */
function subcommandHints(word: string | undefined, { commands }: Command): readonly string[] {
  const names = commands.map((each) => each.name());
  if (names.length === 0) return [];
  return [...didYouMean(word ?? '', names), `Subcommands: ${names.join(', ')}`];
}

function flagHints(flag: string, command: Command): readonly string[] {
  const synonym = findSynonym(flagSynonyms[command.name()] ?? [], flag);
  if (synonym !== null) return synonymHints(synonym, '');
  // A slip in one letter leads anywhere.
  if (!flag.startsWith('--')) return [];
  const known = [command, ...parentsOf(command)].flatMap(({ options }) =>
    options.flatMap(({ long, hidden }) => (typeof long === 'string' && !hidden ? [long] : [])),
  );
  return didYouMean(flag, known);
}

function parentsOf({ parent }: Command): readonly Command[] {
  return parent === null ? [] : [parent, ...parentsOf(parent)];
}

function didYouMean(word: string, known: readonly string[]): readonly string[] {
  const similar = closest(word, harmless(known));
  return similar === null ? [] : [`Did you mean ${similar}?`];
}

function synonymHints(synonym: Synonym | null, before: string): readonly string[] {
  if (synonym === null) return [];
  const { note, lines } = synonym;
  const tries = lines.map((line) => `${before}${line}`).join(', or ');
  return [...(note === undefined ? [] : [note]), ...(tries === '' ? [] : [`Try: ${tries}`])];
}

/**
 * What other schedulers and container tools call our commands and flags. People type these words first, and no count of
 * typing slips leads from `squeue` to `jobs`: it leads to `requeue`, which ends work.
 */

export interface Synonym {
  readonly words: readonly string[];
  /** What to type, behind the program's name; none: there is no such thing here. */
  readonly lines: readonly string[];
  /** Why it is not there, or what is different, as a sentence. */
  readonly note?: string;
}

/** By the first word of a command line, or the first two. */
export const commandSynonyms: readonly Synonym[] = [
  { words: ['ls', 'ps', 'list', 'get', 'queue', 'squeue', 'qstat', 'bjobs'], lines: ['jobs'] },
  {
    words: ['history', 'sacct', 'bhist'],
    lines: ['jobs --state succeeded,failed,cancelled', 'job JOB'],
  },
  {
    words: ['show', 'describe', 'status', 'inspect', 'sstat', 'scontrol'],
    lines: ['job JOB', 'explain JOB'],
  },
  { words: ['info', 'sinfo', 'machines', 'hosts', 'gpus', 'pestat'], lines: ['nodes', 'node NODE'] },
  { words: ['why', 'sprio', 'reason', 'pending'], lines: ['explain JOB'] },
  {
    words: ['run', 'srun', 'sbatch', 'salloc', 'qsub', 'bsub', 'start', 'launch', 'create', 'apply'],
    lines: ['submit -- COMMAND', 'submit -f FILE'],
  },
  {
    words: ['cancel', 'scancel', 'kill', 'skill', 'qdel', 'bkill', 'abort', 'terminate'],
    lines: ['stop JOB'],
  },
  { words: ['rm', 'delete', 'del'], lines: ['stop JOB', 'logs rm JOB'] },
  {
    words: ['restart', 'rerun', 'retry', 'resubmit', 'resume', 'scontrol requeue'],
    lines: ['requeue JOB'],
  },
  { words: ['log', 'tail', 'attach', 'sattach', 'output', 'watch', 'follow'], lines: ['logs -f JOB'] },
  { words: ['stats', 'htop', 'nvtop', 'gpustat', 'usage'], lines: ['top', 'metrics JOB'] },
  { words: ['plot', 'loss', 'tensorboard'], lines: ['metrics JOB --plot'] },
  { words: ['smi', 'nvidia-smi', 'check', 'diag'], lines: ['doctor', 'nodes'] },
  { words: ['serve', 'server', 'cluster', 'init'], lines: ['up'] },
  { words: ['version'], lines: ['--version'] },
  { words: ['cordon', 'node cordon'], lines: ['node drain NODE'] },
  { words: ['uncordon', 'undrain', 'node uncordon'], lines: ['node undrain NODE'] },
  { words: ['drain'], lines: ['node drain NODE'] },
  { words: ['node show', 'node describe', 'node inspect'], lines: ['node NODE'] },
  { words: ['node rm', 'node delete'], lines: ['node remove NODE'] },
  { words: ['token ls', 'token get', 'token show'], lines: ['token list'] },
  { words: ['token rm', 'token delete'], lines: ['token revoke NAME'] },
  {
    words: ['cp', 'scp', 'rsync', 'push', 'download', 'upload', 'sbcast'],
    lines: ['submit --volume /on/node:/in/container'],
    note: 'Files are not copied: a process sees the files of its node, a container what is mounted.',
  },
  {
    words: ['exec', 'ssh', 'shell', 'enter', 'port-forward'],
    lines: ['logs -f JOB'],
    note: 'There is no shell in a running job. Nearest:',
  },
  {
    words: ['edit', 'set', 'update', 'patch', 'scale', 'scontrol update'],
    lines: ['submit -f FILE'],
    note: 'The spec of a submitted job does not change; `requeue JOB --set key=value` reruns an ended one. Nearest:',
  },
  {
    words: [
      'hold',
      'pause',
      'suspend',
      'freeze',
      'release',
      'scontrol hold',
      'scontrol suspend',
      'scontrol release',
      'scontrol resume',
    ],
    lines: ['submit --after JOB'],
    note: 'A job cannot be held. Nearest, a job that waits for another:',
  },
  { words: ['auth', 'config', 'whoami'], lines: ['login HOST', 'context'] },
  { words: ['logout', 'context rm', 'context delete'], lines: ['context remove NAME'] },
  { words: ['user ls', 'user show', 'users'], lines: ['user list'] },
  { words: ['user rm', 'user delete', 'user del'], lines: ['user remove NAME'] },
  { words: ['user create', 'user new', 'adduser', 'useradd'], lines: ['user add NAME'] },
];

/** By the command that the flag was given to. */
export const flagSynonyms: Readonly<Record<string, readonly Synonym[]>> = {
  submit: [
    { words: ['--time', '-t', '--timeout', '--walltime'], lines: ['--max-runtime 24h'] },
    { words: ['-N', '--nnodes', '--num-nodes', '--replicas'], lines: ['--nodes 2'] },
    { words: ['--mem', '-m', '--mem-per-node'], lines: ['--memory 64G'] },
    { words: ['--mem-per-gpu', '--gpu-mem'], lines: ['--gpu-memory 80G'] },
    {
      words: ['--gres', '-G', '--gpus-per-node', '--gpus-per-task', '--num-gpus'],
      lines: ['--gpus 8'],
      note: 'On each node:',
    },
    { words: ['-C', '--constraint', '--accelerator'], lines: ['--gpu-type H100'] },
    { words: ['-c', '--cpus-per-task', '--cpu'], lines: ['--cpus 16'] },
    {
      words: ['-n', '--ntasks', '--ntasks-per-node', '--nproc-per-node'],
      lines: ['--launcher env --gpus 8'],
      note: 'Processes are counted by GPUs: torchrun starts one for each; so does, for other programs,',
    },
    { words: ['-J', '--job-name'], lines: ['--name NAME'] },
    { words: ['-A', '--account', '--namespace'], lines: ['--project NAME'] },
    { words: ['--qos', '--nice', '--priority-class'], lines: ['--priority 80'] },
    { words: ['--dependency', '--depends-on', '--depend'], lines: ['--after JOB'] },
    { words: ['-D', '--chdir', '-w', '--cwd', '--working-dir'], lines: ['--workdir DIR'] },
    { words: ['-a', '--array-size'], lines: ['--array COUNT'] },
    { words: ['--comment', '-l', '--labels'], lines: ['--label NAME=VALUE'] },
    { words: ['--mount', '--volumes', '--bind'], lines: ['--volume /on/node:/in/container'] },
    { words: ['--shm-size'], lines: ['--shm 16G'] },
    { words: ['--container-image', '--container'], lines: ['--image IMAGE'] },
    { words: ['--signal', '-s'], lines: ['--stop-signal SIGUSR1 --stop-grace 120s'] },
    {
      words: ['--requeue', '--restart', '--retry', '--retries', '--max-retries'],
      lines: ['--max-attempts 5'],
    },
    { words: ['--no-requeue'], lines: ['--max-attempts 1'] },
    { words: ['--wrap', '--entrypoint'], lines: ["-- sh -c 'COMMAND'"] },
    { words: ['--test-only', '--dryrun'], lines: ['--dry-run'] },
    { words: ['-W', '--watch'], lines: ['--wait', '--follow'] },
    {
      words: ['-it', '-i', '--interactive', '--pty'],
      lines: ['--follow'],
      note: 'There is no terminal in a job. Nearest:',
    },
    { words: ['-d', '--detach'], lines: [], note: 'Every job runs in the background; leave the flag out.' },
    { words: ['--rm'], lines: [], note: 'Nothing of a job has to be removed; leave the flag out.' },
    {
      words: ['--error'],
      lines: [],
      note: 'The output of every job is kept: `logs JOB` shows it.',
    },
    {
      words: ['-p', '--partition', '-q'],
      lines: ['--gpu-type H100', '--priority 80'],
      note: 'There are no partitions: a job goes to any nodes that have what it asks for. Nearest:',
    },
    {
      words: ['--hold', '-H', '--begin'],
      lines: ['--after JOB'],
      note: 'A job cannot be held. Nearest, one that waits for another:',
    },
    {
      words: ['--nodelist', '--exclude', '-x', '--node-selector', '--exclusive'],
      lines: ['--gpu-type H100'],
      note: 'A job cannot choose its nodes by name. Nearest:',
    },
    {
      words: ['--mail-type', '--mail-user'],
      lines: [],
      note: 'Muster sends no mail: `events -f` shows what happens, and --wait ends with the job.',
    },
  ],
  jobs: [
    { words: ['-t', '--states', '--status'], lines: ['--state running'] },
    { words: ['-n', '--job-name'], lines: ['--name NAME'] },
    { words: ['--job', '-j', '--jobs'], lines: [], note: 'One job: `job JOB`.' },
    { words: ['-u', '--me'], lines: ['--user NAME'] },
    { words: ['--json'], lines: ['-o json'] },
  ],
  stop: [
    {
      words: ['--all', '--state', '-t', '--name', '-n', '--user', '-u', '--me', '--project'],
      lines: [],
      note: 'It stops the jobs that are named, as many as you like; `jobs --all --state queued -o json` finds their ids.',
    },
  ],
  logs: [
    { words: ['-n', '--lines'], lines: ['--tail 100'] },
    { words: ['-c', '--container', '--node', '--node-rank'], lines: ['--rank 0'] },
    { words: ['-p', '--previous'], lines: ['--attempt 1'] },
  ],
};

/** What ends, or may end, somebody's work: never proposed because it looks similar. */
const endsWork: ReadonlySet<string> = new Set([
  'stop',
  'down',
  'requeue',
  'drain',
  'remove',
  'revoke',
  'rotate',
  'rm',
  'clear',
  'accept',
  'confirm-dead',
  'rejoin',
  '--force',
  '--replace',
]);

/** Of what may be proposed for a word that is spelt like it. */
function harmless(candidates: readonly string[]): readonly string[] {
  return candidates.filter((candidate) => !endsWork.has(candidate));
}

/** @returns null: a word that no tool we know of uses for this */
function findSynonym(synonyms: readonly Synonym[], word: string): Synonym | null {
  return synonyms.find(({ words }) => words.includes(word)) ?? null;
}

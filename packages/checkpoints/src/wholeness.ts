/** Whether the files of a checkpoint make a whole, and the one verdict over all of them. Pure. */
import type { CheckpointVerdict } from '@muster/common/checkpoints';
import type { StoredPiece, StoredPieces } from './distcp.ts';
import type { FileFinding } from './examine.ts';
import { missingShards } from './formats.ts';
import { isStateFileName } from './names.ts';

/** Findings by path below the checkpoint; the path is empty where it is one file. */
export type Findings = ReadonlyMap<string, FileFinding>;

export interface Judgement {
  readonly verdict: Exclude<CheckpointVerdict, 'gone'>;
  readonly problem: string | null;
}

const problemLengthMax = 400;

/** What it holds beside the files that were read: paths below it. */
export interface Unread {
  /** Links, pipes and devices. */
  readonly notOpened: readonly string[];
  /** Directories with nothing in them. */
  readonly empty: readonly string[];
}

export function judgeCheckpoint(all: Findings, { notOpened, empty }: Unread): Judgement {
  const findings = withoutUnneeded(all);
  const damage = [
    ...missingFiles(findings, notOpened),
    ...empty.filter((path) => rankDirectory.test(path)).map((path) => `${path} is empty`),
    ...[...findings].flatMap(([path, finding]) =>
      finding.kind === 'corrupt' ? [`${path === '' ? 'it' : path} ${finding.problem}`] : [],
    ),
    ...(all.size === 0 && notOpened.length === 0 ? ['it is empty'] : []),
  ];
  if (damage.length > 0) return { verdict: 'corrupt', problem: joined(damage) };
  const doubts = [
    ...doubtsAbout(findings),
    ...shardsWithoutIndex([...findings.keys()]),
    ...notOpened.filter(matters).map(notOpenedBecause),
  ];
  return doubts.length > 0
    ? { verdict: 'unverified', problem: joined(doubts) }
    : { verdict: 'verified', problem: null };
}

function joined(problems: readonly string[]): string {
  const [first = '', ...others] = problems;
  return others.length === 0
    ? first.slice(0, problemLengthMax)
    : `${first.slice(0, problemLengthMax)} (and ${others.length} more)`;
}

function notOpenedBecause(path: string): string {
  return `${path} is a link or not a regular file, and is not opened`;
}

/** Whether a file holds state, so that a checkpoint without it cannot be loaded. */
function matters(path: string): boolean {
  return isStateFileName(path) || path.endsWith('.json');
}

function doubtsAbout(findings: Findings): readonly string[] {
  const isOneFile = findings.has('');
  const doubts = [...findings].flatMap(([path, finding]) =>
    finding.kind === 'opaque' && (isOneFile || isStateFileName(path) || path === `${folderOf(path)}.metadata`)
      ? [`${isOneFile ? 'it' : path} ${finding.because}`]
      : [],
  );
  const holdsState = [...findings.values()].some(
    (finding) =>
      finding.kind === 'whole' &&
      (finding.format === 'torch' ||
        finding.format === 'safetensors' ||
        (isOneFile && finding.format === 'json')),
  );
  return doubts.length > 0 || holdsState ? doubts : ['it holds no file of a known format'];
}

// ---- Files that should be there

function missingFiles(findings: Findings, notOpened: readonly string[]): readonly string[] {
  const present = new Set([...findings.keys(), ...notOpened]);
  return [
    ...missingShards([...present]).map((path) => `${path} is missing`),
    ...missingFromIndexes(findings, present),
    ...missingFromMetadata(findings, present),
    ...missingModelStates([...present]),
    ...missingRanks(
      [...present].filter((path) => !path.endsWith('.distcp') || namesBeside(findings, path) === null),
    ),
  ];
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/') + 1);
}

function missingFromIndexes(findings: Findings, present: ReadonlySet<string>): readonly string[] {
  const missing = new Set<string>();
  for (const [path, finding] of findings) {
    if (finding.kind !== 'whole' || finding.weightMap === null) continue;
    const folder = folderOf(path);
    for (const [tensor, file] of finding.weightMap) {
      const shard = findings.get(folder + file);
      if (!present.has(folder + file)) missing.add(`${folder}${file} is missing, which ${path} names`);
      else if (shard?.kind === 'whole' && shard.tensors?.has(tensor) === false)
        missing.add(`${folder}${file} lacks ${tensor}, which ${path} looks for in it`);
    }
  }
  return [...missing];
}

/** Of `torch.distributed.checkpoint`, which may stand in a directory below, with others beside it. */
function missingFromMetadata(findings: Findings, present: ReadonlySet<string>): readonly string[] {
  const folders = new Set([...findings.keys()].filter((path) => path.endsWith('.distcp')).map(folderOf));
  return [
    ...[...folders]
      .map((folder) => `${folder}.metadata`)
      .filter((path) => !present.has(path))
      .map((path) => `${path} is missing`),
    ...[...findings].flatMap(([path, finding]) => {
      const named = finding.kind === 'whole' ? [...(finding.storedPieces?.keys() ?? [])] : [];
      const missing = named.map((name) => folderOf(path) + name).filter((each) => !present.has(each));
      return missing.map((each) => `${each} is missing, which ${path} names`);
    }),
  ];
}

/** A rank that has nothing to save leaves an empty file, which nothing refers to. */
function withoutUnneeded(findings: Findings): Findings {
  const paths = [...findings.keys()];
  const isNeeded = (path: string) => {
    const folder = folderOf(path);
    if (path.endsWith('.distcp'))
      return namesBeside(findings, path)?.has(path.slice(folder.length)) !== false;
    if (path !== `${folder}.metadata` || findings.get(path)?.kind === 'whole') return true;
    // A hidden file of that name may be anything, where nothing else is of `torch.distributed.checkpoint`.
    return paths.some((each) => each.endsWith('.distcp') && folderOf(each) === folder);
  };
  return new Map([...findings].filter(([path]) => isNeeded(path)));
}

/** What the `.metadata` in the same directory names; null: there is none, or it names nothing. */
function namesBeside(findings: Findings, path: string): StoredPieces | null {
  const metadata = findings.get(`${folderOf(path)}.metadata`);
  return metadata?.kind === 'whole' ? metadata.storedPieces : null;
}

/** What the `.metadata` in its directory looks for in a file. */
export function piecesIn(findings: Findings, path: string): readonly StoredPiece[] {
  return namesBeside(findings, path)?.get(path.slice(folderOf(path).length)) ?? [];
}

/** Of DeepSpeed: what its optimizers go with. */
function missingModelStates(paths: readonly string[]): readonly string[] {
  const optimizers = paths.filter((path) =>
    /(?:^|\/)(?:bf16_)?zero_pp_rank_[^/]*_optim_states\.pt$/.test(path),
  );
  const modelsIn = new Set(paths.filter((path) => path.endsWith('_model_states.pt')).map(folderOf));
  const without = new Set(optimizers.map(folderOf).filter((folder) => !modelsIn.has(folder)));
  return [...without].map((folder) => `${folder}mp_rank_{rank}_model_states.pt is missing`);
}

/** `from_pretrained` finds shards by their index only; other programs may not need one. */
function shardsWithoutIndex(paths: readonly string[]): readonly string[] {
  const indexed = new Set(paths.filter((path) => path.endsWith('.index.json')).map(folderOf));
  const shards = paths.filter((path) => huggingFaceShard.test(path) && !indexed.has(folderOf(path)));
  return shards.map((path) => `${path} is one of several, and there is no index of them`);
}

const huggingFaceShard =
  /(?:^|\/)(?:(?:diffusion_)?pytorch_model|model)-\d{5}-of-(?!00001)\d{5}\.(?:safetensors|bin)$/;

/** Of Megatron: each part of the model has one of its own, made before anything is written. */
const rankDirectory = /(?:^|\/)mp_rank_\d+(?:_\d+)*$/;

/**
 * Each rank writes its own file, so a number that is skipped is a file that is missing. How many ranks there were is
 * unknown: the last files may be missing too.
 */
const perRank: readonly RegExp[] = [
  // DeepSpeed: optimizer states of each rank, model states of each part of the model.
  /^((?:.*\/)?(?:bf16_)?zero_pp_rank_)(\d+)(_mp_rank_\d+_optim_states\.pt)$/,
  /^((?:.*\/)?mp_rank_)(\d+)(_model_states\.pt)$/,
  /^((?:.*\/)?(?:bf16_)?zero_pp_rank_)(\d+)(_mp_rank_\d+_model_states\.pt)$/,
  // PyTorch, where nothing lists the files.
  /^((?:.*\/)?__)(\d+)(_0\.distcp)$/,
  // Megatron, with a directory each.
  /^((?:.*\/)?mp_rank_)(\d+)(\/[^/]+\.pt)$/,
];

function missingRanks(paths: readonly string[]): readonly string[] {
  const groups = new Map<string, Set<number>>();
  for (const path of paths) {
    const match = perRank.map((pattern) => pattern.exec(path)).find((each) => each !== null);
    if (match === undefined) continue;
    const [, before = '', rank = '', after = ''] = match;
    const key = `${before}{rank}${after}`;
    groups.set(key, (groups.get(key) ?? new Set()).add(Number(rank)));
  }
  return [...groups].flatMap(([key, ranks]) => {
    const highest = [...ranks].reduce((a, b) => Math.max(a, b), 0);
    if (ranks.size === highest + 1) return [];
    return [`${key} is missing for ${highest + 1 - ranks.size} of the ranks up to ${highest}`];
  });
}

/**
 * The part of a step's job that handles its artifacts: it runs where the data is, before and after the program. Before, it compares
 * each input with the digest that its maker has reported; after, it prints a line for each output. Pure.
 */
import type { ArtifactView } from '@muster/common/pipelines';
import { artifactTypes } from '@muster/common/spec/artifactFields';
import type { ArtifactType } from './model.ts';

/** An output that a step must write. */
export interface WantedArtifact {
  readonly name: string;
  readonly type: ArtifactType;
  readonly path: string;
}

export interface CheckedArtifact extends WantedArtifact {
  readonly digest: string;
}

/** The exit codes of `sysexits.h` for what is wrong with data: a step fails with them before or after its program. */
const badInput = 65;
const noOutput = 66;
const outputMark = '@muster-output';
const problemMark = '@muster-artifact-problem';

/**
 * Of a directory, the digest is that of the sorted list of `sha256  path` of its files, links followed; only tools are used that
 * busybox has too. `wait` is repeated because a signal that is passed on ends it. A signal that comes while the program is started is
 * passed on once its number is known. Only rank 0 handles artifacts.
 */
const script = `
muster_digest() (
  if [ "$1" = directory ]; then
    cd "$2" && find -L . -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum | sha256sum | cut -c1-64
  else
    sha256sum < "$2" | cut -c1-64
  fi
)
muster_bytes() (
  if [ "$1" = directory ]; then
    cd "$2" && find -L . -type f -exec stat -L -c %s '{}' + | awk '{ sum += $1 } END { printf "%.0f", sum }'
  else
    stat -L -c %s "$2"
  fi
)
muster_is() {
  if [ "$1" = directory ]; then [ -d "$2" ]; else [ -f "$2" ]; fi
}
muster_problem() {
  printf '\\n${problemMark} %s\\n' "$1"
  exit "$2"
}
muster_first=no
[ "\${RANK:-0}" = 0 ] && [ "\${MUSTER_NODE_RANK:-0}" = 0 ] && muster_first=yes
muster_inputs=$1
muster_outputs=$2
shift 2
while [ "$muster_inputs" -gt 0 ]; do
  if [ "$muster_first" = yes ]; then
    muster_is "$2" "$3" || muster_problem "input $1: there is no $2 at $3; it has vanished since its step has made it" ${badInput}
    muster_found=$(muster_digest "$2" "$3")
    [ "\${#muster_found}" = 64 ] || muster_problem "input $1: $3 cannot be read: see the lines above" ${badInput}
    [ "sha256:$muster_found" = "$4" ] ||
      muster_problem "input $1: $3 has changed since its step has made it; its digest is not $4" ${badInput}
  fi
  shift 4
  muster_inputs=$((muster_inputs - 1))
done
muster_list=
muster_count=$muster_outputs
while [ "$muster_count" -gt 0 ]; do
  if [ "$2" = directory ]; then mkdir -p "$3"; else mkdir -p "$(dirname "$3")"; fi ||
    muster_problem "output $1: cannot make the directory for $3" ${noOutput}
  muster_list="$muster_list$1 $2 $3
"
  shift 3
  muster_count=$((muster_count - 1))
done
muster_early=
for muster_signal in TERM INT HUP USR1 USR2; do
  trap "muster_early=$muster_signal" "$muster_signal"
done
"$@" &
muster_pid=$!
for muster_signal in TERM INT HUP USR1 USR2; do
  trap "kill -s $muster_signal $muster_pid 2>/dev/null" "$muster_signal"
done
[ -z "$muster_early" ] || kill -s "$muster_early" "$muster_pid" 2>/dev/null
while :; do
  wait "$muster_pid"
  muster_code=$?
  kill -0 "$muster_pid" 2>/dev/null || break
done
[ "$muster_code" = 0 ] && [ "$muster_first" = yes ] || exit "$muster_code"
printf '%s' "$muster_list" | while read -r muster_name muster_type muster_path; do
  muster_is "$muster_type" "$muster_path" ||
    muster_problem "output $muster_name: there is no $muster_type at $muster_path after the program has ended" ${noOutput}
  [ "$muster_type" = file ] || [ -n "$(find -L "$muster_path" -type f -print | head -n 1)" ] ||
    muster_problem "output $muster_name: the directory $muster_path is empty after the program has ended" ${noOutput}
  muster_found=$(muster_digest "$muster_type" "$muster_path")
  [ "\${#muster_found}" = 64 ] ||
    muster_problem "output $muster_name: $muster_path cannot be read: see the lines above" ${noOutput}
  printf '\\n${outputMark} %s %s %s\\n' "$muster_name" "$(muster_bytes "$muster_type" "$muster_path")" "$muster_found"
done
`;

/** A command that checks inputs, runs another command, and reports outputs. Without either it is that command. */
export function withArtifacts(
  command: readonly string[],
  inputs: readonly CheckedArtifact[],
  outputs: readonly WantedArtifact[],
): readonly string[] {
  if (inputs.length === 0 && outputs.length === 0) return command;
  return [
    '/bin/sh',
    '-c',
    script,
    'muster-step',
    String(inputs.length),
    String(outputs.length),
    ...inputs.flatMap(({ name, type, path, digest }) => [name, type, path, digest]),
    ...outputs.flatMap(({ name, type, path }) => [name, type, path]),
    ...command,
  ];
}

export interface ArtifactReport {
  readonly outputs: readonly ArtifactView[];
  /** What is wrong with an input or output, for people. */
  readonly problem: string | null;
}

/** What the output of a step's job reports about its artifacts. Of several lines about one, the last counts. */
export function readArtifactReport(text: string, wanted: readonly WantedArtifact[]): ArtifactReport {
  const found = new Map<string, ArtifactView>();
  let problem: string | null = null;
  for (const line of text.split('\n')) {
    const report = line.trimEnd();
    if (report.startsWith(`${problemMark} `)) problem = report.slice(problemMark.length + 1, 1_000);
    if (!report.startsWith(`${outputMark} `)) continue;
    const [, name = '', bytes = '', digest = ''] = report.split(' ');
    const artifact = wanted.find((each) => each.name === name);
    if (artifact === undefined || !/^\d{1,15}$/.test(bytes) || !/^[0-9a-f]{64}$/.test(digest)) continue;
    found.set(name, { ...artifact, bytes: Number(bytes), digest: `sha256:${digest}` });
  }
  return { outputs: wanted.flatMap(({ name }) => found.get(name) ?? []), problem };
}

export function isArtifactType(text: string): text is ArtifactType {
  return artifactTypes.some((type) => type === text);
}

/**
 * Shell scripts around a job's command. POSIX sh only, because images bring dash, bash or busybox; what else they need is
 * mkfifo, sleep, mv and rm; on bare nodes setsid.
 */

/**
 * `launcher: env`: the command once per GPU.
 *
 *     sh -c <script> muster-ranks <inner script> <processes> <first rank> <grace, s> <command> <argument> …
 *
 * This shell is the task's main process. It only passes on the signals that it gets, as lines in a pipe, and ends like the
 * inner one, which no signal reaches: a driver signals the main process or its process group, and the inner shell is in
 * a session of its own. So there is no moment at which a shell that has just begun could be ended, or miss a signal.
 */
export const processPerGpuScript = `
inner=$1
shift

early=
trap 'early=TERM' TERM INT HUP
for place in "\${TMPDIR:-/tmp}" /dev/shm /var/tmp .; do
  pipe=$place/.muster-ranks.\${MUSTER_JOB_ID:-}.\${MUSTER_ATTEMPT:-}.\${MUSTER_NODE_RANK:-}.$$
  mkfifo -m 600 "$pipe" 2>/dev/null && break
  rm -f "$pipe"
  pipe=
done
if [ -z "$pipe" ]; then
  echo "muster: launcher: env needs mkfifo and a directory to write in (/tmp or /dev/shm); found none" >&2
  exit 125
fi
exec 3<>"$pipe"
# Twice, because a signal to the group ends the first.
rm -f "$pipe" || rm -f "$pipe"
for name in TERM INT HUP USR1 USR2; do
  trap "echo 'signal $name' >&3" "$name"
done
[ -z "$early" ] || exit 143

if command -v setsid >/dev/null; then
  setsid /bin/sh -c "$inner" muster-ranks "$@" &
else
  /bin/sh -c "$inner" muster-ranks "$@" &
fi
ranks=$!
# Interrupted by every signal that has a trap.
while wait "$ranks"; status=$?; [ "$status" -gt 128 ] && kill -0 "$ranks" 2>/dev/null; do :; done
exit "$status"
`;

/**
 * A shell cannot wait for whichever of its children ends first, so those that watch the ranks write lines into the pipe,
 * too, and this one reads them, one after the other:
 *
 *     up <local rank> <pid>      it runs
 *     end <local rank> <status>  it has ended; the first bad status ends the others and is the status of the whole
 *     signal <name>              to be passed on, also to ranks that come up later
 *     timer <pid>                the pause between SIGTERM and SIGKILL runs
 *     kill                       it is over
 */
export const ranksScript = `
processes=$1 first=$2 grace=$3
shift 3

watch_rank() {
  (
    export RANK=$((first + $1)) LOCAL_RANK=$1 LOCAL_WORLD_SIZE=$processes
    if [ -n "\${TORCHELASTIC_ERROR_FILE:-}" ]; then
      export TORCHELASTIC_ERROR_FILE="$TORCHELASTIC_ERROR_FILE.$1"
    fi
    shift
    exec /bin/sh -c 'echo "up $LOCAL_RANK $$" >&3; exec 3>&-; exec "$@"' muster-rank "$@"
  )
  echo "end $1 $?" >&3
}

signal_ranks() {
  rank=0
  while [ "$rank" -lt "$processes" ]; do
    eval "pid=\\$pid_$rank"
    [ -z "$pid" ] || kill -s "$1" "$pid" 2>/dev/null
    rank=$((rank + 1))
  done
}

end_ranks() {
  [ -z "$told" ] || return 0
  told=$1
  signal_ranks "$1"
}

rank=0
while [ "$rank" -lt "$processes" ]; do
  eval "pid_$rank="
  watch_rank "$rank" "$@" &
  rank=$((rank + 1))
done

left=$processes worst=0 told='' timing='' timer=''
# The timer says its number a moment after it was started; before that it cannot be ended.
while [ "$left" -gt 0 ] || [ "$timing" != "\${timer:+yes}" ]; do
  read -r what a b <&3 || continue
  case $what in
    up)
      eval "pid_$a=$b"
      [ -z "$told" ] || kill -s "$told" "$b" 2>/dev/null
      ;;
    end)
      eval "pid_$a="
      left=$((left - 1))
      if [ "$b" -ne 0 ] && [ "$worst" -eq 0 ]; then
        worst=$b
        if [ -n "\${TORCHELASTIC_ERROR_FILE:-}" ] && [ -f "$TORCHELASTIC_ERROR_FILE.$a" ]; then
          mv -f "$TORCHELASTIC_ERROR_FILE.$a" "$TORCHELASTIC_ERROR_FILE"
        fi
        end_ranks TERM
        if [ "$left" -gt 0 ]; then
          timing=yes
          ( /bin/sh -c 'echo "timer $$" >&3; exec 3>&-; exec sleep "$1"' muster-timer "$grace"; echo kill >&3 ) &
        fi
      fi
      ;;
    signal)
      case $a in
        USR1 | USR2) signal_ranks "$a" ;;
        # To what a shell starts in the background SIGINT says nothing.
        INT) end_ranks TERM ;;
        *) end_ranks "$a" ;;
      esac
      ;;
    timer)
      timer=$a
      ;;
    kill)
      signal_ranks KILL
      ;;
  esac
done
[ -z "$timer" ] || kill -s TERM "$timer" 2>/dev/null
wait
exit "$worst"
`;

/**
 * `launcher: mpi-hostfile` on the nodes where the first one starts processes itself: holds the place, and ends well when
 * it is told to. Says nothing: a shell reports the end of its own pause, and that would look like the job's words.
 *
 * The pause is named by `$!`, which is set from the moment of the fork, and ended by SIGKILL: a child that has not yet become
 * `sleep` still has its parent's handlers, and would take a SIGTERM for one of those and sleep on.
 */
export const placeholderScript = `
exec 2>/dev/null
trap 'kill -KILL "$!"; exit 0' TERM INT HUP
while :; do
  sleep 3600 &
  wait "$!"
done
`;

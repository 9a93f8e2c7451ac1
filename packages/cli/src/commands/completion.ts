import type { CommandModule, Context } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';

export const command: CommandModule = {
  define(sub) {
    sub.addArgument(sub.createArgument('<shell>', 'which shell').choices(shells));
    sub.addHelpText(
      'after',
      `
bash:  muster completion bash > ~/.local/share/bash-completion/completions/muster
zsh:   muster completion zsh > "\${fpath[1]}/_muster"
fish:  muster completion fish > ~/.config/fish/completions/muster.fish`,
    );
  },
  run: printScript,
};

async function printScript({ io }: Context, shell: Shell): Promise<ExitCode> {
  await io.stdout.write(completionScripts[shell]);
  return exitCodes.ok;
}

/**
 * One small script per shell. All knowledge is in `muster __complete`, which gets the words up to the cursor, the last
 * one being the word to complete, and prints one candidate a line, a tab and a description behind it. The line
 * `:files` asks the shell for file names.
 */
const shells = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof shells)[number];

const bash = `# bash completion for muster
_muster() {
  local line words=("\${COMP_WORDS[@]:1:COMP_CWORD}")
  local current="\${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current")
    else
      COMPREPLY+=("\${line%%$'\\t'*}")
    fi
  done < <("\${COMP_WORDS[0]}" __complete "\${words[@]/#/:}" 2>/dev/null)
}
complete -F _muster muster
`;

const zsh = `#compdef muster
_muster() {
  local line value description
  local -a candidates
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      _files
    else
      value="\${line%%$'\\t'*}" description="\${line#*$'\\t'}"
      [[ $value == $line ]] && description=""
      candidates+=("\${value//:/\\\\:}\${description:+:$description}")
    fi
  done < <("\${words[1]}" __complete ":\${(@)^words[2,CURRENT]}" 2>/dev/null)
  (( \${#candidates} )) && _describe muster candidates
}
if [[ "\${funcstack[1]}" == _muster ]]; then _muster "$@"; else compdef _muster muster; fi
`;

const fish = `# fish completion for muster
function __muster_complete
  set -l words (commandline -opc)[2..-1] (commandline -ct)
  for line in (muster __complete ":"$words 2>/dev/null)
    if test "$line" = ":files"
      __fish_complete_path (commandline -ct)
    else
      echo $line
    end
  end
end
complete -c muster -f -a '(__muster_complete)'
`;

export const completionScripts: Readonly<Record<Shell, string>> = { bash, zsh, fish };

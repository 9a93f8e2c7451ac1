import { completionScripts, type Shell, shells } from '../completion/scripts.ts';
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

// The manual pages: one for `muster` and one for each of its commands, made from what their `--help` is made of.
import { Command } from 'commander';
import { commandTable } from '../../packages/cli/src/commandTable.ts';
import { defineCommand } from '../../packages/cli/src/context.ts';
import { exitCodesText } from '../../packages/cli/src/exitCodes.ts';

/**
 * @param {import('./tree.mjs').Release} release
 * @returns {Promise<{ name: string, text: string }[]>} name: such as `muster-submit.1`
 */
export async function manPages({ version, epochS }) {
  const release = { version, date: new Date(epochS * 1000).toISOString().slice(0, 10) };
  const pages = await Promise.all(
    commandTable.map(async ({ name, summary, load }) => {
      const { command } = await load();
      const program = new Command('muster')
        .enablePositionalOptions()
        .helpOption('-h, --help', 'show this help');
      const defined = program.command(name).description(summary);
      defineCommand(defined, command);
      const title = `muster-${name}`;
      return { name: `${title}.1`, text: page(title, summary, release, commandBody(defined)) };
    }),
  );
  const summary = 'run GPU training jobs on machines that you own or rent';
  return [{ name: 'muster.1', text: page('muster', summary, release, overview()) }, ...pages];
}

/** @param {string} title @param {string} summary @param {{ version: string, date: string }} release @param {string[]} body */
function page(title, summary, { version, date }, body) {
  const lines = [
    `.TH "${title.toUpperCase()}" "1" "${date}" "Muster ${version}" "Muster manual"`,
    '.SH NAME',
    `${roff(title)} \\- ${roff(summary)}`,
    ...body,
  ];
  return `${lines.join('\n')}\n`;
}

function overview() {
  const groups = [...new Set(commandTable.map(({ group }) => group))];
  return [
    '.SH SYNOPSIS',
    '.B muster',
    '.I COMMAND',
    '[flags]',
    ...groups.flatMap((group) => [
      `.SH ${roff(group.replace(/:$/, '').toUpperCase())}`,
      ...commandTable
        .filter((command) => command.group === group)
        .flatMap(({ name, summary }) => ['.TP', `.BR muster\\-${roff(name)} (1)`, roff(summary)]),
    ]),
    '.SH EXIT STATUS',
    ...verbatim(exitCodesText()),
  ];
}

/** @param {Command} command */
function commandBody(command) {
  const below = command.commands.filter(({ commands }) => commands.length === 0);
  return [
    '.SH SYNOPSIS',
    ...[command, ...below].flatMap((each, index) => [...(index > 0 ? ['.br'] : []), ...synopsis(each)]),
    ...details(command, '.SH'),
    ...below.flatMap((each) => [
      `.SH ${roff(callOf(each).toUpperCase())}`,
      roff(each.description()),
      ...details(each, '.SS'),
    ]),
    '.SH SEE ALSO',
    '.BR muster (1)',
  ];
}

/** @param {Command} command */
function synopsis(command) {
  return [`.B ${roff(callOf(command))}`, roff(command.usage())];
}

/** @param {Command} command @returns {string} `muster node drain` */
function callOf(command) {
  return command.parent === null ? command.name() : `${callOf(command.parent)} ${command.name()}`;
}

/** @param {Command} command @param {'.SH' | '.SS'} heading */
function details(command, heading) {
  const help = command.createHelp();
  const args = help.visibleArguments(command);
  const options = help.visibleOptions(command);
  const notes = textAfterHelp(command).trim();
  return [
    ...(args.length === 0 ? [] : [`${heading} ARGUMENTS`]),
    ...args.flatMap((each) => item(help.argumentTerm(each), help.argumentDescription(each))),
    ...(options.length === 0 ? [] : [`${heading} OPTIONS`]),
    ...options.flatMap((each) => item(help.optionTerm(each), help.optionDescription(each))),
    ...(notes === '' ? [] : [`${heading} NOTES`, ...verbatim(notes)]),
  ];
}

/** What `addHelpText('after', …)` has added. Commander emits it as an event, which its types do not show. @param {Command} command */
function textAfterHelp(command) {
  /** @type {string[]} */
  const written = [];
  const emitter = /** @type {import('node:events').EventEmitter} */ (/** @type {unknown} */ (command));
  emitter.emit('afterHelp', {
    error: false,
    command,
    write: (/** @type {string} */ text) => written.push(text),
  });
  return written.join('');
}

/** @param {string} term @param {string} description */
function item(term, description) {
  return ['.TP', `.B ${roff(term)}`, roff(description)];
}

/** @param {string} text */
function verbatim(text) {
  return ['.nf', ...text.split('\n').map((line) => roff(line)), '.fi'];
}

/** Text of which roff takes nothing for a request or an escape. @param {string} text */
function roff(text) {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/, '\\&$1');
}

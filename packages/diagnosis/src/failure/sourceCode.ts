/**
 * Programs print their own source into their logs, so that a run can be repeated. What such a line handles or raises has
 * not happened.
 */

/** How a line of Python or a comment begins, where it is no sentence. */
const statement =
  /^\s{0,80}(?:#(?!\d)|\/\/|"""|raise \w|except[ :]|assert[ (]|elif |(?:if|for|while|with) .{0,400}:(?:$| {0,4}#)|try:|return |def \w|class \w|@\w)/;
const call = /^\s{0,80}(?:print\(|log(?:ger|ging)?\.\w|warnings\.|self\.)/;
const assigned = /^\s{0,80}[A-Za-z_][\w.]{0,80}(?:\[[^\]]{0,80}\])? ?[-+*/|]?= ?["'f[({\w]/;

export function isSourceCode(text: string): boolean {
  return statement.test(text) || call.test(text) || assigned.test(text);
}

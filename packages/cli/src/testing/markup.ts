/** Whether SVG and HTML that are made as text are well-formed. */

/** @returns null: every tag is closed where it should be, and there is no other markup */
export function problemOfMarkup(page: string): string | null {
  const markup = page.replace(/^<!doctype html>|^<\?xml [^>]*\?>/, '').replaceAll(/<meta [^>]*>/g, '');
  const tag = /<(?:(?<end>\/[a-z0-9]+)|(?<name>[a-z0-9]+)(?: [\w:-]+="[^"<]*")*(?<empty>\/)?)>/gi;
  const open: string[] = [];
  for (const { groups } of markup.matchAll(tag)) {
    const { end, name = '', empty } = groups ?? {};
    if (end === undefined) open.push(...(empty === undefined ? [name] : []));
    else if (end !== `/${open.pop()}`) return `${end} closes nothing`;
  }
  const rest = markup.replaceAll(tag, '').replaceAll(/&(?:amp|lt|gt|quot|#39);/g, '');
  return open.length === 0 && !/[<>&]/.test(rest) ? null : `open: ${open.join(', ')}; ${rest.slice(0, 80)}`;
}

/** A page of figures: one file that loads nothing from elsewhere and has no scripts. Pure. */
import { element, escaped, type Markup } from './svg.ts';

const style =
  'body{font-family:system-ui,sans-serif;color:#333a44;margin:24px auto;max-width:976px}svg{display:block;max-width:100%;height:auto;margin:16px 0}';
/** Even a name that slipped through would run nothing. */
const policy = "default-src 'none'; style-src 'unsafe-inline'";

export function htmlPage(title: string, content: readonly Markup[]): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${escaped(policy)}">
<title>${escaped(title)}</title>
<style>${style}</style>
</head>
${element('body', {}, content).text}
</html>
`;
}

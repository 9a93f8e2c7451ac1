import { describe, expect, test } from 'vitest';
import {
  pageLabelsMax,
  pageLabelValueMax,
  pageNameMax,
  pageSamplesMax,
  problemOfPage,
} from './pageRequests.ts';

const labelsOf = (count: number) =>
  Array.from({ length: count }, (_each, index) => `label_${index}="v"`).join(',');

describe('a page that an agent could have written is handed on', () => {
  test.each<[string, string]>([
    ['nothing', ''],
    ['help, type and samples', '# HELP up Whether it is.\n# TYPE up gauge\nup 1\n\n'],
    ['labels', 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1"} 97\nmuster_host_load{} 0.5\n'],
    ['what is escaped', 'up{model="a \\"b\\" \\\\ \\n , } = {"} 1\n'],
    ['every number', 'a 1\nb -0.5\nc +2e+06\nd NaN\ne +Inf\nf -Inf\ng .5\nh 12.000000 1700000000000\n'],
    ['a histogram', 'muster_agent_gpu_read_seconds_bucket{le="+Inf"} 3\n'],
    ['GPU series of ours', 'muster_gpu_recovery_action{gpu="0"} 0\n'],
    [
      'all at its bound',
      `${'x'.repeat(pageNameMax)}{${labelsOf(pageLabelsMax)}} 1\n` +
        `up{a="${'x'.repeat(pageLabelValueMax)}"} 1\n`.repeat(pageSamplesMax - 1),
    ],
  ])('%s', (_what, page) => expect(problemOfPage(page)).toBeNull());
});

describe('any other page is refused', () => {
  const own = "names a series that is the coordinator's own";
  const format = 'is not a line of the Prometheus text format';
  test.each<[string, string, string]>([
    ['words', 'up 1\nall is well here\n', `line 2 ${format}`],
    ['HTML', '<html><body>up 1</body></html>\n', `line 1 ${format}`],
    ['a comment of another kind', '# EOF\n', `line 1 ${format}`],
    ['no value', 'up{a="b"}\n', `line 1 ${format}`],
    ['a word for a value', 'up one\n', `line 1 ${format}`],
    ['an exemplar', 'up_bucket{le="1"} 1 # {trace="x"} 1\n', `line 1 ${format}`],
    ['labels without an end', 'up{a="b" 1\n', `line 1 ${format}`],
    ['a value of a label without an end', 'up{a="b} 1\n', `line 1 ${format}`],
    ['a carriage return', 'up 1\r\n', `line 1 ${format}`],
    ['a line without its end', 'up 1\nup 2', 'its last line, 2, has no end'],
    ['a long line', `up{a="${'x'.repeat(9_000)}"} 1\n`, 'line 1 has more than 8192 characters'],
    ['many samples', 'up 1\n'.repeat(pageSamplesMax + 1), `it has more than ${pageSamplesMax} samples`],
    ['many labels', `up{${labelsOf(pageLabelsMax + 1)}} 1\n`, `line 1 has more than ${pageLabelsMax} labels`],
    ['a long name', `${'x'.repeat(129)} 1\n`, 'line 1 names a series with more than 128 characters'],
    ['a long label', `up{${'x'.repeat(129)}="1"} 1\n`, 'line 1 has a label name of more than 128 characters'],
    [
      'a long value',
      `up{a="${'x'.repeat(513)}"} 1\n`,
      'line 1 has a label value of more than 512 characters',
    ],
    ['nodes of the cluster', 'muster_nodes{state="online"} 1000\n', `line 1 ${own}`],
    ['GPU time', 'muster_gpu_seconds_total{kind="idle"} 1\n', `line 1 ${own}`],
    ['the type of a series of it', '# TYPE muster_paused gauge\n', `line 1 ${own}`],
  ])('%s', (_what, page, problem) => expect(problemOfPage(page)).toBe(problem));
});

test('a line is read in time that grows with its length', () => {
  // Were it not, these would take minutes.
  const backslashes = `up{a="${'\\'.repeat(8_000)}\n`;
  const quotes = `up{a="${'",a="'.repeat(1_500)}\n`;
  for (const line of [backslashes, quotes]) expect(problemOfPage(line.repeat(100))).not.toBeNull();
});

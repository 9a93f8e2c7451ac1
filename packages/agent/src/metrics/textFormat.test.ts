import { expect, test } from 'vitest';
import { promtool } from './testing/promtool.ts';
import { type Family, renderFamilies } from './textFormat.ts';

function aFamily(change: Partial<Family>): Family {
  return { name: 'muster_thing', type: 'gauge', help: 'A thing.', rows: [], ...change };
}

test('a family is its help, its type and its series', () => {
  const rows = [
    { labels: [], value: 1.5 },
    {
      labels: [
        ['a', 'x'],
        ['b', 'y z'],
      ] as const,
      value: 98_765_432_100,
    },
  ];
  expect(renderFamilies([aFamily({ rows })])).toBe(`# HELP muster_thing A thing.
# TYPE muster_thing gauge
muster_thing 1.5
muster_thing{a="x",b="y z"} 98765432100
`);
});

test('a family without a value that was read is not there at all', () => {
  expect(renderFamilies([aFamily({}), aFamily({ rows: [{ labels: [], value: Number.NaN }] })])).toBe('');
});

test('one series that comes twice does not cost the whole page', async () => {
  const rows = [1, 2].map((value) => ({ labels: [['a', 'x']] as const, value }));
  const page = renderFamilies([aFamily({ rows })]);
  expect(page.match(/^muster_thing.*$/gm)).toEqual(['muster_thing{a="x"} 1']);
  expect(await promtool(['check', 'metrics'], page)).toEqual({ exitCode: 0, lines: [] });
});

test.each(['"} 1\nevil{a="', '\\', '\\"', 'a\nb', '\r\0\u007f', 'Größe {},=', '\ud800', 'x'.repeat(10_000)])(
  'whatever a label says, the page can be read: %j',
  async (value) => {
    const page = renderFamilies([aFamily({ rows: [{ labels: [['a', value]], value: 1 }] })]);
    expect(page.split('\n')).toHaveLength(4);
    expect(page.length).toBeLessThan(1_000);
    expect(await promtool(['check', 'metrics'], page)).toEqual({ exitCode: 0, lines: [] });
  },
);

test('a family has an end', () => {
  const rows = Array.from({ length: 5_000 }, (_, index) => ({
    labels: [['a', String(index)]] as const,
    value: 1,
  }));
  expect(renderFamilies([aFamily({ rows })]).match(/^muster_thing/gm)).toHaveLength(1_024);
});

test('a label has no character that a terminal acts on', () => {
  const mount = '/data/\u001b]52;c;eA==\u0007\u009b2J\u202e\n"x"';
  const page = renderFamilies([
    { name: 'a', type: 'gauge', help: 'h', rows: [{ labels: [['mount', mount]], value: 1 }] },
  ]);
  expect(page).toContain('{mount="/data/ ]52;c;eA==  2J \\n\\"x\\""} 1\n');
});

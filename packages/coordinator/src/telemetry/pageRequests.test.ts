import { expect, test } from 'vitest';
import { nodeNameOf } from '../modelFixture.ts';
import { PageRequests, pageBytesMax } from './pageRequests.ts';

const node = nodeNameOf('node-1');

function aStream() {
  const asked: number[] = [];
  return { asked, ask: (pageId: number) => void asked.push(pageId) };
}

test('whoever asks while a page is on its way gets the same page', async () => {
  const pages = new PageRequests();
  const stream = aStream();
  pages.add(node, stream);
  const both = [pages.requestPage(node), pages.requestPage(node)];
  expect(stream.asked).toEqual([1]);
  expect(pages.answer(node, stream, 7, 'of another question')).toBe(false);
  expect(pages.answer(node, stream, 1, 'up 1\n')).toBe(true);
  expect(pages.answer(node, stream, 1, 'twice')).toBe(false);
  expect(await Promise.all(both)).toEqual(['up 1\n', 'up 1\n']);
  const next = pages.requestPage(node);
  expect(stream.asked).toEqual([1, 2]);
  pages.answer(node, stream, 2, 'up 2\n');
  expect(await next).toBe('up 2\n');
});

test('a node without a stream, one that leaves and one that stays silent are distinguished', async () => {
  const pages = new PageRequests();
  await expect(pages.requestPage(node)).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('node-1 is not connected'),
  });
  const stream = aStream();
  pages.add(node, stream);
  const left = pages.requestPage(node);
  pages.remove(node, stream);
  await expect(left).rejects.toMatchObject({ code: 'unavailable' });
  pages.add(node, stream);
  await expect(pages.requestPage(node, 10)).rejects.toMatchObject({ code: 'deadline_exceeded' });
  expect(pages.connected).toBe(1);
});

test('the newest stream of a node is asked, also for what its older one left unanswered', async () => {
  const pages = new PageRequests();
  const [older, newer] = [aStream(), aStream()];
  pages.add(node, older);
  const page = pages.requestPage(node);
  pages.add(node, newer);
  expect(newer.asked).toEqual(older.asked);
  expect(pages.answer(node, older, 1, 'history')).toBe(false);
  pages.remove(node, older);
  expect(pages.answer(node, newer, 1, 'news 1\n')).toBe(true);
  expect(await page).toBe('news 1\n');
  expect(pages.isCurrent(node, newer)).toBe(true);
});

test('a page that is too large is refused', async () => {
  const pages = new PageRequests();
  const stream = aStream();
  pages.add(node, stream);
  const page = pages.requestPage(node);
  pages.answer(node, stream, 1, 'é'.repeat(pageBytesMax / 2 + 1));
  await expect(page).rejects.toMatchObject({ code: 'resource_exhausted' });
});

test('a page that no agent would write is refused, and the next one is not', async () => {
  const pages = new PageRequests();
  const stream = aStream();
  pages.add(node, stream);
  const page = pages.requestPage(node);
  pages.answer(node, stream, 1, 'up 1\nmuster_nodes{state="online"} 1000\n');
  await expect(page).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringMatching(/^the metrics of node-1 are not forwarded: line 2 names a series/),
  });
  const next = pages.requestPage(node);
  pages.answer(node, stream, 2, 'up 1\n');
  expect(await next).toBe('up 1\n');
});

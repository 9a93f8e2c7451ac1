import { expect, it } from 'vitest';
import { PullProgress } from './image.ts';

it('counts the layers of a pull, and reports only when the count changes', () => {
  const progress = new PullProgress();
  const shown = [
    { id: 'latest', status: 'Pulling from library/trainer' },
    { id: 'a', status: 'Already exists' },
    { id: 'b', status: 'Pulling fs layer' },
    { id: 'c', status: 'Pulling fs layer' },
    { id: 'b', status: 'Downloading' },
    { id: 'b', status: 'Download complete' },
    { id: 'b', status: 'Pull complete' },
    { id: 'c', status: 'Extracting' },
    { id: 'c', status: 'Pull complete' },
    { id: null, status: 'Digest: sha256:…' },
  ].map((step) => progress.after(step));
  expect(shown.filter((words) => words !== null)).toEqual([
    '1 of 1 layers',
    '1 of 2 layers',
    '1 of 3 layers',
    '2 of 3 layers',
    '3 of 3 layers',
  ]);
});

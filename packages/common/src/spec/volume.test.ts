import { expect, test } from 'vitest';
import { formatVolume, parseVolume } from './forms.ts';

test.each([
  ['/data:/data', { source: '/data', target: '/data', readOnly: false }, '/data:/data'],
  ['/data:/data:ro', { source: '/data', target: '/data', readOnly: true }, '/data:/data:ro'],
  ['/data:/mnt:rw', { source: '/data', target: '/mnt', readOnly: false }, '/data:/mnt'],
  ['/:/host:ro', { source: '/', target: '/host', readOnly: true }, '/:/host:ro'],
  ['/a b/..c:/d..', { source: '/a b/..c', target: '/d..', readOnly: false }, '/a b/..c:/d..'],
])('%j', (text, volume, canonical) => {
  expect(parseVolume(text)).toEqual(volume);
  expect(formatVolume(volume)).toBe(canonical);
});

test.each([
  '',
  '/data',
  'data:/data',
  '/data:data',
  '/a:/b:rx',
  '/a:/b:ro:ro',
  '/a/..:/b',
  '/a:/../b',
  '/a:/',
  '/a://',
])('%j is refused', (text) => {
  expect(parseVolume(text)).toBeNull();
});

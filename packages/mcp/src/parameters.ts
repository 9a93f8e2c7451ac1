/** Parameters and parts of answers that several tools share. */
import { arraySizeMax } from '@muster/common/spec/array';
import * as z from 'zod';

/** A job as agents name it: its id, the beginning of one, or its name. */
export const workloadId = z
  .string()
  .min(1)
  .max(128)
  .describe('id of the workload (job_…), the unique beginning of one, or its name');

export const cursor = z
  .string()
  .max(64)
  .optional()
  .describe('nextCursor of the answer before, for the next page');

export const nextCursor = z
  .string()
  .nullable()
  .describe('pass it as cursor for the next page; null: there is no more');

/** How many sweeps, or runs of pipelines, are asked of the coordinator: as many as it lists. */
export const listedMax = 1_000;

export function limitOf(most: number, usual: number) {
  return z.int().min(1).max(most).default(usual).describe(`at most so many, 1 to ${most}`);
}

export const dryRun = z
  .boolean()
  .default(false)
  .describe('true: change nothing, and report what the call would do');

export const requestId = z
  .string()
  .regex(/^[\x21-\x7e]{1,128}$/, 'expected 1 to 128 printable characters without spaces')
  .optional()
  .describe('your id of this intent: a repeated call with it changes nothing more');

/** Seconds from now back, such as `-30m`, or a moment. */
export const timeText = z
  .string()
  .max(40)
  .describe('a time: -30m or -2h before now, or an ISO 8601 moment such as 2026-11-24T05:00:00Z');

export const attempt = z
  .int()
  .min(1)
  .max(1_000_000)
  .optional()
  .describe('number of the attempt; default: the newest');

/** For lists of ids: an array counts as one. */
export const idsMax = Math.min(100, arraySizeMax);

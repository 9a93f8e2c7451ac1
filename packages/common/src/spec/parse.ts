import { readSpecDocument, type SpecDocument } from './document.ts';
import type { Environment, SpecOverrides } from './overrides.ts';
import { toProblems } from './problems.ts';
import { resolveJobSpec } from './resolve.ts';
import type { SpecResult } from './types.ts';

export interface ParseOptions {
  /** Flags given beside the file; they win over it. */
  readonly overrides?: SpecOverrides;
  /** What `--env NAME` without a value copies from. */
  readonly environment?: Environment;
}

/**
 * Reads a job spec from the text of a YAML or JSON file, with flags laid over it. Never throws: whatever is wrong comes
 * back as problems, all of them at once, each with its line or its flag.
 */
export function parseJobSpec(
  text: string,
  { overrides = {}, environment = {} }: ParseOptions = {},
): SpecResult {
  const read = readSpecDocument(text);
  if (!read.ok) return { ok: false, problems: toProblems(read.findings) };
  return resolveJobSpec(read.document, overrides, environment);
}

/** A job file as its reader sees it, for the places of problems that somebody else has found. null: it cannot be read. */
export function jobDocument(text: string): SpecDocument | null {
  const read = readSpecDocument(text);
  return read.ok ? read.document : null;
}

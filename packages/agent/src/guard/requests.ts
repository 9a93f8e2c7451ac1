/** What an agent may ask for, and what it may not. */
import { constants } from 'node:os';
import { isAbsolute } from 'node:path';
import type { TaskLocation } from '../taskFacts/execution.ts';

const keyForm = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;

/** Keys become names of links and control groups. @throws {Error} when one could reach outside */
export function requireLocation({ key, directory }: TaskLocation): void {
  if (!keyForm.test(key)) throw new Error(`${JSON.stringify(key)} is not a task key`);
  if (!isAbsolute(directory)) throw new Error(`the directory of task ${key} is not absolute: ${directory}`);
}

/** @throws {Error} for a name that is no signal */
export function requireSignal(signal: string): void {
  if (!(signal in constants.signals))
    throw new Error(`${JSON.stringify(signal)} is not the name of a signal`);
}

/**
 * The fields by which lines of the log are found again, whoever wrote them: `job_id`, `attempt`, `node_rank` and `node`, and of a
 * training `epoch`, `step`, `loss` and `gpu_memory_used`. Lines name a task or a job as the code does, and get the fields here.
 */
import { parseTaskKey, type TaskRef } from './ids.ts';

/** Where the training of a task is. What is not known is null, never 0. */
export interface TrainingFields {
  readonly epoch: number | null;
  readonly step: number | null;
  readonly loss: number | null;
  /** MiB, of its GPUs together. */
  readonly gpu_memory_used: number | null;
}

/** What a logger knows beside what a line says. */
export interface LogFacts {
  /** The node that the lines are about where they name none. null: there is none. */
  readonly node: string | null;
  /** null: the task trains nothing, as far as is known. */
  readonly trainingOf: (task: TaskRef) => TrainingFields | null;
}

export const noLogFacts: LogFacts = { node: null, trainingOf: () => null };

/** For a person at a terminal, who sees the name of the task: adds only where its training was. */
export function withTraining(fields: object, { trainingOf }: LogFacts): object {
  const task = taskIn(fields);
  return task === null ? fields : { ...fields, ...trainingOf(task) };
}

/** @param fields of a line; `task` may be the key of a task, and `jobId` the id of a job */
export function logFieldsOf(fields: object, { node, trainingOf }: LogFacts): Record<string, unknown> {
  const { jobId, ...own } = fields as { readonly jobId?: unknown };
  const task = taskIn(fields);
  return {
    ...(node === null ? {} : { node }),
    ...(jobId === undefined ? {} : { job_id: jobId }),
    ...(task === null ? {} : { job_id: task.jobId, attempt: task.attempt, node_rank: task.nodeRank }),
    ...(task === null ? null : trainingOf(task)),
    ...own,
  };
}

function taskIn(fields: object): TaskRef | null {
  const { task } = fields as { readonly task?: unknown };
  return typeof task === 'string' ? parseTaskKey(task) : null;
}

/** What an agent and the process that reads its failures say to each other, one message at a time. */
import type { TaskFailure } from '@muster/common/gangs';
import type { EndOfTask, NodeMoment } from '../taskFailure.ts';

export interface ReadOrder {
  readonly id: number;
  readonly end: EndOfTask;
  readonly now: NodeMoment;
}

export interface ReadAnswer {
  readonly id: number;
  /** null: the output could not be read within the budget. */
  readonly failure: TaskFailure | null;
}

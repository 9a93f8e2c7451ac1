import type { JobFilters } from '../store.ts';

/**
 * Lists by filters that are no column of an index together. Candidates come from the index of one filter, or from the order of
 * submission, and the other filters are checked in `jobs_in_order`, which holds the columns of all of them.
 */

const range = 'submit_seq < :before and submit_seq >= :from_seq';
const newestFirst = 'order by submit_seq desc limit :limit';

export const selectCandidates = {
  array: /* sql */ `
    select id, submit_seq from jobs indexed by jobs_by_array_order
    where array_id is not null and array_id = :array_id and ${range} ${newestFirst}`,
  label: /* sql */ `
    select job_id as id, submit_seq from job_labels
    where name = :label_name and value = :label_value and ${range} ${newestFirst}`,
  labelName: /* sql */ `
    select job_id as id, submit_seq from job_labels indexed by job_labels_by_name
    where name = :label_name and ${range} ${newestFirst}`,
  project: /* sql */ `
    select id, submit_seq from jobs indexed by jobs_by_project where project = :project and ${range} ${newestFirst}`,
  user: /* sql */ `
    select id, submit_seq from jobs indexed by jobs_by_submitter where submitter = :submitter and ${range} ${newestFirst}`,
} as const;

/** What jobs are checked for beside where they come from. */
export interface FilterConditions {
  readonly byName: boolean;
  readonly byState: boolean;
  readonly also: JobFilters;
}

/** Of candidates. `seqs` and `states` are JSON arrays. */
export function selectMatching(filter: FilterConditions): string {
  return /* sql */ `
    select jobs.id, jobs.submit_seq
    from json_each(:seqs) as wanted cross join jobs indexed by jobs_in_order on jobs.submit_seq = wanted.value
    where ${conditionsOf(filter)}`;
}

/** Of all jobs in a range of numbers. `states` is a JSON array. */
export function selectMatchingInOrder(filter: FilterConditions): string {
  return /* sql */ `
    select id, submit_seq from jobs indexed by jobs_in_order
    where ${range} and ${conditionsOf(filter)} ${newestFirst}`;
}

function conditionsOf({
  byName,
  byState,
  also: { label, project, user, sinceMs, visible },
}: FilterConditions): string {
  const value = label?.value == null ? '' : 'and value = :label_value';
  const conditions = [
    ...(byName ? ['jobs.name = :name'] : []),
    ...(byState ? ['jobs.state in (select value from json_each(:states))'] : []),
    ...(project === undefined ? [] : ['jobs.project = :project']),
    ...(user === undefined ? [] : ['jobs.submitter = :submitter']),
    ...(sinceMs === undefined ? [] : ['jobs.submitted_at_ms >= :since_ms']),
    ...(visible === undefined
      ? []
      : [
          '(jobs.submitter = :viewer or jobs.project not in (select value from json_each(:hidden_projects)))',
          ...(visible.onlyProjects === null
            ? []
            : ['jobs.project in (select value from json_each(:only_projects))']),
        ]),
    ...(label === undefined
      ? []
      : [
          `exists (select 1 from job_labels as label
            where label.name = :label_name ${value} and label.submit_seq = jobs.submit_seq)`,
        ]),
  ];
  return ['true', ...conditions].join(' and ');
}

/** The newest job below a number: numbers that retention has removed are skipped. */
export const selectNewestBelow = {
  sql: /* sql */ `
    select submit_seq from jobs indexed by jobs_in_order where ${range} order by submit_seq desc limit 1`,
};

/** No job that was submitted at that time or later has a lower number. */
export const selectFirstSince = {
  sql: /* sql */ `
    select submit_seq from jobs indexed by jobs_by_submission
    where submitted_at_ms >= :since_ms order by submitted_at_ms, submit_seq limit 1`,
};

export const insertLabel = {
  sql: /* sql */ `
    insert into job_labels (name, value, submit_seq, job_id) values (:name, :value, :submit_seq, :job_id)`,
};

export const deleteLabels = { sql: /* sql */ `delete from job_labels where job_id = :id` };

/** What a user may call a job by, beside its id. */
export const selectMember = {
  sql: /* sql */ `
    select id from jobs where array_id = :array_id and array_index = :array_index order by submit_seq desc limit 1`,
};

export const selectNewestArray = {
  sql: /* sql */ `
    select array_id from jobs indexed by jobs_by_name_of_array
    where name = :name and array_id is not null order by submit_seq desc limit 1`,
};

/** Each of these skips from one value to the next, however many jobs share it. */
export const selectNextArrayId = {
  sql: /* sql */ `
    select array_id as value from jobs indexed by jobs_by_member
    where array_id is not null and array_id > :after and array_id >= :from order by array_id limit 1`,
};

export const selectNextName = {
  sql: /* sql */ `
    select name as value from jobs indexed by jobs_by_name where name > :after and name >= :from order by name limit 1`,
};

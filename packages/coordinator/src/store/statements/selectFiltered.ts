/** Lists by filters that are no column of an index together: an index gives candidates, the other filters are looked at by row. */
import type { JobFilters } from '../store.ts';

const range = 'submit_seq < :before and submit_seq >= :from_seq order by submit_seq desc limit :limit';

/** By the filter that leaves the fewest, as far as one can know. */
export const selectCandidates = {
  array: /* sql */ `
    select id, submit_seq from jobs indexed by jobs_by_array_order
    where array_id is not null and array_id = :array_id and ${range}`,
  label: /* sql */ `
    select job_id as id, submit_seq from job_labels where name = :label_name and value = :label_value and ${range}`,
  labelName: /* sql */ `
    select job_id as id, submit_seq from job_labels indexed by job_labels_by_name where name = :label_name and ${range}`,
  project: /* sql */ `
    select id, submit_seq from jobs indexed by jobs_by_project where project = :project and ${range}`,
  user: /* sql */ `
    select id, submit_seq from jobs indexed by jobs_by_submitter where submitter = :submitter and ${range}`,
  all: /* sql */ `select id, submit_seq from jobs where ${range}`,
} as const;

/** `ids` and `states` are JSON arrays. @param filter what is asked for beside the candidates */
export function selectMatching(
  { label, project, user, sinceMs }: JobFilters,
  byName: boolean,
  byState: boolean,
): string {
  const value = label?.value == null ? '' : 'and value = :label_value';
  const conditions = [
    ...(byName ? ['jobs.name = :name'] : []),
    ...(byState ? ['jobs.state in (select value from json_each(:states))'] : []),
    ...(project === undefined ? [] : ['jobs.project = :project']),
    ...(user === undefined ? [] : ['jobs.submitter = :submitter']),
    ...(sinceMs === undefined ? [] : ['jobs.submitted_at_ms >= :since_ms']),
    ...(label === undefined
      ? []
      : [`exists (select 1 from job_labels where job_id = jobs.id and name = :label_name ${value})`]),
  ];
  return /* sql */ `
    select jobs.id, jobs.submit_seq from json_each(:ids) as wanted cross join jobs on jobs.id = wanted.value
    where ${['true', ...conditions].join(' and ')}`;
}

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

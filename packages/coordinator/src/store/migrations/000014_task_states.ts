/**
 * An attempt whose tasks may start is `released`, and what its tasks passed is `prepared` and `checked`. Until now both
 * were called `claimed`, and the last `ready`. Tasks of attempts that have ended have ended too, so nothing else is read.
 */
export const taskStateNames = /* sql */ `
update attempts
set state = case state when 'claimed' then 'released' else state end,
  body = json_set(
    body,
    '$.state', case state when 'claimed' then 'released' else state end,
    '$.tasks', (
      select json_group_array(
        json_set(value, '$.state', case
          when value ->> '$.state' = 'ready' then 'checked'
          when value ->> '$.state' <> 'claimed' then value ->> '$.state'
          when attempts.state = 'allocated' then 'prepared'
          else 'checked'
        end)
      )
      from json_each(attempts.body, '$.tasks')
    )
  )
where state in ('allocated', 'claimed', 'running');
`;

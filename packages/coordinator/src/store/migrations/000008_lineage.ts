/**
 * Jobs know whose checkpoints may be in their directory. An earlier version would drop that, and send them away from their own
 * work: it refuses the store by its version.
 */
export const lineage = /* sql */ `
select 1;
`;

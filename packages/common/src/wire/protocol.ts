/**
 * What agents and coordinators say to each other in a session. A number is a promise: a change that the other side has to
 * know of raises it. Agents and coordinators are upgraded one after the other, so that each takes the number before its
 * own as well.
 *
 * 2: tasks run on leases. 3: agents keep proofs of terms and tasks, and say them again.
 */
export const protocolVersion = 3;

/** With one of this version everything goes on; what came later is done without. */
export const protocolVersionMin = protocolVersion - 1;

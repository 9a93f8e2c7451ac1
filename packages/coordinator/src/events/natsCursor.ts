/**
 * The name under which the store keeps the number of the last event known to be in the stream. It stands apart from the relay,
 * which loads the client of NATS, because the retention of events needs only the name.
 */
export const natsCursorName = 'nats_cursor';

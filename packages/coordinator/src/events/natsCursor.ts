/** Under this name the store keeps the number of the last event known to be in the stream. */
export const natsCursorName = 'nats_cursor';

/** `{name}`, or `{name:words}`: what parameters stand for in command and args. */
export const placeholder = /\{([A-Za-z_][\w-]*)(?::([^{}]*))?\}/g;

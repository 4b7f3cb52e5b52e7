/** Quotes for a POSIX shell. */
export const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The text as one word of a command to paste, quoted when a shell would see more in it. */
export const shellWord = (text: string): string => (/^[\w.:@/+-]+$/.test(text) ? text : quoted(text));

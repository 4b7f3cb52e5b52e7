/** What a terminal would obey does not get there: an id or a path may hold anything. */
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;
export const printable = (text: string): string =>
  text.replace(CONTROL, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Rows under a header, columns as wide as their widest cell. */
export const table = (header: readonly string[], rows: readonly (readonly (string | number | undefined)[])[]): string => {
  const cells = [header, ...rows.map((row) => row.map((cell) => printable(String(cell ?? '–'))))];
  const widths = header.map((_, column) => Math.max(...cells.map((row) => (row[column] ?? '').length)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  return `${cells.map(line).join('\n')}\n`;
};

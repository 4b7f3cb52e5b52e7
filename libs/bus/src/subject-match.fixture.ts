/** Whether a NATS pattern covers a subject, written from the definition of wildcards: tests must not trust the code they check. */
export const covers = (pattern: string, subject: string): boolean => {
  const [wanted, given] = [pattern.split('.'), subject.split('.')];
  for (const [place, token] of wanted.entries()) {
    if (token === '>') return given.length > place;
    if (given[place] === undefined || (token !== '*' && token !== given[place])) return false;
  }
  return wanted.length === given.length;
};

/** Whether some subject is covered by both patterns. */
export const overlap = (a: string, b: string): boolean => {
  const [left, right] = [a.split('.'), b.split('.')];
  for (let place = 0; ; place += 1) {
    const [x, y] = [left[place], right[place]];
    if (x === undefined || y === undefined) return x === y;
    if (x === '>' || y === '>') return true;
    if (x !== '*' && y !== '*' && x !== y) return false;
  }
};

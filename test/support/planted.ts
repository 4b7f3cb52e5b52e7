/**
 * Texts of one kind each, put where content goes, so that whatever lets one out says which it was. They are plain words with no
 * character that any encoding of names, paths or JSON would change.
 */
export const PLANTED = {
  fileContent: 'planted-file-content-3c9e',
  outsideContent: 'planted-outside-content-3c9e',
  outsideFolder: 'planted-outside-folder-3c9e',
  climbingPath: 'planted-climbing-path-3c9e',
  searchQuery: 'planted-search-query-3c9e',
  appended: 'planted-appended-3c9e',
  unknownArgument: 'planted-unknown-argument-3c9e',
  argumentOfNoTool: 'planted-argument-of-no-tool-3c9e',
  toolOutput: 'planted-tool-output-3c9e',
  brokenOutput: 'planted-broken-output-3c9e',
  thrownByHandler: 'planted-thrown-by-handler-3c9e',
  causeOfThrown: 'planted-cause-of-thrown-3c9e',
  thrownByParser: 'planted-thrown-by-parser-3c9e',
  thrownByRequirement: 'planted-thrown-by-requirement-3c9e',
  toldByTool: 'planted-told-by-tool-3c9e',
  turnPayload: 'planted-turn-payload-3c9e',
  turnMetadata: 'planted-turn-metadata-3c9e',
  letter: 'planted-letter-3c9e',
  refusedLetter: 'planted-refused-letter-3c9e',
  malformedTurn: 'planted-malformed-turn-3c9e',
  malformedCommand: 'planted-malformed-command-3c9e',
  agentMemory: 'planted-agent-memory-3c9e',
  agentOutput: 'planted-agent-output-3c9e',
  agentFailure: 'planted-agent-failure-3c9e',
  thrownByAgent: 'planted-thrown-by-agent-3c9e',
  modelKey: 'planted-model-key-3c9e',
} as const;
export type Planted = keyof typeof PLANTED;

/** Which of them a text has in it, as they are or encoded as bytes are. */
export const plantedIn = (text: string): readonly Planted[] =>
  (Object.keys(PLANTED) as Planted[]).filter((name) => formsOf(PLANTED[name]).some((form) => text.includes(form)));

/** As it is, in hexadecimal, and in base64 at each of the three places at which it may begin; the ends depend on what is around it. */
const formsOf = (planted: string): readonly string[] => [
  planted,
  Buffer.from(planted).toString('hex'),
  ...[0, 1, 2].map((offset) => {
    const encoded = Buffer.from(`${' '.repeat(offset)}${planted}`).toString('base64url');
    return encoded.slice(offset === 0 ? 0 : offset + 1, -2);
  }),
];

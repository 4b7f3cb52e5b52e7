// What is typed wrong is refused like what is not granted, and on purpose: nobody is told what there is. So whoever types gets a hint
// here, out of what this release brings. It is no more than a hint: a system may have other tools.

const NAMESPACE = 'files';
/** As `@sharedos/tools` has them, where each tool is named for its action; the test holds the two together. */
export const FILES_ACTIONS: readonly string[] = [
  'list',
  'stat',
  'read',
  'search',
  'grep',
  'create',
  'replace',
  'append',
  'delete',
  'snapshot:create',
  'snapshot:list',
  'snapshot:restore',
];
const tools = FILES_ACTIONS.map((action) => `${NAMESPACE}.${action.replace(':', '.')}`);
/** Covers every action. */
const ANY_ACTION = '*';

/** A line when no tool of this release has this name, or none. */
export const toolHint = (tool: string): readonly string[] =>
  tools.includes(tool) ? [] : [`${JSON.stringify(tool)} is no tool that comes with SharedOS (${tools.join(', ')})`];

/** A line for actions that no tool of this release needs over such a resource, or none. */
export const actionHint = (resourceNamespace: string, asked: readonly string[]): readonly string[] => {
  const unknown = asked.filter((action) => !FILES_ACTIONS.includes(action) && action !== ANY_ACTION);
  if (resourceNamespace !== NAMESPACE || unknown.length === 0) return [];
  return [
    `no tool that comes with SharedOS needs ${unknown.map((one) => JSON.stringify(one)).join(', ')} over files: (${FILES_ACTIONS.join(', ')})`,
  ];
};

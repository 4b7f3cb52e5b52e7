import { readFileSync } from 'node:fs';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * An environment in which `NAME_FILE` stands for a variable `NAME` that is the content of that file: so a secret is in no environment,
 * which a process inherits and others of its user can read.
 *
 * @param names Variables that are settings; of others, nothing is read.
 * @param refuse Called with one line when a file cannot be read, or both are set.
 */
export const withFiles = (env: Environment, names: readonly string[], refuse: (line: string) => never): Environment => {
  const read = names.flatMap((name): [string, string][] => {
    const variable = `${name}_FILE`;
    const file = env[variable];
    // A setting of its own, and not a place to read one from.
    if (file === undefined || names.includes(variable)) return [];
    if (env[name] !== undefined) return refuse(`${name} and ${variable} are both set: set one`);
    try {
      return [[name, readFileSync(file, 'utf8').replace(/\r?\n$/, '')]];
    } catch {
      return refuse(`${variable} names a file that cannot be read`);
    }
  });
  return { ...env, ...Object.fromEntries(read) };
};

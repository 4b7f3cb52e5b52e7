import { stat } from 'node:fs/promises';
import { type Finding, warning } from './finding.ts';

const OTHERS = 0o077;

/** @param file The context, with passwords in it. */
export const checkContext = async (file: string): Promise<readonly Finding[]> => {
  // Windows keeps no such bits.
  if (process.platform === 'win32') return [];
  const { mode } = await stat(file);
  return (mode & OTHERS) === 0
    ? []
    : [
        warning(
          'context_open',
          `${file} holds passwords and others on this machine may read it`,
          `chmod 600 ${file}, and change the passwords if somebody did`,
        ),
      ];
};

import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

const KEY_BYTES = 32;

/**
 * The settings of the executors for MCP servers: the list that `SHAREDOS_MCP_SERVERS` of this process names, and a folder and a key among
 * the data of the stack. No settings without a list.
 */
export const mcpSettingsIn = async (dataDir: string): Promise<Readonly<Record<string, string>>> => {
  const list = process.env['SHAREDOS_MCP_SERVERS'];
  if (list === undefined || list === '') return {};
  const key = join(dataDir, 'mcp-secrets.key');
  // Kept, so that what an earlier run of the stack sealed can be opened.
  if ((await readFile(key).catch(() => undefined)) === undefined)
    await writeFile(key, randomBytes(KEY_BYTES).toString('base64'), { mode: 0o600, flag: 'wx' });
  return { SHAREDOS_MCP_SERVERS: resolve(list), SHAREDOS_MCP_FOLDER: join(dataDir, 'mcp'), SHAREDOS_MCP_SECRETS_KEY_FILE: key };
};

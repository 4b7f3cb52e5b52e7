import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type OperatorList, type SecretStore, ServerPool, readOperatorList, sealedFiles, secretKeyOf } from '@sharedos/tools';
import { z } from 'zod';

export const mcpSettings = {
  SHAREDOS_MCP_SERVERS: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'File of the MCP servers that owners may connect: processes by name, and hosts; none when absent' }),
  SHAREDOS_MCP_FOLDER: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'Folder for the secrets of MCP servers and for what their processes keep; executors share it' }),
  SHAREDOS_MCP_SECRETS_KEY: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'Key that seals the secrets of MCP servers, 32 bytes as base64; or SHAREDOS_MCP_SECRETS_KEY_FILE' }),
  SHAREDOS_MCP_SECRETS_KEY_FILE: z.string().min(1).optional().meta({ description: 'File that holds that key' }),
} as const;

export type McpSettings = { readonly [Name in keyof typeof mcpSettings]?: string | undefined };

/** What an executor needs to use the MCP servers of owners. */
export interface McpAccess {
  readonly list: OperatorList;
  readonly secrets: SecretStore;
  readonly pool: ServerPool;
}

/**
 * @returns `undefined` where the operator lets nobody connect a server.
 * @throws Error in one line that names the variable to change.
 */
export const openMcp = async (settings: McpSettings): Promise<McpAccess | undefined> => {
  const { SHAREDOS_MCP_SERVERS: file, SHAREDOS_MCP_FOLDER: folder } = settings;
  if (file === undefined) return undefined;
  if (folder === undefined) throw new Error('SHAREDOS_MCP_FOLDER is needed where SHAREDOS_MCP_SERVERS is set');
  const list = await readOperatorList(file);
  const secrets = sealedFiles({ folder: join(folder, 'secrets'), key: await keyOf(settings) });
  return { list, secrets, pool: new ServerPool({ list, secrets, folder: join(folder, 'state') }) };
};

const keyOf = async ({ SHAREDOS_MCP_SECRETS_KEY: given, SHAREDOS_MCP_SECRETS_KEY_FILE: file }: McpSettings): Promise<Buffer> => {
  if ((given === undefined) === (file === undefined))
    throw new Error(
      'SHAREDOS_MCP_SECRETS_KEY or SHAREDOS_MCP_SECRETS_KEY_FILE, and one of them alone, is needed where SHAREDOS_MCP_SERVERS is set',
    );
  const name = given === undefined ? 'SHAREDOS_MCP_SECRETS_KEY_FILE' : 'SHAREDOS_MCP_SECRETS_KEY';
  try {
    return secretKeyOf(given ?? (await readFile(file as string, 'utf8')));
  } catch {
    throw new Error(`${name} does not give 32 bytes as base64`);
  }
};

import { readdir } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { byCodeUnit } from '@sharedos/contracts';
import { ContractError, type ToolHandler, ToolRegistry } from '@sharedos/kernel';

const MODULE = /\.(?:ts|mts|js|mjs)$/;
const NOT_A_TOOL = /\.(?:spec|test|d)\.[mc]?[tj]s$/;
const MODULES_MAX = 512;

/**
 * The tools that a host brings: each module of a folder, or one package, exports `tools`, a list of `ToolHandler`. They run in the
 * service's own process with all its rights, so the folder is code of the host and never a place that an agent may write.
 *
 * What comes back is checked as a registration is (definition, name taken twice, functions missing), before any of it is registered. Such a
 * tool passes the same three gates as every other: registered, its namespace on, and a grant for the exact requirement of the call.
 *
 * @param from Absolute path of a folder, or the name of an installed package.
 * @throws ContractError naming the module and what is wrong with it; a start is to end with it.
 */
export const loadTools = async (from: string): Promise<readonly ToolHandler[]> => {
  const registry = new ToolRegistry();
  for (const module of await modulesOf(from)) {
    const handlers = await toolsOf(module);
    for (const handler of handlers) {
      try {
        registry.register(handler);
      } catch (error) {
        throw new ContractError(`${module}: ${error instanceof Error ? error.message : 'no tool'}`);
      }
    }
  }
  return registry.handlers();
};

/** In order of name, so that which of two tools of one name is refused does not depend on the disk. */
const modulesOf = async (from: string): Promise<readonly string[]> => {
  if (!isAbsolute(from)) return [from];
  const names = await readdir(from).catch(() => {
    throw new ContractError(`${from}: there is no such folder of tools`);
  });
  const modules = names.filter((name) => MODULE.test(name) && !NOT_A_TOOL.test(name)).sort(byCodeUnit);
  if (modules.length === 0 || modules.length > MODULES_MAX)
    throw new ContractError(`${from}: 1..${MODULES_MAX} modules with tools are wanted here`);
  return modules.map((name) => pathToFileURL(join(from, name)).href);
};

const toolsOf = async (module: string): Promise<readonly ToolHandler[]> => {
  let loaded: { readonly tools?: unknown };
  try {
    loaded = (await import(/* @vite-ignore */ module)) as { readonly tools?: unknown };
  } catch (error) {
    throw new ContractError(`${module}: cannot be loaded: ${error instanceof Error ? error.message : 'it threw'}`);
  }
  const { tools } = loaded;
  if (!Array.isArray(tools) || tools.length === 0 || !tools.every((tool) => typeof tool === 'object' && tool !== null)) {
    throw new ContractError(`${module}: exports no list of tools called \`tools\``);
  }
  return tools as readonly ToolHandler[];
};

// What a tool is, and the registry, belong to the rules; whoever has tools gets them here too.
export { ContractError, DuplicateRegistrationError, type ResourceProvider, type ToolHandler, ToolRegistry } from '@sharedos/kernel';
export * from './resource-tool.ts';
export * from './files/files-schemas.ts';
export * from './files/files-tools.ts';
export * from './files/files-provider.ts';
export { ownerFolder } from './confinement/owner-folder.ts';
export * from './repo/repo-schemas.ts';
export * from './repo/repo-tools.ts';
export * from './repo/repo-provider.ts';
export * from './tool-folder.ts';
export * from './mcp/index.ts';

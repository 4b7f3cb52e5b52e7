export * from './tool-handler.ts';
export * from './registry.ts';
export * from './resource-tool.ts';
export * from './files-schemas.ts';
export * from './files-tools.ts';
export * from './files-provider.ts';
export { ownerFolder } from './owner-folder.ts';

import { z } from 'zod';
import { bounded } from './bounded.ts';
import { UniqueIds } from './access.ts';
import { Id, ToolName } from './scalars.ts';

/** One family of tools, as the management plane sees it. Never shown to a model. */
export const ToolNamespaceDescriptor = z.strictObject({
  namespace: Id,
  sources: UniqueIds(64, 1),
  toolCount: z.int().min(1),
  enabled: z.boolean(),
});
export type ToolNamespaceDescriptor = z.infer<typeof ToolNamespaceDescriptor>;

export const ToolNamespaceCatalog = z
  .strictObject({
    namespaces: bounded(z.array(ToolNamespaceDescriptor), 0, 256),
    summary: z.strictObject({ total: z.int().min(0), enabled: z.int().min(0), disabled: z.int().min(0) }),
  })
  .refine(({ namespaces }) => new Set(namespaces.map(({ namespace }) => namespace)).size === namespaces.length, 'names must be unique')
  .refine(({ namespaces, summary }) => {
    const enabled = namespaces.filter((one) => one.enabled).length;
    return summary.total === namespaces.length && summary.enabled === enabled && summary.disabled === namespaces.length - enabled;
  }, 'the summary must count the list');
export type ToolNamespaceCatalog = z.infer<typeof ToolNamespaceCatalog>;

/** A patch of the enabled selection. It says something, and does not both enable and disable one name. */
export const ToolNamespaceUpdate = z
  .strictObject({ enable: UniqueIds(256).optional(), disable: UniqueIds(256).optional() })
  .refine(({ enable = [], disable = [] }) => enable.length + disable.length > 0, 'must enable or disable something')
  .refine(({ enable = [], disable = [] }) => !enable.some((name) => disable.includes(name)), 'must not do both to one name');
export type ToolNamespaceUpdate = z.infer<typeof ToolNamespaceUpdate>;

/** The enabled selection as a settings store states it. */
export const ToolNamespaceSelection = UniqueIds(256);

/** Where a tool of a harness runs: mediated by us, inside the harness, or reached by it directly. */
export const ToolClass = z.enum(['managed', 'harness_local', 'external_direct']);
export type ToolClass = z.infer<typeof ToolClass>;

/** The tool surface a host declares for a harness. A strict one leaves nothing outside our mediation but what runs in the harness. */
export const ToolPolicy = z
  .strictObject({
    mode: z.enum(['strict', 'hybrid']),
    managedMcp: bounded(z.array(Id), 1, 64),
    harnessLocal: bounded(z.array(ToolName), 0, 256),
    externalDirect: bounded(z.array(Id), 0, 64),
  })
  .refine(({ mode, externalDirect }) => mode === 'hybrid' || externalDirect.length === 0, 'a strict policy has nothing external');
export type ToolPolicy = z.infer<typeof ToolPolicy>;

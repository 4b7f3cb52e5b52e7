import type { Delivery } from '@sharedos/bus';
import {
  type AccessContext,
  INFRASTRUCTURE_CODES,
  type PublishedTool,
  type Reply,
  type ToolDefinition,
  type ToolsList,
  type ToolsPage,
  refused,
  timestampOf,
} from '@sharedos/contracts';
import { type AuditMark, invariant, publishToolCatalog, toolCatalogHash, toolCatalogListed } from '@sharedos/kernel';
import { familiesOn, registryFor } from './context-tools.ts';
import type { Ports } from './ports.ts';

const PAGE = 100;
/** A page ends here too: schemas of strangers may be long, and an answer has its bound. */
const PAGE_BYTES = 2 * 1024 * 1024;
/** Ceilings that one question to an authorizer may hold. */
const ASKED_AT_ONCE = 512;
const VALID_FOR_MS = 30_000;

/**
 * The tools that the caller, or an agent exercising its grants, may discover now: as a turn of it would list them, page by page.
 * Every page is decided anew and recorded before it is told.
 */
export const listTools =
  (ports: Ports) =>
  async ({ purpose, agent, owner, after, limit = PAGE }: ToolsList, delivery: Delivery): Promise<Reply<ToolsPage>> => {
    const { namespaceId, principal, traceId = ports.ids() } = delivery;
    invariant(principal !== undefined, 'tools are listed by principals');
    const at = ports.clock();
    const context: AccessContext = {
      namespaceId,
      actor: agent ?? principal,
      authority: principal,
      owner: owner ?? principal,
      purpose,
      traceId,
      enabledToolNamespaces: [...ports.rules.toolNamespaces],
      now: timestampOf(at),
    };
    const unknown = (code: string) => refused(code, 'it could not be found out which tools there are for you; try again', true);
    const opened = await ports.authority.open({ turnId: ports.ids(), context, validForMs: VALID_FOR_MS, auditId: ports.ids() });
    if (!opened.ok) return unknown(opened.error.code);
    const { token, revision, toolNamespaces, hostPolicyVersion, status } = opened.value;
    const enabledNamespaces = familiesOn(ports.rules.toolNamespaces, toolNamespaces);
    const mark: AuditMark = { id: ports.ids(), at, context, place: { revision } };
    if (status === 'unavailable') {
      const { code, detail } = opened.value;
      const failure = detail === undefined ? { code } : { code, detail };
      const recorded = await ports.audit(toolCatalogListed(mark, { enabledNamespaces, failure }));
      return unknown(recorded.ok ? 'authority_unavailable' : 'audit_unavailable');
    }
    const known = await registryFor(ports, context);
    if (!known.ok) return unknown(known.error);
    const registered = known.value.definitions();
    const enabled = registered.filter(({ namespace }) => enabledNamespaces.includes(namespace));
    const discovered = await discover(ports, token, context, enabled);
    if (discovered === undefined) return unknown('authority_unavailable');
    const tools = publishToolCatalog(enabled.filter((_, index) => discovered[index]?.allowed === true));
    const catalogHash = toolCatalogHash(tools);
    const event = toolCatalogListed(mark, {
      enabledNamespaces,
      authorityHash: opened.value.snapshot.hash,
      catalogHash,
      withheldCount: registered.length - tools.length,
      withheldByOutage: discovered.some(({ reasonCode }) => INFRASTRUCTURE_CODES.has(reasonCode)),
      hostPolicyVersion,
    });
    if (!(await ports.audit(event)).ok) return refused('audit_unavailable', 'the listing could not be recorded; try again', true);
    return { ok: true, value: { ...pageOf(tools, after, limit), total: tools.length, catalogHash, revision } };
  };

type Discovered = readonly { readonly allowed: boolean; readonly reasonCode: string }[];

const discover = async (
  { authority }: Ports,
  token: string,
  context: AccessContext,
  tools: readonly ToolDefinition[],
): Promise<Discovered | undefined> => {
  const found: Discovered[number][] = [];
  for (let first = 0; first < tools.length; first += ASKED_AT_ONCE) {
    const ceilings = tools.slice(first, first + ASKED_AT_ONCE).map(({ requiredCapability }) => requiredCapability);
    const answer = await authority.reach(token, context, ceilings);
    if (!answer.ok) return undefined;
    found.push(...answer.value.discovered);
  }
  return found;
};

/** In order of name, from after a name. `next` says that more follow, and after which name to go on. */
export const pageOf = (sorted: readonly PublishedTool[], after: string | undefined, limit: number): Pick<ToolsPage, 'tools' | 'next'> => {
  const rest = after === undefined ? sorted : sorted.filter(({ name }) => name > after);
  const tools: PublishedTool[] = [];
  let bytes = 0;
  for (const tool of rest) {
    bytes += Buffer.byteLength(JSON.stringify(tool));
    if (tools.length === limit || (tools.length > 0 && bytes > PAGE_BYTES)) break;
    tools.push(tool);
  }
  const last = tools.at(-1);
  return { tools, ...(last === undefined || tools.length === rest.length ? {} : { next: last.name }) };
};

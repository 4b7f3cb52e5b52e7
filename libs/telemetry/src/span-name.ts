/**
 * Names of the spans of this system. The first group is the seed's own and its names are part of the contract; the second is
 * ours and names what the seed, being one process, has no word for. @see spec/runtimes.md §6
 */
export const SPAN = {
  authorityLoad: 'kernel.authority.load',
  authorize: 'kernel.authorize',
  toolCatalogue: 'kernel.tool.catalogue',
  toolDiscover: 'kernel.tool.discover',
  toolInvoke: 'kernel.tool.invoke',
  toolHandler: 'kernel.tool.handler',
  toolMediate: 'envelope.tool.mediate',
  turn: 'envelope.turn',
  mcpHandle: 'mcp.handle',

  authorityOpen: 'authority.open',
  authorityDecide: 'authority.decide',
  authorityReach: 'authority.reach',
  logBarrier: 'log.barrier',
  logAppend: 'log.append',
  usageTake: 'usage.take',
  ledgerClaim: 'ledger.claim',
  ledgerAdmit: 'ledger.admit',
  ledgerSettle: 'ledger.settle',
  ledgerEnd: 'ledger.end',
  grantCommand: 'grant.command',
  adminCommand: 'admin.command',
  messageSend: 'message.send',
  messageDeliver: 'message.deliver',
  auditForward: 'audit.forward',
  recordsQuery: 'records.query',
  turnSubmit: 'turn.submit',
  runtimeStep: 'runtime.step',
  /** With the name of the model behind it, as the conventions for generative AI have it. */
  modelChat: 'chat',
} as const;

export type SpanName = (typeof SPAN)[keyof typeof SPAN];

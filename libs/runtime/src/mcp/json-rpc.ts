import type { Json } from '@sharedos/contracts';

export type RpcId = string | number;

/** The errors of the protocol itself. What was decided about a call is never one of them. @see spec/reason-codes.md §8 */
export const RPC_ERROR = {
  parse: { code: -32700, message: 'The message is not JSON-RPC.' },
  request: { code: -32600, message: 'The message is not a valid request.' },
  method: { code: -32601, message: 'There is no such method.' },
  params: { code: -32602, message: 'A call names a tool, and its arguments are an object.' },
  internal: { code: -32603, message: 'The message could not be handled.' },
} as const;
export type RpcError = keyof typeof RPC_ERROR;

export type RpcResponse =
  | { readonly jsonrpc: '2.0'; readonly id: RpcId; readonly result: object }
  | { readonly jsonrpc: '2.0'; readonly id: RpcId | null; readonly error: { readonly code: number; readonly message: string } };

export const rpcResult = (id: RpcId, result: object): RpcResponse => ({ jsonrpc: '2.0', id, result });
export const rpcError = (id: RpcId | null, error: RpcError): RpcResponse => ({ jsonrpc: '2.0', id, error: RPC_ERROR[error] });

export type Frame =
  | { readonly kind: 'request'; readonly id: RpcId; readonly method: string; readonly params: Json | undefined }
  | { readonly kind: 'notification'; readonly method: string }
  | { readonly kind: 'invalid'; readonly answer: RpcResponse };

/** What one message is. Nobody is asked anything from here, so an answer from the other side is no valid message either. */
export const frameOf = (message: Json): Frame => {
  const isObject = typeof message === 'object' && message !== null && !Array.isArray(message);
  const { jsonrpc, id, method, params } = (isObject ? message : {}) as Readonly<Record<string, Json | undefined>>;
  const usable = typeof id === 'string' || Number.isSafeInteger(id) ? (id as RpcId) : undefined;
  if (jsonrpc === '2.0' && typeof method === 'string') {
    if (usable !== undefined) return { kind: 'request', id: usable, method, params };
    if (id === undefined) return { kind: 'notification', method };
  }
  // Without an id that can be answered, whoever sent it cannot have meant a request.
  return { kind: 'invalid', answer: usable === undefined ? rpcError(null, 'parse') : rpcError(usable, 'request') };
};

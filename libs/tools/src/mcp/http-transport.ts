import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { FetchLike, Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { McpFlood, type McpLimits } from './limits.ts';

/**
 * A server behind a URL, over streamable HTTP. Every request goes to the origin that was allowed and follows no redirection from it; every
 * answer has an end in time and in bytes. No stream stands open between calls, so the server says nothing unasked.
 */
export const httpServerTransport = (url: string, headers: Readonly<Record<string, string>>, limits: McpLimits): Transport => {
  const address = new URL(url);
  const transport: StreamableHTTPClientTransport = new StreamableHTTPClientTransport(address, {
    requestInit: { headers: { ...headers }, redirect: 'error' },
    reconnectionOptions: { maxRetries: 0, initialReconnectionDelay: 1_000, maxReconnectionDelay: 1_000, reconnectionDelayGrowFactor: 1 },
    // Whoever waits for an answer of it would wait until the deadline: a stream that breaks is no answer to the library.
    fetch: boundedFetch(address.origin, limits, () => void transport.close()),
  });
  // Its types allow members to be undefined that ours do not.
  return transport as Transport;
};

const NEWLINE = 0x0a;
/** An event has its name, an id, its data, and an empty line. */
const LINES_OF_MESSAGE = 4;

const boundedFetch =
  (origin: string, limits: McpLimits, giveUp: () => void): FetchLike =>
  async (to, init = {}) => {
    const target = new URL(to);
    if (target.origin !== origin) throw new Error('another origin than the one that was allowed');
    if (init.method === 'GET') return new Response(null, { status: 405 });
    const deadline = AbortSignal.timeout(limits.callMs + limits.connectMs);
    const signal = init.signal instanceof AbortSignal ? AbortSignal.any([init.signal, deadline]) : deadline;
    const response = await fetch(target, { ...init, redirect: 'error', signal });
    if (response.body === null) return response;
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
    let bytes = 0;
    let lines = 0;
    const counted = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        bytes += chunk.byteLength;
        if (isStream) for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, at + 1)) lines += 1;
        if (bytes <= limits.unaskedBytesMax && lines <= LINES_OF_MESSAGE * limits.unaskedMessagesMax) return controller.enqueue(chunk);
        controller.error(new McpFlood('its answer is too long'));
        return giveUp();
      },
    });
    const { status, statusText, headers } = response;
    return new Response(response.body.pipeThrough(counted), { status, statusText, headers });
  };

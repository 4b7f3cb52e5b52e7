import type { JsonObj } from '@sharedos/contracts';
import { z } from 'zod';

/** One call as a model wrote it: the name on the wire, and the arguments as text, which may be anything. */
export interface ModelCall {
  readonly id: string;
  readonly name: string;
  readonly argumentsText: string;
}

/** What was said so far, in no provider's words. A wire writes it down in its own, whole, with every question. */
export type ConversationItem =
  | { readonly role: 'system' | 'user'; readonly text: string }
  | { readonly role: 'assistant'; readonly text: string; readonly calls: readonly ModelCall[] }
  | { readonly role: 'tool'; readonly callId: string; readonly text: string };

/** All that a model is told of a tool. What it requires is between the kernel and the registry. */
export interface DeclaredTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonObj;
}

export interface ModelQuestion {
  readonly conversation: readonly ConversationItem[];
  readonly tools: readonly DeclaredTool[];
}

/** What a model answered, in no provider's words. */
export interface ModelReply {
  readonly text: string;
  readonly calls: readonly ModelCall[];
  /** It stopped at its limit and not at its end: what there is of it must not be used. */
  readonly truncated: boolean;
  /** The model that answered, where the provider named one. */
  readonly model?: string | undefined;
  /** The provider's own word. */
  readonly finishReason?: string | undefined;
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
}

export type WireName = 'chat-completions' | 'responses' | 'messages';

/** How one family of providers is spoken to. Both halves reject; what was thrown is never passed on. */
export interface ModelWire {
  readonly name: WireName;
  /** Settings in force, for the result's metadata. */
  readonly settings: JsonObj;
  /** The headers that carry an API key. */
  keyHeaders(apiKey: string): Readonly<Record<string, string>>;
  /** Sends the question. Rejects with an error that has a `status` for an answer that is a refusal, and without one for none. */
  send(question: ModelQuestion, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Response>;
  /** Reads the answer. Rejects with {@link UnreadableReply} or whatever the reading threw. */
  read(response: Response): Promise<ModelReply>;
}

/** An answer that says nothing that can be used. The text names what is missing and nothing of what was there. */
export class UnreadableReply extends Error {
  override readonly name = 'UnreadableReply';
}

export interface WireOptions {
  /** Where the provider is, without the last part of the path: `https://api.openai.com/v1`, `https://api.anthropic.com`. */
  readonly baseUrl: string;
  readonly model: string;
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
  /** Whether to ask for the answer piece by piece. What comes back is read by its content type either way. */
  readonly stream?: boolean;
}

/** A member that providers may leave away or fill as they like; what it is worth is seen when it is used. */
export const Unread = z.unknown().optional();

/** An identifier that a provider chose: kept where it looks like one, since it goes on results and spans. */
export const providerWord = (value: unknown): string | undefined =>
  typeof value === 'string' && /^[\w.:/@+-]{1,128}$/.test(value) ? value : undefined;

/** A count of tokens, where the provider stated one. */
export const tokenCount = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;

export const isEventStream = (response: Response): boolean =>
  (response.headers.get('content-type') ?? '').toLowerCase().startsWith('text/event-stream');

import { fileURLToPath } from 'node:url';
import { type MessageTypeDefinition, loadSync } from '@grpc/proto-loader';
import type { ServiceDefinition } from '@grpc/grpc-js';

const definitions = loadSync(['streams.proto', 'serverfeatures.proto', 'gossip.proto'], {
  includeDirs: [fileURLToPath(new URL('proto', import.meta.url))],
  longs: String,
  oneofs: true,
});

export const STREAMS = definitions['event_store.client.streams.Streams'] as ServiceDefinition;
export const SERVER_FEATURES = definitions['event_store.client.server_features.ServerFeatures'] as ServiceDefinition;
export const GOSSIP = definitions['event_store.client.gossip.Gossip'] as ServiceDefinition;

/** A message packed for the details of a batch's error. */
export const packed = (name: string, message: object): { readonly typeUrl: string; readonly value: Buffer } => {
  const type = definitions[`event_store.client.${name}`] as MessageTypeDefinition<object, object>;
  return { typeUrl: `type.googleapis.com/event_store.client.${name}`, value: type.serialize(message) };
};

export const EMPTY = {};

/** A number as the wire carries it: unsigned, 64 bits, as text. */
export type Long = string;

export interface WireUuid {
  readonly string?: string;
  readonly structured?: { readonly mostSignificantBits?: Long; readonly leastSignificantBits?: Long };
}

export interface WireStream {
  readonly streamName?: Buffer;
}

export interface WirePosition {
  readonly commitPosition?: Long;
  readonly preparePosition?: Long;
}

export interface ReadRequest {
  readonly options?: {
    readonly stream?: { readonly streamIdentifier?: WireStream; readonly from?: 'revision' | 'start' | 'end'; readonly revision?: Long };
    readonly all?: { readonly from?: 'position' | 'start' | 'end'; readonly position?: WirePosition };
    readonly readDirection?: number;
    readonly extent?: 'count' | 'subscription';
    readonly count?: Long;
    readonly filter?: WireFilter;
    readonly uuidOption?: { readonly form?: 'structured' | 'string' };
  };
}

export interface WireFilter {
  readonly subject?: 'streamIdentifier' | 'eventType';
  readonly streamIdentifier?: WireExpression;
  readonly eventType?: WireExpression;
  readonly max?: number;
  readonly checkpointIntervalMultiplier?: number;
}

export interface WireExpression {
  readonly regex?: string;
  readonly prefix?: readonly string[];
}

export interface WireProposed {
  readonly id?: WireUuid;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly customMetadata?: Buffer;
  readonly data?: Buffer;
}

export interface WireExpected {
  readonly streamIdentifier?: WireStream;
  readonly expected?: 'revision' | 'noStream' | 'any' | 'streamExists';
  readonly revision?: Long;
}

export interface AppendRequest {
  readonly options?: WireExpected;
  readonly proposedMessage?: WireProposed;
}

export interface BatchAppendRequest {
  readonly correlationId?: WireUuid;
  readonly options?: WireExpected & { readonly deadline?: { readonly seconds?: Long; readonly nanos?: number } };
  readonly proposedMessages?: readonly WireProposed[];
  readonly isFinal?: boolean;
}

export interface DeleteRequest {
  readonly options?: WireExpected;
}

export const streamNameOf = (stream: WireStream | undefined): string => (stream?.streamName ?? Buffer.alloc(0)).toString('utf8');

export const streamIdentifier = (name: string): WireStream => ({ streamName: Buffer.from(name, 'utf8') });

export const uuidOf = ({ string, structured }: WireUuid = {}): string => {
  if (string !== undefined) return string;
  const bytes = Buffer.alloc(16);
  bytes.writeBigInt64BE(BigInt(structured?.mostSignificantBits ?? 0), 0);
  bytes.writeBigInt64BE(BigInt(structured?.leastSignificantBits ?? 0), 8);
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
};

export const uuidAs = (id: string, form: 'structured' | 'string'): WireUuid => {
  if (form === 'string') return { string: id };
  const bytes = Buffer.from(id.replaceAll('-', ''), 'hex');
  return {
    structured: { mostSignificantBits: bytes.readBigInt64BE(0).toString(), leastSignificantBits: bytes.readBigInt64BE(8).toString() },
  };
};

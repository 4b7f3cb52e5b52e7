/** An event as it is proposed by a client. */
export interface ProposedEvent {
  readonly id: string;
  readonly type: string;
  readonly contentType: string;
  readonly data: Buffer;
  readonly metadata: Buffer;
}

/** An event in the log. */
export interface StoredEvent extends ProposedEvent {
  readonly stream: string;
  /** Its number in its stream, from 0. */
  readonly revision: number;
  /** Where its record begins: commit and prepare position of `$all` are both this. */
  readonly position: number;
  /** Where the first record of its append begins. */
  readonly transaction: number;
  /** When it was stored, in milliseconds since 1970. */
  readonly at: number;
}

const RECORD_OVERHEAD = 61;

/** Bytes of the record, so that positions have the gaps which those of a real log have. */
export const recordSize = ({ stream, type, data, metadata }: ProposedEvent & { readonly stream: string }): number =>
  RECORD_OVERHEAD + Buffer.byteLength(stream) + Buffer.byteLength(type) + data.byteLength + metadata.byteLength;

import type { Json, RuntimeManifest } from '@sharedos/contracts';

/** How a harness is told where its tools are. */
export interface HarnessConnection {
  readonly url: string;
  /** Goes into a file that the harness alone reads, never on a command line: every user of a machine sees those. */
  readonly token: string;
  readonly serverName: string;
  /** Private to the turn; files and the working folder are in it. */
  readonly scratch: string;
  /** What the turn is about, as text. */
  readonly prompt: string;
  readonly model?: string;
}

export interface HarnessLaunch {
  readonly args: readonly string[];
  /** By path below the scratch folder. */
  readonly files: Readonly<Record<string, string>>;
  /** Beside what the host states; the host's win. */
  readonly env?: Readonly<Record<string, string>>;
  /** What it is told on its input. */
  readonly input?: string;
}

/** What one line of a harness's own output means. Its tool calls are not among it: those arrive over MCP. */
export type HarnessFrame =
  | { readonly type: 'text'; readonly text: string }
  /** `text`: the whole answer, where the vendor states it; else what was collected is the answer. */
  | { readonly type: 'complete'; readonly text?: string }
  /** `code`: the vendor's own word for it. */
  | { readonly type: 'failed'; readonly code?: string };

/** One coding command line tool: how it is started on a turn's tools, and how it is read. */
export interface HarnessVendor {
  readonly harness: string;
  readonly manifest: RuntimeManifest;
  /** Its input stays open until its terminal frame, or until it has been silent for long. */
  readonly session?: true;
  launch(connection: HarnessConnection): HarnessLaunch;
  /** @param line One line of output that was JSON; nothing for a line that does not matter. */
  read(line: Json): HarnessFrame | undefined;
}

type Fields = Readonly<Record<string, Json | undefined>>;

/** The members of a JSON object; none for anything else. */
export const fieldsOf = (value: Json | undefined): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};

/** The texts of a list of content blocks, joined. */
export const textOf = (content: Json | undefined): string =>
  (Array.isArray(content) ? (content as readonly Json[]) : [])
    .map(fieldsOf)
    .map(({ type, text }) => (type === 'text' && typeof text === 'string' ? text : ''))
    .join('');

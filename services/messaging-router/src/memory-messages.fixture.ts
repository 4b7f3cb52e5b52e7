import type { Bus } from '@sharedos/bus';
import { err, ok } from '@sharedos/contracts';

interface Kept {
  readonly subject: string;
  readonly seq: number;
  readonly data: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly time: number;
}

const PER_SUBJECT_MAX = 1_000;
const NOTHING = { error: { code: 404, err_code: 10037, description: 'no message found' } };

/** Whether a NATS pattern covers a subject, by the definition of wildcards. */
const covers = (pattern: string, subject: string): boolean => {
  const [wanted, given] = [pattern.split('.'), subject.split('.')];
  for (const [place, token] of wanted.entries()) {
    if (token === '>') return given.length > place;
    if (given[place] === undefined || (token !== '*' && token !== given[place])) return false;
  }
  return wanted.length === given.length;
};

/** One stream in memory that answers what this service asks of JetStream, and nothing else. */
export const memoryMessages = (clock: () => number) => {
  const kept = new Map<number, Kept>();
  const ids = new Set<string>();
  let last = 0;
  const on = (pattern: string): readonly Kept[] => [...kept.values()].filter(({ subject }) => covers(pattern, subject));

  const publishStored: Bus['publishStored'] = async (subject, content, options) => {
    if (content instanceof Uint8Array) throw new Error('only messages with a schema are kept here');
    if (options.messageId !== undefined && ids.has(options.messageId)) return ok({ sequence: last, duplicate: true });
    const there = on(subject);
    const expected = options.expectedLastSubjectSequence;
    if (expected !== undefined && expected !== (there.at(-1)?.seq ?? 0)) return err({ kind: 'wrong_sequence' });
    if (there.length >= PER_SUBJECT_MAX) return err({ kind: 'full' });
    last += 1;
    if (options.messageId !== undefined) ids.add(options.messageId);
    const headers = Object.fromEntries(Object.entries(options.headers ?? {}).map(([name, value]) => [name, String(value)]));
    kept.set(last, { subject, seq: last, data: JSON.stringify(content.body), headers, time: clock() });
    return ok({ sequence: last, duplicate: false });
  };

  const get = (question: { readonly seq?: number; readonly last_by_subj?: string; readonly next_by_subj?: string }) => {
    const { seq = 0, last_by_subj: lastOf, next_by_subj: nextOf } = question;
    if (lastOf !== undefined) return on(lastOf).at(-1);
    return nextOf === undefined ? kept.get(seq) : on(nextOf).find((one) => one.seq >= seq);
  };
  const answer = (subject: string, question: Record<string, unknown>): unknown => {
    switch (subject) {
      case '$JS.API.STREAM.MSG.GET.MESSAGES': {
        const found = get(question);
        if (found === undefined) return NOTHING;
        const { subject: natsSubject, seq, data, headers, time } = found;
        const hdrs = ['NATS/1.0', ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`), '', ''].join('\r\n');
        const encoded = { data: Buffer.from(data).toString('base64'), hdrs: Buffer.from(hdrs).toString('base64') };
        return { message: { subject: natsSubject, seq, time: new Date(time).toISOString(), ...encoded } };
      }
      case '$JS.API.STREAM.MSG.DELETE.MESSAGES':
        return kept.delete(question['seq'] as number) ? { success: true } : NOTHING;
      case '$JS.API.STREAM.INFO.MESSAGES': {
        const found = Map.groupBy(on(question['subjects_filter'] as string), ({ subject: natsSubject }) => natsSubject);
        return { total: found.size, state: { subjects: Object.fromEntries([...found].map(([name, all]) => [name, all.length])) } };
      }
      default:
        throw new Error(`nothing answers ${subject}`);
    }
  };
  const replies = {
    send: async (subject: string, question: string) => ok({ json: () => answer(subject, JSON.parse(question) as Record<string, unknown>) }),
  };
  return { bus: { connected: true, replies } as unknown as Bus, publishStored, on };
};

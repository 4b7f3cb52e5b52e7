import type { StoredEvent } from './stored-event.ts';
import type { WireFilter } from './wire.ts';

/** Which events a filter lets through; all of them without one. */
export const matcherOf = (filter: WireFilter | undefined): ((event: StoredEvent) => boolean) => {
  const expression = filter?.subject === 'eventType' ? filter.eventType : filter?.streamIdentifier;
  if (filter?.subject === undefined || expression === undefined) return () => true;
  const textOf = ({ type, stream }: StoredEvent): string => (filter.subject === 'eventType' ? type : stream);
  if (expression.regex !== undefined && expression.regex !== '') {
    const regex = new RegExp(expression.regex, 'u');
    return (event) => regex.test(textOf(event));
  }
  const prefixes = expression.prefix ?? [];
  return (event) => prefixes.some((prefix) => textOf(event).startsWith(prefix));
};

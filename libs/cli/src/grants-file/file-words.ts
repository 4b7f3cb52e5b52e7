import { type Address, type ResourceRef, Ts } from '@sharedos/contracts';
import { z } from 'zod';
import { CommandFailure } from '../exit-code.ts';
import { parsePrincipal } from '../principal-name.ts';
import { parseResource } from '../resource-name.ts';

/** A word that is written in a file as on the command line. */
export const written = <T>(read: (text: string) => T): z.ZodType<T> =>
  z.string().transform((text, issues) => {
    try {
      return read(text);
    } catch (error) {
      if (!(error instanceof CommandFailure)) throw error;
      issues.addIssue({ code: 'custom', message: error.message });
      return z.NEVER;
    }
  }) as unknown as z.ZodType<T>;

/** `human:alice` */
export const PrincipalWord: z.ZodType<Address> = written(parsePrincipal);

/** `files:notes/plan.md` */
export const ResourceWord: z.ZodType<ResourceRef> = written(parseResource);

/** A time as it is. A duration would be another time whenever the file is read, and each time another grant. */
export const InstantWord = Ts.meta({ description: 'A time with its offset, as in 2026-12-31T00:00:00Z; a duration is none' });

import { InvalidArgumentError } from 'commander';

const wholeNumber = (text: string, least: number): number => {
  const value = Number(text);
  if (text.trim() === '' || !Number.isSafeInteger(value) || value < least)
    throw new InvalidArgumentError(`It must be a whole number of at least ${least}.`);
  return value;
};

/** For options: 1, 2, 3, … */
export const positiveInteger = (text: string): number => wholeNumber(text, 1);
/** For options: 0, 1, 2, … */
export const naturalNumber = (text: string): number => wholeNumber(text, 0);

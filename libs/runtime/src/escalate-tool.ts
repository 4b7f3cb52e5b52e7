/** The tool whose presence in the effective catalogue lets a turn end by asking a human. @see spec/escalation.md §1 */
export const ESCALATE_TOOL = 'sharedos.escalate';

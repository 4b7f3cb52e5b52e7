export { ESCALATE_TOOL } from '@sharedos/kernel';

export { untilAborted } from '@sharedos/kernel';

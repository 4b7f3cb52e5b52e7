export { contractValue, frozenCopy, jsonBytes, sealed } from '@sharedos/kernel';

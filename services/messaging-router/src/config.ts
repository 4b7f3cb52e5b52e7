import { askingSettings } from '@sharedos/bus';

/** Settings of the messaging-router beside those of every service. */
export const routerSettings = { ...askingSettings };

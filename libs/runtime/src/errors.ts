export { ContractError } from '@sharedos/kernel';

/** The turn was stopped (deadline, caller, outage or its end): whoever waited in it waits no longer. */
export class TurnStopped extends Error {
  override readonly name = 'TurnStopped';

  constructor() {
    super('the turn was stopped');
  }
}

/** The broker was used after its turn had ended; nothing happened and nothing was recorded. */
export class BrokerClosed extends Error {
  override readonly name = 'BrokerClosed';

  constructor() {
    super('the turn has ended; its broker takes nothing more');
  }
}

/** The turn has said as much as one turn may say. The bound keeps a result inside one message of the bus. */
export class BrokerLimit extends Error {
  override readonly name = 'BrokerLimit';
}

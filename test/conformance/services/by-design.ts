/** Cases that the services answer otherwise, on purpose, and why. A case that is named here and passes fails the run. */
export const BY_DESIGN: Readonly<Record<string, string>> = {
  'catalogue.no-authority-no-catalogue':
    'an executor lists the tools of admitted turns alone, and a turn without authority is never admitted',
  'combine.path-from-one-grant-action-from-another':
    'the index of the log hands out grants in an order of its own, so a refusal names them in another order',
  'ext.replay.same-call-once': 'a call id names one effect of its turn, and each step of the case is a turn; a turn is sent again whole',
  'ext.replay.same-id-other-input':
    'a call id names one effect of its turn, and each step of the case is a turn; a turn is sent again whole',
  'messages.in-anothers-name':
    'the sender is who the broker let publish: a body that names another is refused as identity_mismatch, before there is a context',
  'usage.bounded-first-counter-down':
    'the index of the log hands out unbounded grants first, so no counter is asked: another of the answers that are right',
};

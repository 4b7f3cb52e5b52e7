/** Largest reply of a model that is read, in bytes. */
export const REPLY_BYTES_MAX = 8 * 1024 * 1024;
/** What is read of a refusal before the connection is given up. */
const REFUSAL_BYTES_MAX = 64 * 1024;

/**
 * `fetch` for the providers' own clients. A refusal loses its body here, before anybody can put it into an error or a log: providers
 * repeat prompts, keys and accounts in it. A reply is bounded, and a redirect is a refusal: it would carry the key elsewhere.
 */
export const guardedFetch: typeof fetch = async (input, init) => {
  const response = await fetch(input, { ...init, redirect: 'manual' });
  const { status, headers, body } = response;
  const contentType = headers.get('content-type');
  const kept = { status, headers: contentType === null ? {} : { 'content-type': contentType } };
  if (response.ok) return new Response(body === null ? null : body.pipeThrough(bounded(REPLY_BYTES_MAX)), kept);
  await body
    ?.pipeThrough(bounded(REFUSAL_BYTES_MAX))
    .pipeTo(new WritableStream())
    .catch(() => undefined);
  // What is left of a refusal is its number. A redirect is one that no second attempt would change.
  return new Response(null, { status: status >= 400 ? status : 400 });
};

const bounded = (bytesMax: number): TransformStream<Uint8Array, Uint8Array> => {
  let bytes = 0;
  return new TransformStream({
    transform: (chunk, controller) => {
      bytes += chunk.byteLength;
      if (bytes > bytesMax) controller.error(new RangeError(`a reply is larger than ${bytesMax} bytes`));
      else controller.enqueue(chunk);
    },
  });
};

/** Nothing of what passes a provider's client is written anywhere. */
export const SILENT_LOGGER = { error: () => undefined, warn: () => undefined, info: () => undefined, debug: () => undefined };

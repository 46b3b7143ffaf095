// Requests to the server.

let key = sessionStorage.getItem("key") ?? "";
let isNeeded = false;
let onRequest = () => {};

export function useKey(value) {
  key = value;
  sessionStorage.setItem("key", value);
}

/** Registers a function to call with the path and body of each request. */
export function watch(callback) {
  onRequest = callback;
}

export class Failure extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

/** Returns whether the server needs a key. The browser may have it as a cookie. */
export function needKey(value) {
  isNeeded = value;
}

export const needsKey = () => isNeeded;

/** Sends a request, and returns the JSON of its answer. `signal` cancels it. The page shows the
 * request as a program unless `programmed` is false. */
export async function call(path, body, signal, programmed = true) {
  const content = await (await answerOf(path, body, signal)).json();
  if (programmed) onRequest(path, body);
  return content;
}

/** Returns the bytes of an answer, as an ArrayBuffer. */
export async function fetchNumbers(path, signal) {
  return (await answerOf(path, undefined, signal)).arrayBuffer();
}

async function answerOf(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  if (key) headers.Authorization = `Bearer ${key}`;
  const method = body === undefined ? "GET" : "POST";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(0, "the server can't be reached; is it still running?");
  }
  if (answer.ok) return answer;
  const content = await answer.json().catch(() => ({}));
  throw new Failure(answer.status, content.error ?? `status ${answer.status}`);
}

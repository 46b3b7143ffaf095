// Calls of the server, and the last request as a program that sends it again.

let key = sessionStorage.getItem("key") ?? "";
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

/** Sends a request, and returns the JSON of its answer. `signal` cancels it. The page shows the
 * request as a program unless `programmed` is false. */
export async function call(path, body, signal, programmed = true) {
  const content = await (await answerOf(path, body, signal)).json();
  if (body !== undefined && programmed) onRequest(path, body);
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

const MOST_SHOWN = 4;

/** The body to show. Long lists are cut, and the program says so. */
function shown(body) {
  let cut = false;
  const short = JSON.parse(JSON.stringify(body), (_, value) => {
    if (Array.isArray(value) && value.length > MOST_SHOWN) {
      cut = true;
      return value.slice(0, MOST_SHOWN);
    }
    return value;
  });
  return { short, cut };
}

const WRITERS = {
  curl(address, body, cut) {
    const json = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
    const auth = key ? " \\\n  -H \"Authorization: Bearer $REJOINDER_API_KEY\"" : "";
    const note = cut ? "# the list is cut here\n" : "";
    return `${note}curl ${address} \\\n  -H 'Content-Type: application/json'${auth} \\\n  -d '${json}'`;
  },
  python(address, body, cut) {
    // JSON is Python except for three words, which must stay in strings
    const json = JSON.stringify(body, null, 4).replace(
      /"(?:[^"\\]|\\.)*"|\b(?:true|false|null)\b/g,
      (word) => ({ true: "True", false: "False", null: "None" })[word] ?? word,
    );
    const note = cut ? "# the list is cut here\n" : "";
    const auth = key ? '    headers={"Authorization": "Bearer " + os.environ["REJOINDER_API_KEY"]},\n' : "";
    const inside = json.replaceAll("\n", "\n    ");
    return `${key ? "import os\n\n" : ""}import httpx\n\n${note}answer = httpx.post(\n    "${address}",\n${auth}    json=${inside},\n)\nprint(answer.raise_for_status().json())`;
  },
  javascript(address, body, cut) {
    const json = JSON.stringify(body, null, 2).replaceAll("\n", "\n  ");
    const note = cut ? "// the list is cut here\n" : "";
    const auth = key ? ", Authorization: `Bearer ${process.env.REJOINDER_API_KEY}`" : "";
    return `${note}const answer = await fetch("${address}", {\n  method: "POST",\n  headers: { "Content-Type": "application/json"${auth} },\n  body: JSON.stringify(${json}),\n});\nconsole.log(await answer.json());`;
  },
};

/** A program in `language` that sends a request. */
export function program(language, path, body) {
  const { short, cut } = shown(body);
  return WRITERS[language](new URL(path, location.href).href, short, cut);
}

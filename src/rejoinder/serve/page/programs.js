// Shows the last request as something to run: a command, Python, or an HTTP request to this server.

import { needsKey } from "./api.js";

const MOST_SHOWN = 4;

/** The body to show. Long lists are cut, which the program mentions. */
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
    if (body === undefined) return `curl ${address}${needsKey() ? " \\\n  -H \"Authorization: Bearer $REJOINDER_API_KEY\"" : ""}`;
    const json = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
    const auth = needsKey() ? " \\\n  -H \"Authorization: Bearer $REJOINDER_API_KEY\"" : "";
    const note = cut ? "# the list is cut here\n" : "";
    return `${note}curl ${address} \\\n  -H 'Content-Type: application/json'${auth} \\\n  -d '${json}'`;
  },
  python(address, body, cut) {
    const auth = needsKey() ? '    headers={"Authorization": "Bearer " + os.environ["REJOINDER_API_KEY"]},\n' : "";
    const head = `${needsKey() ? "import os\n\n" : ""}import httpx\n\n`;
    if (body === undefined) return `${head}answer = httpx.get(\n    "${address}",\n${auth})\nprint(answer.raise_for_status().json())`;
    // JSON is valid Python except for three words, which must stay unchanged in strings
    const json = pythonOf(body);
    const note = cut ? "# the list is cut here\n" : "";
    const inside = json.replaceAll("\n", "\n    ");
    return `${head}${note}answer = httpx.post(\n    "${address}",\n${auth}    json=${inside},\n)\nprint(answer.raise_for_status().json())`;
  },
  javascript(address, body, cut) {
    if (body === undefined) return `const answer = await fetch("${address}"${needsKey() ? ", {\n  headers: { Authorization: `Bearer ${process.env.REJOINDER_API_KEY}` },\n}" : ""});\nconsole.log(await answer.json());`;
    const json = JSON.stringify(body, null, 2).replaceAll("\n", "\n  ");
    const note = cut ? "// the list is cut here\n" : "";
    const auth = needsKey() ? ", Authorization: `Bearer ${process.env.REJOINDER_API_KEY}`" : "";
    return `${note}const answer = await fetch("${address}", {\n  method: "POST",\n  headers: { "Content-Type": "application/json"${auth} },\n  body: JSON.stringify(${json}),\n});\nconsole.log(await answer.json());`;
  },
};

/** A value as Python code: JSON except for three words, which must stay unchanged in strings. */
function pythonOf(value, indent = 4) {
  return JSON.stringify(value, null, indent).replace(
    /"(?:[^"\\]|\\.)*"|\b(?:true|false|null)\b/g,
    (word) => ({ true: "True", false: "False", null: "None" })[word] ?? word,
  );
}

const quoted = (text) => (/^[\w./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

function optionsOf({ mode, where, top_k: top }) {
  const conditions = Object.entries(where ?? {}).map(([key, value]) => `${key}=${value}`).join(",");
  return [mode && `--mode ${mode}`, `--top-k ${top}`, conditions && `--where ${quoted(conditions)}`].filter(Boolean).join(" ");
}

/** Code that does the same as a request to an index, without this server. */
const LOCAL = {
  search: {
    command: (index, body) => `rejoinder search ${quoted(body.queries[0])} --index ${quoted(index)} ${optionsOf(body)}`,
    library(index, { queries, top_k: top, mode, where }) {
      const more = where ? `,\n    where=${pythonOf(where, 0).replaceAll("\n", " ").replaceAll("{ ", "{").replaceAll(" }", "}")}` : "";
      return `from rejoinder import Index\n\nindex = Index(${pythonOf(index)})\n[hits] = index.search(\n    ${pythonOf(queries, 0).replaceAll("\n", "")}, ${top}, mode="${mode}"${more}\n)\nfor hit in hits:\n    print(hit.about.get("author"), hit.text)`;
    },
  },
  similar: {
    library: (index, { id, top_k: top }) => `from rejoinder import Index\n\nindex = Index(${pythonOf(index)})\n[hits] = index.nearest(index.embeddings([${pythonOf(id)}]), ${top})\nfor hit in hits:\n    print(hit.about.get("author"), hit.text)`,
  },
  asked: {
    library: (index) => `from rejoinder.conversations.asked import asked_again\nfrom rejoinder.conversations.collection import open_collection\n\nfor one in asked_again(open_collection(${pythonOf(index)})):\n    print(one.count, one.text)`,
  },
  topics: {
    command: (index) => `rejoinder cluster ${quoted(index)}`,
    library: (index) => `import rejoinder\n\nfound = rejoinder.cluster(${pythonOf(index)})\nfor topic in found.topics:\n    print(topic.size, topic.name)`,
  },
  suggest: {
    command: (index, { message, top_k: top, author }) => `rejoinder suggest ${quoted(message)} --from ${quoted(index)} --top-k ${top}${author ? ` --where ${quoted(`author=${author}`)}` : ""}`,
    library: (index, { message, top_k: top, author }) => `from rejoinder import Suggestions\n\npast = Suggestions.open(${pythonOf(index)}${author ? `, where={"author": ${pythonOf(author)}}` : ""})\nfor one in past.suggest(${pythonOf(message)}, ${top}).suggestions:\n    print(one.confidence, one.reply)`,
  },
};

/** Returns the languages in which a request can be written; `index` is the path of the server's index, if any. */
export function languagesOf(path, index) {
  return [...(index ? Object.keys(LOCAL[path] ?? {}) : []), ...Object.keys(WRITERS)];
}

/** A program in `language` that does the same as a request. */
export function program(language, path, body, index) {
  if (LOCAL[path]?.[language]) return LOCAL[path][language](index, body);
  const { short, cut } = body === undefined ? { cut: false } : shown(body);
  return WRITERS[language](new URL(path, location.href).href, short, cut);
}

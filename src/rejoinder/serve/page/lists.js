// A list ranked by a query, and replies ranked by a message.

import { call } from "./api.js";
import { comparedOf, messagesOf } from "./files.js";
import { byId, countOf, following, linesOf, noteUnknown, showHits } from "./tools.js";

const SHOWN = 10;

const QUESTIONS = `Where is my order?
How do I return an item?
Can I pay by invoice?
My package is late.
I forgot my password.
Do you ship to Norway?
The shirt is too small, can I swap it?
I was charged twice.
How do I delete my account?
The screen of my phone is cracked.
What are your opening hours?
Is there a student discount?
Someone else signed for the delivery.
I would like to speak to a person.`;

const REPLIES = `I am twenty-three.
In a small town near Oslo.
Thank you, I am glad you like it!
No, I have never been there.
At seven, if the train is on time.
Because it was raining all day.
I would try turning it off and on again.
My sister made it.
I am so sorry to hear that.
About forty dollars, if I remember right.
Congratulations!
The one with the red door.
Pizza, always pizza.
I am a nurse.`;

export function startSearch(most, served) {
  byId("search-in").hidden = !served;
  byId("search-served").textContent = `the ${served.toLocaleString("en")} texts of this server`;
  const inServed = () => served > 0 && document.querySelector("[name=searched]:checked").value === "served";
  const update = startList({
    part: "search", input: "search-query", called: "the query", most, lines: QUESTIONS, empty: "Type a query, and paste a list.",
    ask: (query, texts, signal) => call("rerank", { query, texts, raw_scores: true }, signal),
    async askServer(query, signal) {
      byId("search-own").hidden = inServed();
      if (!inServed()) return null;
      const [hits] = query ? await call("search", { queries: [query], top_k: SHOWN }, signal) : [[]];
      return { hits, of: served };
    },
  });
  for (const choice of document.querySelectorAll("[name=searched]")) choice.addEventListener("change", update);
  return update;
}

export function startReply(most) {
  return startList({
    part: "reply", input: "reply-message", called: "the message", most, lines: REPLIES, empty: "Write a message, and some replies.",
    ask: (message, responses, signal) => call("rank", { message, responses, top_k: SHOWN }, signal),
  });
}

/** Ranks the lines of a part, or the texts that `askServer` finds, whenever the lines or the input change. */
function startList({ part, input, called, most, lines, empty, ask, askServer = async () => null }) {
  byId(`${part}-list`).value = lines;
  const askList = async (words, shown, signal) => {
    const hits = await ask(words, comparedOf(`${part}-list`, shown), signal);
    const messages = messagesOf(`${part}-list`, shown);
    return hits.map(({ index, score }) => ({ ...messages[index], text: shown[index], score }));
  };
  const update = following(async (signal) => {
    const all = linesOf(`${part}-list`);
    countOf(`${part}-count`, all, most);
    const words = byId(input).value.trim();
    const begun = performance.now();
    let found = await askServer(words, signal);
    if (!found && words && all.length) found = { hits: await askList(words, all.slice(0, most), signal), of: Math.min(all.length, most) };
    const hits = (found?.hits ?? []).slice(0, SHOWN);
    const milliseconds = Math.round(performance.now() - begun);
    showHits(`${part}-hits`, hits);
    byId(`${part}-note`).textContent = hits.length ? `${hits.length} best of ${found.of.toLocaleString("en")}, in ${milliseconds} ms` : empty;
    await noteUnknown({ [called]: words }, signal);
  });
  byId(`${part}-list`).addEventListener("input", update);
  byId(input).addEventListener("input", update);
  return update;
}

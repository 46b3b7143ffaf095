// Part 2 and 3: a list ranked by a query, and replies ranked by a message.

import { byId, call, countOf, following, linesOf, numberOf, showHits } from "./tools.js";

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

export function startSearch(most) {
  return startList({
    list: "search-list", input: "search-query", count: "search-count", hits: "search-hits", note: "search-note", most,
    lines: QUESTIONS, empty: "Type a query, and paste a list.",
    async ask(query, texts, signal) {
      const hits = await call("rerank", { query, texts, raw_scores: true, return_text: true }, signal);
      return hits.map((hit) => ({ ...hit, share: hit.score }));
    },
  });
}

export function startReply(most) {
  return startList({
    list: "reply-list", input: "reply-message", count: "reply-count", hits: "reply-hits", note: "reply-note", most,
    lines: REPLIES, empty: "Write a message, and some replies.",
    async ask(message, responses, signal) {
      const hits = await call("rank", { message, responses, top_k: SHOWN }, signal);
      return hits.map((hit) => ({ ...hit, share: hit.score }));
    },
  });
}

function startList({ list, input, count, hits, note, most, lines, empty, ask }) {
  byId(list).value = lines;
  const update = following(async (signal) => {
    const all = linesOf(list);
    countOf(count, all, most);
    const words = byId(input).value.trim();
    if (!words || !all.length) {
      showHits(hits, [], String);
      byId(note).textContent = empty;
      return;
    }
    const begun = performance.now();
    const found = await ask(words, all.slice(0, most), signal);
    const milliseconds = Math.round(performance.now() - begun);
    showHits(hits, found.slice(0, SHOWN), (hit) => numberOf(hit.score));
    const shown = Math.min(SHOWN, found.length, all.length);
    byId(note).textContent = `${shown} best of ${Math.min(all.length, most).toLocaleString("en")}, in ${milliseconds} ms`;
  });
  byId(list).addEventListener("input", update);
  byId(input).addEventListener("input", update);
  return update;
}

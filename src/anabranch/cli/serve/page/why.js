// Why an answer has its probability: the effect of each piece of evidence, and the most likely histories.
import { call } from "./api.js";
import { element, probabilityText } from "./elements.js";
import { event } from "./tables.js";

const WIDTH = 160;
const READING = "The query was run again without each piece of evidence. Blue: the evidence raises the probability. Orange: it lowers it.";

export async function explain(run, row) {
  const dialog = document.getElementById("why");
  const place = document.getElementById("why-content");
  place.replaceChildren(element("p", { class: "hint", role: "status" }, "Each piece of evidence is left out, and the query is run without it…"));
  dialog.showModal();
  try {
    place.replaceChildren(...content(await call("why", { run: run.number, row })));
  } catch (error) {
    place.replaceChildren(element("p", { class: "failed" }, error.message));
  }
}

function content(found) {
  const parts = [named(found.answer, found.probability)];
  if (found.effects.length) parts.push(element("p", { class: "hint" }, READING), waterfall(found));
  parts.push(...found.histories.map(history), ...found.notes.map((note) => element("p", { class: "hint" }, note)));
  return parts;
}

// The answer: the columns that say which one it is, and its probability.
function named({ columns, rows }, probability) {
  const pairs = [["probability", element("strong", {}, probabilityText(probability))], ...columns.map((name, index) => {
    const value = rows[0][index];
    return [name, ...(typeof value === "string" ? [value] : value.map(event))];
  })];
  return element("dl", { class: "answer" }, ...pairs.map(([name, ...values]) => element(
    "div", {}, element("dt", {}, name), element("dd", {}, ...values),
  )));
}

function waterfall({ effects, probability }) {
  const names = ["time", "evidence", "without it", "effect", "on a scale from 0 to 1"];
  const timed = effects.some(({ t }) => t);
  const shown = timed ? names : names.slice(1);
  const rows = effects.map(({ evidence, t, without, effect }) => element(
    "tr", {},
    ...(timed ? [element("td", {}, t)] : []),
    element("td", { class: "evidence" }, evidence),
    element("td", {}, probabilityText(without)),
    element("td", {}, effectText(effect)),
    element("td", {}, floating(without, probability)),
  ));
  return element(
    "div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Effects of the evidence" },
    element("table", {}, element("thead", {}, element("tr", {}, ...shown.map((text) => element("th", { scope: "col" }, text)))), element("tbody", {}, ...rows)),
  );
}

function effectText(effect) {
  const text = Math.abs(effect) < 0.0005 ? "<0.001" : Math.abs(effect).toFixed(3);
  return `${effect < 0 ? "−" : "+"}${text}`;
}

// A bar from the probability without a piece of evidence to that of the answer.
function floating(from, to) {
  const bar = element("i", { class: to > from ? "raises" : "lowers" });
  bar.style.marginLeft = `${Math.round(Math.min(from, to) * WIDTH)}px`;
  bar.style.width = `${Math.max(2, Math.round(Math.abs(to - from) * WIDTH))}px`;
  const scale = element("b", { class: "bar", "aria-hidden": "true" }, bar);
  scale.style.width = `${WIDTH}px`;
  return scale;
}

function history({ true: isTrue, moments, probability, note }) {
  const title = `The most likely history in which the answer is ${isTrue ? "true" : "not true"}`;
  const lines = moments.map(([t, subject, event]) => element("tr", {}, element("td", {}, t), element("td", {}, subject), element("td", {}, event)));
  const remark = note || (moments.length ? "" : "There is none.");
  return element(
    "section", { class: "history" },
    element("h3", {}, title, ...(probability === null ? [] : [element("small", {}, `probability ${probability.toPrecision(3)}`)])),
    ...(lines.length ? [element("div", { class: "moments", tabindex: "0", role: "region", "aria-label": title }, element("table", {}, element("tbody", {}, ...lines)))] : []),
    ...(remark ? [element("p", { class: "hint" }, remark)] : []),
  );
}

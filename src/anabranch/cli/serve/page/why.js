// Why an answer has its probability: the effect of each piece of evidence, and the most likely histories.
import { call } from "./api.js";
import { element, probabilityText } from "./elements.js";

const WIDTH = 180;

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
  const parts = [
    element("p", { class: "answer" }, found.answer, " has probability ", element("strong", {}, probabilityText(found.probability))),
  ];
  if (found.effects.length) parts.push(waterfall(found));
  parts.push(...found.histories.map(history), ...found.notes.map((note) => element("p", { class: "hint" }, note)));
  return parts;
}

function waterfall({ effects, probability }) {
  const heading = ["evidence", "without it", "effect", "from there to the answer"].map((text) => element("th", { scope: "col" }, text));
  const rows = effects.map(({ evidence, t, without, effect }) => element(
    "tr", {},
    element("td", {}, t ? `${t}  ${evidence}` : evidence),
    element("td", {}, probabilityText(without)),
    element("td", {}, `${effect > 0 ? "+" : ""}${effect.toFixed(3)}`),
    element("td", {}, floating(without, probability)),
  ));
  return element(
    "div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Effects of the evidence" },
    element("table", {}, element("thead", {}, element("tr", {}, ...heading)), element("tbody", {}, ...rows)),
  );
}

// A bar from the probability without a piece of evidence to that of the answer.
function floating(from, to) {
  const bar = element("i", { class: to > from ? "raises" : "lowers", "aria-hidden": "true" });
  bar.style.marginLeft = `${Math.round(Math.min(from, to) * WIDTH)}px`;
  bar.style.width = `${Math.max(2, Math.round(Math.abs(to - from) * WIDTH))}px`;
  return bar;
}

function history({ true: isTrue, moments, probability, note }) {
  const title = `The most likely history in which it is ${isTrue ? "true" : "not true"}`;
  const lines = moments.map(([t, subject, event]) => element("tr", {}, element("td", {}, t), element("td", {}, subject), element("td", {}, event)));
  const remark = note || (moments.length ? "" : "There is none.");
  return element(
    "section", { class: "history" },
    element("h3", {}, title, ...(probability === null ? [] : [element("small", {}, `probability ${probability.toPrecision(3)}`)])),
    ...(lines.length ? [element("table", {}, element("tbody", {}, ...lines))] : []),
    ...(remark ? [element("p", { class: "hint" }, remark)] : []),
  );
}

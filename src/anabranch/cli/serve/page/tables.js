// Tables of answers: the probability as a number and a bar, the events of an answer one below the other.
import { element, probabilityText } from "./elements.js";

const BAR = 60;
const MOST_TEXT = 40;

export function answerRow({ columns, rows, probabilities }, index) {
  return columns.map((name, column) => name === "probability"
    ? element("td", { class: "probability" }, element("span", {}, probabilityText(probabilities[index])), bar(probabilities[index]))
    : cell(rows[index][column]));
}

export function heading(name) {
  return element("th", { scope: "col" }, name);
}

function cell(value) {
  if (typeof value === "string") return element("td", { title: value.length > MOST_TEXT ? value : undefined }, value);
  return element("td", { class: "events" }, ...value.map(event));
}

// The fields of an event on one line; the browser shows all of them in a tooltip.
export function event(fields) {
  const title = fields.map((field) => field.join(" ")).join(", ");
  return element("div", { class: "event", title }, ...fields.map(([name, text]) => element("span", {}, element("small", {}, name), ` ${text}`)));
}

function bar(p) {
  const made = element("i", { "aria-hidden": "true" });
  made.style.width = `${Math.round(p * BAR)}px`;
  return element("b", { class: "bar", "aria-hidden": "true" }, made);
}

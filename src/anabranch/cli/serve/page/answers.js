// The answers of a run: a table with probabilities as bars, a chart, and what the threshold leaves.
import { call } from "./api.js";
import { element, number, plural, probabilityText } from "./elements.js";

// Pixels for the padding of the view, the padding of a chart and its labels.
const MARGINS = 190;
const LEAST_WIDTH = 180;
// Vega warns of domains that are stated twice, which is intended.
const ERRORS = 1;

const view = (name) => document.getElementById(name);

export class AnswersView {
  constructor(onWhy) {
    this.onWhy = onWhy;
    this.run = null;
    this.byProbability = false;
    this.slider = view("threshold");
    this.slider.addEventListener("input", () => this.moved());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw(true));
  }

  get threshold() {
    return Number(this.slider.value) / 100;
  }

  async show(run) {
    this.run = run;
    this.drawn = null;
    this.slider.value = 0;
    const counts = Object.entries(run.counts).filter(([name]) => !["answers", "kept"].includes(name));
    view("summary-text").replaceChildren(
      element("strong", {}, plural(run.answers, "answer") + (run.is_cut ? " or more" : "")),
      `of ${run.query}; ${counts.map(([name, count]) => `${number(count)} rows ${name}`).join(", ")}; ${run.seconds} s`,
    );
    view("doubts").hidden = !run.doubts.length;
    view("doubts").replaceChildren(...run.doubts.map((doubt) => element("li", {}, doubt)));
    view("summary").hidden = false;
    const thresholds = await call("thresholds", { run: run.number });
    if (this.run !== run) return; // another workbook was opened in the meantime
    this.thresholds = thresholds;
    await this.moved();
  }

  clear() {
    this.run = this.chart = this.drawn = null;
    view("summary").hidden = true;
    view("view-answers").replaceChildren(element("p", { class: "hint" }, "Run a query to see its answers here."));
    view("view-chart").replaceChildren();
  }

  async moved() {
    view("threshold-value").textContent = this.threshold.toFixed(2);
    const index = Number(this.slider.value);
    const { remaining, precision, recall, best, remark } = this.thresholds;
    const parts = [`${number(remaining[index])} of ${plural(this.run.answers, "answer")}`];
    if (precision) {
      const text = (value) => (value === null ? "not defined" : value.toFixed(3));
      parts.push(`precision ${text(precision[index])}`, `recall ${text(recall[index])}`, `best threshold ${best}`);
    }
    if (remark) parts.push(remark);
    view("remaining").textContent = parts.join(" · ");
    this.chart?.signal("threshold", this.threshold).runAsync();
    await this.fill();
  }

  async fill() {
    const asked = (this.asked = Symbol());
    const { number: run } = this.run;
    const by = this.byProbability ? "probability" : "time";
    const page = await call("rows", { run, threshold: this.threshold, by, first: 0 });
    if (this.asked !== asked || this.run?.number !== run) return;
    if (!page.total) {
      const text = this.run.answers ? "No answer reaches this threshold." : "The query has no answers.";
      view("view-answers").replaceChildren(element("p", { class: "hint" }, text));
      return;
    }
    const body = element("tbody");
    this.append(body, page);
    const shown = element("span");
    const more = element("button", { type: "button", onclick: () => next() }, "Show more");
    const count = () => {
      shown.textContent = `${number(body.rows.length)} of ${number(page.total)} shown`;
      more.parentElement.hidden = body.rows.length >= page.total;
    };
    const next = async () => {
      this.append(body, await call("rows", { run, threshold: this.threshold, by, first: body.rows.length }));
      count();
    };
    const table = element("table", {}, element("thead", {}, this.headings(page.columns)), body);
    view("view-answers").replaceChildren(
      element("div", { class: "scroll" }, table), element("div", { class: "more" }, shown, more),
    );
    count();
  }

  headings(columns) {
    const cells = columns.map((name) => {
      if (name !== "probability") return element("th", { scope: "col" }, name);
      const sort = () => {
        this.byProbability = !this.byProbability;
        this.fill();
      };
      const order = this.byProbability ? "descending" : "none";
      return element("th", { scope: "col", "aria-sort": order }, element("button", { type: "button", onclick: sort }, name));
    });
    return element("tr", {}, ...cells, ...(this.onWhy ? [element("th", { scope: "col" }, "")] : []));
  }

  append(body, page) {
    const at = page.columns.indexOf("probability");
    page.rows.forEach((row, index) => {
      const p = page.probabilities[index];
      const cells = row.map((text, column) => column === at
        ? element("td", { class: "probability" }, element("span", {}, probabilityText(p)), bar(p))
        : element("td", { title: text.length > 40 ? text : undefined }, text));
      if (this.onWhy) {
        const ask = () => this.onWhy(this.run, page.numbers[index]);
        cells.push(element("td", {}, element("button", { type: "button", onclick: ask, "aria-label": `Why answer ${page.numbers[index] + 1}` }, "Why")));
      }
      body.append(element("tr", {}, ...cells));
    });
  }

  // Draws the chart when it is first looked at, and again after a change of the theme.
  async draw(again = false) {
    const place = view("view-chart");
    if (!this.run || place.hidden || (this.drawn === this.run.number && !again)) return;
    this.drawn = this.run.number;
    if (!this.run.answers) {
      place.replaceChildren(element("p", { class: "hint" }, "There are no answers to draw."));
      return;
    }
    place.replaceChildren(element("p", { class: "hint" }, "Drawing…"));
    try {
      this.spec ??= {};
      const { specification, configs } = (this.spec[this.run.number] ??= await call("chart", { run: this.run.number }));
      await import("./vega.js");
      const theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
      const figure = element("div", { role: "img", "aria-label": `Chart of the answers of ${this.run.query}` });
      place.replaceChildren(figure);
      const embedded = await window.vegaEmbed(figure, fitted(specification, place.clientWidth - MARGINS), {
        config: configs[theme], renderer: "svg", ast: true, actions: false, tooltip: { theme }, logLevel: ERRORS,
      });
      this.chart = embedded.view;
      await this.chart.signal("threshold", this.threshold).runAsync();
    } catch (error) {
      place.replaceChildren(element("p", { class: "failed" }, error.message));
    }
  }
}

// Charts have a fixed width, which may be more than there is.
function fitted(value, most) {
  if (Array.isArray(value)) return value.map((each) => fitted(each, most));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [
    name, name === "data" || name === "datasets" ? inner
      : name === "width" && inner > most ? Math.max(most, LEAST_WIDTH) : fitted(inner, most),
  ]));
}

function bar(p) {
  const made = element("i", { "aria-hidden": "true" });
  made.style.width = `${Math.round(p * 60)}px`;
  return made;
}

// The answers of a run: a table with probabilities as bars, a chart, and what the threshold leaves.
import { call } from "./api.js";
import { element, number, plural } from "./elements.js";
import { answerRow, heading } from "./tables.js";

// The padding of the view, and the least width of a chart without its labels, in pixels.
const PADDING = 40;
const LEAST_WIDTH = 180;

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
    this.drawn = this.chart = null;
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
      if (name !== "probability") return heading(name);
      const sort = () => {
        this.byProbability = !this.byProbability;
        this.fill();
      };
      const order = this.byProbability ? "descending" : "none";
      return element("th", { scope: "col", "aria-sort": order }, element("button", { type: "button", onclick: sort }, name));
    });
    return element("tr", {}, ...cells, element("th", { scope: "col", class: "end" }, element("span", { class: "unseen" }, "explanation")));
  }

  append(body, page) {
    page.numbers.forEach((answer, index) => {
      const ask = () => this.onWhy(this.run, answer);
      const why = element("button", { type: "button", onclick: ask, "aria-label": `Why answer ${answer + 1}` }, "Why");
      body.append(element("tr", {}, ...answerRow(page, index), element("td", { class: "end" }, why)));
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
      const options = { config: configs[theme], renderer: "svg", ast: true, actions: false, tooltip: { theme } };
      this.chart = await embedded(figure, specification, options, place.clientWidth - PADDING);
      await this.chart.signal("threshold", this.threshold).runAsync();
    } catch (error) {
      place.replaceChildren(element("p", { class: "failed" }, error.message));
    }
  }
}

// Draws a chart that fits the view. How wide its labels are is known when it is drawn.
async function embedded(figure, specification, options, available) {
  const draw = async (width) => (await window.vegaEmbed(figure, fitted(specification, width), options)).view;
  const drawn = await draw(available);
  const missing = available - figure.querySelector("svg").getBoundingClientRect().width;
  if (missing >= 0) return drawn;
  drawn.finalize();
  return draw(Math.max(available + missing, LEAST_WIDTH));
}

// Charts have a fixed width, which may be more than there is. A map keeps its proportions.
function fitted(specification, most) {
  const isMap = specification.usermeta?.proportions === "kept";
  const share = isMap ? Math.min(1, most / specification.width) : 1;
  const inner = (value) => {
    if (Array.isArray(value)) return value.map(inner);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [
      name, name === "data" || name === "datasets" ? part : name === "width" && part > most ? most : inner(part),
    ]));
  };
  const made = inner(specification);
  return isMap ? { ...made, height: Math.round(made.height * share) } : made;
}

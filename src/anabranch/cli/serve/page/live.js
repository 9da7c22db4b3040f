// The live view: what the streams of a checkpoint folder do, and their newest answers.
import { call } from "./api.js";
import { element, number, plural } from "./elements.js";
import { answerRow, heading } from "./tables.js";

const EVERY_MS = 1000;

export class LiveView {
  constructor(place) {
    this.place = place;
  }

  start() {
    this.timer ??= setInterval(() => this.update(), EVERY_MS);
    this.update();
  }

  stop() {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  async update() {
    try {
      const { streams, answers } = await call("live");
      const parts = [...streams.map(stream), ...answers.flatMap(newest)];
      this.place.replaceChildren(...(parts.length ? parts : [element("p", { class: "hint" }, "There is no stream yet.")]));
    } catch (error) {
      this.stop();
      this.place.replaceChildren(element("p", { class: "failed" }, error.message));
    }
  }
}

function stream(found) {
  const rate = found.rows_per_second === null ? "–" : number(Math.round(found.rows_per_second));
  const last = found.batches.at(-1);
  const figures = [
    ["rows per second", rate],
    ["seconds per micro-batch", last ? last.seconds.toFixed(2) : "–"],
    ["watermark", found.watermark ?? "not set"],
    ["state", size(found.state_bytes)],
    ...["read", "answers", "late", "quarantined"].filter((name) => found.total[name]).map((name) => [name, number(found.total[name])]),
  ];
  return element(
    "article", { class: found.runs ? "stream runs" : "stream" },
    element("h3", {}, found.name, element("small", {}, found.runs ? "runs" : "does not run")),
    element("dl", { class: "figures" }, ...figures.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value)))),
    ...(found.batches.length ? [element("p", { class: "spark-label" }, barsText(found.batches)), bars(found.batches)] : []),
  );
}

const mostRows = (batches) => Math.max(...batches.map((batch) => batch.rows), 1);

const barsText = (batches) => `rows of the last ${plural(batches.length, "micro-batch", "micro-batches")}; the highest bar: ${number(mostRows(batches))}`;

function bars(batches) {
  const namespace = "http://www.w3.org/2000/svg";
  const made = document.createElementNS(namespace, "svg");
  const most = mostRows(batches);
  const width = 6, height = 54;
  made.setAttribute("viewBox", `0 0 ${width * Math.max(batches.length, 40)} ${height}`);
  made.setAttribute("preserveAspectRatio", "none");
  made.setAttribute("class", "spark");
  made.setAttribute("role", "img");
  made.setAttribute("aria-label", `rows of each micro-batch, at most ${most}`);
  batches.forEach((batch, index) => {
    const rectangle = document.createElementNS(namespace, "rect");
    const tall = (batch.rows / most) * height;
    for (const [name, value] of Object.entries({ x: index * width, y: height - tall, width: width - 1.5, height: tall })) {
      rectangle.setAttribute(name, value);
    }
    made.append(rectangle);
  });
  return made;
}

function newest(found) {
  if (!found.rows.length) return [];
  const rows = found.rows.map((_, index) => element("tr", {}, ...answerRow(found, index)));
  return [
    element("h3", { class: "newest" }, `Newest answers of ${found.query}`),
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Newest answers of ${found.query}` },
      element("table", {}, element("thead", {}, element("tr", {}, ...found.columns.map(heading))), element("tbody", {}, ...rows))),
  ];
}

const size = (bytes) => (bytes >= 1e5 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e3).toFixed(1)} kB`);

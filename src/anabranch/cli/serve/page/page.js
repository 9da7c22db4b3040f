// The page: editor on the left, results on the right.
import { AnswersView } from "./answers.js";
import { call } from "./api.js";
import { createEditor } from "./editor.js";
import { element, number, plural } from "./elements.js";
import { LiveView } from "./live.js";
import { explain } from "./why.js";

const CHECK_AFTER_MS = 250;
const POLL_MS = 300;

const view = (name) => document.getElementById(name);

let editor;
let saved = "";
let queries = [];
let wanted = "";
let running = false;
// Increases with each run and each workbook: what was asked before is then not shown.
let turn = 0;
const live = new LiveView(view("view-live"));

// ---------------------------------------------------------------- messages

function say(text) {
  view("message").textContent = text;
  view("message").hidden = false;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => (view("message").hidden = true), 7000);
}

const guarded = (action) => async (...parameters) => {
  try {
    await action(...parameters);
  } catch (error) {
    say(error.message);
  }
};

const answers = new AnswersView(guarded(explain));

// ---------------------------------------------------------------- the workbook

function show(workbook) {
  saved = workbook.text;
  editor.text = workbook.text;
  view("title").textContent = workbook.title;
  view("save").hidden = !workbook.can_be_saved;
  document.title = `${workbook.title} – Anabranch`;
  changed();
}

function changed() {
  view("title").classList.toggle("changed", !view("save").hidden && editor.text !== saved);
  clearTimeout(changed.timer);
  changed.timer = setTimeout(check, CHECK_AFTER_MS);
}

const check = guarded(async () => {
  clearTimeout(changed.timer);
  const text = editor.text;
  const result = await call("check", { text });
  if (text !== editor.text) return; // typed in the meantime, and checked again soon
  editor.show(result.findings);
  queries = result.queries;
  const status = view("checked");
  status.classList.toggle("wrong", result.findings.length > 0);
  status.textContent = result.findings.length
    ? `${plural(result.findings.length, "error")}: ${result.findings[0].message}`
    : queries.length ? `No errors; ${plural(queries.length, "query", "queries")}.` : "No query yet.";
  chooseQuery();
  showPlans();
});

function chooseQuery() {
  const select = view("query");
  const before = wanted || select.value;
  select.replaceChildren(...queries.map((query) => element("option", {}, query.name)));
  if (queries.some((query) => query.name === before)) select.value = before;
  wanted = "";
  select.disabled = !queries.length;
  view("run").disabled = !queries.length || running;
}

function showPlans() {
  const plans = queries.map((query) => element(
    "article", { class: "plan" },
    element("h3", {}, query.name, element("small", {}, query.kind)), element("pre", {}, query.plan),
  ));
  const hint = element("p", { class: "hint" }, "The plan of each query is shown here when the workbook has no errors.");
  view("view-plan").replaceChildren(...(plans.length ? plans : [hint]));
}

const save = guarded(async () => {
  if (view("save").hidden) return;
  const { text } = await call("save", { text: editor.text });
  saved = text;
  changed();
  say("Saved.");
});

// ---------------------------------------------------------------- runs

const run = guarded(async () => {
  if (running || !view("query").value) return;
  turn += 1;
  const mine = turn;
  await follow(await call("run", { text: editor.text, query: view("query").value }), mine);
});

async function follow(started, mine) {
  setRunning(true);
  view("summary").hidden = true;
  let state = started;
  try {
    while (["starting", "running", "cancelling"].includes(state.state)) {
      view("running-text").textContent = progressText(state);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      state = await call("progress");
    }
  } finally {
    setRunning(false);
  }
  if (mine !== turn) return;
  if (state.state === "done") {
    if (view("view-plan").hidden === false || view("view-live").hidden === false) select("answers");
    try {
      await answers.show(state);
      await answers.draw();
    } catch (error) {
      if (mine === turn) throw error;
    }
  } else {
    select("answers");
    const lines = state.state === "cancelled" ? [element("p", { class: "hint" }, `${state.query} was cancelled.`)]
      : state.error.map((line) => element("p", { class: "failed" }, line));
    view("view-answers").replaceChildren(...lines);
  }
}

function progressText({ state, query, rows, seconds }) {
  if (state === "cancelling") return `Cancelling ${query}…`;
  const what = state === "starting" ? "Starting Spark" : rows ? `${query}: ${number(rows)} rows read` : `Running ${query}`;
  return `${what}… ${seconds.toFixed(1)} s`;
}

function setRunning(value) {
  running = value;
  view("running").hidden = !value;
  view("cancel").hidden = !value;
  view("run").disabled = value || !queries.length;
}

// ---------------------------------------------------------------- examples

function cards(examples, opened) {
  return examples.map((example) => element(
    "button", { type: "button", class: "card", onclick: guarded(() => opened(example)) },
    element("small", {}, example.kind), element("b", {}, example.title), element("span", {}, example.question),
  ));
}

async function open(name, body = {}) {
  if (editor.text !== saved && !confirm("The workbook has changes that are not saved. Discard them?")) return;
  view("examples").close();
  turn += 1;
  const workbook = await call(name, body);
  wanted = workbook.query ?? "";
  answers.clear();
  show(workbook);
  await check();
  if (workbook.query) await run();
}

const openExample = ({ name }) => open("example", { name });

// ---------------------------------------------------------------- tabs

const tabs = [...document.querySelectorAll('[role="tab"]')];

function select(name) {
  for (const tab of tabs) {
    const chosen = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
    view(tab.getAttribute("aria-controls")).hidden = !chosen;
  }
  if (name === "chart") answers.draw();
  if (name === "live") live.start();
  else live.stop();
}

for (const tab of tabs) {
  const name = tab.id.slice(4);
  tab.addEventListener("click", () => select(name));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const shown = tabs.filter((each) => !each.hidden);
    const next = shown[(shown.indexOf(tab) + step + shown.length) % shown.length];
    select(next.id.slice(4));
    next.focus();
  });
}

// ---------------------------------------------------------------- start

const start = guarded(async () => {
  const state = await call("state");
  editor = createEditor(view("editor"), {
    words: state.words, onChange: changed, onSave: save, onRun: run,
    complete: (text, position) => call("complete", { text, position }),
  });
  view("tab-live").hidden = !state.is_live;
  view("tab-chart").hidden = !state.has_charts;
  view("examples").querySelector(".cards").append(...cards(state.examples, openExample));
  view("view-answers").replaceChildren(
    element("p", { class: "hint" }, "Run a query to see its answers here, each with the probability that it is true. Or start with an example:"),
    element("div", { class: "cards" }, ...cards(state.examples, openExample)),
  );
  view("own").textContent = `Back to ${state.own}`;
  show(state.workbook);
  view("own").addEventListener("click", guarded(() => open("own")));
  view("run").addEventListener("click", run);
  view("cancel").addEventListener("click", guarded(() => call("cancel")));
  view("save").addEventListener("click", save);
  view("show-examples").addEventListener("click", () => view("examples").showModal());
  await check();
  if (state.is_live) select("live");
  if (state.run && !turn) await follow(state.run, turn);
});

start();

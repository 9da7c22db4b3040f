// The editor: colours by the words of the language, completion by the server, and errors below their line.
import {
  Decoration, EditorState, EditorView, HighlightStyle, StateEffect, StateField, StreamLanguage, WidgetType,
  autocompletion, bracketMatching, closeBrackets, closeBracketsKeymap, completionKeymap, defaultKeymap, drawSelection,
  highlightActiveLine, highlightActiveLineGutter, highlightSelectionMatches, history, historyKeymap, keymap,
  lineNumbers, searchKeymap, syntaxHighlighting, tags,
} from "./codemirror.js";
import { element } from "./elements.js";

const CLASSES = {
  kind: "definitionKeyword", keyword: "keyword", operator: "operatorKeyword", literal: "bool", type: "typeName",
  unit: "unit",
};

// The patterns are those of the server; the words of a workbook are in any case.
function compiled(words) {
  const pattern = (text) => new RegExp(text.replaceAll("(?i:", "(?:"), "iy");
  return new Map(Object.entries(words).map(([word, its]) => [
    word, { style: CLASSES[its.class], behind: pattern(its.behind), ahead: pattern(its.ahead) },
  ]));
}

function matches(expression, text, index) {
  expression.lastIndex = index;
  return expression.test(text);
}

function language(words) {
  const known = compiled(words);
  return StreamLanguage.define({
    name: "anabranch",
    token(stream) {
      if (stream.eatSpace()) return null;
      if (stream.match(/^--.*/)) return "comment";
      if (stream.match(/^'(?:[^']|'')*'?/)) return "string";
      if (stream.match(/^`[^`]*`?/)) return "variableName";
      if (stream.match(/^\.?\d[\d_.]*(?:[eE][+-]?\d+)?/)) return "number";
      const start = stream.pos;
      if (!stream.match(/^[\p{L}_]\w*/u)) {
        stream.next();
        return null;
      }
      const word = known.get(stream.current().toUpperCase());
      const isWord = word && matches(word.behind, stream.string, start) && matches(word.ahead, stream.string, stream.pos);
      return isWord ? word.style : "name";
    },
  });
}

const colours = HighlightStyle.define([
  { tag: tags.definitionKeyword, color: "var(--kind)", fontWeight: "600" },
  { tag: [tags.keyword, tags.operatorKeyword, tags.bool], color: "var(--keyword)" },
  { tag: [tags.typeName, tags.unit], color: "var(--keyword)", fontStyle: "italic" },
  { tag: tags.string, color: "var(--string)" },
  { tag: tags.number, color: "var(--number)" },
  { tag: tags.comment, color: "var(--comment)", fontStyle: "italic" },
]);

const look = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "var(--paper)" },
  ".cm-content": { caretColor: "var(--ink)", padding: "12px 0" },
  ".cm-gutters": { backgroundColor: "var(--paper)", color: "var(--muted)", border: "none", paddingLeft: "6px" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--tint) 55%, transparent)" },
  "&.cm-focused": { outline: "none" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--tint) !important" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-tooltip": { background: "var(--raised)", border: "1px solid var(--line)", borderRadius: "7px", overflow: "hidden" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { background: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { color: "var(--muted)", fontStyle: "normal" },
  "li[aria-selected] .cm-completionDetail": { color: "inherit" },
});

class FindingWidget extends WidgetType {
  constructor(finding) {
    super();
    this.finding = finding;
  }
  eq(other) {
    return JSON.stringify(other.finding) === JSON.stringify(this.finding);
  }
  toDOM() {
    const { message, hint } = this.finding;
    return element("div", { class: "finding" }, message, ...(hint ? [element("small", {}, hint)] : []));
  }
}

const showFindings = StateEffect.define();

const findingsField = StateField.define({
  create: () => Decoration.none,
  update(decorations, transaction) {
    let found = decorations.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (effect.is(showFindings)) found = decorated(transaction.state.doc, effect.value);
    }
    return found;
  },
  provide: (field) => EditorView.decorations.from(field),
});

function decorated(text, findings) {
  const ranges = [];
  for (const finding of findings) {
    const line = text.line(Math.min(finding.line, text.lines));
    const last = text.line(Math.min(finding.end_line, text.lines));
    const from = Math.min(line.from + finding.column - 1, line.to);
    const to = Math.min(Math.max(last.from + finding.end_column - 1, from + 1), last.to);
    if (to > from) ranges.push(Decoration.mark({ class: "wrong-text" }).range(from, to));
    ranges.push(Decoration.widget({ widget: new FindingWidget(finding), block: true, side: 1 }).range(line.to));
  }
  return Decoration.set(ranges, true);
}

export function createEditor(parent, { words, onChange, onSave, onRun, complete }) {
  const completed = async (context) => {
    const word = context.matchBefore(/\w*/);
    if (!context.explicit && word.from === word.to && context.state.sliceDoc(word.from - 1, word.from) !== ".") return null;
    const found = await complete(context.state.doc.toString(), context.pos);
    const options = found.words.map(({ text, what, remark }, index) => ({
      label: text, detail: `${what} ${remark}`.trim(), boost: -index / 10,
    }));
    return options.length ? { from: found.start, options, validFor: /^\w*$/ } : null;
  };
  const command = (action) => () => {
    action();
    return true;
  };
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: "",
      extensions: [
        lineNumbers(), highlightActiveLineGutter(), highlightActiveLine(), history(), drawSelection(), bracketMatching(),
        closeBrackets(), highlightSelectionMatches(), language(words), syntaxHighlighting(colours), look, findingsField,
        autocompletion({ override: [completed] }), EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": "Workbook text", tabindex: "0" }),
        keymap.of([
          { key: "Mod-Enter", run: command(onRun) }, { key: "Mod-s", run: command(onSave) },
          // Tab moves on to the next control, so that the keyboard can leave the editor.
          ...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...completionKeymap,
        ]),
        EditorView.updateListener.of((update) => update.docChanged && onChange()),
      ],
    }),
  });
  return {
    get text() {
      return view.state.doc.toString();
    },
    set text(value) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: value } });
    },
    show(findings) {
      view.dispatch({ effects: showFindings.of(findings) });
    },
    focus() {
      view.focus();
    },
  };
}

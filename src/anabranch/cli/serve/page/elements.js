// Elements with text, never with HTML: names and values come from the data.
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") made.addEventListener("click", value);
    else if (value !== false && value !== undefined) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

export const number = (value) => value.toLocaleString("en");

export function plural(count, word, several = `${word}s`) {
  return `${number(count)} ${count === 1 ? word : several}`;
}

// A probability between 0 and 1 is never shown as 0 or 1.
export function probabilityText(p) {
  if (p >= 0.9995 && p < 1) return ">0.999";
  if (p > 0 && p < 0.0005) return "<0.001";
  return p.toFixed(3);
}

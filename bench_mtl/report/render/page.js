// The page can be read without this script: it sorts and filters tables, shows one problem and one figure at a time, and switches solvers.
"use strict";
(() => {
  document.documentElement.classList.add("js");

  const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];

  function make(tag, properties = {}, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  }

  // ---------------------------------------------------------------- tables

  const FILTERED = 16; // tables of as many rows have a filter
  const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  /** What a cell sorts by, null where it is empty: the number that it begins with, or its words. */
  function keyOf(cell, numeric) {
    const text = cell.textContent.trim();
    if (!numeric) return text === "-" || text === "" ? null : text;
    const number = Number.parseFloat(text.replace(/^[<>]=?\s*/, ""));
    return Number.isNaN(number) ? null : number;
  }

  /** Sorts rows upward or downward; empty cells come last either way, and equal rows stay as they were. */
  function sorted(rows, column, numeric, sign) {
    const compare = numeric ? (a, b) => a - b : words.compare;
    const keyed = rows.map((row) => [row, keyOf(row.cells[column], numeric)]);
    keyed.sort(([, a], [, b]) => (a === null) - (b === null) || (a === null ? 0 : sign * compare(a, b)));
    return keyed.map(([row]) => row);
  }

  function addSorting(table) {
    const [body] = table.tBodies, rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = make("button", { type: "button", textContent: head.textContent });
      // Upward, then downward, then as it was.
      button.addEventListener("click", () => {
        const next = { none: "ascending", ascending: "descending", descending: "none" }[head.getAttribute("aria-sort")];
        for (const other of heads) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", next);
        const sign = next === "ascending" ? 1 : -1;
        body.append(...(next === "none" ? rows : sorted(rows, column, head.classList.contains("n"), sign)));
      });
      head.replaceChildren(button);
      head.setAttribute("aria-sort", "none");
    });
  }

  function addFilter(table) {
    const rows = [...table.tBodies[0].rows];
    const search = make("input", { type: "search", placeholder: "all of these words" });
    search.setAttribute("aria-label", `Filter the rows of ${table.dataset.table}`);
    const count = make("span", { className: "count" });
    count.setAttribute("aria-live", "polite");
    const show = () => {
      const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of rows) {
        const text = [...row.cells].map((cell) => cell.textContent).join("\n").toLowerCase();
        row.hidden = !wanted.every((word) => text.includes(word));
      }
      const shown = rows.filter((row) => !row.hidden).length;
      count.textContent = shown < rows.length ? `${shown} of ${rows.length} rows` : `${rows.length} rows`;
    };
    search.addEventListener("input", show);
    show();
    table.closest(".scroll").before(make("p", { className: "tools" }, make("label", {}, "Filter ", search), count));
  }

  for (const table of $$("table[data-table]")) {
    const { length } = table.tBodies[0].rows;
    if (length > 1) addSorting(table);
    if (length >= FILTERED) addFilter(table);
  }

  // ---------------------------------------------------------------- problems and their figures

  const articles = $$("article[data-subject]");
  const subject = document.getElementById("subject");
  const quantity = document.getElementById("quantity");
  const buttons = $$("button[data-of]"); // of solvers

  /** Shows the problem that is chosen, of its figures the one of that kind, or its first one, and the buttons of that figure's solvers. */
  function showProblem() {
    for (const article of articles) {
      article.hidden = article.dataset.subject !== subject.value;
      const figures = $$("figure", article);
      const chosen = figures.find((figure) => figure.dataset.quantity === quantity?.value) ?? figures[0];
      for (const figure of figures) figure.hidden = figure !== chosen;
      if (article.hidden) continue;
      const there = figures.map((figure) => figure.dataset.quantity);
      for (const option of quantity?.options ?? []) option.disabled = !there.includes(option.value);
      if (quantity && chosen) quantity.value = chosen.dataset.quantity;
      for (const button of buttons) button.hidden = !chosen?.querySelector(`.solver-${CSS.escape(button.dataset.of)}`);
    }
  }

  /** A link to a problem, or into it, shows it. */
  function followAddress() {
    const place = document.querySelector(":target")?.closest("article[data-subject]");
    if (!place?.hidden) return;
    subject.value = place.dataset.subject;
    showProblem();
    place.scrollIntoView();
  }

  if (subject) {
    subject.addEventListener("change", showProblem);
    quantity?.addEventListener("change", showProblem);
    subject.form.addEventListener("submit", (event) => event.preventDefault());
    for (const event of ["hashchange", "load"]) window.addEventListener(event, followAddress);
    showProblem(); // a browser may have kept what was chosen
  }

  // ---------------------------------------------------------------- one of several figures

  for (const section of $$("section")) {
    const figures = $$("figure[data-one-of]", section);
    if (figures.length < 2) continue;
    const select = make("select", {}, ...figures.map((figure) => make("option", { textContent: figure.dataset.oneOf })));
    const show = () => figures.forEach((figure, place) => (figure.hidden = place !== select.selectedIndex));
    select.addEventListener("change", show);
    figures[0].before(make("p", { className: "tools" }, make("label", {}, "Figure ", select)));
    show();
  }

  // ---------------------------------------------------------------- solvers

  const isOn = (button) => button.getAttribute("aria-pressed") === "true";

  /** Shows or hides what belongs to a solver in all figures; its entry in their legends fades. */
  function turn(button, on) {
    button.setAttribute("aria-pressed", String(on));
    const slug = CSS.escape(button.dataset.of);
    for (const part of $$(`.solver-${slug}, .legend-${slug}`)) part.classList.toggle("off", !on);
  }

  for (const button of buttons) button.addEventListener("click", () => turn(button, !isOn(button)));
  for (const every of $$("button[data-all]")) {
    every.addEventListener("click", () => buttons.forEach((button) => turn(button, every.dataset.all === "on")));
  }
  // An entry of a legend is a button for who has a mouse.
  document.addEventListener("click", ({ target }) => {
    const entry = target.closest("[class^=legend-]");
    const button = entry && buttons.find(({ dataset }) => entry.classList.contains(`legend-${dataset.of}`));
    if (button) turn(button, !isOn(button));
  });
})();

// The script of the page: the filters, the charts, and the table of all values.
// Texts of the run reach the page as text only, never as HTML.
"use strict";
(() => {
  const shown = JSON.parse(document.getElementById("shown").textContent);
  const byId = (id) => document.getElementById(id);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const form = byId("filters"), work = byId("work"), conditions = byId("conditions"), root = document.documentElement;
  const systemDark = window.matchMedia("(prefers-color-scheme: dark)");

  // ---- tables -------------------------------------------------------------------------------------------------
  function unpacked(table) {
    const columns = Object.entries(table.columns);
    return Array.from({ length: table.length }, (_, row) => {
      const record = {};
      for (const [name, column] of columns) {
        const value = Array.isArray(column) ? column[row] : column.of[column.at[row]];
        if (value !== null) record[name] = value;
      }
      return record;
    });
  }
  const tables = new Map();
  function recordsOf(name) {
    if (!tables.has(name)) tables.set(name, unpacked(name === "figures of rows" ? shown.figures.rows : shown.tables[name]));
    return tables.get(name);
  }

  // ---- what is chosen -----------------------------------------------------------------------------------------
  const chosenContestants = () => new Set(all("input.contestant:checked").map((box) => box.value));
  const look = () => shown.looks[(root.dataset.theme || (systemDark.matches ? "dark" : "light"))];

  function wanted(record, scope, contestants) {
    if (record.contestant !== undefined && !contestants.has(record.contestant)) return false;
    const sameConditions = record.conditions === conditions.value;
    if (scope === "works") return sameConditions;
    if (scope === "batches") return sameConditions && shown.groups[record.work_id] === shown.groups[work.value];
    return record.work_id === work.value && (scope === "both conditions" || sameConditions);
  }

  // ---- charts -------------------------------------------------------------------------------------------------
  function filledIn(spec, values, lists) {
    if (Array.isArray(spec)) {
      if (spec.length === 1 && lists.has(spec[0])) return lists.get(spec[0]);
      return spec.map((each) => filledIn(each, values, lists));
    }
    if (spec !== null && typeof spec === "object")
      return Object.fromEntries(Object.entries(spec).map(([key, value]) => [key, filledIn(value, values, lists)]));
    return typeof spec === "string" && values.has(spec) ? values.get(spec) : spec;
  }

  function setLegends(spec, width, keyed) {
    if (spec === null || typeof spec !== "object") return;
    if (keyed && spec.field === "contestant" && spec.legend) spec.legend = null; // the key above the chart shows it
    else if (spec.legend) spec.legend.columns = Math.max(1, Math.floor((width - 120) / 100));
    Object.values(spec).forEach((each) => setLegends(each, width, keyed));
  }

  const drawn = new Map();
  async function draw(element) {
    const key = element.dataset.chart, chart = shown.charts[key], now = look();
    const contestants = chosenContestants();
    const data = Object.fromEntries(
      chart.tables.map((name) => [name, recordsOf(name).filter((record) => wanted(record, chart.scope, contestants))]));
    const turn = (drawn.get(element) || { turn: 0 }).turn + 1;
    drawn.get(element)?.result?.finalize();
    drawn.set(element, { turn });
    const present = new Set(Object.values(data).flat().map((record) => record.contestant));
    const order = shown.order[`${work.value}|${conditions.value}`] || shown.contestants;
    const names = order.filter((name) => present.has(name));
    const keyList = element.parentElement.querySelector(".key");
    if (keyList) showKey(keyList, names);
    if (!data[chart.tables[0]].length) {
      element.replaceChildren(paragraph("No data for this selection."));
      return;
    }
    const words = shown.words, width = element.clientWidth, narrow = width < 480;
    const values = new Map([[words.ink, now.ink], [words.muted, now.muted], [words.paper, now.paper],
      [words.label, shown.labels[narrow ? "narrow" : "wide"]]]);
    const lists = new Map([
      [words.contestants, names], [words.colours, names.map((name) => now.colours[name])], [words.phases, now.phases], [words.layers, now.layers]]);
    const spec = filledIn(chart.spec, values, lists);
    setLegends(spec, width, keyList !== null);
    if (spec.facet) {
      spec.spec.width = Math.max(120, width - 90);
      spec.data = { values: data[chart.tables[0]] };
    } else {
      const height = spec.height || names.length * chart.rowHeight;
      Object.assign(spec, { width, height, autosize: { type: "fit-x", contains: "padding" }, datasets: data });
    }
    spec.description = chart.note;
    const config = structuredClone(now.config);
    if (narrow) {
      for (const axis of [config.axisYBand, config.axisYPoint]) Object.assign(axis, { labelLimit: 96, labelFontSize: 12 });
      config.axisX.tickCount = 3;
    }
    const options = { renderer: "svg", ast: true, config, mode: "vega-lite", logLevel: 1,
      actions: { export: true, source: false, compiled: false, editor: false } };
    try {
      const result = await vegaEmbed(element, spec, options);
      if (drawn.get(element).turn === turn) drawn.set(element, { turn, result });
      else result.finalize();
      element.querySelector("details")?.setAttribute("title", "Save this chart");
      element.querySelector("summary")?.setAttribute("aria-label", "Save this chart");
    } catch (error) {
      element.replaceChildren(paragraph(`Cannot draw this chart: ${error.message}`));
      console.error(error);
    }
  }

  function showKey(list, names) {
    list.hidden = false;
    list.replaceChildren(...names.map((name) => {
      const item = document.createElement("li"), dot = document.createElement("span");
      dot.className = "dot";
      dot.style.setProperty("--colour", `var(--contestant-${shown.contestants.indexOf(name)})`);
      item.append(dot, name);
      return item;
    }));
  }

  function paragraph(text) {
    const element = document.createElement("p");
    element.className = "caption";
    element.textContent = text;
    return element;
  }

  // Charts are drawn when they come near; the rest when nothing else is to do, so that printing finds them all.
  const waiting = new Set();
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting && waiting.delete(target)) draw(target);
  }, { rootMargin: "400px" });
  const idle = window.requestIdleCallback || ((then) => setTimeout(then, 50));
  async function drawRest() {
    const [next] = waiting;
    if (next === undefined) { root.dataset.drawn = "all"; return; }
    waiting.delete(next);
    await draw(next);
    idle(drawRest);
  }
  function redraw() {
    root.dataset.drawn = "some";
    for (const element of all("[data-chart]")) {
      waiting.add(element);
      near.unobserve(element);
      near.observe(element);
    }
    idle(drawRest);
  }

  // ---- the rest of the page -----------------------------------------------------------------------------------
  function choose() {
    const contestants = chosenContestants();
    for (const part of all("[data-work]"))
      part.hidden = part.dataset.work !== work.value ||
        (part.dataset.conditions !== undefined && part.dataset.conditions !== conditions.value);
    for (const row of all("tr[data-contestant]")) row.hidden = !contestants.has(row.dataset.contestant);
    for (const button of all("button[data-choose]"))
      button.setAttribute("aria-current", String(button.dataset.choose === work.value));
    if (byId("every-figure").open) showEvery();
    redraw();
  }

  function cell(kind, text, scope) {
    const element = document.createElement(kind);
    if (scope) element.scope = scope;
    const absent = typeof text === "string" && text.startsWith("absent: ");
    element.textContent = text === undefined ? "" : absent ? text.slice(8) : String(text);
    if (absent) element.className = "absent";
    return element;
  }

  function showEvery() {
    const contestants = chosenContestants();
    const rows = recordsOf("figures of rows").filter((record) => wanted(record, "work", contestants));
    const table = document.createElement("table"), head = document.createElement("tr"), body = [];
    table.className = "wide";
    head.append(cell("th", "value", "col"), ...rows.map((row) => cell("th", row.contestant, "col")));
    let group = "";
    for (const column of shown.figures.described) {
      if (column.group !== group) {
        const title = document.createElement("tr"), name = cell("th", (group = column.group), "rowgroup");
        name.colSpan = rows.length + 1;
        title.append(name);
        title.className = "group";
        body.push(title);
      }
      const row = document.createElement("tr"), name = cell("th", column.name, "row");
      name.title = column.meaning;
      row.append(name, ...rows.map((record) => cell("td", record[column.name])));
      body.push(row);
    }
    table.createCaption().textContent = `${work.selectedOptions[0].textContent}, ${conditions.value}`;
    table.createTHead().append(head);
    table.createTBody().append(...body);
    const scroll = document.createElement("div");
    scroll.className = "scroll";
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "All values");
    scroll.append(table);
    byId("every").replaceChildren(scroll);
  }

  function showTheme() {
    const dark = look() === shown.looks.dark;
    byId("theme").setAttribute("aria-pressed", String(dark));
    byId("theme").textContent = dark ? "Light" : "Dark";
  }

  form.hidden = work.options.length < 2 && conditions.options.length < 2 && shown.contestants.length < 2;
  form.addEventListener("change", choose);
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const button of all("button[data-choose]")) button.addEventListener("click", () => {
    work.value = button.dataset.choose;
    choose();
    document.querySelector("[data-work]:not([hidden])").scrollIntoView({ block: "center" });
  });
  byId("every-figure").addEventListener("toggle", () => { if (byId("every-figure").open) showEvery(); });
  byId("theme").hidden = false;
  byId("theme").addEventListener("click", () => {
    root.dataset.theme = look() === shown.looks.dark ? "light" : "dark";
    showTheme();
    redraw();
  });
  systemDark.addEventListener("change", () => { showTheme(); redraw(); });
  const save = byId("save-plan");
  save.hidden = false;
  save.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([byId("plan").textContent], { type: "application/json" }));
    link.download = "plan.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  let width = root.clientWidth, resizing = 0;
  window.addEventListener("resize", () => {
    clearTimeout(resizing);
    resizing = setTimeout(() => { if (root.clientWidth !== width) { width = root.clientWidth; redraw(); } }, 150);
  });
  showTheme();
  if (work.options.length) choose();
})();

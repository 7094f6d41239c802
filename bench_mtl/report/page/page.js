// The page can be read without this script, which adds the charts, the rows of long tables, sorting and choosing, and keeps in the address what
// is chosen.
"use strict";
(() => {
  const given = document.getElementById("data");
  const data = given ? JSON.parse(given.textContent) : { targets: [], solvers: [], problems: [], charts: [] };
  document.documentElement.classList.add("js");

  const $ = (selector, within = document) => within.querySelector(selector);
  const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];

  function make(tag, properties = {}, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  }

  // ---------------------------------------------------------------- tables

  const PAGE = 200; // rows shown before somebody asks for more
  const ROLES = ["problem", "solver", "status", "target"];
  const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  const chosen = () => Object.fromEntries(ROLES.map((role) => [role, $(`#only-${role}`)?.value ?? ""]));

  /** A row that is in the page. */
  class WrittenRow {
    constructor(element) {
      this.element = element;
    }

    text(column) {
      return this.element.cells[column].textContent;
    }

    key(column) {
      return this.element.cells[column].dataset.v;
    }
  }

  /** A row that is made when it is shown: of each column its distinct cells are known, and which of them is this row's. */
  class PackedRow {
    constructor(columns, place) {
      Object.assign(this, { columns, place });
    }

    cell(column) {
      const { cells, rows } = this.columns[column];
      return cells[rows[this.place]];
    }

    text(column) {
      return this.cell(column)[0];
    }

    key(column) {
      return this.cell(column)[1] ?? undefined;
    }

    get element() {
      this.made ??= make("tr", {}, ...this.columns.map((_, column) => {
        const [text, key, tone] = this.cell(column);
        const cell = make("td", { textContent: text, className: tone || "" });
        if (typeof key === "string") cell.dataset.v = key;
        return cell;
      }));
      return this.made;
    }
  }

  class SortableTable {
    constructor(table) {
      this.name = table.closest("section").id.replace(/^table-/, "");
      this.sorted = null;
      this.heads = $$("thead th", table);
      this.body = table.tBodies[0];
      this.rows = [...this.body.rows].map((row) => new WrittenRow(row));
      const rest = $("script", table.closest("section"));
      if (rest) {
        const columns = JSON.parse(rest.textContent);
        this.rows.push(...columns[0].rows.map((_, place) => new PackedRow(columns, place)));
      }
      this.order = this.rows;
      this.all = this.rows.length <= PAGE;
      this.roles = ROLES.map((role) => this.heads.flatMap((head, i) => (head.dataset.role === role ? [i] : [])));
      this.heads.forEach((head, i) => {
        const button = make("button", { type: "button", textContent: head.textContent });
        button.addEventListener("click", () => this.turn(i));
        head.replaceChildren(button);
        head.setAttribute("aria-sort", "none");
      });
      this.addTools(table);
    }

    addTools(table) {
      this.search = make("input", { type: "search", placeholder: "all of these words" });
      this.search.setAttribute("aria-label", `Filter the rows of ${table.dataset.table}`);
      this.search.addEventListener("input", () => {
        this.show(chosen());
        keep();
      });
      this.count = make("span", { className: "count" });
      this.count.setAttribute("aria-live", "polite");
      this.more = make("button", { type: "button", hidden: true });
      this.more.addEventListener("click", () => {
        this.all = true;
        this.show(chosen());
      });
      const tools = make("div", { className: "tools" }, make("label", {}, "Filter", this.search), this.count, this.more);
      table.parentElement.before(tools);
    }

    /** Upward, then downward, then as it was. */
    turn(column) {
      const [last, down] = this.sorted ?? [];
      this.sort(last !== column ? [column, false] : down ? null : [column, true]);
      this.show(chosen());
      keep();
    }

    sort(by) {
      this.sorted = by;
      const [column, down] = by ?? [];
      this.heads.forEach((head, i) => head.setAttribute("aria-sort", i !== column ? "none" : down ? "descending" : "ascending"));
      if (!by) {
        this.order = this.rows;
        return;
      }
      const sign = down ? -1 : 1, numeric = "num" in this.heads[column].dataset;
      const keyed = this.rows.map((row, place) => [row, sortKey(row, column, numeric), place]);
      const compare = numeric ? (a, b) => a - b : words.compare;
      // What has no number comes last either way; equal rows stay as they were.
      keyed.sort(([, a, i], [, b, j]) => (a === null) - (b === null) || (a === null ? 0 : sign * compare(a, b)) || i - j);
      this.order = keyed.map(([row]) => row);
    }

    save(kept) {
      if (this.sorted) kept.set(`sort.${this.name}`, (this.sorted[1] ? "-" : "") + this.heads[this.sorted[0]].textContent);
      if (this.search.value) kept.set(`find.${this.name}`, this.search.value);
    }

    load(kept) {
      const by = kept.get(`sort.${this.name}`) ?? "", titles = this.heads.map((head) => head.textContent);
      const places = [[titles.indexOf(by), false], [titles.indexOf(by.slice(1)), by.startsWith("-")]];
      this.sort(places.find(([column, down], i) => column >= 0 && (i === 0 || down)) ?? null);
      this.search.value = kept.get(`find.${this.name}`) ?? "";
    }

    show(choice) {
      const all = this.all;
      const wanted = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const picked = ROLES.map((role, i) => [role, choice[role], this.roles[i]]).filter(([, value, columns]) => value && columns.length);
      const holds = (row) => {
        const text = this.heads.map((_, i) => row.text(i)).join("\n").toLowerCase();
        return wanted.every((word) => text.includes(word));
      };
      const found = this.order.filter(
        (row) => picked.every(([role, value, columns]) => columns.some((i) => matches(role, row.text(i), value))) && (!wanted.length || holds(row)),
      );
      const shown = (all ? found : found.slice(0, PAGE)).map((row) => row.element);
      const now = this.body.rows;
      if (now.length !== shown.length || shown.some((element, i) => element !== now[i])) this.body.replaceChildren(...shown);
      this.more.hidden = all || found.length <= PAGE;
      this.more.textContent = `Show all ${found.length} rows`;
      const total = this.rows.length, cut = this.more.hidden ? "" : `, the first ${PAGE} shown`;
      this.count.textContent = `${found.length < total ? `${found.length} of ` : ""}${total} ${total === 1 ? "row" : "rows"}${cut}`;
    }
  }

  function sortKey(row, column, numeric) {
    const text = row.text(column);
    if (!numeric) return text === "-" ? null : text;
    const number = Number.parseFloat(row.key(column) || text);
    return Number.isNaN(number) ? null : number;
  }

  function matches(role, text, value) {
    // A status may be one of several: "verified 2/3, timeout 1/3".
    return role === "status" ? text.split(/[ ,]+/).includes(value) : text === value;
  }

  const tables = $$("table[data-table]").map((table) => new SortableTable(table));

  // ---------------------------------------------------------------- charts

  const AXES = ["seconds", "passes", "iteration"];
  const AXIS_LABELS = { seconds: "solve time (s)", passes: "passes over the data", iteration: "iterations", examples: "examples seen" };
  const UNITS = ["s", "passes", "iterations"];
  const UNIT_OF = { seconds: " s", passes: " passes", iteration: " iterations", examples: " examples" };
  const MARKERS = {
    o: ["circle", 0], s: ["rect", 0], "^": ["triangle", 0], D: ["rectRot", 0], v: ["triangle", 180],
    P: ["cross", 0], "<": ["triangle", -90], "*": ["star", 0], ">": ["triangle", 90], h: ["rectRounded", 0],
  };

  // ---------------------------------------------------------------- light and dark

  const LIGHT = { ground: "#ffffff", ink: "#333", axis: "#555", grid: "#ebebeb", mark: "#8c8c8c", named: "#666", front: "#ccc", tip: "#1b1f24", told: "#fff" };
  const DARK = { ground: "#12161c", ink: "#c3ccd6", axis: "#7d8894", grid: "#262d36", mark: "#7d8894", named: "#9aa5b1", front: "#3d4651", tip: "#e6ebf1", told: "#12161c" };
  const night = window.matchMedia("(prefers-color-scheme: dark)");
  let printing = false; // paper is white
  const palette = () => (night.matches && !printing ? DARK : LIGHT);

  const short = (value) => {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e-4 && size < 1e6) return String(Number(value.toPrecision(4)));
    return value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e");
  };

  /** As the printed figures and the tables write targets: 1e-4. */
  const power = (value) => (value > 0.99 ? short(value) : value.toExponential(1).replace(".0e", "e"));

  const faded = (colour, alpha) => {
    const [r, g, b] = [1, 3, 5].map((i) => Number.parseInt(colour.slice(i, i + 2), 16));
    return `rgba(${r},${g},${b},${alpha})`;
  };

  /** What all datasets of one solver share. */
  function look(s) {
    const solver = data.solvers[s], { colour } = solver;
    const [pointStyle, rotation] = MARKERS[solver.marker] ?? ["circle", 0];
    const open = pointStyle === "cross" || pointStyle === "crossRot" || pointStyle === "star";
    const inside = solver.marker === "h" ? palette().ground : colour; // it would be taken for a circle
    return {
      s, borderColor: colour, backgroundColor: colour, pointBackgroundColor: inside, pointBorderColor: colour,
      pointStyle, rotation, pointBorderWidth: open ? 2 : 1, pointHitRadius: 5, borderWidth: 1.8, borderDash: solver.dash, fill: false,
    };
  }

  /** Those points of a long line that get a marker: wherever it has come far enough since the last one. */
  function marked(points, place) {
    let [x, y] = [-Infinity, -Infinity];
    return points.filter((point) => {
      const [u, v] = place(point);
      if (Math.hypot(u - x, v - y) < 0.13) return false;
      [x, y] = [u, v];
      return true;
    });
  }

  const PEN_UP = { x: NaN, y: NaN };

  /** Datasets of one solver, of each kind one, however many runs it has: a dataset costs more than its points, and so do unlike points in one. */
  class Sets {
    constructor(s) {
      this.style = look(s);
      this.sets = [];
    }

    /** Adds a line, or loose points, to the dataset that looks like `options`. */
    add(name, points, options) {
      let set = this.sets.find((one) => one.name === name);
      if (!set) this.sets.push((set = { ...this.style, ...options, name, data: [] }));
      if (set.data.length && set.showLine !== false) set.data.push(PEN_UP);
      for (const point of points) set.data.push(point);
    }

    steps(points, seen, place) {
      this.add("steps", points, { stepped: "before", pointRadius: 0 });
      this.add("markers", marked(seen, place), { showLine: false, pointRadius: 3, pointHitRadius: 0 });
    }

    answers(points) {
      this.add("answers", points, { borderWidth: 0.8, pointRadius: 4 });
    }

    cross(point) {
      this.add("crosses", [point], { showLine: false, pointStyle: "crossRot", rotation: 0, pointRadius: 6, pointHoverRadius: 7, pointBorderWidth: 2.5, pointHoverBorderWidth: 3, order: -1 });
    }
  }

  const named = ({ s, note }) => data.solvers[s].label + (note ? ` (${note})` : "");

  /** The same with the kind of the solver. */
  const introduced = (entry) => `${named(entry)}, ${data.solvers[entry.s].kind}`;

  /** Heights of crosses at the top edge of a chart, below one another where they would lie on top of each other. */
  function topEdge({ x: [left, right], y: [low, high] }, logx, logy) {
    const taken = [];
    return (x) => {
      const across = logx ? Math.log(x / left) / Math.log(right / left) : (x - left) / (right - left);
      let row = 0;
      while (taken.some(([place, other]) => other === row && Math.abs(place - across) < 0.025)) row += 1;
      taken.push([across, row]);
      const share = Math.max(0, 0.98 - 0.038 * row);
      return logy ? low * (high / low) ** share : low + share * (high - low);
    };
  }

  /** The same places on an axis whose numbers are so many times as large. */
  function scaled({ x, band, end, ...rest }, factor) {
    const times = (value) => value * factor;
    return {
      ...rest, x: x?.map(times), band: band && [band[0].map(times), ...band.slice(1)], end: end && [times(end[0]), end[1], times(end[2])],
    };
  }

  /** The gaps, or another quantity, of one problem against one axis, as a chart of datasets of the solvers that are shown. */
  function convergence(chart, shown, examples, axis, logx, logy) {
    const [column, factor] = axis === "examples" ? [AXES.indexOf("passes"), examples] : [AXES.indexOf(axis), 1];
    const ends = chart.axes[column].map((end) => end * factor), [low, high] = chart.gaps, straight = chart.log === false;
    const upward = logy && !straight;
    const limits = { x: logx ? ends : [0, ends[1]], y: upward || straight ? chart.gaps : [0, chart.what ? high : high / 2] };
    const view = {
      left: ends[0], unit: UNIT_OF[axis], top: topEdge(limits, logx, upward), gaps: !chart.what,
      up: (y) => (upward ? Math.max(y, low) : y),
      say: chart.what ? (value) => `${chart.what} ${short(value)}` : toldGap,
      place: ({ x, y }) => [
        Math.log(x) / Math.log(ends[1] / ends[0]), straight ? y / (high - low) : Math.log(Math.max(y, low)) / Math.log(high / low),
      ],
    };
    const datasets = chart.solvers.filter((solver) => solver.x[column] && shown(solver.s)).flatMap((solver) => {
      const sets = new Sets(solver.s), { x, band, from, answers, end } = factor === 1 ? solver.x[column] : scaled(solver.x[column], factor);
      if (x) addRun(sets, solver, x, view);
      if (answers) addAnswers(sets, solver, answers, view);
      if (band) addBand(sets, solver, band, from, view);
      if (end) addEnd(sets, solver, end, view);
      return sets.sets;
    });
    datasets.push(...failures(chart, (chart.failed?.[column] ?? []).filter(({ s }) => shown(s)), { ...view, ends, factor }));
    const what = chart.what || "proven relative gap";
    const marks = chart.what ? [] : data.targets.filter((target) => shownTargets.has(target.label)).map((target) => ({ ...target, name: `target ${target.label}` }));
    return { datasets, limits, labels: { x: AXIS_LABELS[axis], y: what }, marks, logx, logy: upward };
  }

  /** What is said of a gap; below the least one that is drawn all are alike. */
  const toldGap = (gap) => `relative gap ${short(gap)}${gap <= data.least ? " or less" : ""}`;

  function addRun(sets, solver, x, { left, up, say, place }) {
    const points = x.map((at, i) => ({ x: at, y: up(solver.y[i]), solver, i, say }));
    if (solver.asked) sets.answers(points);
    // Markers begin where something is seen.
    else sets.steps(points, points.filter((point) => point.x >= left), place);
  }

  /** The median of many runs in a band. */
  function addBand(sets, solver, [x, low, middle, high], from, { up, say, place, unit }) {
    const edge = { stepped: "before", borderWidth: 0, borderDash: [], pointRadius: 0, pointHitRadius: 0, order: 2 };
    const line = (y) => x.map((at, i) => ({ x: at, y: up(y[i]) }));
    sets.add("above", line(high), { ...edge, fill: "+1", backgroundColor: faded(sets.style.borderColor, 0.2) });
    sets.add("below", line(low), edge);
    const about = (at, i) => [introduced(solver), `median of ${solver.runs} runs`, say(middle[i]), short(at) + unit];
    const points = x.map((at, i) => ({ x: at, y: up(middle[i]), about: about(at, i) })).slice(from);
    sets.steps(points, points, place);
  }

  /** The medians of the answers to each tolerance, with bars. */
  function addAnswers(sets, solver, [lowX, x, highX, lowY, y, highY], { up, say, unit }) {
    const about = (i) => [introduced(solver), `median of the answers of ${solver.runs} runs`, say(y[i]), short(x[i]) + unit];
    sets.answers(x.map((at, i) => ({ x: at, y: up(y[i]), about: about(i) })));
    const bars = { borderColor: faded(sets.style.borderColor, 0.5), borderWidth: 1, borderDash: [], pointRadius: 0, pointHitRadius: 0 };
    x.forEach((middle, i) => {
      sets.add("bars", [{ x: lowX[i], y: up(y[i]) }, { x: highX[i], y: up(y[i]) }], bars);
      sets.add("bars", [{ x: middle, y: up(lowY[i]) }, { x: middle, y: up(highY[i]) }], bars);
    });
  }

  /** A dotted line from the last point of runs that a limit ended to that place; the crosses of gaps are at the top edge. */
  function addEnd(sets, solver, [where, best, last], { up, say, unit, gaps }) {
    const waiting = { borderWidth: 1, borderDash: [2, 3], pointRadius: 0, pointHitRadius: 0 };
    if (where > last) sets.add("waiting", [{ x: last, y: up(best) }, { x: where, y: up(best) }], waiting);
    if (!gaps) sets.cross({ x: where, y: up(best), about: [introduced(solver), `stopped by a limit at ${short(where)}${unit}`, say(best)] });
  }

  /** Crosses at the top edge, where runs ended short of their targets, or have proven nothing. */
  function failures(chart, failed, { ends: [left, right], factor, unit, top, say }) {
    const of = new Map();
    for (const { s, status, why, runs, x } of failed) {
      const solver = chart.solvers.find((entry) => entry.s === s), entry = solver || chart.nothing.find((one) => one.s === s);
      const place = Math.min(Math.max((x ?? Infinity) * factor, left), right);
      const proven = solver ? (solver.y ? say(Math.min(...solver.y)) : "") : "nothing proven";
      const when = x === null ? `${status}, at a time that is not known` : `${status} at ${short(x * factor)}${unit}`;
      const about = [introduced(entry), when + (runs > 1 ? `, ${runs} runs` : ""), proven, why].filter(Boolean);
      if (!of.has(s)) of.set(s, new Sets(s));
      of.get(s).cross({ x: place, y: top(place), about });
    }
    return [...of.values()].flatMap(({ sets }) => sets);
  }

  /** Any other chart: lines of solvers, and perhaps a limit, a place where solvers are equal, or a front. */
  function plain(chart, shown) {
    const at = (x, y) => [`${chart.x.label}: ${short(x)}`, `${chart.y.label}: ${short(y)}`];
    const datasets = chart.lines.filter(({ s }) => shown(s)).flatMap((line) => {
      const sets = new Sets(line.s);
      const points = line.x.map((x, i) => ({ x, y: line.y[i], about: [introduced(line), ...at(x, line.y[i])] }));
      sets.add("line", points, { stepped: chart.step ? "before" : false, pointRadius: chart.track ? 0 : chart.step ? 2.5 : 4 });
      if (line.end) {
        const [x, y] = line.end, hollow = { pointBackgroundColor: "rgba(255,255,255,0)", pointBorderWidth: 2.5, pointRadius: 8 };
        sets.add("end", [{ x, y, about: [introduced(line), "its end", ...at(x, y)] }], { ...hollow, showLine: false, order: -1 });
      }
      for (const [x, y] of line.crosses) sets.cross({ x, y, about: [introduced(line), `${chart.x.label}: ${short(x)}`, "not reached within the limit"] });
      return sets.sets;
    });
    if (chart.front) {
      const [xs, ys] = chart.front, colour = palette().front;
      const look = { borderColor: colour, backgroundColor: colour, borderWidth: 6, pointRadius: 0, pointHitRadius: 0, stepped: "before", order: 3 };
      datasets.push({ name: "front", s: null, data: xs.map((x, i) => ({ x, y: ys[i] })), ...look });
    }
    return {
      datasets, limits: { x: chart.x.ends, y: chart.y.ends }, labels: { x: chart.x.label, y: chart.y.label },
      marks: [...(chart.limit ? [chart.limit] : []), ...(chart.equal ? [{ value: chart.equal, upright: true }] : [])], logx: chart.x.log, logy: chart.y.log,
    };
  }

  /** Few and plain ticks: powers of ten, or 1, 2, 5 of them, or an even ladder where the axis spans less than that. */
  function logTicks(min, max, room) {
    const [first, last] = [Math.ceil(Math.log10(min) - 1e-9), Math.floor(Math.log10(max) + 1e-9)];
    const decades = last - first + 1;
    const ticks = [];
    if (decades >= 3 || (decades === 2 && room < 4)) {
      const step = Math.max(1, Math.ceil(decades / room));
      for (let power = first; power <= last; power += 1) if (power % step === 0) ticks.push(Number(`1e${power}`));
    } else {
      for (let power = first - 1; power <= last; power += 1) for (const m of [1, 2, 5]) ticks.push(Number(`${m}e${power}`));
    }
    const inside = ticks.filter((tick) => tick >= min && tick <= max);
    return inside.length > 1 ? inside : null;
  }

  function scale(axis, log, [min, max], label) {
    return {
      type: log ? "logarithmic" : "linear", min, max,
      title: { display: true, text: label, color: palette().ink },
      border: { color: palette().axis },
      grid: { color: palette().grid },
      ticks: { color: palette().ink, maxRotation: 0, autoSkipPadding: 12, includeBounds: false, callback: (value) => (log && axis === "y" ? power(value) : short(value)) },
      afterBuildTicks: (built) => {
        if (!log) return;
        const room = axis === "x" ? built.chart.width / 70 : built.chart.height / 34;
        const ticks = logTicks(built.min, built.max, room);
        if (ticks) built.ticks = ticks.map((value) => ({ value }));
      },
    };
  }

  /** Dashed lines across the chart with their names, and upright ones without. */
  const markLines = {
    id: "markLines",
    beforeDatasetsDraw(chart, _, { marks }) {
      const { ctx, chartArea: area } = chart;
      ctx.save();
      ctx.font = `11px ${Chart.defaults.font.family}`;
      ctx.textAlign = "left"; // on the right there are the crosses of runs that ended
      ctx.strokeStyle = palette().mark;
      ctx.setLineDash([5, 4]);
      for (const { label, name, value, upright } of marks) {
        const place = chart.scales[upright ? "x" : "y"].getPixelForValue(value);
        const [low, high] = upright ? [area.left, area.right] : [area.top, area.bottom];
        if (!(place >= low && place <= high)) continue;
        ctx.beginPath();
        ctx.moveTo(...(upright ? [place, area.top] : [area.left, place]));
        ctx.lineTo(...(upright ? [place, area.bottom] : [area.right, place]));
        ctx.stroke();
        if (upright) continue;
        ctx.fillStyle = palette().named;
        ctx.fillText(chart.width < 500 ? label : name || label, area.left + 4, place - 4);
      }
      ctx.restore();
    },
  };

  /** What is said of a point that is pointed at. */
  function told(item) {
    const { about, solver, i, say } = item.raw;
    if (about) return about;
    const counts = UNITS.flatMap((unit, axis) => (solver.x[axis] ? [`${short(solver.x[axis].x[i])} ${unit}`] : []));
    return [introduced(solver), say(solver.y[i]), counts.join(", "), ...(solver.asked ? [`tolerance asked ${solver.asked[i]}`] : [])];
  }

  /** A chart as the library takes it. */
  function configuration({ datasets, limits, labels, marks, logx, logy }, more = {}) {
    const { tip, told: words } = palette();
    return {
      type: "line",
      data: { datasets },
      plugins: [markLines],
      options: {
        animation: false, responsive: true, maintainAspectRatio: false,
        devicePixelRatio: Math.max(2, window.devicePixelRatio || 1),
        interaction: { mode: "nearest", intersect: true },
        scales: { x: scale("x", logx, limits.x, labels.x), y: scale("y", logy, limits.y, labels.y) },
        plugins: {
          legend: { display: false },
          markLines: { marks },
          tooltip: {
            displayColors: false, filter: (item, i) => i === 0, callbacks: { title: () => "", label: told },
            backgroundColor: tip, bodyColor: words, padding: 8,
          },
          zoom: {
            zoom: {
              mode: "xy", drag: { enabled: true, backgroundColor: "rgba(0,114,178,.15)", threshold: 8 },
              wheel: { enabled: true, modifierKey: "ctrl" }, pinch: { enabled: true },
            },
          },
        },
        ...more,
      },
    };
  }

  class Panel {
    /** `charts` have a label, a caption, and solvers or lines; `build` turns one of them into datasets of the solvers that are shown. */
    constructor(section, charts, { name, build, start }) {
      // Of the solvers, those that somebody asked for beside the leading ones, and those that somebody put away.
      Object.assign(this, { name, charts, build, section, on: new Set(), off: new Set(), wide: false });
      this.part = (of) => $(`[data-of=${of}]`, section);
      this.canvas = $(".canvas canvas", section);
      charts.forEach((chart, i) => this.part("chart").append(make("option", { value: i, textContent: chart.label })));
      for (const of of ["chart", "quantity"]) this.part(of)?.addEventListener("change", () => this.changed(true));
      for (const of of ["logx", "logy", "axis", "targets"]) this.part(of)?.addEventListener("change", () => this.changed(false));
      for (const [text, label, act] of [
        ["\u2212", "Zoom out", (chart) => chart.zoom(0.7)], ["+", "Zoom in", (chart) => chart.zoom(1.4)], ["Reset", "Reset the zoom", (chart) => chart.resetZoom("none")],
      ]) {
        const button = make("button", { type: "button", textContent: text, title: label });
        button.setAttribute("aria-label", label);
        button.addEventListener("click", () => act(this.chart));
        this.part("zoom").append(button);
      }
      this.canvas.addEventListener("dblclick", () => this.chart.resetZoom("none"));
      start?.(this);
    }

    changed(fresh) {
      this.draw(fresh);
      keep();
    }

    get current() {
      return this.charts[Number(this.part("chart").value)];
    }

    /** What is drawn of it. */
    get subject() {
      const what = this.part("quantity")?.value;
      return this.current.quantities?.find((quantity) => quantity.what === what) || this.current;
    }

    /** Whether a solver of a chart is shown: the leading ones are, unless somebody chose otherwise. */
    shows(s, chart) {
      return this.on.has(s) || (!this.off.has(s) && (!chart.lead || chart.lead.includes(s)));
    }

    built(chart = this.subject, examples = this.current.examples) {
      const [logx, logy] = ["logx", "logy"].map((of) => this.part(of)?.checked);
      return this.build(chart, (s) => this.shows(s, chart), { examples, axis: this.part("axis")?.value, logx, logy });
    }

    draw(fresh = false) {
      if (fresh) this.fill();
      const built = this.built();
      this.chart?.destroy();
      this.chart = new Chart(this.canvas, configuration(built));
      this.canvas.setAttribute("aria-label", `${this.current.label}: ${built.labels.y} against ${built.labels.x}. The numbers are in the tables.`);
      this.part("caption").textContent = this.subject.caption;
    }

    /** The choices that depend on the chart: what it can be drawn against, and its solvers. */
    fill() {
      const offer = (select, options) => {
        const before = select.value;
        select.replaceChildren(...options.map(([value, textContent]) => make("option", { value, textContent })));
        if (options.some(([value]) => value === before)) select.value = before;
      };
      const quantities = (this.current.quantities || []).map(({ what }) => [what, what]);
      if (this.part("quantity")) offer(this.part("quantity"), [["", "proven relative gap"], ...quantities]);
      const subject = this.subject;
      if (subject.axes) {
        const known = AXES.filter((_, i) => subject.axes[i]);
        if (this.current.examples && known.includes("passes")) known.push("examples");
        offer(this.part("axis"), known.map((of) => [of, AXIS_LABELS[of]]));
      }
      this.buttons = entriesOf(subject).map((entry) => {
        const { s } = entry, button = make("button", { type: "button", title: data.solvers[s].kind }, swatch(s), named(entry));
        button.addEventListener("click", () => {
          const [to, from] = this.shows(s, this.subject) ? [this.off, this.on] : [this.on, this.off];
          from.delete(s);
          to.add(s);
          this.toggle();
        });
        return [s, button];
      });
      const every = data.solvers.map((_, s) => s);
      const several = (textContent, on, off) => {
        const button = make("button", { type: "button", textContent, className: "all" });
        button.addEventListener("click", () => {
          [this.on, this.off] = [new Set(on), new Set(off)];
          this.toggle();
        });
        return button;
      };
      this.more = make("button", { type: "button", className: "all" });
      this.more.addEventListener("click", () => {
        this.wide = !this.wide;
        this.press();
      });
      const lead = subject.lead ? [several("Leading", [], [])] : [];
      const group = make("span", { className: "several" }, this.more, ...lead, several("All", every, []), several("None", [], every));
      this.part("legend").replaceChildren(...this.buttons.map(([, button]) => button), group);
      this.press();
    }

    /** Buttons say what is shown; those of the solvers that are not among the leading ones come when they are asked for. */
    press() {
      const { subject } = this;
      let away = 0;
      for (const [s, button] of this.buttons) {
        const pressed = this.shows(s, subject), behind = Boolean(subject.lead && !subject.lead.includes(s) && !pressed);
        away += behind;
        button.setAttribute("aria-pressed", String(pressed));
        button.classList.toggle("gone", behind && !this.wide);
      }
      this.more.hidden = !away && !this.wide;
      this.more.textContent = this.wide ? "Fewer" : `${away} more`;
      this.more.setAttribute("aria-expanded", String(this.wide));
    }

    toggle() {
      this.press();
      this.chart.data.datasets = this.built().datasets;
      this.chart.update("none");
      keep();
    }

    save(kept) {
      const set = (of, value) => kept.set(`${this.name}.${of}`, value);
      if (this.part("chart").selectedIndex > 0) set("chart", this.current.label);
      for (const of of ["quantity", "axis"]) if (this.part(of)?.selectedIndex > 0) set(of, this.part(of).value);
      for (const of of ["logx", "logy"]) if (this.part(of)?.checked === false) set(of, "no");
      if (this.part("targets") && shownTargets.size < data.targets.length) set("targets", [...shownTargets].join(" "));
      for (const [of, solvers] of [["show", this.on], ["hide", this.off]]) {
        if (solvers.size && solvers.size === data.solvers.length) set(of, "*");
        else for (const s of solvers) kept.append(`${this.name}.${of}`, data.solvers[s].label);
      }
    }

    load(kept) {
      const get = (of) => kept.get(`${this.name}.${of}`);
      const place = this.charts.findIndex((chart) => chart.label === get("chart"));
      this.part("chart").value = String(Math.max(0, place));
      [this.on, this.off] = ["show", "hide"].map((of) => {
        const labels = kept.getAll(`${this.name}.${of}`);
        return new Set(data.solvers.flatMap(({ label }, s) => (labels.includes(label) || labels.includes("*") ? [s] : [])));
      });
      for (const of of ["logx", "logy"]) if (this.part(of)) this.part(of).checked = get(of) !== "no";
      if (this.part("targets")) {
        const wanted = get("targets")?.split(" ");
        for (const box of $$("input", this.part("targets"))) {
          box.checked = !wanted || wanted.includes(box.value);
          (box.checked ? Set.prototype.add : Set.prototype.delete).call(shownTargets, box.value);
        }
      }
      for (const of of ["quantity", "axis"]) {
        this.fill();
        pick(this.part(of), get(of));
      }
      this.draw(true);
    }
  }

  /** Chooses a value that a list has, or the first one. */
  function pick(select, value) {
    if (select) select.selectedIndex = Math.max(0, [...select.options].findIndex((option) => option.value === value));
  }

  const entriesOf = (subject) => [...(subject.solvers || subject.lines), ...(subject.nothing || [])];

  function swatch(s) {
    const canvas = make("canvas", { width: 68, height: 28 });
    Object.assign(canvas.style, { width: "34px", height: "14px" });
    const context = canvas.getContext("2d"), style = look(s);
    context.scale(2, 2);
    Object.assign(context, { strokeStyle: style.borderColor, fillStyle: style.pointBackgroundColor, lineWidth: 1.6 });
    context.setLineDash(style.borderDash);
    context.beginPath();
    context.moveTo(2, 7);
    context.lineTo(32, 7);
    context.stroke();
    context.setLineDash([]);
    context.lineWidth = style.pointBorderWidth;
    Chart.helpers.drawPoint(context, { pointStyle: style.pointStyle, rotation: style.rotation, radius: 4, borderWidth: style.pointBorderWidth }, 17, 7);
    canvas.setAttribute("aria-hidden", "true");
    return canvas;
  }

  const shownTargets = new Set(data.targets.map((target) => target.label));

  function drawPanels() {
    const made = {};
    if (data.problems.length || data.charts.length) Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    if (data.problems.length) {
      made.convergence = new Panel($("#convergence"), data.problems, {
        name: "convergence",
        build: (chart, shown, { examples, axis, logx, logy }) => convergence(chart, shown, examples, axis, logx, logy),
        start: (panel) => {
          for (const { label } of data.targets) {
            const box = make("input", { type: "checkbox", checked: true, value: label });
            box.addEventListener("change", () => (box.checked ? shownTargets.add(label) : shownTargets.delete(label)));
            panel.part("targets").append(make("label", {}, box, label));
          }
        },
      });
    }
    if (data.charts.length) made.charts = new Panel($("#charts"), data.charts, { name: "charts", build: plain });
    return made;
  }

  // ---------------------------------------------------------------- choices of the whole page

  let panels = {};

  /** The chart of a problem. */
  function turnTo(problem) {
    const place = data.problems.findIndex(({ label }) => label === problem), panel = panels.convergence;
    if (!panel || place < 0 || panel.part("chart").value === String(place)) return;
    panel.part("chart").value = String(place);
    panel.draw(true);
  }

  function choose() {
    const choice = chosen();
    tables.forEach((table) => table.show(choice));
    $("#choices")?.classList.toggle("chosen", Object.values(choice).some(Boolean));
    turnTo(choice.problem);
    // Blocks of words about one problem follow the choice, too.
    for (const article of $$("#problems article")) article.classList.toggle("gone", Boolean(choice.problem) && $("h3", article).textContent !== choice.problem);
  }

  function chooseAndKeep() {
    choose();
    keep();
  }

  // ---------------------------------------------------------------- the address

  /** Which part of the page was gone to. */
  let at = "";
  let ready = false;

  /** Writes what is chosen into the address, so that a link shows the same. */
  function keep() {
    if (!ready) return;
    const kept = new URLSearchParams();
    if (at) kept.set("at", at);
    for (const [role, value] of Object.entries(chosen())) if (value) kept.set(role, value);
    for (const part of [...Object.values(panels), ...tables]) part.save(kept);
    const only = [...kept.keys()].join() === "at", text = only ? encodeURIComponent(at) : kept.toString();
    try {
      history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
    } catch {
      // A page within another may not change its address.
    }
  }

  /** Shows what the address says; what it says of things that are not here means nothing. */
  function restore() {
    const said = location.hash.slice(1), kept = new URLSearchParams(said.includes("=") ? said : "");
    for (const role of ROLES) pick($(`#only-${role}`), kept.get(role));
    tables.forEach((table) => table.load(kept));
    choose();
    Object.values(panels).forEach((panel) => panel.load(kept));
    if (!kept.has("convergence.chart")) turnTo(chosen().problem);
    if (kept.has("at")) {
      const part = document.getElementById(kept.get("at"));
      at = part?.id ?? "";
      part?.scrollIntoView();
    } else {
      goTo(anchorIn(said));
    }
  }

  function anchorIn(said) {
    try {
      return said.includes("=") ? "" : decodeURIComponent(said);
    } catch {
      return "";
    }
  }

  /** A part of the page is gone to: it is no longer put away, and a problem has its chart. */
  function goTo(name) {
    const part = name ? document.getElementById(name) : null;
    at = part?.id ?? "";
    if (!part?.matches("#problems article")) return;
    if (part.classList.contains("gone")) {
      $("#only-problem").value = "";
      choose();
      part.scrollIntoView();
    }
    turnTo($("h3", part).textContent);
  }

  $("#choices")?.addEventListener("change", chooseAndKeep);
  $("#choices")?.addEventListener("submit", (event) => event.preventDefault());
  // The form is reset after its event.
  $("#choices")?.addEventListener("reset", () => setTimeout(chooseAndKeep));
  window.addEventListener("hashchange", () => {
    if (location.hash.includes("=")) restore();
    else goTo(anchorIn(location.hash.slice(1)));
    keep();
  });

  // Charts are drawn once all else can be read.
  function start() {
    if (ready) return;
    panels = drawPanels();
    restore();
    ready = true;
    document.documentElement.classList.add("drawn");
  }
  choose();
  window.addEventListener("load", () => setTimeout(start));

  night.addEventListener("change", () => Object.values(panels).forEach((panel) => panel.draw(true)));

  // ---------------------------------------------------------------- paper

  const MOST_PRINTED = 6;
  let printed = [];

  /** A chart of every problem, of the solvers that are shown, below one another. */
  function printProblems() {
    const panel = panels.convergence, sheet = $("#convergence .printed");
    if (!panel) return;
    const only = chosen().problem, wanted = panel.charts.filter((chart) => !only || chart.label === only), some = wanted.slice(0, MOST_PRINTED);
    for (const chart of some) {
      const canvas = make("canvas", { width: 660, height: 250 });
      const built = convergence(chart, (s) => panel.shows(s, chart), chart.examples, "seconds", true, true);
      const entries = entriesOf(chart).filter(({ s }) => panel.shows(s, chart));
      const legend = make("p", { className: "legend" }, ...entries.map((entry) => make("span", {}, swatch(entry.s), named(entry))));
      sheet.append(make("figure", {}, make("figcaption", { textContent: chart.label }), canvas, legend));
      printed.push(new Chart(canvas, configuration(built, { responsive: false })));
    }
    const cut = wanted.length > some.length ? `The first ${some.length} of ${wanted.length} problems; the page draws them all. ` : "";
    const rest = data.solvers.length > 8 ? "Of each problem the leading solvers, unless others were chosen. " : "";
    sheet.append(make("p", { className: "note", textContent: cut + rest + (some[0]?.caption ?? "") }));
  }

  window.addEventListener("beforeprint", () => {
    if (printing) return;
    start();
    printing = true;
    printProblems();
    const chart = panels.charts?.chart;
    if (chart) {
      panels.charts.draw(true);
      panels.charts.chart.resize(660, 300);
    }
  });
  window.addEventListener("afterprint", () => {
    printing = false;
    printed.forEach((chart) => chart.destroy());
    printed = [];
    $("#convergence .printed")?.replaceChildren();
    Object.values(panels).forEach((panel) => panel.draw(true));
  });

  // For tests.
  window.benchMtl = { chart: (name) => panels[name].chart };
})();

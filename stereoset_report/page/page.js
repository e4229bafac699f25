"use strict";
// Everything from the runs is put in place as text, never as markup.
const DATA = JSON.parse(document.getElementById("data").textContent);
const NUMBERS = ["ss", "lms", "icat"];
const SIDES = ["stereotype", "anti-stereotype", "unrelated", "tie"];
const AT_ONCE = 50;

function make(tag, text, attributes = {}) {
  const element = document.createElement(tag);
  if (text !== undefined && text !== null) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function choices(form, name, values, change, all = "all") {
  const label = make("label", name), select = make("select", null, { name });
  if (all !== null) select.append(make("option", all, { value: "" }));
  for (const value of values) select.append(make("option", value, { value }));
  select.addEventListener("change", change);
  label.append(select);
  form.append(label);
  return select;
}

function headers(row, columns, state, draw) {
  row.replaceChildren();
  for (const column of columns) {
    const cell = make("th", null, { scope: "col", class: column.number ? "number" : "text" });
    const button = make("button", column.title, { type: "button" });
    button.addEventListener("click", () => {
      state.down = state.by === column ? !state.down : Boolean(column.number);
      state.by = column;
      draw();
    });
    if (state.by === column) cell.setAttribute("aria-sort", state.down ? "descending" : "ascending");
    cell.append(button);
    row.append(cell);
  }
}

function sorted(rows, state) {
  if (!state.by) return rows;
  const value = state.by.value, sign = state.down ? -1 : 1;
  return rows.map((row, i) => [value(row), i, row]).sort((a, b) => {
    if (a[0] === null || b[0] === null) return (a[0] === null) - (b[0] === null) || a[1] - b[1];
    return sign * (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0) || a[1] - b[1];
  }).map(entry => entry[2]);
}

const unique = values => [...new Set(values)];

// The table of numbers

function meets(one, other) {
  return one && other && one[1] !== null && other[1] !== null && one[1] <= other[2] && other[1] <= one[2];
}

function drawNumbers() {
  const form = document.getElementById("table-filters"), table = document.getElementById("table");
  const families = new Map(DATA.runs.map(run => [run.name, run.families]));
  const signatures = new Map(DATA.runs.map(run => [run.name, run.signatures]));
  const columns = [
    { title: "run", value: row => row.run },
    { title: "language", value: row => row.language },
    { title: "task", value: row => row.task },
    { title: "examples", value: row => row.group },
    { title: "n", value: row => row.count, number: true },
    ...NUMBERS.map(name => ({ title: name, name, value: row => row[name] ? row[name][0] : null, number: true })),
    { title: "ties", value: row => row.ties, number: true },
    { title: "method", value: row => row.method },
  ];
  const state = { by: null, down: false };
  const fill = () => {
    const wanted = row => (!pick.language.value || row.language === pick.language.value)
      && (!pick.task.value || row.task === pick.task.value)
      && (!pick.group.value || row.group === pick.group.value)
      && (!pick.family.value || families.get(row.run).includes(pick.family.value))
      && (!pick.find.value || row.run.toLowerCase().includes(pick.find.value.toLowerCase()));
    const rows = sorted(DATA.rows.filter(wanted), state), name = state.by && state.by.name;
    headers(table.tHead.rows[0] || table.tHead.insertRow(), columns, state, fill);
    let close = 0;
    table.tBodies[0].replaceChildren(...rows.map((row, i) => {
      const line = make("tr"), same = name && i > 0 && meets(rows[i - 1][name], row[name]);
      close += same ? 1 : 0;
      for (const column of columns) {
        const cell = make("td", null, { class: column.number ? "number" : "text" });
        if (column.name && row[column.name]) {
          const [value, low, high] = row[column.name];
          cell.append((same && column.name === name ? "≈ " : "") + value.toFixed(2));
          if (low !== null) cell.append(make("small", `${low.toFixed(2)} to ${high.toFixed(2)}`));
        } else {
          const value = column.value(row);
          cell.append(value === null ? "–" : String(value));
        }
        if (column.title === "run") {
          const more = make("details"), known = signatures.get(row.run);
          more.append(make("summary", "signature"));
          for (const text of known.length ? known : ["a prediction file: nothing says how its scores were made"]) more.append(make("code", text));
          cell.append(more);
        }
        line.append(cell);
      }
      return line;
    }));
    document.getElementById("ranking").textContent = !name ? `${rows.length} rows.`
      : `${rows.length} rows by ${name}; ${close} of them are not separated from the row above (≈).`;
  };
  const pick = {
    language: choices(form, "language", unique(DATA.rows.map(row => row.language)), fill),
    task: choices(form, "task", unique(DATA.rows.map(row => row.task)), fill),
    group: choices(form, "bias type", unique(DATA.rows.map(row => row.group)), fill, "every"),
    family: choices(form, "family", unique(DATA.runs.flatMap(run => run.families)), fill),
    find: make("input", null, { type: "search", name: "run" }),
  };
  pick.group.value = "all";
  const label = make("label", "run");
  label.append(pick.find);
  pick.find.addEventListener("input", fill);
  form.append(label);
  form.addEventListener("submit", event => event.preventDefault());
  fill();
}

// The items

function drawItems() {
  const form = document.getElementById("item-filters"), table = document.getElementById("item-table");
  const more = document.getElementById("more"), found = document.getElementById("found");
  const title = part => `${part.task} (${part.language}${part.split === "validation" ? "" : ", " + part.split})`;
  const parts = new Map(DATA.items.map(part => [title(part), part]));
  if (!parts.size) return;
  const state = { by: null, down: false };
  let shown = AT_ONCE, part = null, run = null, other = null, searched = [];
  const number = value => value === null || value === undefined ? "–" : value.toFixed(2);
  const columns = () => {
    const all = [
      { title: "target", value: i => part.examples[i][2] },
      { title: "bias type", value: i => part.examples[i][1] },
      { title: "prefers", value: i => SIDES[run.preferred[i]] ?? null },
      { title: "margin (nats)", value: i => run.margins[i] ?? null, number: true },
    ];
    if (other) {
      all.push({ title: "the other", value: i => SIDES[other.preferred[i]] ?? null });
      all.push({ title: "its margin", value: i => other.margins[i] ?? null, number: true });
    }
    return all;
  };
  let heads = [];
  const text = i => {
    const [id, , , context, options] = part.examples[i], holder = make("details"), body = make("div", null, { class: "texts", dir: "auto" });
    holder.append(make("summary", "texts"));
    // Made when they are asked for: nobody reads thousands.
    const open = () => {
      if (body.childNodes.length) return;
      if (context) body.append(make("div", context, { dir: "auto" }));
      options.forEach((option, j) => {
        const line = make("div", null, { dir: "auto" });
        line.append(make("b", SIDES[j] + ": "), option);
        body.append(line);
      });
      body.append(make("small", id));
    };
    holder.addEventListener("toggle", () => holder.open && open());
    if (pick.texts.checked) { open(); holder.open = true; }
    holder.append(body);
    return holder;
  };
  const flips = i => other && side(run, i) !== null && side(other, i) !== null && side(run, i) !== side(other, i);
  const side = (one, i) => one.margins[i] === null || one.margins[i] === undefined
    ? (one.preferred[i] === 0 || one.preferred[i] === 1 ? one.preferred[i] : null) : one.margins[i] > 0 ? 0 : 1;
  const fill = () => {
    const words = pick.find.value.toLowerCase(), least = parseFloat(pick.margin.value);
    const wanted = [];
    for (let i = 0; i < part.examples.length; i++) {
      if (run.preferred[i] === null || run.preferred[i] === undefined) continue;
      if (pick.type.value && part.examples[i][1] !== pick.type.value) continue;
      if (pick.flag.value === "flip" ? !flips(i) : pick.flag.value && SIDES[run.preferred[i]] !== pick.flag.value) continue;
      if (!Number.isNaN(least) && !(Math.abs(run.margins[i]) >= least)) continue;
      if (words && !searched[i].includes(words)) continue;
      wanted.push(i);
    }
    const rows = sorted(wanted, state);
    headers(table.tHead.rows[0] || table.tHead.insertRow(), heads, state, fill);
    table.tBodies[0].replaceChildren(...rows.slice(0, shown).map(i => {
      const line = make("tr");
      heads.forEach((column, j) => {
        const value = column.value(i);
        const cell = make("td", column.number ? number(value) : value ?? "–", { class: column.number ? "number" : "text" });
        if (j === 0) cell.append(text(i));
        line.append(cell);
      });
      return line;
    }));
    found.textContent = `${rows.length} of ${part.examples.length} items, ${Math.min(shown, rows.length)} shown.`;
    more.hidden = rows.length <= shown;
  };
  const again = () => { shown = AT_ONCE; fill(); };
  const choose = () => {
    part = parts.get(pick.part.value);
    for (const [select, first] of [[pick.run, null], [pick.other, "none"]]) {
      const before = select.value;
      select.replaceChildren(...(first ? [make("option", first, { value: "" })] : []),
        ...part.runs.map(one => make("option", one.name, { value: one.name })));
      if (part.runs.some(one => one.name === before)) select.value = before;
    }
    pick.type.replaceChildren(make("option", "all", { value: "" }),
      ...unique(part.examples.map(one => one[1])).sort().map(one => make("option", one, { value: one })));
    searched = part.examples.map(([id, type, target, context, options]) => [id, type, target, context, ...options].join("\n").toLowerCase());
    compare();
  };
  const compare = () => {
    run = part.runs.find(one => one.name === pick.run.value) || part.runs[0];
    other = part.runs.find(one => one.name === pick.other.value) || null;
    heads = columns();
    if (state.by) state.by = heads.find(column => column.title === state.by.title) || null;
    again();
  };
  const input = (name, type, attributes = {}) => {
    const label = make("label", name), one = make("input", null, { type, name, ...attributes });
    one.addEventListener("input", again);
    label.append(one);
    form.append(label);
    return one;
  };
  const pick = {
    part: choices(form, "task", [...parts.keys()], choose, null),
    run: choices(form, "run", [], compare, null),
    other: choices(form, "against", [], compare, "none"),
    type: choices(form, "bias type", [], again),
    flag: choices(form, "prefers", [...SIDES, "flip"], again),
    margin: input("margin at least", "number", { min: "0", step: "0.1", size: "6" }),
    find: input("search", "search"),
    texts: input("show texts", "checkbox"),
  };
  form.addEventListener("submit", event => event.preventDefault());
  more.addEventListener("click", () => { shown += 4 * AT_ONCE; fill(); });
  choose();
}

drawNumbers();
drawItems();

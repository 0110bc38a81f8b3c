// What the pages do beyond being read: sorting, picking cases, filters, search. Without it every number is there still.
"use strict";

const text = (tag, content, className) => {
  const element = document.createElement(tag);
  element.textContent = content;
  if (className) element.className = className;
  return element;
};

// ---- sorting: every header becomes a button ----

const valueOf = (row, column) => {
  const cell = row.cells[column];
  if (!cell) return "";
  const stated = cell.dataset.value ?? cell.textContent.trim();
  return stated !== "" && !Number.isNaN(Number(stated)) ? Number(stated) : stated;
};

// Numbers before words, empty cells last in either direction.
const compare = (a, b) => {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return a.localeCompare(b, "en", { numeric: true });
};

const sortBy = (table, header, column) => {
  const descending = header.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({ row, value: valueOf(row, column) }));
  rows.sort((a, b) => {
    if ((a.value === "") !== (b.value === "")) return a.value === "" ? 1 : -1;
    return descending ? compare(b.value, a.value) : compare(a.value, b.value);
  });
  for (const { row } of rows) body.append(row);
};

const makeSortable = (table) => {
  for (const header of table.tHead.rows[0].cells) {
    if (header.classList.contains("pick")) continue;
    const button = text("button", header.textContent);
    button.type = "button";
    button.addEventListener("click", () => sortBy(table, header, header.cellIndex));
    header.replaceChildren(button);
  }
};

// ---- picking cases: the aggregate follows ----

const formatUs = (us) => (us >= 1000 ? us.toFixed(0) : us >= 100 ? us.toFixed(1) : us >= 10 ? us.toFixed(2) : us.toFixed(3));
const formatRatio = (ratio) => (ratio < 10 ? ratio.toFixed(3) : ratio.toFixed(1));
const formatSpeed = (speed) => (speed >= 100 ? speed.toFixed(0) : speed >= 1 ? speed.toFixed(1) : speed.toFixed(3));
const geometric = (list) => Math.exp(list.reduce((sum, x) => sum + Math.log(x), 0) / list.length);
const arithmetic = (list) => list.reduce((sum, x) => sum + x, 0) / list.length;

const casesOf = (key) => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const parts = data.entries ?? data.boards.flatMap((board) => board.details);
  return parts.find((part) => part.key === key).cases;
};

const updateAggregate = (table, cases) => {
  const boxes = [...table.tBodies[0].querySelectorAll(".pick input")];
  const picked = boxes.filter((box) => box.checked).map((box) => cases[Number(box.value)]);
  for (const box of boxes) box.closest("tr").classList.toggle("left-out", !box.checked);
  const all = picked.length === boxes.length;
  const [geometricRow, arithmeticRow] = table.tFoot.rows;
  const show = (row, columns) => columns.forEach((content, c) => (row.cells[c + 1].textContent = content));
  table.tFoot.querySelector(".picked").textContent = all ? `all ${picked.length}` : `${picked.length} picked`;
  const list = (key) => picked.map((item) => item[key]).filter((x) => typeof x === "number" && x > 0);
  const mean = (of, key, format) => (list(key).length ? format(of(list(key))) : "");
  show(geometricRow, [
    mean(geometric, "latency_us", formatUs), mean(geometric, "floor_us", formatUs),
    mean(geometric, "ratio", formatRatio), mean(geometric, "gb_per_s", formatSpeed),
  ]);
  show(arithmeticRow, [mean(arithmetic, "latency_us", formatUs), mean(arithmetic, "floor_us", formatUs)]);
  const master = table.tHead.querySelector(".pick input");
  master.checked = all;
  master.indeterminate = !all && picked.length > 0;
  table.closest(".scroll").nextElementSibling.textContent = all
    ? ""
    : picked.length === 0
      ? "No case is picked."
      : `${picked.length} of ${boxes.length} cases picked: geometric mean ${geometricRow.cells[1].textContent} us, ` +
        `ratio ${geometricRow.cells[3].textContent}.`;
};

const addBox = (row, tag, label, value) => {
  const cell = document.createElement(tag);
  cell.className = "pick";
  if (tag === "th") cell.scope = "col";
  const box = document.createElement("input");
  box.type = "checkbox";
  box.checked = true;
  box.value = value;
  box.setAttribute("aria-label", label);
  cell.append(box);
  row.prepend(cell);
  return box;
};

const makeSelectable = (table) => {
  const cases = casesOf(table.id);
  const master = addBox(table.tHead.rows[0], "th", "Pick all cases", "");
  [...table.tBodies[0].rows].forEach((row, index) => {
    if (cases[index].timed) addBox(row, "td", `Pick ${cases[index].name}`, index);
    else row.prepend(text("td", "", "pick"));
  });
  for (const row of table.tFoot.rows) row.cells[0].colSpan += 1;
  for (const note of table.querySelectorAll("caption .scripted")) note.hidden = false;
  table.addEventListener("change", (event) => {
    if (event.target === master) {
      for (const box of table.tBodies[0].querySelectorAll(".pick input")) box.checked = master.checked;
    }
    updateAggregate(table, cases);
  });
};

// ---- a case that was linked to ----

const showTarget = () => {
  const row = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (const other of document.querySelectorAll("tr.target")) other.classList.remove("target");
  if (!row || row.tagName !== "TR") return;
  row.classList.add("target");
  const details = row.closest("details");
  if (details) details.open = true;
  row.scrollIntoView({ block: "center" });
};

// ---- filters of the first page ----

const makeFilters = (form) => {
  const chosen = (name) => form.querySelector(`#filter-${name}`).value;
  const rows = [...document.querySelectorAll("[data-row]")];
  const apply = () => {
    for (const row of rows) {
      // What has no hardware, as a description, fits all of it.
      row.hidden = ["row", "pass", "hardware"].some(
        (name) => chosen(name) && row.dataset[name] !== undefined && row.dataset[name] !== chosen(name));
    }
    const shown = rows.filter((row) => row.tagName === "TR" && !row.hidden).length;
    document.getElementById("filter-count").textContent = `${shown} rows shown`;
  };
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", apply);
};

// ---- search ----

const MOST_RESULTS = 30;

// Words of a question that say nothing of what is looked for.
const IGNORED = new Set("a and at fastest for how in is of on the to what which with".split(" "));

// "S = 2048" is one word, and so are "24 heads", "2,048" and "2048 positions"; a comma or a space parts words.
const wordsOf = (query) => query.toLowerCase().replace(/(\d),(?=\d{3}\b)/g, "$1").replace(/\s*=\s*/g, "=")
  .replace(/\b(\d+) (?:query )?heads?\b/g, "heads=$1").replace(/\b(\d+) (?:positions|tokens)\b/g, "s=$1")
  .split(/[\s,?]+/).filter((word) => word && !IGNORED.has(word));

// How far an item is from a word: 0 is a match, and a size that is another one is near when it differs by little.
const distance = (haystack, word) => {
  const [key, size] = word.split("=");
  if (size === undefined || !/^\d+$/.test(size)) {
    // A number must stand by itself: 24 is not in 2048 or 124.
    const found = /^[\d.]+$/.test(word)
      ? new RegExp(`(^|[^0-9.])${word.replace(/\./g, "\\.")}([^0-9.]|$)`).test(haystack) : haystack.includes(word);
    return found ? 0 : Infinity;
  }
  // Heads are query heads where an operator has both kinds.
  const named = [...haystack.matchAll(/([a-z_]+)=(\d+)/g)].filter(([, name]) => name === key || name.endsWith(`_${key}`));
  const exact = named.filter(([, name]) => name === key || name === `num_${key}`);
  const sizes = exact.length ? exact : named;
  return Math.min(Infinity, ...sizes.map(([, , own]) => Math.abs(Math.log(Number(own) / Number(size)))));
};

// Every item that has all words; where none has, those that have the most, the nearest sizes first.
const find = (query) => {
  const words = wordsOf(query);
  const scored = words.length === 0 ? [] : window.ropegradSearch.map((item) => {
    item.haystack ??= `${item.title} ${item.words} ${item.detail ?? ""}`.toLowerCase();
    const distances = words.map((word) => distance(item.haystack, word));
    const near = distances.filter((far) => far > 0 && far < Infinity);
    return { item, score: distances.filter((far) => far === 0).length, near: near.length, far: arithmetic([...near, 0]) };
  });
  const best = Math.max(0, ...scored.map((one) => one.score));
  if (best === words.length) return { all: true, items: scored.filter((one) => one.score === best).map((one) => one.item) };
  const nearest = scored.filter((one) => one.score + one.near > 0 && one.score >= Math.min(best, 1));
  nearest.sort((a, b) => b.score + b.near - a.score - a.near || b.score - a.score || a.far - b.far);
  const most = nearest.length ? nearest[0].score + nearest[0].near : 0;
  return { all: false, items: nearest.filter((one) => one.score + one.near === most).map((one) => one.item) };
};

const makeSearch = (box) => {
  const input = box.querySelector("input"), results = box.querySelector(".results");
  const list = results.querySelector("ul"), count = results.querySelector("p");
  let chosen = -1;
  const root = document.body.dataset.root;
  const choose = (index) => {
    const options = list.children;
    chosen = options.length === 0 ? -1 : (index + options.length) % options.length;
    [...options].forEach((option, o) => option.setAttribute("aria-selected", String(o === chosen)));
    if (chosen < 0) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", options[chosen].id);
    options[chosen].scrollIntoView({ block: "nearest" });
  };
  const close = () => {
    results.hidden = true;
    input.setAttribute("aria-expanded", "false");
    choose(-1);
    chosen = -1;
  };
  const open = (address) => {
    close();
    location.href = root + address;
  };
  const update = () => {
    const { all, items } = find(input.value);
    list.replaceChildren(...items.slice(0, MOST_RESULTS).map((item, index) => {
      const option = document.createElement("li");
      option.id = `found-${index}`;
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", "false");
      option.append(text("span", item.title), text("span", item.detail ?? item.kind, "minor"));
      option.dataset.address = item.address;
      return option;
    }));
    const some = items.length > 0, asked = input.value.trim() !== "";
    results.hidden = !asked;
    input.setAttribute("aria-expanded", String(asked && some));
    count.textContent = !asked ? "" : !some ? "Nothing found"
      : all ? `${items.length} found` : "Nothing has all of these. The nearest:";
    if (some) choose(0);
  };
  input.addEventListener("input", update);
  input.addEventListener("focus", () => input.value && update());
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen - 1);
    else if (event.key === "Escape") close();
    else if (event.key === "Enter" && chosen >= 0 && !results.hidden) open(list.children[chosen].dataset.address);
    else return;
    event.preventDefault();
  });
  list.addEventListener("mousedown", (event) => {
    const option = event.target.closest("li");
    if (!option) return;
    event.preventDefault();
    open(option.dataset.address);
  });
  input.addEventListener("blur", close);
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    const asked = (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) ||
      (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey));
    if (!asked) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
  box.hidden = false;
};

// ---- begin ----

for (const table of document.querySelectorAll("table.selectable")) makeSelectable(table);
for (const table of document.querySelectorAll("table.sortable")) makeSortable(table);
for (const form of document.querySelectorAll("form.filters")) makeFilters(form);
for (const box of document.querySelectorAll(".search")) if (window.ropegradSearch) makeSearch(box);
window.addEventListener("hashchange", showTarget);
showTarget();

"use strict";
const at = id => document.getElementById(id);
const make = (name, content, cls) => { const it = document.createElement(name); if (content !== undefined) it.textContent = content; if (cls) it.className = cls; return it; };
const shape = (name, attributes) => { const it = document.createElementNS("http://www.w3.org/2000/svg", name); for (const key in attributes) it.setAttribute(key, attributes[key]); return it; };
const color = name => `var(--${name})`;
const KINDS = [["allowed", "allowed", ["allowed", "allow_list"]], ["denied", "denied", ["denied", "never", "deny_list", "banned"]],
  ["degraded", "answered by policy", ["degraded_allowed", "degraded_denied"]], ["error", "error", ["error"]],
  ["uncharged", "passed without a charge", ["peeked", "repeated"]], ["other", "other outcomes", []]];
/* The outcomes of each column of the table. What no column names, of a later version of Weir, is in the last one. */
const COLUMNS = [["allowed", ["allowed"]], ["denied", ["denied", "never"]], ["by allow list", ["allow_list"]], ["by deny list", ["deny_list"]],
  ["banned", ["banned"]], ["by policy", ["degraded_allowed", "degraded_denied"]], ["errors", ["error"]], ["peeked", ["peeked"]],
  ["repeated", ["repeated"]], ["other", []]];
/* What limits deny. Deny lists and bans are no limits. */
const LIMITED = COLUMNS[1][1];
const placeOf = (list, outcome) => { const place = list.findIndex(one => one.at(-1).includes(outcome)); return place < 0 ? list.length - 1 : place; };
const COLORS = 8;
const clock = (second, exact) => new Date(second * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: exact ? "2-digit" : undefined, hourCycle: "h23" });

/* A strategy keeps its colour: it follows from its name, and a name that comes later takes one that is free. */
const colors = new Map();
function colorOf(strategy) {
  if (!colors.has(strategy)) {
    let hash = 0;
    for (const char of strategy) hash = (hash * 31 + char.codePointAt(0)) % 65521;
    const taken = new Set(colors.values()), free = Array.from({ length: COLORS }, (_, step) => (hash + step) % COLORS);
    colors.set(strategy, free.find(one => !taken.has(one)) ?? free[0]);
  }
  return `var(--s${colors.get(strategy)})`;
}
function short(number) {
  if (number >= 1e9) return (number / 1e9).toFixed(1) + "G";
  if (number >= 1e6) return (number / 1e6).toFixed(1) + "M";
  if (number >= 1e4) return (number / 1e3).toFixed(1) + "k";
  return number >= 100 || Number.isInteger(number) ? Math.round(number).toLocaleString("en") : number.toFixed(1);
}
const span = us => us === null ? "–" : us >= 1e6 ? (us / 1e6).toFixed(1) + " s" : us >= 1e3 ? (us / 1e3).toFixed(us < 1e4 ? 1 : 0) + " ms" : Math.round(us) + " µs";

/* A number that is round and not below `most`. */
function roof(most) {
  const unit = 10 ** Math.floor(Math.log10(Math.max(most, 1)));
  return [1, 2, 4, 5, 10].map(factor => factor * unit).find(round => round >= most) || most;
}

/* Draws layers of values by time: stacked bars, or lines. The last time is not over, and is drawn as unfinished. */
function chart(id, times, layers, { lines = false, format = short, every = [10, 20], exact = false, span = "the last hour" } = {}) {
  const svg = at(id), box = svg.getBoundingClientRect(), width = box.width, height = box.height;
  const left = 44, bottom = height - 20, top = 8, right = width - 4, running = times.length - 1;
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const sum = place => layers.reduce((sum, layer) => sum + (layer.values[place] || 0), 0);
  const peak = place => lines ? Math.max(...layers.map(layer => layer.values[place] || 0)) : sum(place);
  const most = roof(Math.max(...times.map((_, place) => peak(place)), 1));
  const x = place => left + (right - left) * place / times.length;
  const y = value => bottom - (bottom - top) * value / most;
  for (const part of [0, .5, 1]) {
    svg.append(shape("line", { x1: left, x2: right, y1: y(most * part), y2: y(most * part), stroke: "var(--grid)" }));
    const label = shape("text", { x: left - 8, y: y(most * part) + 4, "text-anchor": "end" });
    label.textContent = format(most * part);
    svg.append(label);
  }
  times.forEach((time, place) => {
    if (time % (60 * every[width < 420 ? 1 : 0])) return;
    const label = shape("text", { x: x(place + .5), y: height - 4, "text-anchor": "middle" });
    label.textContent = clock(time);
    if (x(place + .5) > left + 12 && x(place + .5) < right - 14) svg.append(label);
  });
  const wide = times.length > 60 ? (right - left) / times.length : Math.max((right - left) / times.length - 1, 1);
  if (lines) {
    for (const layer of layers) {
      let path = "", drawn = false;
      const point = (place, value) => `${x(place + .5).toFixed(1)} ${y(value).toFixed(1)}`;
      layer.values.forEach((value, place) => {
        if (value === null) { drawn = false; return; }
        const alone = layer.values[place - 1] == null && layer.values[place + 1] == null;
        if (alone) svg.append(shape("circle", { cx: x(place + .5), cy: y(value), r: 2.5, fill: layer.color, class: place === running ? "running" : "" }));
        if (place === running && drawn) {
          const last = `M${point(place - 1, layer.values[place - 1])}L${point(place, value)}`;
          svg.append(shape("path", { d: last, fill: "none", stroke: layer.color, "stroke-width": 2, "stroke-dasharray": "2 3", class: "running" }));
          return;
        }
        path += `${drawn ? "L" : "M"}${point(place, value)}`;
        drawn = true;
      });
      svg.append(shape("path", { d: path, fill: "none", stroke: layer.color, "stroke-width": times.length > 60 ? 1.5 : 2, "stroke-linejoin": "round" }));
    }
  } else {
    times.forEach((_, place) => {
      let below = 0;
      for (const layer of layers) {
        const value = layer.values[place] || 0;
        if (!value) continue;
        const high = Math.max(y(below) - y(below + value), 1);
        svg.append(shape("rect", { x: x(place), y: y(below) - high, width: wide, height: high, fill: layer.color, class: place === running ? "running" : "" }));
        below += value;
      }
    });
  }
  const legend = at(id + "-legend");
  legend.replaceChildren(...layers.map(layer => {
    const entry = make("span"), dot = make("i");
    dot.style.background = layer.color;
    entry.append(dot, layer.name);
    return entry;
  }));
  if (!times.some((_, place) => peak(place) > 0)) {
    const none = shape("text", { x: (left + right) / 2, y: (top + bottom) / 2, "text-anchor": "middle" });
    none.textContent = "nothing in " + span;
    svg.append(none);
  }
  svg.onpointerleave = () => { at("tip").hidden = true; };
  svg.onpointermove = event => {
    const place = Math.floor((event.clientX - svg.getBoundingClientRect().left - left) / (right - left) * times.length);
    if (!(place in times)) { at("tip").hidden = true; return; }
    const values = layers.filter(layer => layer.values[place]).map(layer => `\n${layer.name}: ${format(layer.values[place])}`);
    const tip = at("tip");
    tip.textContent = clock(times[place], exact) + (place === running ? ", not over yet" : "") + (values.join("") || "\nnothing");
    tip.hidden = false;
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)) + "px";
  };
}

function table(id, head, rows, empty) {
  const it = typeof id === "string" ? at(id) : id;
  if (!rows.length) { const row = make("tr"); row.append(make("td", empty, "empty")); it.replaceChildren(row); return; }
  const line = (cells, name) => {
    const row = make("tr");
    cells.forEach((cell, column) => {
      const one = make(name, typeof cell === "object" ? undefined : cell, head[column][1]);
      if (typeof cell === "object") one.append(...cell);
      row.append(one);
    });
    return row;
  };
  const top = make("thead"), body = make("tbody");
  top.append(line(head.map(([text]) => text), "th"));
  body.append(...rows.map(row => line(row, "td")));
  it.replaceChildren(top, body);
}

function consumers(id, list, kind) {
  const most = Math.max(...list.map(one => one.calls), 1);
  const row = one => {
    const bar = make("div", "", "bar");
    bar.style.background = color(kind);
    bar.style.width = 100 * one.calls / most + "%";
    const off = one.error + one.sampling_error;
    return [[make("div", one.consumer), make("small", one.strategy, "narrow"), bar], one.strategy, [make("span", short(one.calls)), make("small", off ? ` ±${short(off)}` : "")]];
  };
  table(id, [["consumer", ""], ["strategy", "wider"], ["calls", "n"]], list.map(row), "nobody");
}

const total = values => values.reduce((sum, value) => sum + value, 0);

/* A layer for each strategy: at most eight, and the rest as one. */
function byStrategy(list, times, outcomes, scale = 1) {
  const sums = new Map();
  for (const one of list) {
    if (!outcomes.includes(one.outcome)) continue;
    const values = sums.get(one.strategy) || times.map(() => 0);
    one.points.forEach((calls, place) => { values[place] += calls / scale; });
    sums.set(one.strategy, values);
  }
  const all = [...sums].filter(([, values]) => total(values) > 0).sort((a, b) => total(b[1]) - total(a[1]));
  const layers = all.slice(0, COLORS - 1).map(([name, values]) => ({ name, values, color: colorOf(name) }));
  const rest = all.slice(COLORS - 1);
  if (rest.length) layers.push({ name: `${rest.length} others`, color: "var(--dim)", values: times.map((_, place) => rest.reduce((sum, one) => sum + one[1][place], 0)) });
  return layers.sort((a, b) => a.name < b.name ? -1 : 1);
}

function byOutcome(list, times) {
  const layers = KINDS.map(([kind, name]) => ({ name, color: color(kind), values: times.map(() => 0) }));
  for (const one of list) one.points.forEach((calls, place) => { layers[placeOf(KINDS, one.outcome)].values[place] += calls; });
  return layers;
}

const shown = layers => layers.filter((layer, place) => place < 2 || total(layer.values) > 0);
const seconds = count => count === 0 ? "–" : count < 60 ? count.toFixed(1) + " s" : count < 3600 ? `${Math.floor(count / 60)}m ${Math.round(count % 60)}s` : `${Math.floor(count / 3600)}h ${Math.round(count % 3600 / 60)}m`;

let data = null;
function draw() {
  if (!data) return;
  const wanted = at("strategy").value, names = [...new Set(data.series.map(one => one.strategy))].sort();
  names.forEach(colorOf);
  const options = ["", ...names].map(name => { const it = make("option", name || "all strategies"); it.value = name; it.selected = name === wanted; return it; });
  if (at("strategy").length !== options.length) at("strategy").replaceChildren(...options);
  const of = list => list.filter(one => !wanted || one.strategy === wanted);
  hour(of(data.series));
  tenMinutes(of(data.seconds.series));
  strategies(of(data.series));
  consumers("top-denied", of(data.denied).slice(0, 10), "denied");
  consumers("top-allowed", of(data.allowed).slice(0, 10), "allowed");
  held(of);
  cards();
  nodes();
  const numbers = data.rejected.filter(one => one.count > 0), all = numbers.reduce((sum, one) => sum + one.count, 0);
  at("rejected").textContent = short(all);
  at("rejected-kinds").textContent = numbers.map(one => `${one.kind.replaceAll("_", " ")} ${short(one.count)}`).join(", ") || "since this node began";
  at("foot").textContent = `Weir ${data.version}. Numbers of consumers are estimates. As of ${new Date(data.now * 1000).toLocaleTimeString()}.`;
}

function hour(series) {
  const minutes = Array.from({ length: 60 }, (_, place) => data.from + 60 * place);
  const layers = byOutcome(series, minutes);
  chart("outcomes", minutes, shown(layers));
  const [allowed, denied, degraded, errors, free] = layers.map(layer => total(layer.values));
  const all = allowed + denied + degraded + errors;
  at("rate").textContent = short(layers.reduce((sum, layer) => sum + layer.values[58], 0) / 60);
  at("free").textContent = "last whole minute" + (free ? `; ${short(free)} of the hour without a charge` : "");
  at("share").textContent = all ? (100 * denied / all).toFixed(1) + " %" : "–";
  const count = outcome => total(series.filter(one => one.outcome === outcome).map(one => total(one.points)));
  const listed = count("deny_list"), banned = count("banned");
  at("denied").textContent = `${short(denied)} of ${short(all)}, last hour` + (listed ? `; ${short(listed)} by lists` : "") + (banned ? `; ${short(banned)} banned` : "");
  at("policy").textContent = short(degraded + errors);
  at("errors").textContent = "without the store, last hour" + (errors ? `; ${short(errors)} errors` : "");
  chart("denials", minutes, byStrategy(series, minutes, LIMITED));
  const took = minutes.map(minute => data.latency.find(one => one.at === minute) || { p50_us: null, p99_us: null });
  chart("latency", minutes, [{ name: "p99", color: color("p99"), values: took.map(one => one.p99_us) },
    { name: "p50", color: color("p50"), values: took.map(one => one.p50_us) }], { lines: true, format: span });
  const last = took.filter(one => one.p99_us !== null).pop();
  at("p99").textContent = last ? span(last.p99_us) : "–";
  at("p50").textContent = last ? `p50 ${span(last.p50_us)}, this node` : "this node";
}

function tenMinutes(series) {
  const times = Array.from({ length: 600 }, (_, place) => data.seconds.from + place);
  const options = { every: [2, 2], exact: true, span: "the last ten minutes" };
  chart("seconds", times, shown(byOutcome(series, times)), options);
  chart("passed", times, byStrategy(series, times, KINDS[0][2]), { ...options, lines: true });
}

function strategies(series) {
  const rows = new Map();
  for (const one of series) {
    const key = JSON.stringify([one.strategy, one.pattern]), row = rows.get(key) || { ...one, all: 0, by: COLUMNS.map(() => 0), cost: 0 };
    row.all += one.calls; row.cost += one.outcome === "allowed" ? one.cost : 0;
    row.by[placeOf(COLUMNS, one.outcome)] += one.calls;
    rows.set(key, row);
  }
  const list = [...rows.values()].sort((a, b) => b.all - a.all);
  // Allowed and denied calls always have their columns; the others with their first call.
  const used = COLUMNS.map((_, place) => place).filter(place => place < 2 || list.some(row => row.by[place]));
  const named = row => { const dot = make("i"); dot.style.background = colorOf(row.strategy); const it = make("div"); it.append(dot, row.strategy); return it; };
  const decided = row => row.all - COLUMNS.reduce((sum, [, outcomes], place) => sum + (KINDS[4][2].includes(outcomes[0]) ? row.by[place] : 0), 0);
  const share = row => decided(row) ? (100 * row.by[1] / decided(row)).toFixed(1) + " %" : "–";
  const cells = row => [[named(row), make("small", row.pattern || "no pattern", "narrow")], row.pattern || "–", short(row.all), ...used.map(place => short(row.by[place])), share(row), short(row.cost)];
  const head = used.map(place => [COLUMNS[place][0], COLUMNS[place][0] === "denied" ? "n" : "n wider"]);
  table("rows", [["strategy", ""], ["resources", "wider"], ["calls", "n"], ...head, ["denied %", "n wider"], ["cost", "n wider"]],
    list.map(cells), "no decisions in the last hour");
}

/* What limits deny, and permits: of this node, since it began. */
function held(of) {
  table("limits", [["limit", ""], ["strategy", "wider"], ["denials", "n"]],
    of(data.limits).map(one => [[make("div", one.limit), make("small", one.strategy, "narrow")], one.strategy, short(one.denials)]), "no limit has denied a call");
  at("permits-card").hidden = !data.permits.length;
  table("permits", [["strategy", ""], ["held", "n"], ["limit", "n"], ["keys", "n"]],
    of(data.permits).map(one => [one.strategy, short(one.held), short(one.limit), short(one.keys)]), "no permits");
  at("costs-card").hidden = !data.costs.length;
  const used = one => data.series.reduce((sum, row) => sum + (row.strategy === one.strategy && row.costs[one.cost] || 0), 0);
  const amount = (units, one) => [make("span", short(units)), make("small", one.unit ? " " + one.unit : "")];
  table("costs", [["limit", ""], ["cost", "wider"], ["used", "n"], ["held", "n"]],
    of(data.costs).map(one => [[make("div", one.limit), make("small", one.strategy)], one.cost, amount(used(one), one), one.held === null ? "–" : amount(one.held, one)]), "no costs by name");
}

/* The cards of features, of this node: a table each. */
function cards() {
  const forms = { count: short, seconds };
  at("cards").replaceChildren(...data.cards.filter(card => card.rows.length).map(card => {
    const it = make("section", undefined, "half"), rows = make("table");
    const head = card.columns.map(one => [one.heading, one.wide ? "n wider" : "n"]);
    table(rows, [[card.label, ""], ...head], card.rows.map(([name, ...cells]) => [name, ...cells.map((cell, place) => forms[card.columns[place].form](cell))]), "");
    it.append(make("h2", card.title), make("p", card.about), rows);
    return it;
  }));
}

/* The banner: a paragraph for each problem, amber if calls are decided all the same. */
function tell(problems, cls) {
  at("problem").hidden = !problems.length;
  at("problem").className = cls;
  at("problem").replaceChildren(...problems.map(problem => make("p", problem)));
}

function nodes() {
  const lines = data.health.trim().split("\n"), notes = lines.filter(line => line.startsWith("note: ")).map(line => line.slice(6));
  const state = !data.ready ? ["bad", "not ready"] : !lines[0].startsWith("ready") ? ["fair", "degraded"]
    : notes.length ? ["fair", notes.length > 1 ? `${notes.length} notes` : "1 note"] : ["good", "store ok"];
  at("store").className = "pill " + state[0];
  at("store").textContent = state[1];
  at("health").textContent = data.health.trim();
  at("breakers").replaceChildren(...data.breakers.map(one => {
    const it = make("div", `${one.node}: ${one.open ? "breaker open, not asked" : one.up ? "asked" : "does not decide"}`, one.open || !one.up ? "open" : "");
    if (one.opened) it.textContent += `, opened ${short(one.opened)} ×`;
    return it;
  }));
  const running = data.nodes.filter(one => one.ended === null), ended = data.nodes.filter(one => one.ended !== null);
  at("nodes").textContent = (running.length > 1 ? `${running.length} nodes: ` : "node ") + running.map(one => one.name).join(", ");
  const stalled = !lines[0].startsWith("ready");
  const problem = stalled ? `The store does not answer, so this page shows what this node knows. ${lines[0]}`
    : data.incomplete ? `The store has not answered about other nodes, so their decisions are missing here: ${data.incomplete}` : "";
  tell([...(problem ? [problem] : []), ...notes], problem ? "bad" : "fair");
  const when = second => new Date(second * 1000).toLocaleString();
  const row = one => [[make("div", one.name), make("small", one.address)], one.ended === null ? one.state.replace("_", " ") : `ended ${when(one.ended)}`,
    one.version, when(one.started), [make("div", one.files), make("small", `read ${when(one.files_read)}`)], one.control === "0" ? "–" : one.control];
  const head = [["node", ""], ["state", ""], ["version", "wider"], ["began", "wider"], ["files", ""], ["live control", "n wider"]];
  table("node-rows", head, running.map(row), "unknown");
  at("ended").hidden = !ended.length;
  table("ended-rows", head, ended.map(row), "none");
  const differ = of => new Set(running.map(of)).size > 1;
  at("nodes-note").textContent = differ(one => one.files) ? "nodes have different files" : differ(one => one.control) ? "a change of live control is on its way" : "all have the same files and the same version of live control";
  at("control-card").hidden = !data.control;
  if (!data.control) return;
  const until = one => one.expires ? `until ${new Date(one.expires * 1000).toLocaleString()}` : "until deleted";
  const entry = one => [[make("div", one.what), make("small", one.waiting ? `waits: ${one.waiting}` : one.reason)], one.change, one.by || "–", until(one)];
  table("control", [["entry", ""], ["change", "wider"], ["by", "wider"], ["ends", "n"]], data.control.entries.map(entry), "nothing is changed: the files are in force");
  at("control-note").textContent = data.control.more ? `${data.control.more} more: weir control list` : data.control.incomplete || "changes of live control that are in force";
}
/* The token stays in this variable: a reload asks for it again. */
let token = "";
at("login").onsubmit = event => {
  event.preventDefault();
  token = at("token").value.trim();
  at("token").value = "";
  load(false);
};
async function load(again = true) {
  try {
    const headers = token ? { authorization: "Bearer " + token } : {};
    const answer = await fetch("/ui/data", { cache: "no-store", credentials: "omit", headers });
    const asks = answer.status === 401;
    at("login").hidden = !asks;
    document.body.classList.toggle("locked", asks);
    at("refused").textContent = asks && token ? "This token is not known here, or is no longer valid." : "";
    if (asks) tell([]);
    else if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
    else {
      data = await answer.json();
      draw();
      document.body.dataset.drawn = String(Number(document.body.dataset.drawn || 0) + 1);
    }
  } catch (error) {
    tell(["No answer from this node: " + error.message], "bad");
  }
  if (again) setTimeout(load, 5000);
}
at("strategy").onchange = draw;
addEventListener("resize", draw);
load();
